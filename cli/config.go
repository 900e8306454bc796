package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/container/enroot"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
	"dev.muster/slurm/lua"
	"github.com/urfave/cli/v2"
)

// configCommand looks at configuration files, and activates them: the configuration is one value, the same on
// all servers.
func configCommand() *cli.Command {
	dry := &cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "show what would change, without changing it"}
	return &cli.Command{Name: "config",
		Usage: "check, compare and apply configurations; list and undo changes",
		Subcommands: []*cli.Command{
			{Name: "check",
				Usage:     "list settings of a slurm.conf and the files beside it that muster rejects or ignores",
				ArgsUsage: "FILE|DIR…",
				Flags: []cli.Flag{&cli.BoolFlag{
					Name: "all", Aliases: []string{"a"},
					Usage: "also list settings that muster does not need",
				},
					&cli.BoolFlag{Name: "strict", Usage: "exit with 3 if there are any notes"}},
				Action: checkConfig},
			{
				Name:      "diff",
				Usage:     "show what muster config apply FILE, or scontrol reconfigure, would change",
				ArgsUsage: "FILE|DIR", Action: diffConfig,
			},
			{
				Name:      "apply",
				Usage:     "apply a slurm.conf, and the files beside it, on all servers and nodes",
				ArgsUsage: "FILE|DIR", Action: applyConfig,
				Flags: []cli.Flag{dry, &cli.BoolFlag{Name: "force", Usage: "apply it despite unknown settings"}},
			},
			{Name: "show", Usage: "print the active configuration, or that of change NUMBER, as files",
				ArgsUsage: "[NUMBER]",
				Flags:     []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write the files to this folder instead"}},
				Action:    showConfig},
			{Name: "history", Usage: "list configuration changes: when, by whom and how", Action: configHistory},
			{
				Name:      "undo",
				Usage:     "roll back the last change, or return to change NUMBER",
				ArgsUsage: "[NUMBER]", Flags: []cli.Flag{dry}, Action: undoConfig,
			},
		}}
}

// confFile is the slurm.conf that an argument names: a file, or a folder with one.
func confFile(arg string) string {
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return filepath.Join(arg, "slurm.conf")
	}
	return arg
}

func checkConfig(c *cli.Context) error {
	if c.NArg() == 0 {
		return errors.New("usage: muster config check [--all] [--strict] FILE|DIR…")
	}
	told := tellSite(c.App.Writer)
	for _, arg := range c.Args().Slice() {
		file := confFile(arg)
		cfg, notes, fine, err := conf.Check(file)
		if err == nil {
			err = checkScripts(cfg)
		}
		if err != nil {
			return err
		}
		told += len(notes)
		tell(c.App.Writer, notes)
		if c.Bool("all") {
			tell(c.App.Writer, fine)
		}
		parts := make([]string, len(cfg.Partitions))
		for i := range cfg.Partitions {
			parts[i] = cfg.Partitions[i].Name
		}
		fmt.Fprintf(c.App.Writer, "%s: cluster %s, %d nodes declared, partitions %s; %s\n", file,
			cfg.ClusterName, len(cfg.Declared), strings.Join(parts, " "), count(len(notes), "note"))
	}
	if told > 0 && c.Bool("strict") {
		return cli.Exit("", 3)
	}
	return nil
}

// tellSite tells what this machine's files of enroot have that changes nothing for its containers; an error counts.
func tellSite(w io.Writer) int {
	site := enroot.Read(enroot.Dir())
	tell(w, site.Notes())
	if site.Error == "" {
		return 0
	}
	return 1
}

func tell(w io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}

// configAt asks for a configuration by its number, nil for the active one.
func configAt(c *cli.Context, n *int) (api.ConfigResponse, error) {
	return api.Call(c.Context, local(), api.ShowConfig, api.ConfigQuery{At: n})
}

// numberArg is the number of a change, if there is one.
func numberArg(c *cli.Context) (*int, error) {
	if c.NArg() == 0 {
		return nil, nil
	}
	n, err := strconv.Atoi(c.Args().First())
	if err != nil || n < 0 || c.NArg() > 1 {
		return nil, fmt.Errorf("usage: muster config %s [NUMBER], a number that muster config history lists",
			c.Command.Name)
	}
	return &n, nil
}

