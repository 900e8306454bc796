package nodetest

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cli/look"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/submit"
)

// burninSubmit submits a job for each node: the whole node, after all others in the queue, and again if it is lost.
func burninSubmit(s *front.Sys, list string, options []string, output string) int {
	nodes, code := namedNodes(s, list)
	if code != 0 {
		return code
	}
	if code := mayTest(s); code != 0 {
		return code
	}
	info, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		return s.Failed(err)
	}
	self, err := os.Executable()
	if err != nil {
		return s.Failed(err)
	}
	line := "PATH=" + shellWord(path.Dir(self)) + `:"$PATH" exec muster internal burnin ` + strings.Join(options, " ")
	failed := 0
	for i := range nodes {
		n := &nodes[i]
		partition := partitionOf(info.Config.Partitions, n.Name)
		if partition == nil {
			fmt.Fprintf(s.Stderr, "%s: node %s is in no partition: it can have no jobs\n", s.Prog, n.Name)
			failed = 1
			continue
		}
		job, code, err := submitTest(s, n, partition, line, output)
		if code != 0 {
			return code
		}
		if err != nil {
			text, _ := front.ErrorText(err)
			fmt.Fprintf(s.Stderr, "%s: the test of node %s could not be submitted: %s\n", s.Prog, n.Name, text)
			failed = 1
			continue
		}
		note := ""
		if !inService(n) {
			note = fmt.Sprintf(", once the node is resumed: it is %s", show.StateWord(show.NodeState(n), true))
		}
		fmt.Fprintf(s.Stdout, "node %s is tested by job %d%s\n", n.Name, job, note)
	}
	return failed
}

// submitTest submits the test of one node: the code says that the site refuses such jobs, the error that this one is.
func submitTest(s *front.Sys, n *api.NodeInfo, p *cluster.Partition, line, output string) (cluster.JobID, int, error) {
	argv := []string{
		"--job-name=burnin",
		"--nodelist=" + string(n.Name),
		"--nodes=1",
		"--ntasks=1",
		"--partition=" + p.Name,
		"--exclusive",
		"--mem=0",
		"--priority=1",
		"--requeue",
		"--time=" + minutes(burninTime(p)),
		"--chdir=/",
		"--output=" + output,
		"--wrap=" + line,
	}
	if gpus := len(n.Inventory.Found()); gpus > 0 {
		argv = append(argv, "--gres=gpu:"+strconv.Itoa(gpus))
	}
	r, err := submit.ParseSbatch(argv, s)
	if err != nil {
		return 0, s.Usage(err), nil
	}
	q, code := submit.Submission(s, r)
	if code != 0 {
		return 0, code, nil
	}
	made, err := submit.SubmitAll(s, r, q)
	return made.Job, 0, err
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
