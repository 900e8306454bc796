package replay

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// leafy is a trace on two leaves of two nodes: a job on the first node, and behind it a gang of two nodes.
func leafy() *Trace {
	tr := &Trace{Jobs: []Job{
		{ID: "small", GPUs: 5, Run: 100, Limit: 100},
		{ID: "gang", Submit: 1, Nodes: 2, GPUs: 16, Run: 100, Limit: 100},
		{ID: "part", Submit: 2, Nodes: 1, GPUs: 1, CPUs: 1, GPUMilli: 460, Run: 100, Limit: 100},
	}}
	for k, name := range []string{"a", "b", "c", "d"} {
		tr.Nodes = append(tr.Nodes, Node{Name: name, CPUs: 8, GPUs: 8, Switch: []string{"left", "right"}[k/2]})
	}
	return tr
}

// TestLeaves: the real scheduler considers the switches of the nodes' table, and figures say which gangs are spread.
func TestLeaves(t *testing.T) {
	tr := leafy()
	runs, err := tr.Replay(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tr.WriteSchedule(&b, runs); err != nil {
		t.Fatal(err)
	}
	want := "job_id,start,end,nodes\nsmall,0,100,a:5\ngang,1,101,c:8 d:8\npart,2,102,a:0.46\n"
	if b.String() != want {
		t.Errorf("schedule\n%s\nwant\n%s", &b, want)
	}
	if s := tr.Summarize(runs); s.Gangs != 1 || s.Spread != 0 {
		t.Errorf("%d of %d gangs are spread, want none of 1", s.Spread, s.Gangs)
	}
	if s := tr.Summarize(tr.Textbook(Named("easy"), Placements["first"], nil)); s.Gangs != 1 || s.Spread != 1 {
		t.Errorf("EASY: %d of %d gangs are spread, want 1 of 1", s.Spread, s.Gangs)
	}
	for i := range tr.Nodes {
		tr.Nodes[i].Switch = ""
	}
	if runs, err = tr.Replay(nil, nil); err != nil || len(runs[1].Nodes) != 2 || runs[1].Nodes[0] != 1 {
		t.Errorf("without switches the gang is on %v (%v), want the second node and the third", runs[1].Nodes, err)
	}
	if s := tr.Summarize(runs); s.Spread != -1 {
		t.Errorf("without switches %d gangs are spread, want -1", s.Spread)
	}
	tr.Wire([]cluster.Switch{{Name: "top", Switches: []string{"x"}}, {Name: "x", Nodes: []cluster.NodeName{"b"}}})
	if tr.Nodes[0].Switch != "" || tr.Nodes[1].Switch != "x" {
		t.Errorf("nodes %v", tr.Nodes)
	}
}

// TestLeavesFor: a gang needs as few leaves as the largest ones are.
func TestLeavesFor(t *testing.T) {
	for nodes, want := range map[int]int{1: 1, 4: 1, 5: 2, 7: 2, 8: 3, 9: 3} {
		if got := leavesFor(nodes, []int{4, 3, 2}); got != want {
			t.Errorf("%d nodes need %d leaves, want %d", nodes, got, want)
		}
	}
}

// TestLimitByRun: a log without limits says how to go on, and does.
func TestLimitByRun(t *testing.T) {
	path := write(t, "x.swf",
		"; MaxProcs: 4\n1 0 0 50 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1\n2 0 0 60 2 -1 -1 2 70 -1 1 1 1 1 1 1 -1 -1\n")
	tr, err := Load(path, "")
	if err != nil || len(tr.Jobs) != 1 || !strings.Contains(tr.Left[0].String(), "--limit=runtime") {
		t.Errorf("%v, left %v: want word of --limit=runtime", err, tr.Left)
	}
	tr, err = Load(path, "", LimitByRun)
	if err != nil || len(tr.Jobs) != 2 || tr.Jobs[0].Limit != 50 || tr.Jobs[1].Limit != 70 {
		t.Errorf("%v %v, want limits of 50 and 70", tr.Jobs, err)
	}
}

// TestStrict: the policy of that name is the real scheduler in the order of the queue.
func TestStrict(t *testing.T) {
	tr := random(5, 100)
	own := cluster.DefaultConfig()
	own.StrictOrder = true
	want, err := tr.Replay(&own, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tr.Schedule(Strict, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		if got[k].Job != want[k].Job || got[k].Start != want[k].Start {
			t.Fatalf("%+v, want %+v", got[k], want[k])
		}
	}
}

// TestDrawSizes: the picture has a bar for each schedule in each class of sizes.
func TestDrawSizes(t *testing.T) {
	tr := leafy()
	tr.Jobs[0].Submit, tr.Jobs[0].GPUs = 0, 32
	tr.Jobs[0].Nodes = 4
	easy := tr.Textbook(Named("easy"), Placements["best"], nil)
	fifo := tr.Textbook(Named("fifo"), Placements["best"], nil)
	var b bytes.Buffer
	if err := tr.DrawSizes(&b, "a <trace>", []string{"easy", "fifo"}, [][]Run{easy, fifo}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"a &lt;trace&gt;", ">1 GPU<", ">9-16 GPUs<", ">17-32 GPUs<", ">1 job<", "GPUs in use", "</svg>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if n := strings.Count(text, "<rect"); n != 1+2+2*3 || strings.Contains(text, "NaN") {
		t.Errorf("%d rectangles, want the ground, two panels and six bars:\n%s", n, text)
	}
}

// TestSizeLabels: below the bars no text runs into the next one, however many sizes there are.
func TestSizeLabels(t *testing.T) {
	tr := &Trace{Nodes: []Node{{Name: "n", CPUs: 1 << 17}}}
	for k := range 18 {
		tr.Jobs = append(tr.Jobs, Job{ID: fmt.Sprint(k), CPUs: 1 << k, Run: 10, Limit: 10})
	}
	var b bytes.Buffer
	runs := tr.Textbook(Named("fifo"), Placements["first"], nil)
	if err := tr.DrawSizes(&b, "x", []string{"fifo"}, [][]Run{runs}); err != nil {
		t.Fatal(err)
	}
	label := regexp.MustCompile(`<text x="([0-9.]+)" y="(\d+)" text-anchor="middle" font-size="([0-9.]+)">(.*)</text>`)
	ends, labels := map[string]float64{}, label.FindAllStringSubmatch(b.String(), -1)
	if len(labels) != 36 {
		t.Errorf("%d labels, want the size and the number of jobs of 18 classes", len(labels))
	}
	for _, l := range labels {
		x, _ := strconv.ParseFloat(l[1], 64)
		size, _ := strconv.ParseFloat(l[3], 64)
		half := 0.3 * size * float64(len(l[4]))
		if x-half < ends[l[2]] {
			t.Errorf("%q begins at %.1f, the one before ends at %.1f", l[4], x-half, ends[l[2]])
		}
		ends[l[2]] = x + half
	}
}