func diffConfig(c *cli.Context) error {
	if c.NArg() != 1 {
		return errors.New("usage: muster config diff FILE|DIR")
	}
	want, _, err := conf.Load(confFile(c.Args().First()))
	if err != nil {
		return err
	}
	have, err := configAt(c, nil)
	if err != nil {
		return err
	}
	printDiff(c.App.Writer, have.Config, want)
	return nil
}

// printDiff prints what would change.
func printDiff(w io.Writer, have, want *cluster.Config) {
	lines := conf.Difference(have, want)
	if tell(w, lines); len(lines) == 0 {
		fmt.Fprintln(w, "nothing would change")
	}
}

func applyConfig(c *cli.Context) error {
	if c.NArg() != 1 {
		return errors.New("usage: muster config apply [--dry-run] [--force] FILE|DIR")
	}
	want, notes, err := conf.Load(confFile(c.Args().First()))
	if err != nil {
		return err
	}
	have, err := configAt(c, nil)
	if err != nil {
		return err
	}
	tell(c.App.ErrWriter, notes)
	if wrong := conf.Mistyped(notes); len(wrong) > 0 && !c.Bool("force") && !c.Bool("dry-run") {
		return fmt.Errorf("muster config apply: nothing was changed: %s; correct the file or use --force",
			front.Plural(len(wrong), "unknown key", "unknown keys"))
	}
	return putConfig(c, have, want, "apply")
}

func undoConfig(c *cli.Context) error {
	to, err := numberArg(c)
	if err != nil {
		return err
	}
	have, err := configAt(c, nil)
	if err != nil {
		return err
	}
	if to == nil {
		if len(have.Changes) == 0 {
			return errors.New("no change of the configuration is remembered: there is nothing to undo")
		}
		n := have.Changes[len(have.Changes)-1].N - 1
		to = &n
	}
	was, err := configAt(c, to)
	if err != nil {
		return err
	}
	how := fmt.Sprintf("undo %d", *to)
	if *to == 0 {
		how = "undo of all changes"
	}
	return putConfig(c, have, was.Config, how)
}

// putConfig shows what a configuration changes and has the servers activate it, if nobody was faster.
func putConfig(c *cli.Context, have api.ConfigResponse, want *cluster.Config, how string) error {
	printDiff(c.App.Writer, have.Config, want)
	next := *want
	next.Applied, next.Source = true, ""
	same, err := have.Config.Same(&next) // the same text may mean more to a newer muster
	if err != nil || same || c.Bool("dry-run") {
		return err
	}
	cmd := cluster.Configure{Config: &next, How: how}
	if k := len(have.Changes); k > 0 {
		cmd.Onto = have.Changes[k-1].N
	}
	r, err := api.Call(c.Context, local(), api.Configure, cmd)
	if err != nil {
		return err
	}
	tell(c.App.ErrWriter, r.Notes)
	if !have.Config.Applied {
		fmt.Fprintln(c.App.ErrWriter,
			"from now on servers do not read their --conf files by themselves; scontrol reconfigure goes back to the file of the server that leads")
	}
	fmt.Fprintln(c.App.Writer, "active")
	return nil
}

func showConfig(c *cli.Context) error {
	n, err := numberArg(c)
	if err != nil {
		return err
	}
	r, err := configAt(c, n)
	if err != nil {
		return err
	}
	files := conf.Write(r.Config)
	if dir := c.String("dir"); dir != "" {
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text()), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	for i, f := range files {
		if i > 0 {
			fmt.Fprintf(c.App.Writer, "\n# %s\n", f.Name)
		}
		fmt.Fprint(c.App.Writer, f.Text())
	}
	return nil
}

func configHistory(c *cli.Context) error {
	r, err := configAt(c, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%6s %-19s %-12s %s\n", "NUMBER", "TIME", "BY", "HOW")
	for _, x := range r.Changes {
		fmt.Fprintf(c.App.Writer, "%6d %-19s %-12s %s\n", x.N, x.At.Local().Format(time.DateTime), x.By, x.How)
	}
	return nil
}

// checkScripts says what is wrong with the scripts of a configuration.
func checkScripts(cfg *cluster.Config) error {
	for _, name := range slices.Sorted(maps.Keys(cfg.Scripts)) {
		if err := lua.Check(name, cfg.Scripts[name]); err != nil {
			return err
		}
	}
	return nil
}
