package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"dev.muster/agent"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched/replay"
	"dev.muster/slurm/conf"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// simCommand replays a workload through schedulers in virtual time.
// policyNames are what --policy may name.
func policyNames() []string {
	names := []string{replay.Real}
	for _, p := range replay.Textbook {
		names = append(names, p.Name)
	}
	return names
}

func simCommand() *cli.Command {
	places := slices.Sorted(maps.Keys(replay.Placements))
	return &cli.Command{Name: "sim", Usage: "replay a workload through schedulers in virtual time and compare them", ArgsUsage: "TRACE | --from accounting",
		Description: "TRACE is a log in the Standard Workload Format (.swf) or a table with the columns job_id, submit, nodes, cpus, gpus,\n" +
			"mem_mb, walltime, runtime, user, group, partition, gpu_type, gpu_milli; either may be packed (.gz). " + replay.Real + " gives out parts of a GPU (gpu_milli), and\n" +
			"counts cpus and mem_mb of jobs with GPUs where nodes is 1; the other policies count whole GPUs.\n" +
			"With --from accounting it is the cluster's own past: the jobs that ran, as given, on the nodes that it has now.\n" +
			"Entries without run time, limit or size, and what the empty cluster could not run, are left out and told; runs are cut at their limits.\n" +
			"At one instant: ends, then submissions in order of the file, then one pass. All rules: docs/simulator.md. The same input gives the same bytes.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "accounting: replay this cluster's history in place of a TRACE"},
			&cli.StringFlag{Name: "since", Usage: "of the history: jobs that lived after this time, as 2006-01-02 or 2006-01-02T15:04:05"},
			&cli.StringFlag{Name: "until", Usage: "of the history: jobs submitted up to this time"},
			&cli.StringFlag{Name: "nodes", Usage: "table of nodes: name, count, cpus, gpus, mem_mb, gpu_type, partition, switch (SWF: default is the log's machine; history: the cluster's)"},
			&cli.StringFlag{Name: "policy", Value: "fifo,easy,conservative," + replay.Real, Usage: "what to compare, of " + strings.Join(policyNames(), ", ")},
			&cli.StringFlag{Name: "conf", Usage: "slurm.conf for " + replay.Real + "; nodes and partitions are the trace's"},
			&cli.StringFlag{Name: "place", Value: "best", Usage: "which node takes a part of a node: " + strings.Join(places, ", ")},
			&cli.StringFlag{Name: "out", Usage: "write each schedule to `PREFIX`POLICY.csv: job_id,start,end,nodes"},
			&cli.StringFlag{Name: "svg", Usage: "draw queue and use over time to `FILE`"},
			&cli.BoolFlag{Name: "quiet", Usage: "no progress bar"},
		}, Action: simulate}
}

func simulate(c *cli.Context) error {
	if err := checkSource(c); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	better, ok := replay.Placements[c.String("place")]
	if !ok {
		return fmt.Errorf("sim: --place %s is not known: want one of %s", c.String("place"), strings.Join(slices.Sorted(maps.Keys(replay.Placements)), ", "))
	}
	names := strings.Split(strings.ReplaceAll(c.String("policy"), " ", ""), ",")
	for _, name := range names {
		if name != replay.Real && replay.Named(name).Name == "" {
			return fmt.Errorf("sim: --policy %q is not known: want some of %s", name, strings.Join(policyNames(), ", "))
		}
	}
	for _, o := range []string{"out", "svg"} {
		if err := checkFolder(o, c.String(o)); err != nil {
			return fmt.Errorf("sim: %w", err)
		}
	}
	var config *cluster.Config
	if path := c.String("conf"); path != "" {
		loaded, notes, err := conf.Load(path)
		if err != nil {
			return fmt.Errorf("sim: %w", err)
		}
		for _, n := range notes {
			fmt.Fprintln(os.Stderr, "muster sim:", n)
		}
		config = loaded
	}
	t, name, err := workload(c)
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	for _, left := range t.Left {
		fmt.Fprintf(os.Stderr, "muster sim: left out: %s\n", left)
	}
	agent.SpendMemory()
	var sums []replay.Summary
	var schedules [][]replay.Run
	for _, name := range names {
		var runs []replay.Run
		if tick := progress(c.Bool("quiet"), name, len(t.Jobs)); name != replay.Real {
			runs = t.Textbook(replay.Named(name), better, tick)
		} else if runs, err = t.Replay(config, tick); err != nil {
			return fmt.Errorf("sim: %w", err)
		}
		sums, schedules = append(sums, t.Summarize(runs)), append(schedules, runs)
		if prefix := c.String("out"); prefix != "" {
			if err := writeTo(prefix+name+".csv", func(w io.Writer) error { return t.WriteSchedule(w, runs) }); err != nil {
				return err
			}
		}
	}
	if path := c.String("svg"); path != "" {
		if err := writeTo(path, func(w io.Writer) error { return t.Draw(w, name, names, schedules) }); err != nil {
			return err
		}
	}
	return compare(names, sums)
}

