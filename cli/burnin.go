package cli

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cli/look"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/submit"
)

const burninUsage = `usage: muster burnin [--seconds N] [--memory MB] [--disk MB] [--output FILE] NODES
       muster burnin --show [--json] [NODES|UUID|SERIAL …]`

// burninLimit is the time limit of a test's job, where its partition allows so much.
const burninLimit = 2 * time.Hour

// runBurnin submits an acceptance test of each of some nodes, or shows what tests found (muster burnin [--show] …).
// It returns the exit code: 1 if a part that is shown has failed.
func runBurnin(sys *front.Sys, argv []string) int {
	wrong := func() int {
		fmt.Fprintln(sys.Stderr, burninUsage)
		return 2
	}
	show, json, options, output := false, false, []string(nil), os.DevNull
	for len(argv) > 0 && strings.HasPrefix(argv[0], "--") {
		name, value, has := strings.Cut(argv[0], "=")
		argv = argv[1:]
		switch name {
		case "--show":
			show = true
			continue
		case "--json":
			json = true
			continue
		case "--seconds", "--memory", "--disk", "--output":
		default:
			return wrong()
		}
		if !has {
			if len(argv) == 0 {
				return wrong()
			}
			value, argv = argv[0], argv[1:]
		}
		if name == "--output" {
			output = value
			continue
		}
		if n, err := strconv.Atoi(value); err != nil || n <= 0 {
			return sys.Fail("%s %s: want a number above 0", name, value)
		}
		options = append(options, name, value)
	}
	switch {
	case show && len(options) == 0:
		return burninShow(sys, argv, json)
	case show || json || len(argv) != 1 || strings.HasPrefix(argv[0], "-"):
		return wrong()
	}
	return burninSubmit(sys, argv[0], options, output)
}

// burninSubmit submits a job for each node: the whole node, after all others in the queue, and again if it is lost.
func burninSubmit(s *front.Sys, list string, options []string, output string) int {
	names, err := hostlist.Expand(list)
	if err != nil {
		return s.Fail("%s: %v", list, err)
	}
	var q api.NodeQuery
	for _, n := range names {
		q.Names = append(q.Names, cluster.NodeName(n))
	}
	resp, err := front.Call(s, api.ListNodes, q)
	if err != nil {
		return s.Failed(err)
	}
	if len(resp.Missing) > 0 {
		return s.Fail("there is no node %s; see sinfo", front.NodeText(resp.Missing))
	}
	if _, err := front.Call(s, api.ListTokens, api.Empty{}); s.UID != 0 && front.IsKind(err, cluster.ErrAccess) { // as only operators may
		return s.Fail("only operators may test nodes: what a user's test finds would count for nothing")
	}
	info, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		return s.Failed(err)
	}
	self, err := os.Executable()
	if err != nil {
		return s.Failed(err)
	}
	failed := 0
	for i := range resp.Nodes {
		n := &resp.Nodes[i]
		partition := partitionOf(info.Config.Partitions, n.Name)
		if partition == nil {
			fmt.Fprintf(s.Stderr, "%s: node %s is in no partition: it can have no jobs\n", s.Prog, n.Name)
			failed = 1
			continue
		}
		line := "exec muster internal burnin " + strings.Join(options, " ")
		limit := strconv.Itoa(int(burninTime(partition) / time.Minute))
		argv := []string{"--job-name=burnin", "--nodelist=" + string(n.Name), "--nodes=1", "--ntasks=1",
			"--partition=" + partition.Name, "--exclusive", "--mem=0", "--priority=1",
			"--requeue", "--time=" + limit, "--chdir=/", "--output=" + output, "--wrap=PATH=" + shellWord(path.Dir(self)) + `:"$PATH" ` + line}
		if gpus := len(n.Inventory.Found()); gpus > 0 {
			argv = append(argv, "--gres=gpu:"+strconv.Itoa(gpus))
		}
		r, err := submit.ParseSbatch(argv, s)
		if err != nil {
			return s.Usage(err)
		}
		q, code := submit.Submission(s, r)
		if code != 0 {
			return code
		}
		job, err := submit.SubmitAll(s, r, q)
		if err != nil {
			text, _ := front.ErrorText(err)
			fmt.Fprintf(s.Stderr, "%s: the test of node %s could not be submitted: %s\n", s.Prog, n.Name, text)
			failed = 1
			continue
		}
		note := ""
		if !n.Up || n.Down || n.Drain || n.Failing {
			note = fmt.Sprintf(", once the node is resumed: it is %s", show.StateWord(show.NodeState(n), true))
		}
		fmt.Fprintf(s.Stdout, "node %s is tested by job %d%s\n", n.Name, job.Job, note)
	}
	return failed
}

