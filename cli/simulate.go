package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dev.muster/agent"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched/replay"
	"dev.muster/slurm/conf"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// policyNames are what --policy may name.
func policyNames() []string {
	names := []string{replay.Real, replay.Strict}
	for _, p := range replay.Textbook {
		names = append(names, p.Name)
	}
	return names
}

// usualPolicies are compared if nobody says which; with --compare those of toCompare.
const usualPolicies = "fifo,easy,conservative," + replay.Real

// simCommand replays a workload through schedulers in virtual time.
func simCommand() *cli.Command {
	return &cli.Command{
		Name:      "sim",
		Usage:     "replay a workload through schedulers in virtual time and compare them",
		ArgsUsage: "TRACE | --from accounting | --faults TABLE",
		Description: "TRACE is a log in the Standard Workload Format (.swf) or a table with the columns job_id, submit, nodes, cpus, gpus,\n" +
			"mem_mb, walltime, runtime, user, group, partition, gpu_type, gpu_milli; either may be packed (.gz). " + replay.Real + " gives out\n" +
			"parts of a GPU (gpu_milli), and counts cpus and mem_mb of jobs with GPUs where nodes is 1; the textbook's policies count\n" +
			"whole GPUs. With --from accounting it is the cluster's own past: the jobs that ran, as given, on the nodes that it has\n" +
			"now; muster sim --from accounting --compare shows what another order would have made of it, in words.\n" +
			"Entries without run time, limit or size, and what the empty cluster could not run, are left out and told; runs are cut\n" +
			"at their limits. At one instant: ends, then submissions in order of the file, then one pass. All rules:\n" +
			"docs/simulator.md. The same input gives the same bytes.",
		Flags:  simFlags(),
		Action: simulate,
	}
}

func simFlags() []cli.Flag {
	places := slices.Sorted(maps.Keys(replay.Placements))
	return append(faultFlags(), []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "accounting: replay this cluster's history instead of a TRACE"},
		&cli.StringFlag{
			Name:  "since",
			Usage: "with --from: only jobs that ended after this time, as 2006-01-02 or 2006-01-02T15:04:05",
		},
		&cli.StringFlag{Name: "until", Usage: "with --from: only jobs submitted before this time"},
		&cli.StringFlag{Name: "nodes",
			Usage: "table of nodes: name, count, cpus, gpus, mem_mb, gpu_type, partition, switch " +
				"(SWF: default is the log's machine; history: the cluster's)"},
		&cli.StringFlag{Name: "limit", Usage: "runtime: give jobs without a time limit their run time as the limit"},
		&cli.Float64Flag{
			Name: "pace", Value: 1,
			Usage: "stretch the time between submissions by this factor: 2 halves the load, 0.5 doubles it",
		},
		&cli.StringFlag{
			Name: "policy", Value: usualPolicies,
			Usage: "policies to compare, from " + strings.Join(policyNames(), ", "),
		},
		&cli.StringFlag{
			Name:  "conf",
			Usage: "slurm.conf for " + replay.Real + " and " + replay.Strict + "; nodes and partitions are the trace's",
		},
		&cli.StringFlag{
			Name: "place", Value: "best",
			Usage: "how to choose the node for a job smaller than a node: " + strings.Join(places, ", "),
		},
		&cli.BoolFlag{
			Name:  "compare",
			Usage: "compare muster's default, a strict order and textbook EASY in words and in a picture",
		},
		&cli.StringFlag{Name: "out", Usage: "write each schedule to `PREFIX`POLICY.csv: job_id,start,end,node:share ..."},
		&cli.StringFlag{Name: "svg", Usage: "draw the queue over time to `FILE`; with --compare, waits by job size (default: " + usualPicture + ")"},
		&cli.BoolFlag{Name: "quiet", Usage: "do not show a progress bar"},
	}...)
}

// simulation is one call of muster sim: what to replay under which policies, and what came of it.
type simulation struct {
	trace     *replay.Trace
	title     string
	names     []string // of policies
	config    *cluster.Config
	better    replay.Placement
	quiet     bool
	out       string // prefix of the schedules' files
	schedules [][]replay.Run
	sums      []replay.Summary
}

func simulate(c *cli.Context) error {
	if err := runSimulation(c); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return nil
}