// checkFolder checks that there is a folder for what an option says is written at the end.
func checkFolder(option, path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	at, err := os.Stat(dir)
	if err == nil && !at.IsDir() {
		err = errors.New("it is no folder")
	}
	if err == nil {
		err = unix.Access(dir, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("--%s %s can not be written in %s: %w; make that folder, or name another one", option, path, dir, err)
	}
	return nil
}

// checkSource checks that there is one workload.
func checkSource(c *cli.Context) error {
	switch from := c.String("from"); {
	case from != "" && from != "accounting":
		return fmt.Errorf("--from %s is not known: want accounting, or a trace in its place", from)
	case from != "" && c.NArg() > 0:
		return fmt.Errorf("--from accounting takes no trace, got %s: give one or the other", c.Args().First())
	case from == "" && (c.String("since") != "" || c.String("until") != ""):
		return errors.New("--since and --until are for --from accounting")
	case from == "" && c.NArg() != 1:
		return fmt.Errorf("want one trace or --from accounting, got %d traces (options go before it); see muster sim --help", c.NArg())
	}
	return nil
}

// workload reads the trace, or the cluster's history, and names it.
func workload(c *cli.Context) (*replay.Trace, string, error) {
	if c.String("from") == "" {
		t, err := replay.Load(c.Args().First(), c.String("nodes"))
		return t, filepath.Base(c.Args().First()), err
	}
	var q api.HistoryQuery
	var err error
	if q.From, err = moment(c, "since"); err != nil {
		return nil, "", err
	}
	if q.To, err = moment(c, "until"); err != nil {
		return nil, "", err
	}
	if !q.To.IsZero() && !q.From.Before(q.To) {
		return nil, "", fmt.Errorf("--since %s is not before --until %s", c.String("since"), c.String("until"))
	}
	past, err := api.Call(c.Context, local(), api.ListHistory, q)
	if err != nil {
		return nil, "", err
	}
	var jobs []*cluster.Job
	for _, r := range past.Records {
		jobs = append(jobs, r.Job)
	}
	nodes, err := api.Call(c.Context, local(), api.ListNodes, api.NodeQuery{})
	if err != nil {
		return nil, "", err
	}
	now := make([]*cluster.Node, 0, len(nodes.Nodes))
	for i := range nodes.Nodes {
		now = append(now, &nodes.Nodes[i].Node)
	}
	t, err := replay.History(jobs, c.String("nodes"), now, nodes.Partitions)
	return t, "accounting", err
}

// moment reads a time of day or a date from an option; zero if it is not given.
func moment(c *cli.Context, option string) (time.Time, error) {
	text := c.String(option)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--%s %s is no time: want 2006-01-02 or 2006-01-02T15:04:05", option, text)
}

// compare prints the figures side by side.
func compare(names []string, sums []replay.Summary) error {
	return table(func(w *tabwriter.Writer) {
		row := func(label, format string, value func(replay.Summary) any) {
			fmt.Fprint(w, label)
			for _, s := range sums {
				fmt.Fprintf(w, "\t"+format, value(s))
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "\t%s\n", strings.Join(names, "\t"))
		for _, r := range []struct {
			label, format string
			value         func(replay.Summary) any
		}{
			{"jobs", "%d", func(s replay.Summary) any { return s.Jobs }},
			{"wait, mean (s)", "%.1f", func(s replay.Summary) any { return s.Mean }},
			{"wait, p50", "%.0f", func(s replay.Summary) any { return s.P50 }},
			{"wait, p95", "%.0f", func(s replay.Summary) any { return s.P95 }},
			{"wait, p99", "%.0f", func(s replay.Summary) any { return s.P99 }},
			{"wait, worst", "%.0f", func(s replay.Summary) any { return s.Worst }},
			{"bounded slowdown, mean", "%.2f", func(s replay.Summary) any { return s.Slowdown }},
			{"utilization", "%.4f", func(s replay.Summary) any { return s.Utilization }},
			{"users treated alike (Jain)", "%.4f", func(s replay.Summary) any { return s.Fairness }},
			{"makespan (s)", "%d", func(s replay.Summary) any { return s.Makespan }},
		} {
			row(r.label, r.format, r.value)
		}
	})
}

// writeTo writes a whole file, or tells what went wrong.
func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = write(w)
	if e := w.Flush(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// progress draws a bar on a terminal; nil where there is none.
func progress(quiet bool, name string, all int) func(int) {
	if _, err := unix.IoctlGetWinsize(2, unix.TIOCGWINSZ); err != nil || quiet {
		return nil
	}
	const width = 40
	shown := -1
	return func(done int) {
		part := done * width / all
		if part == shown {
			return
		}
		shown = part
		fmt.Fprintf(os.Stderr, "\r%-14s %s%s %3d%%", name, strings.Repeat("█", part), strings.Repeat("·", width-part), done*100/all)
		if done == all {
			fmt.Fprint(os.Stderr, "\r\033[K")
		}
	}
}