// shellWord quotes a text for the shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// partitionOf is the partition that suits the test of a node best, nil if none has it: one that gives all of the
// node's CPUs, for as long as a test may take, and of these the default one.
func partitionOf(all []cluster.Partition, n cluster.NodeName) *cluster.Partition {
	var best *cluster.Partition
	for i := range all {
		p := &all[i]
		has := p.State == cluster.PartitionUp && (p.All || slices.Contains(p.Nodes, n))
		if has && (best == nil || suitsTest(p) > suitsTest(best)) {
			best = p
		}
	}
	return best
}

// suitsTest rates a partition for the test of a whole node.
func suitsTest(p *cluster.Partition) (points int) {
	for i, good := range [...]bool{p.Default, burninTime(p) == burninLimit, !p.LimitsCPUs()} {
		if good {
			points += 1 << i
		}
	}
	return points
}

// burninTime returns the time limit of a test in a partition. A job whose limit exceeds MaxTime would never start.
func burninTime(p *cluster.Partition) time.Duration {
	if p.MaxTime <= 0 {
		return burninLimit
	}
	return min(burninLimit, p.MaxTime)
}

// burninShow prints the latest test of each part.
func burninShow(s *front.Sys, names []string, json bool) int {
	var q api.BurninQuery
	for _, text := range names {
		list, err := hostlist.Expand(text)
		if err != nil {
			return s.Fail("%s: %v", text, err)
		}
		q.Names = append(q.Names, list...)
	}
	resp, err := front.Call(s, api.ListBurnins, q)
	if err != nil {
		return s.Failed(err)
	}
	code := 0
	for _, p := range resp.Parts {
		if p.Tests[0].Verdict == cluster.BurninFailed {
			code = 1
		}
	}
	switch {
	case json:
		if failed := s.JSON(map[string]any{"parts": append([]*cluster.TestedPart{}, resp.Parts...)}); failed != 0 {
			return failed
		}
	case len(resp.Parts) == 0 && len(names) == 0:
		fmt.Fprintln(s.Stdout, "nothing was tested yet; muster burnin NODES does")
	case len(resp.Parts) == 0:
		fmt.Fprintf(s.Stdout, "%s: nothing was tested yet\n", strings.Join(names, ", "))
	default:
		burninTable(s, resp.Parts)
	}
	return code
}

func burninTable(s *front.Sys, parts []*cluster.TestedPart) {
	slices.SortStableFunc(parts,
		func(a, b *cluster.TestedPart) int { return cmp.Compare(a.Tests[0].Node, b.Tests[0].Node) })
	t := &look.Columns{}
	t.Line("NODE", "PART", "SERIAL", "TESTED", "JOB", "VERDICT", "WHAT")
	for _, p := range parts {
		for i, test := range p.Tests {
			var what []string
			if test.Text != "" {
				what = append(what, test.Text)
			}
			for _, f := range test.Figures {
				what = append(what, strings.TrimSpace(f.Name+" "+strconv.FormatFloat(f.Value, 'g', 4, 64)+" "+f.Unit))
			}
			id, serial := strings.TrimPrefix(p.ID, string(p.Tests[0].Node)+"/"), cmp.Or(p.Serial, "-")
			if i > 0 {
				id, serial = "", ""
			}
			t.Line(string(test.Node), id, serial, format.Stamp(test.At, "-"),
				strconv.FormatUint(uint64(test.Job), 10), string(test.Verdict), strings.Join(what, ", "))
		}
	}
	t.Print(s.Stdout)
}
