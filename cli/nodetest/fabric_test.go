package nodetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/burnin/bandwidth"
	"dev.muster/burnin/pairs"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

func TestFabricOptions(t *testing.T) {
	var errs bytes.Buffer
	sys := &front.Sys{Prog: "muster", Stderr: &errs}
	o, code := parseFabric(sys, strings.Fields("--seconds=0.5 --rails ib0,ib1 --tool tcp --min 350 --wait 2 "+
		"--no-record --json n[1-4]"))
	if code != 0 || o.Time != 500*time.Millisecond || fmt.Sprint(o.Rails) != "[ib0 ib1]" || o.Tool != bandwidth.TCP ||
		o.Min != 350 || o.First != 2*time.Minute || !o.noRecord || !o.json || o.nodes != "n[1-4]" || o.Streams != 4 {
		t.Errorf("got %+v, %d, %s", o, code, errs.String())
	}
	job := *sys
	job.Environ = []string{"SLURM_JOB_NODELIST=n[1-4]", "SLURM_JOB_ID=7"}
	o, code = parseFabric(&job, []string{"--job", "--names"})
	if code != 0 || o.nodes != "n[1-4]" || !o.inJob || !o.noRecord || !slices.Contains(o.step(&job), "--jobid=7") {
		t.Errorf("in a job: %+v, %d, %s", o, code, errs.String())
	}
	const rails = ": want different names of network interfaces, or of ports (mlx5_0:1)"
	for _, c := range []struct{ words, want string }{
		{"", "usage"},
		{"n1 n2", "usage"},
		{"--seconds", "usage"},
		{"--json=perhaps n[1-2]", "usage"},
		{"--memory 4 n[1-2]", "usage"},
		{"--job", "usage"},
		{"--job n1", "usage"},
		{"--json --names n[1-2]", "usage"},
		{"--seconds 61 n[1-2]", "muster: --seconds 61: want a number from 0.1 to 60"},
		{"--seconds NaN n[1-2]", "muster: --seconds NaN: want a number from 0.1 to 60"},
		{"--streams 0 n[1-2]", "muster: --streams 0: want a number from 1 to 64"},
		{"--streams 1.5 n[1-2]", "muster: --streams 1.5: want a whole number"},
		{"--rails ib0,,ib1 n[1-2]", "muster: --rails ib0,,ib1" + rails},
		{"--rails ib0,ib0 n[1-2]", "muster: --rails ib0,ib0" + rails},
		{"--tool iperf n[1-2]", "muster: --tool iperf: unknown tool; want tcp or ib_write_bw"},
	} {
		t.Run(c.words, func(t *testing.T) {
			errs.Reset()
			if _, code := parseFabric(sys, strings.Fields(c.words)); code == 0 || !strings.HasPrefix(errs.String(), c.want) {
				t.Errorf("got %d, %s, want %s", code, errs.String(), c.want)
			}
		})
	}
}

// TestFabricJob: the caller's job and settings do not change the job of a test, and its secret is in neither words nor
// environment, because it comes by the standard input.
func TestFabricJob(t *testing.T) {
	p := &cluster.Partition{Name: "p"}
	p.MaxTime = 10 * time.Minute
	words := fabricJob([]string{"n1", "n2"}, p)
	for _, w := range []string{"--nodelist=n1,n2", "--nodes=2", "--partition=p", "--exclusive", "--time=10",
		"--export=NONE", "--label"} {
		if !slices.Contains(words, w) {
			t.Errorf("no %s in %q", w, words)
		}
	}
	for v, want := range map[string]bool{"SLURM_JOB_ID=1": true, "SBATCH_PARTITION=x": true, "PMI_RANK=0": true,
		"MUSTER_SOCKET=/s": false, "PATH=/bin": false} {
		if ofJobs(v) != want {
			t.Errorf("%s: %v", v, !want)
		}
	}
}

