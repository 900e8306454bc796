package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	header := "; MaxProcs: 8\n"
	line := func(id, submit, run, procs, limit int) string {
		return fmt.Sprintf("%d %d -1 %d -1 -1 -1 %d %d -1 1 7 2 -1 1 1 -1 -1\n", id, submit, run, procs, limit)
	}
	tr, err := Load(write(t, "a.swf",
		header+line(2, 5, 100, 4, 50)+line(1, 0, 10, 8, 20)+line(3, 6, 0, 1, 1)+line(4, 6, 1, 9, 1)),
		"")
	if err != nil || len(tr.Jobs) != 2 || fmt.Sprint(tr.Left) != "[1 without run time 1 larger than the empty cluster]" || tr.Jobs[0].ID != "1" || tr.Jobs[1].Run != 50 || tr.Jobs[1].User != "7" {
		t.Errorf("%+v, %v", tr, err)
	}
	nodes := write(t, "n.csv", "name,count,cpus,gpus,mem_mb,gpu_type,partition,switch\nn,3,48,8,0,,,s\n")
	const columns = "# comment\njob_id,submit,nodes,cpus,gpus,mem_mb,walltime,runtime,user,group,partition,gpu_type,gpu_milli\n"
	if tr, err = Load(write(t, "j.csv", columns+"a,0,0,6,25,0,60,30,u,g,,,1000\nb,1,0,6,24,0,60,30,u,g,,,1000\n"),
		nodes); err != nil || len(tr.Jobs) != 1 || len(tr.Nodes) != 3 || tr.Nodes[2].Name != "n0002" {
		t.Errorf("%+v, %v", tr, err)
	}
	for _, tc := range []struct{ name, text, nodes, want string }{
		{"x.swf", header + "1 2 3\n", "", "3 columns"},
		{"x.swf", header + strings.Repeat("1 ", 12) + "x\n", "", "column 13"},
		{"x.swf", line(1, 0, 1, 1, 1), "", "MaxProcs"},
		{"x.swf", header, "", "no job"},
		{"x.csv", columns, "", "--nodes"},
		{"x.csv", columns + "a,1,0,6,many,0,60,30,u,g,,,1000\n", nodes, "x.csv:3: gpus"},
		{"x.csv", columns + "a,1\n", nodes, "x.csv:3: 2 values, the header has 13 columns"},
		{"x.csv.gz", "no gzip", nodes, "x.csv.gz:1: no column job_id"},
		{"x.csv", "\x1f\x8b0", nodes, "x.csv: unexpected EOF"},
		{"x.csv", "job_id,submit_time,gpus,walltime,runtime\na,1,1,60,30\n", nodes, "x.csv:1: no column submit"},
		{"x.csv", "job_id,submit,walltime,runtime\na,1,60,30\n", nodes, "no column cpus or gpus"},
		{"x.csv", columns + "a,1,-2,6,8,0,60,30,u,g,,,1000\n", nodes, "x.csv:3: nodes is -2"},
		{"x.csv", columns + "a,1,0,6,99,0,60,30,u,g,,,1000\n", nodes, "1 larger than the empty cluster"},
		{"x.swf", header + line(1, 0, 1, 1, -1), "", "1 without limit"},
		{"x.swf", header + "1 2 3 NaN" + strings.Repeat(" 1", 14), "", "column 4 is \"NaN\""},
		{"x.swf", header + "1 1e30 3 4" + strings.Repeat(" 1", 14), "", "column 2 is \"1e30\""},
		{"x.swf", header + line(1, 0, 1, 1, 1), write(t, "none.csv", ""), "none.csv: no node"},
		{
			"x.swf", header + line(1, 0, 1, 1, 1), write(t, "minus.csv", "name,count,cpus\nn,-1,8\n"),
			"minus.csv:2: count is -1",
		},
		{"x.swf", "; MaxProcs: some\n" + line(1, 0, 1, 1, 1), "", "x.swf:1: MaxProcs is \"some\""},
		{
			"x.swf", "; MaxProcs: 8\n; MaxProcs: 9\n" + line(1, 0, 1, 1, 1), "",
			"x.swf:2: MaxProcs is 9 here and was 8 before",
		},
		{"x.swf", header + "1 1_0 3 4" + strings.Repeat(" 1", 14), "", "column 2 is \"1_0\", want a number"},
		{"x.swf", header + strings.Repeat("x", 2<<20), "", "x.swf:2: a line has more than 1048576 bytes"},
		{"x.swf", "\xff\xfe;\x00", "", "UTF-16"},
		{
			"x.csv", columns + "a,9999999999999,0,6,8,0,60,30,u,g,,,1000\n", nodes,
			"x.csv:3: submit is \"9999999999999\": that is too large",
		},
		{"x.csv", columns + "\"a\nb\",1,0,6,8,0,60,30,u,g,,,1000\n", nodes, "several lines"},
		{"x.csv", columns + "a,1,2,6,1,0,60,30,u,g,,,1000\n", nodes, "1 with fewer GPUs than nodes"},
		{"x.csv", "job_id,submit,walltime,runtime,cpus,cpus\n", nodes, "x.csv:1: two columns \"cpus\""},
		{
			"x.swf", header + line(1, 0, 1, 1, 1),
			write(t, "many.csv", "name,count,cpus\nn,1000000000,8\n"),
			"many.csv:2: count is 1000000000, want how many nodes the line is for: 100000 at most",
		},
		{
			"x.swf", header + line(1, 0, 1, 1, 1),
			write(t, "twice.csv", "name,count,cpus\nn0001,1,8\nn,2,8\n"),
			"twice.csv:3: a second node n0001",
		},
		{
			"x.swf", header + line(1, 0, 1, 1, 1), write(t, "blank.csv", "name,cpus\na b,8\n"),
			"blank.csv:2: name is \"a b\"",
		},
		{
			"x.swf", header + line(1, 0, 1, 1, 1), write(t, "less.csv", "name,cpus\na,-8\n"),
			"less.csv:2: node a has -8 cpus",
		},
		{"x.txt", header + line(1, 0, 1, 1, 1), "", ".swf"},
	} {
		if _, err := Load(write(t, tc.name, tc.text), tc.nodes); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %q: %v, want %s", tc.name, tc.text, err, tc.want)
		}
	}
}

