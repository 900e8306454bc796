package main

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"github.com/urfave/cli/v2"
)

// configCommand looks at configuration files before they are put in force.
func configCommand() *cli.Command {
	return &cli.Command{Name: "config", Usage: "configuration files: check them, and compare them with what is in force", Subcommands: []*cli.Command{
		{Name: "check", Usage: "read a slurm.conf, and what lies beside it, and say what is not understood or changes nothing", ArgsUsage: "FILE…",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "tell of keys too that need no setting here"},
				&cli.BoolFlag{Name: "strict", Usage: "exit with 3 if there is anything to tell"}},
			Action: checkConfig},
		{Name: "diff", Usage: "what muster server --conf FILE, or scontrol reconfigure, would change", ArgsUsage: "FILE", Action: diffConfig},
	}}
}

func checkConfig(c *cli.Context) error {
	if c.NArg() == 0 {
		return fmt.Errorf("usage: muster config check [--all] [--strict] FILE…")
	}
	told := 0
	for _, file := range c.Args().Slice() {
		cfg, notes, fine, err := conf.Check(file)
		if err != nil {
			return err
		}
		told += len(notes)
		for _, n := range notes {
			fmt.Fprintln(c.App.Writer, n)
		}
		if c.Bool("all") {
			for _, n := range fine {
				fmt.Fprintln(c.App.Writer, n)
			}
		}
		parts := make([]string, len(cfg.Partitions))
		for i := range cfg.Partitions {
			parts[i] = cfg.Partitions[i].Name
		}
		fmt.Fprintf(c.App.Writer, "%s: cluster %s, %d nodes declared, partitions %s; %d notes\n", file, cfg.ClusterName, len(cfg.Declared), strings.Join(parts, " "), len(notes))
	}
	if told > 0 && c.Bool("strict") {
		return cli.Exit("", 3)
	}
	return nil
}

func diffConfig(c *cli.Context) error {
	if c.NArg() != 1 {
		return fmt.Errorf("usage: muster config diff FILE")
	}
	want, _, _, err := conf.Check(c.Args().First())
	if err != nil {
		return err
	}
	have, err := api.Call(c.Context, local(), api.ShowCluster, api.Empty{})
	if err != nil {
		return err
	}
	if printDiff(c.App.Writer, &have.Config, want) == 0 {
		fmt.Fprintln(c.App.Writer, "nothing would change")
	}
	return nil
}

// printDiff prints what is another in a configuration than in the one in force, and counts it.
func printDiff(w io.Writer, have, want *cluster.Config) (n int) {
	line := func(sign, what, text string) {
		n++
		fmt.Fprintf(w, "%s %s%s\n", sign, what, text)
	}
	keys := slices.Sorted(maps.Keys(have.Keys))
	for k := range want.Keys {
		if _, there := have.Keys[k]; !there {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		old, had := have.Keys[k]
		now, has := want.Keys[k]
		if had && (!has || old != now) {
			line("-", k+"=", old)
		}
		if has && (!had || old != now) {
			line("+", k+"=", now)
		}
	}
	differ(have.Partitions, want.Partitions, func(p cluster.Partition) string { return p.Name }, func(sign, name string) { line(sign, "PartitionName=", name) })
	differ(have.Declared, want.Declared, func(d cluster.Node) string { return string(d.Name) }, func(sign, name string) { line(sign, "NodeName=", name) })
	differ(have.Topology, want.Topology, func(s cluster.Switch) string { return s.Name }, func(sign, name string) { line(sign, "SwitchName=", name) })
	return n
}

// differ tells which of two lists is in one alone (- or +), or another there (~), by name.
func differ[T any](have, want []T, name func(T) string, tell func(sign, name string)) {
	old := map[string]T{}
	for _, x := range have {
		old[name(x)] = x
	}
	for _, x := range want {
		switch was, there := old[name(x)]; {
		case !there:
			tell("+", name(x))
		case !reflect.DeepEqual(was, x):
			tell("~", name(x))
		}
		delete(old, name(x))
	}
	for _, left := range slices.Sorted(maps.Keys(old)) {
		tell("-", left)
	}
}