// fabricReport is a report of n nodes whose transfers have 100 Gb/s, changed by some function.
func fabricReport(n int, change func(*pairs.Sample)) *bandwidth.Report {
	r := &bandwidth.Report{Tool: bandwidth.TCP, Rails: []string{""}, Job: 7, Test: pairs.Test{Nodes: n, Rails: 1}}
	measure := func(rounds [][]pairs.Pair) (out []pairs.Sample) {
		for _, p := range slices.Concat(rounds...) {
			for _, s := range []pairs.Sample{{From: p[0], To: p[1], Gbits: 100}, {From: p[1], To: p[0], Gbits: 100}} {
				if change != nil {
					change(&s)
				}
				out = append(out, s)
			}
		}
		return out
	}
	r.Test.Samples = measure(pairs.Rounds(n))
	suspects := r.Test.Suspects()
	r.Test.Confirmed = measure(r.Test.Confirm(suspects))
	r.Verdict = r.Test.Judge(suspects, false)
	return r
}

// TestFabricView: what a test found is one line for each thing to look at, and one result for each node.
func TestFabricView(t *testing.T) {
	for _, c := range []struct {
		name   string
		nodes  int
		change func(*pairs.Sample)
		report func(*bandwidth.Report)
		code   int
		lines  []string
		part   string // of n3
	}{
		{name: "well", nodes: 8, part: "passed "},
		{name: "slow", nodes: 8, change: func(s *pairs.Sample) {
			if s.From == 3 {
				s.Gbits = 25
			}
		}, code: 1, lines: []string{"node n3: sends 25 Gb/s, 25% of the typical 100 Gb/s; check its cable, its port and the port of its switch"},
			part: "failed network: sends 25 Gb/s, 25% of the typical 100 Gb/s"},
		{name: "unreachable", nodes: 8, change: func(s *pairs.Sample) {
			if s.From == 3 || s.To == 3 {
				s.Gbits, s.Err = 0, "connection refused"
			}
		}, code: 1, lines: []string{"node n3: sends and receives 0 Gb/s, 0% of the typical 100 Gb/s: connection refused; " +
			"check its cable, its port and the port of its switch"},
			part: "failed network: sends and receives 0 Gb/s, 0% of the typical 100 Gb/s: connection refused"},
		{name: "a path", nodes: 8, change: func(s *pairs.Sample) {
			if p := pairs.Rounds(8)[0][0]; s.From == p[0] && s.To == p[1] {
				s.Gbits = 40
			}
		}, code: 1, lines: []string{"path n0 → n7: 40 Gb/s, 40% of the typical 100 Gb/s, and both nodes are fast with others; " +
			"check the links between their switches"}, part: "passed "},
		{name: "silent", nodes: 8, report: func(r *bandwidth.Report) { r.Silent = map[int]string{3: "stopped answering"} }, code: 1,
			lines: []string{"node n3 was not judged: it stopped answering"}, part: "not tested network: it stopped answering"},
		{name: "a rail that a node lacks", nodes: 8, report: func(r *bandwidth.Report) {
			r.Rails, r.Lacks = []string{"ib0"}, map[int][]string{3: {"ib0"}}
		}, code: 1, lines: []string{"node n3, rail ib0: it lacks the rail, or the rail is not active; check its cable, its port and " +
			"the port of its switch"}, part: "failed network: rail ib0: it lacks the rail, or the rail is not active"},
		{name: "two", nodes: 2, code: 1, lines: []string{"node n0 was not judged: only 2 nodes can be compared; give --min, or 4 nodes",
			"node n1 was not judged: only 2 nodes can be compared; give --min, or 4 nodes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := fabricView{Report: fabricReport(c.nodes, c.change)}
			if c.report != nil {
				c.report(v.Report)
			}
			for i := range c.nodes {
				v.nodes = append(v.nodes, fmt.Sprintf("n%d", i))
			}
			v.judge()
			var out bytes.Buffer
			if code := v.print(&front.Sys{Stdout: &out}, &fabricOptions{}, ""); code != c.code || !slices.Equal(v.lines, c.lines) {
				t.Errorf("exit code %d, %q\n%s", code, v.lines, out.String())
			}
			if c.part == "" {
				return
			}
			p := v.part(3, "n3")
			if got := fmt.Sprint(p.Tests[0].Verdict, " ", p.Tests[0].Text); got != c.part || p.ID != "n3/fabric" || p.Tests[0].Job != 7 {
				t.Errorf("%s: %q", p.ID, got)
			}
		})
	}
	v := fabricView{Report: fabricReport(8, nil), nodes: make([]string, 8), bad: 3}
	if note := recordFabric(nil, &v); !strings.HasPrefix(note, "3 of 8 nodes have failed: that is hardly their own cables") {
		t.Errorf("got %q", note)
	}
}