// TestOdd: what editors and other programs add to tables and logs does no harm.
func TestOdd(t *testing.T) {
	const jobs = "\ufeffjob_id,submit,gpus,walltime,runtime\r\n  # a note, of some words\r\n \r\na,1,1,60,30\r\n"
	tr, err := Load(write(t, "j.csv", jobs), write(t, "n.csv", "\ufeffname,gpus\nn,8\n"))
	if err != nil || len(tr.Jobs) != 1 || tr.Jobs[0].ID != "a" || len(tr.Nodes) != 1 {
		t.Errorf("%+v, %v", tr, err)
	}
	const log = "\ufeff; MaxProcs : 8\r\n1 0 -1 5 -1 -1 -1 2 9 -1 1 1 1 -1 1 1 -1 -1 \r\n; MaxProcs: 8"
	if tr, err = Load(write(t, "J.SWF", log), ""); err != nil || len(tr.Jobs) != 1 || tr.Nodes[0].CPUs != 8 {
		t.Errorf("%+v, %v", tr, err)
	}
	if tr, err = Load(write(t, "j.swf", "; MaxProcs: many\n"+log[len("\ufeff"):]),
		write(t, "n.csv", "name,cpus\nn,16\n")); err != nil || tr.Nodes[0].CPUs != 16 {
		t.Errorf("a header beside a table of nodes: %+v, %v", tr, err)
	}
}

// TestHeader: the size of a log's machine, as archives write it.
func TestHeader(t *testing.T) {
	for header, want := range map[string]int{
		"; MaxProcs: 430": 430, ";MaxProcs:\t1024 (512 nodes)\r": 1024, "; MaxProcs: 1,024": 1024, "; MaxNodes: 64": 64,
		"; MaxNodes: 64\n; MaxProcs: 128": 128, "; MaxProcs: 128\n; MaxNodes: 64": 128,
		"; MaxProcs: -1\n; MaxNodes: 64": 64,
	} {
		tr, err := Load(write(t, "a.swf", header+"\n1 0 -1 10 4 -1 -1 -1 20 -1 1 7 2 -1 1 1 -1 -1 \r\n"), "")
		if err != nil || tr.Nodes[0].CPUs != want {
			t.Errorf("%q: %+v %v, want %d", header, tr, err, want)
		}
	}
}