func runSimulation(c *cli.Context) error {
	traces, err := lateOptions(c)
	if err != nil {
		return err
	}
	if c.String("faults") != "" {
		return simulateFaults(c, traces)
	}
	if c.String("assume") != "" {
		return errors.New("--assume is for --faults")
	}
	if err := checkSource(c, traces); err != nil {
		return err
	}
	s, err := newSimulation(c)
	if err != nil {
		return err
	}
	picture := c.String("svg")
	if picture == "" && c.Bool("compare") {
		picture = usualPicture
	}
	if err := cmp.Or(checkFolder("out", s.out), checkFolder("svg", picture)); err != nil {
		return err
	}
	if s.trace, s.title, err = workload(c, traces); err != nil {
		return err
	}
	s.trace.Spread(c.Float64("pace"))
	for _, left := range s.trace.Left {
		fmt.Fprintf(os.Stderr, "muster sim: left out: %s\n", left)
	}
	agent.SpendMemory()
	if err := s.replay(); err != nil {
		return err
	}
	draw := s.trace.Draw
	if c.Bool("compare") {
		draw = s.trace.DrawSizes
	}
	if picture != "" {
		err := writeTo(picture, func(w io.Writer) error { return draw(w, s.title, titles(s.names), s.schedules) })
		if err != nil {
			return err
		}
	}
	if !c.Bool("compare") {
		return compare(s.names, s.sums)
	}
	if err := s.tell(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\nThe picture of it: %s\n", picture)
	return nil
}

// maxPace bounds --pace: times stay within centuries.
const maxPace = 1000

// newSimulation reads the options that say how to replay.
func newSimulation(c *cli.Context) (*simulation, error) {
	s := &simulation{quiet: c.Bool("quiet"), out: c.String("out"), names: toCompare}
	if !c.Bool("compare") || c.IsSet("policy") {
		s.names = strings.Split(strings.ReplaceAll(c.String("policy"), " ", ""), ",")
	}
	for _, name := range s.names {
		if !slices.Contains(policyNames(), name) {
			return nil, fmt.Errorf("--policy %q is not known: want some of %s", name, strings.Join(policyNames(), ", "))
		}
	}
	better, ok := replay.Placements[c.String("place")]
	if !ok {
		places := strings.Join(slices.Sorted(maps.Keys(replay.Placements)), ", ")
		return nil, fmt.Errorf("--place %s is not known: want one of %s", c.String("place"), places)
	}
	s.better = better
	if limit := c.String("limit"); limit != "" && limit != "runtime" {
		return nil, fmt.Errorf("--limit %s is not known: want runtime, by which jobs without a limit asked for what they took",
			limit)
	}
	if pace := c.Float64("pace"); !(pace > 0 && pace <= maxPace) {
		return nil, fmt.Errorf("--pace %v is none: want a number above 0, up to %d", pace, maxPace)
	}
	path := c.String("conf")
	if path == "" {
		return s, nil
	}
	loaded, notes, err := conf.Load(path)
	for _, n := range notes {
		fmt.Fprintln(os.Stderr, "muster sim:", n)
	}
	s.config = loaded
	return s, err
}

// replay runs the trace under each policy.
func (s *simulation) replay() error {
	for _, name := range s.names {
		runs, err := s.trace.Schedule(name, s.config, s.better, progress(s.quiet, name, len(s.trace.Jobs)))
		if err != nil {
			return err
		}
		s.sums = append(s.sums, s.trace.Summarize(runs))
		s.schedules = append(s.schedules, runs)
		if s.out == "" {
			continue
		}
		err = writeTo(s.out+name+".csv", func(w io.Writer) error { return s.trace.WriteSchedule(w, runs) })
		if err != nil {
			return err
		}
	}
	return nil
}

// lateOptions takes the options that stand behind the trace, and returns what is none.
func lateOptions(c *cli.Context) (traces []string, err error) {
	known := map[string]bool{} // by name, whether it has a value
	for _, f := range simFlags() {
		_, plain := f.(*cli.BoolFlag)
		known[f.Names()[0]] = !plain
	}
	for args := c.Args().Slice(); len(args) > 0; args = args[1:] {
		text, option := strings.CutPrefix(args[0], "-")
		if !option || text == "" {
			traces = append(traces, args[0])
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(text, "-"), "=")
		valued, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("option %s is not known; see muster sim --help", args[0])
		}
		if valued && !given {
			if len(args) < 2 {
				return nil, fmt.Errorf("option %s wants a value behind it", args[0])
			}
			args = args[1:]
			value = args[0]
		}
		if err := c.Set(name, cmp.Or(value, "true")); err != nil {
			return nil, fmt.Errorf("option --%s %s: %w", name, value, err)
		}
	}
	return traces, nil
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
		return fmt.Errorf("--%s %s cannot be written in %s: %w; make that folder, or name another one",
			option, path, dir, err)
	}
	return nil
}

// checkSource checks that there is one workload.
func checkSource(c *cli.Context, traces []string) error {
	switch from := c.String("from"); {
	case from != "" && from != "accounting":
		return fmt.Errorf("--from %s is not known: want accounting, or a trace in its place", from)
	case from != "" && len(traces) > 0:
		return fmt.Errorf("--from accounting takes no trace, got %s: give one or the other", traces[0])
	case from == "" && (c.String("since") != "" || c.String("until") != ""):
		return errors.New("--since and --until are for --from accounting")
	case from == "" && len(traces) != 1:
		return fmt.Errorf("want one trace or --from accounting, got %d traces; see muster sim --help", len(traces))
	}
	return nil
}

// workload reads the trace, or the cluster's history, and names it.
func workload(c *cli.Context, traces []string) (*replay.Trace, string, error) {
	if c.String("from") == "" {
		var changes []func(*replay.Job)
		if c.String("limit") == "runtime" {
			changes = append(changes, replay.LimitByRun)
		}
		t, err := replay.Load(traces[0], c.String("nodes"), changes...)
		return t, filepath.Base(traces[0]), err
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
	past, err := api.AllHistory(q, func(q api.HistoryQuery) (api.HistoryResponse, error) {
		return api.Call(c.Context, local(), api.ListHistory, q)
	})
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
	known, err := api.Call(c.Context, local(), api.ShowCluster, api.Empty{})
	if err != nil {
		return nil, "", err
	}
	t, err := replay.History(jobs, c.String("nodes"), now, nodes.Partitions)
	if err != nil {
		return nil, "", err
	}
	t.Wire(known.Config.Topology)
	return t, "accounting", nil
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
		fmt.Fprintf(os.Stderr, "\r%-14s %s%s %3d%%", name, strings.Repeat("█", part),
			strings.Repeat("·", width-part), done*100/all)
		if done == all {
			fmt.Fprint(os.Stderr, "\r\033[K")
		}
	}
}