// TestPacked: what is in a file counts, not its name.
func TestPacked(t *testing.T) {
	text := "; MaxProcs: 4\n1 0 -1 10 4 -1 -1 -1 20 -1 1 7 2 -1 1 1 -1 -1\n"
	pack := func(text string) *bytes.Buffer {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return &b
	}
	b := pack(text)
	for _, name := range []string{"a.swf", "a.swf.gz"} {
		for _, content := range []string{text, b.String()} {
			if tr, err := Load(write(t, name, content), ""); err != nil || len(tr.Jobs) != 1 {
				t.Errorf("%s: %+v %v", name, tr, err)
			}
		}
	}
	nodes := write(t, "n.csv", "name,cpus\nn,8\n")
	for name, text := range map[string]string{
		"a.swf.gz": strings.Repeat(text, 400),
		"a.csv.gz": "job_id,submit,cpus,walltime,runtime\n" + strings.Repeat("a,1,1,60,30\n", 400),
	} {
		whole := pack(text).Bytes()
		for n := range whole[:len(whole)-1] {
			if n < 2 {
				continue // no mark of gzip: it is text
			}
			if _, err := Load(write(t, name, string(whole[:n])), nodes); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
				t.Errorf("%s, %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
	}
}

// TestImpossible: what the empty cluster could not run is left out and told, not waited for.
func TestImpossible(t *testing.T) {
	const columns = "job_id,submit,nodes,gpus,walltime,runtime,partition\n"
	for _, tc := range []struct{ name, nodes, jobs, left, runs string }{
		{
			"one large node, small ones for the rest", "name,count,gpus\nbig,1,8\nsmall,4,2\n",
			"a,0,0,16,9,5,\nb,0,0,10,9,5,\n", "1 larger than the empty cluster", "b",
		},
		{
			"more nodes than there are, more GPUs than a node has", "name,count,gpus\nn,2,8\n",
			"a,0,3,6,9,5,\nb,0,1,9,9,5,\nc,0,2,9,9,5,\n", "2 larger than the empty cluster", "c",
		},
		{"partitions", "name,count,gpus,partition\nx,1,8,px\ny,2,8,py\n",
			"a,0,0,16,9,5,px\nb,0,0,16,9,5,py\nc,0,0,1,9,5,pz\nd,0,0,1,9,5,\n",
			"1 of a partition without nodes 1 larger than the empty cluster", "b d"},
		{
			"one partition has all jobs", "name,count,gpus,partition\nx,1,8,px\n",
			"a,0,0,1,9,5,pz\nb,0,0,0,9,5,\n", "1 without GPUs", "a",
		},
	} {
		tr, err := Load(write(t, "j.csv", columns+tc.jobs), write(t, "n.csv", tc.nodes))
		if err != nil {
			t.Fatal(tc.name, err)
		}
		if left := strings.Trim(fmt.Sprint(tr.Left), "[]"); left != tc.left {
			t.Errorf("%s: left out %s, want %s", tc.name, left, tc.left)
		}
		for _, p := range append(Textbook, Policy{Name: Real}) {
			runs, err := tr.Replay(nil, nil)
			if p.Name != Real {
				runs = tr.Textbook(p, Placements["best"], nil)
			}
			var ids []string
			for _, r := range runs {
				ids = append(ids, r.Job.ID)
			}
			slices.Sort(ids)
			if strings.Join(ids, " ") != tc.runs {
				t.Errorf("%s: %s runs %v, want %s, %v", tc.name, p.Name, ids, tc.runs, err)
			}
		}
	}
}

// TestNeverStarts names a job that the real scheduler never starts, and why that may be.
func TestNeverStarts(t *testing.T) {
	tr := &Trace{Nodes: []Node{{Name: "n", GPUs: 8, GPUType: "a100"}}, Jobs: []Job{
		{ID: "a", GPUs: 1, Run: 1, Limit: 1}, {ID: "b", GPUs: 1, Run: 1, Limit: 1, GPUType: "h100"}}}
	if _, err := tr.Replay(nil, nil); err == nil || !strings.Contains(err.Error(), "job b") {
		t.Errorf("%v, want job b named", err)
	}
}

// TestSmall works schedules out by hand: four processors, jobs as submit, size, run, limit.
func TestSmall(t *testing.T) {
	type job [4]int64
	for _, tc := range []struct {
		name   string
		jobs   []job
		starts map[string][]int64 // policy → start of each
	}{
		{"the head needs all; a short one passes it, a long one does not",
			[]job{{0, 3, 10, 10}, {1, 4, 10, 10}, {2, 1, 5, 8}, {3, 1, 20, 20}},
			map[string][]int64{
				"fifo": {0, 10, 20, 20}, "easy": {0, 10, 2, 20}, "conservative": {0, 10, 2, 20},
				"greedy": {0, 27, 2, 7},
			}},
		{"beside the head's reservation a long one has room", []job{{0, 3, 10, 10}, {1, 2, 10, 10}, {2, 1, 50, 50}},
			map[string][]int64{"fifo": {0, 10, 10}, "easy": {0, 10, 2}, "conservative": {0, 10, 2}}},
		{"easy delays the second of the queue, conservative does not",
			[]job{{0, 2, 10, 10}, {1, 3, 10, 10}, {2, 4, 10, 10}, {3, 1, 30, 30}},
			map[string][]int64{"easy": {0, 10, 33, 3}, "conservative": {0, 10, 20, 30}}},
		{"an early end lets the queue move up", []job{{0, 4, 5, 20}, {1, 4, 10, 10}},
			map[string][]int64{"fifo": {0, 5}, "easy": {0, 5}, "conservative": {0, 5}}},
		{"a promise is kept when nothing else happens at its time",
			[]job{{0, 2, 20, 20}, {0, 2, 10, 40}, {1, 3, 15, 15}, {2, 2, 20, 20}},
			map[string][]int64{"fifo": {0, 0, 20, 35}, "easy": {0, 0, 20, 35}, "conservative": {0, 0, 40, 10}}},
		{"two end early at once: the last moves up after the one, which makes a hole after the other",
			[]job{{0, 2, 10, 20}, {0, 2, 10, 40}, {1, 3, 15, 15}, {2, 2, 20, 20}},
			map[string][]int64{"fifo": {0, 0, 10, 25}, "easy": {0, 0, 10, 25}, "conservative": {0, 0, 30, 10}}},
		{"sjbf: of two that may pass the shorter does",
			[]job{{0, 3, 10, 10}, {1, 4, 10, 10}, {2, 1, 6, 6}, {2, 1, 4, 4}},
			map[string][]int64{"easy": {0, 10, 2, 20}, "sjbf": {0, 10, 20, 2}}},
		{
			"sjf: the shortest first", []job{{0, 4, 10, 10}, {1, 4, 9, 9}, {2, 4, 3, 3}},
			map[string][]int64{"sjf": {0, 13, 10}, "fifo": {0, 10, 19}},
		},
		{
			"wfp: who has waited long for little", []job{{0, 4, 100, 100}, {1, 4, 90, 90}, {90, 4, 5, 5}},
			map[string][]int64{"wfp": {0, 105, 100}},
		},
	} {
		tr := &Trace{Nodes: []Node{{Name: "m", CPUs: 4}}}
		for i, j := range tc.jobs {
			tr.Jobs = append(tr.Jobs, Job{ID: fmt.Sprint(i), Submit: j[0], CPUs: int(j[1]), Run: j[2], Limit: j[3]})
		}
		for name, want := range tc.starts {
			got := make([]int64, len(want))
			for _, r := range tr.Textbook(Named(name), Placements["first"], nil) {
				got[r.Job.ID[0]-'0'] = r.Start
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s starts them at %v, want %v", tc.name, name, got, want)
			}
		}
	}
}

// random is a workload on six nodes of four units.
func random(seed uint64, jobs int) *Trace {
	rnd := rand.New(rand.NewPCG(seed, 0))
	tr := &Trace{}
	for i := range 6 {
		tr.Nodes = append(tr.Nodes, Node{Name: fmt.Sprintf("n%d", i), GPUs: 4})
	}
	at := int64(0)
	for i := range jobs {
		at += rnd.Int64N(40)
		run := 1 + rnd.Int64N(300)
		tr.Jobs = append(tr.Jobs, Job{
			ID: fmt.Sprint(i), Submit: at, GPUs: 1 + rnd.IntN(12), Run: run, Limit: run + rnd.Int64N(200),
		})
	}
	return tr
}

// TestSound checks each schedule: all run once, for as long as they should, on nodes that have room.
func TestSound(t *testing.T) {
	for _, p := range Textbook {
		for place, better := range Placements {
			tr := random(7, 400)
			runs := tr.Textbook(p, better, nil)
			if len(runs) != len(tr.Jobs) {
				t.Fatalf("%s/%s runs %d of %d jobs", p.Name, place, len(runs), len(tr.Jobs))
			}
			var last int64
			for _, r := range runs {
				last = max(last, r.End)
				if r.Start < r.Job.Submit || r.End != r.Start+r.Job.Run {
					t.Errorf("%s/%s: %+v ran from %d to %d", p.Name, place, r.Job, r.Start, r.End)
				}
			}
			for at := int64(0); at < last; at += 17 {
				used := 0
				on := make([]int, len(tr.Nodes))
				for _, r := range runs {
					if r.Start <= at && at < r.End {
						used += r.Job.GPUs
						for _, n := range r.Nodes {
							on[n]++
						}
						if len(r.Nodes) != (r.Job.GPUs+3)/4 {
							t.Fatalf("%s/%s: %d GPUs on %d nodes", p.Name, place, r.Job.GPUs, len(r.Nodes))
						}
					}
				}
				if used > 24 || max(on[0], on[1], on[2], on[3], on[4], on[5]) > 4 {
					t.Fatalf("%s/%s: at %d %d GPUs are in use, jobs by node %v", p.Name, place, at, used, on)
				}
			}
		}
	}
}

// TestPromises: under the conservative policy nobody starts later than he would if all that came later did not exist.
func TestPromises(t *testing.T) {
	tr := random(3, 120)
	for i := range tr.Jobs { // nobody ends early: promises are then exact
		tr.Jobs[i].Run = tr.Jobs[i].Limit
	}
	whole := map[string]int64{}
	for _, r := range tr.Textbook(Named("conservative"), Placements["first"], nil) {
		whole[r.Job.ID] = r.Start
	}
	for n := 1; n < len(tr.Jobs); n += 13 {
		part := &Trace{Nodes: tr.Nodes, Jobs: tr.Jobs[:n]}
		for _, r := range part.Textbook(Named("conservative"), Placements["first"], nil) {
			if whole[r.Job.ID] != r.Start {
				t.Fatalf("job %s starts at %d, with later ones at %d", r.Job.ID, r.Start, whole[r.Job.ID])
			}
		}
	}
}

// TestSameBytes: the same input gives the same files.
func TestSameBytes(t *testing.T) {
	tr := random(11, 200)
	once := func() string {
		var b bytes.Buffer
		var all [][]Run
		var names []string
		for _, p := range Textbook {
			runs := tr.Textbook(p, Placements["best"], nil)
			if err := tr.WriteSchedule(&b, runs); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, tr.Summarize(runs))
			all, names = append(all, runs), append(names, p.Name)
		}
		if err := tr.Draw(&b, "a <trace>", names, all); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := once()
	if !strings.Contains(first, "a &lt;trace&gt;") || strings.Contains(first, "NaN") {
		t.Error("the picture is broken")
	}
	for range 3 {
		if once() != first {
			t.Fatal("not the same bytes")
		}
	}
}

// TestCurve: a plot shows the mean of each span of time.
func TestCurve(t *testing.T) {
	at := func(k int) int64 { return int64(10 * k) }
	runs := []Run{{Job: &Job{}, Start: 5, End: 30}, {Job: &Job{}, Start: 12, End: 14}}
	c := curve(runs, func(*Job) int { return 2 }, at, func(r Run) int64 { return r.Start },
		func(r Run) int64 { return r.End })
	if len(c) != plotPoints || c[0] != 1 || c[1] != 2.4 || c[2] != 2 || c[3] != 0 {
		t.Error(c[:4])
	}
}
