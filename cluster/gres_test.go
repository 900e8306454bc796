package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// h100s are so many GPUs as NVML shows them, the first half near the first 8 CPUs.
func h100s(n int) (out []GPU) {
	for i := range n {
		out = append(out, GPU{Index: i, Number: i + 1, Minor: i, Type: "h100",
			Model: "NVIDIA H100 80GB HBM3", UUID: fmt.Sprintf("GPU-%d", i),
			PCI: fmt.Sprintf("0000:%02x:00.0", i), Cores: RangeIDSet(i*2/n*8, i*2/n*8+7)})
	}
	return out
}

// slices of the GPU with a minor, as NVML shows them.
func slicesOf(minor int, profiles ...string) (out []GPU) {
	for i, p := range profiles {
		out = append(out, GPU{Minor: minor, Type: "a100_" + p, Model: "NVIDIA A100-SXM4-40GB",
			UUID: fmt.Sprintf("MIG-%d-%d", minor, i),
			PCI:  fmt.Sprintf("0000:%02x:00.0", minor),
			MIG:  &MIG{Parent: fmt.Sprintf("GPU-%d", minor), Profile: p, Instance: i + 1}})
	}
	return out
}

func devices(minors string) (out []string) {
	set, _ := ParseIDSet(minors)
	for i := range set.All() {
		out = append(out, fmt.Sprintf("/dev/nvidia%d", i))
	}
	return out
}

// TestCompareGRES compares gres.conf lines with what is found: type:minor of what jobs may use, and what is told.
func TestCompareGRES(t *testing.T) {
	line := func(kind, files string) GRESLine {
		return GRESLine{At: "gres.conf:1", Name: "gpu", Type: kind, Files: devices(files)}
	}
	for _, c := range []struct {
		name  string
		said  declared
		found []GPU
		used  string
		notes []string
	}{
		{"nothing said", declared{}, h100s(2), "h100:0 h100:1", nil},
		{"AutoDetect alone", declared{auto: "nvml"}, h100s(2), "h100:0 h100:1", nil},
		{
			"AutoDetect and the same in a line",
			declared{auto: "nvml", lines: []GRESLine{line("h100", "0-1")}}, h100s(2), "h100:0 h100:1", nil,
		},
		{
			"the long name in the node's Gres=",
			declared{auto: "nvml", types: []string{"nvidia_h100_80gb_hbm3"}}, h100s(1),
			"nvidia_h100_80gb_hbm3:0", nil,
		},
		{"part of the name", declared{lines: []GRESLine{line("H100_80gb", "0")}}, h100s(1), "H100_80gb:0", nil},
		{"a device left out", declared{lines: []GRESLine{line("h100", "0,2")}}, h100s(3), "h100:0 h100:2", nil},
		{"a wrong type", declared{lines: []GRESLine{line("a100", "0-1")}}, h100s(2), "h100:0 h100:1",
			[]string{"gres.conf:1: Type=a100, found h100 at /dev/nvidia0,/dev/nvidia1"}},
		{"one that is not there", declared{lines: []GRESLine{line("h100", "0-3")}}, h100s(2), "h100:0 h100:1",
			[]string{"gres.conf:1: nothing found at /dev/nvidia2,/dev/nvidia3"}},
		{
			"the same line twice", declared{lines: []GRESLine{line("h100", "0-1"), line("h100", "0-1")}},
			h100s(2), "h100:0 h100:1", nil,
		},
		{"a count", declared{lines: []GRESLine{{At: "gres.conf:1", Name: "gpu", Type: "h100", Count: 3}}},
			h100s(2), "h100:0 h100:1",
			[]string{"gres.conf:1: 2 of 3 found of Type=h100"}},
		{
			"off", declared{auto: "off"}, h100s(2), "",
			[]string{"gres.conf: AutoDetect=off and no gpu line: 2 GPUs are not used"},
		},
		{"off with a line", declared{auto: "off", lines: []GRESLine{line("", "1")}}, h100s(2), "h100:1", nil},
		{"slices under two types", declared{lines: []GRESLine{line("a100_3g.20gb", "0-1"), line("a100_1g.5gb", "0-1")}},
			append(slicesOf(0, "3g.20gb", "3g.20gb"), slicesOf(1, "3g.20gb", "1g.5gb")...),
			"a100_3g.20gb:0 a100_3g.20gb:0 a100_3g.20gb:1 a100_1g.5gb:1",
			[]string{"gres.conf:1: Type=a100_1g.5gb, found a100_3g.20gb at /dev/nvidia0"}},
		{"a slice by its files",
			declared{lines: []GRESLine{{At: "gres.conf:1", Name: "gpu", Type: "a100_1g.5gb", Multiple: true,
				Files: []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"}}}},
			slicesOf(0, "3g.20gb", "1g.5gb", "1g.5gb"), "a100_1g.5gb:0", nil},
		{"cores that are elsewhere",
			declared{
				lines: []GRESLine{{At: "gres.conf:1", Name: "gpu", Files: devices("0"), Cores: RangeIDSet(8, 11)}},
			},
			h100s(2), "h100:0",
			[]string{"gres.conf:1: Cores=8-11 are CPUs 8-11, found 0-7 near GPU 0"}},
	} {
		used, notes := c.said.compare(&Inventory{GPUs: c.found, ThreadsPerCore: 1})
		var got []string
		for _, g := range used {
			got = append(got, fmt.Sprintf("%s:%d", g.Type, g.Minor))
		}
		if text := strings.Join(got, " "); text != c.used || fmt.Sprint(notes) != fmt.Sprint(c.notes) {
			t.Errorf("%s: %s %q\nwant %s %q", c.name, text, notes, c.used, c.notes)
		}
	}
}

// TestDeclaredOf: AutoDetect of a node's own goes before that of all.
func TestDeclaredOf(t *testing.T) {
	var c Config
	c.GRES = []GRESLine{
		{AutoDetect: "nvml"}, {Nodes: []NodeName{"n1"}, AutoDetect: "off", Name: "gpu"},
		{Name: "shard", Count: 4}, {Name: "shard", Files: devices("0-1")},
	}
	if d := c.declaredOf("n1"); d.auto != "off" || len(d.lines) != 1 {
		t.Errorf("%+v", d)
	}
	if d := c.declaredOf("n2"); d.auto != "nvml" || len(d.lines) != 0 || len(d.shared) != 1 || d.shared[0].Count != 6 {
		t.Errorf("%+v", d)
	}
}

// TestFaults: a fault drains a node once, naming itself; a passing one lets it go again; a fatal one ends the jobs
// on its part and no others.
func TestFaults(t *testing.T) {
	w := newWorld(t, 0)
	inv := smallNode()
	inv.GPUs = h100s(2)
	up := func(faults ...Fault) *Node {
		t.Helper()
		inv.Faults = faults
		w.ok(sys, &NodeUp{Name: "n0", Inventory: inv, Seq: w.seq["n0"]})
		n, _ := w.s.Node("n0")
		return n
	}
	up()
	hold := func(gpu int) JobID {
		t.Helper()
		id := w.submit(nil)
		a := &Alloc{Partition: "main", Shares: []Share{{Node: "n0", CPUs: NewIDSet(gpu), GPUs: NewIDSet(gpu)}}}
		if e := w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Start: a}}}).Result.([]*Error)[0]; e != nil {
			t.Fatal(e)
		}
		w.report("n0", id, NodeReady)
		return id
	}
	on0, on1 := hold(0), hold(1)
	note := Fault{Part: "GPU-1", Cause: "ecc", Text: "GPU 1: ECC", Action: FaultNote}
	if n := up(note); n.Drain || n.Reason != "GPU 1: ECC" {
		t.Errorf("a note: %+v", n)
	}
	unknown := Fault{Part: "gpu", Cause: "unknown", Text: "gpus unknown", Action: FaultDrain, Passing: true}
	if n := up(unknown); !n.Drain || n.Reason != "gpus unknown" || n.ReasonBy != "slurm" {
		t.Errorf("unknown: %+v", n)
	}
	if n := up(); n.Drain || n.Reason != "" {
		t.Errorf("known again: %+v", n)
	}
	link := Fault{Part: "GPU-0", Cause: "nvlink down", Text: "GPU 0: a link", Action: FaultDrain, Passing: true}
	if n := up(unknown, link); n.Reason != "gpus unknown, GPU 0: a link" {
		t.Errorf("two at once: %+v", n)
	}
	if n := up(link); !n.Drain || n.Reason != "GPU 0: a link" {
		t.Errorf("one has passed: %+v", n)
	}
	if n := up(); n.Drain || n.Reason != "" || len(n.DrainedFor) != 0 {
		t.Errorf("both have passed: %+v", n)
	}
	w.want(on0, Running)
	xid := Fault{Part: "GPU-1", Cause: "xid 79", Text: "GPU 1: XID 79", Action: FaultDrainNow}
	if n := up(xid); !n.Drain || n.Reason != "GPU 1: XID 79" {
		t.Errorf("fallen off: %+v", n)
	}
	w.want(on0, Running)
	w.want(on1, Ending)
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})
	if n := up(xid); n.Drain {
		t.Error("a fault that an operator has resumed the node with drains it again")
	}
	if n := up(xid, link); !n.Drain || n.Reason != "GPU 0: a link" {
		t.Errorf("another fault: %+v", n)
	}
	if n := up(xid); n.Drain {
		t.Errorf("the other has passed: %+v", n)
	}
	w.pass(time.Second)
	ecc := Fault{Part: "GPU-1", Cause: "ecc 3", Text: "GPU 1: 3 errors", Action: FaultDrain}
	if up(ecc); !up().Drain {
		t.Error("a fault that does not pass by itself has let the node go")
	}
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})
	drained, _ := w.s.Node("n0")
	c := *drained
	c.Drain, c.Reason, c.ReasonBy = true, launchFailed+"no disk", "slurm"
	c.Inventory.Faults = nil
	c.faulty(&tx{}, nil)
	c.Inventory.Faults = []Fault{link}
	if c.faulty(&tx{}, nil); c.Reason != "Launch failed: no disk, GPU 0: a link" {
		t.Errorf("drained for another reason: %s", c.Reason)
	}
	c.Inventory.Faults = nil
	if c.faulty(&tx{}, []Fault{link}); !c.Drain || c.Reason != "Launch failed: no disk" {
		t.Errorf("the other reason is lost: %+v", c)
	}
	why := "by hand"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why})
	if n := up(link); n.Reason != why {
		t.Errorf("an operator's reason is lost: %+v", n)
	}
	if n := up(); !n.Drain || n.Reason != why {
		t.Errorf("an operator's drain is undone: %+v", n)
	}
}

// TestNoKillFault: a fatal fault takes its node from a job that is to go on. The job's resources there are free once
// that is clean.
func TestNoKillFault(t *testing.T) {
	w := newWorld(t, 0)
	up := func(name NodeName, faults ...Fault) {
		t.Helper()
		inv := smallNode()
		inv.GPUs = h100s(2)
		inv.Faults = faults
		w.ok(sys, &NodeUp{Name: name, Inventory: inv, Seq: w.seq[name]})
	}
	up("n0")
	up("n1")
	id := w.submit(func(s *JobSpec) { s.MinNodes, s.MaxNodes, s.NoKill = 2, 2, true })
	a := &Alloc{Partition: "main"}
	for _, n := range []NodeName{"n0", "n1"} {
		a.Shares = append(a.Shares, Share{Node: n, CPUs: NewIDSet(1), GPUs: NewIDSet(1)})
	}
	if e := w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Start: a}}}).Result.([]*Error)[0]; e != nil {
		t.Fatal(e)
	}
	w.report("n0", id, NodeReady)
	w.report("n1", id, NodeReady)
	xid := Fault{Part: "GPU-1", Cause: "xid 79", Text: "GPU 1: XID 79", Action: FaultDrainNow}
	up("n1", xid)
	j := w.want(id, Running)
	if len(j.AllocNodes()) != 1 || len(LostNodes(j)) != 1 || !j.leaves("n1") || w.s.Load("n1").CPUs.Empty() {
		t.Errorf("on %v, lost %v, leaves %v", j.AllocNodes(), LostNodes(j), j.Leaving())
	}
	w.report("n1", id, NodeDone)
	if !w.s.Load("n1").CPUs.Empty() {
		t.Error("the node is clean and still held")
	}
	up("n0", xid)
	w.want(id, Ending)
}

// TestSliced: GPUs that are cut and made whole again lack nothing, and slices keep their numbers.
func TestSliced(t *testing.T) {
	w := newWorld(t, 0)
	inv := smallNode()
	up := func(again bool, gpus ...GPU) *Node {
		t.Helper()
		inv.GPUs = gpus
		w.pass(time.Minute)
		w.ok(sys, &NodeUp{Name: "n0", Inventory: inv, Seq: w.seq["n0"], Again: again})
		n, _ := w.s.Node("n0")
		return n
	}
	whole := h100s(2)
	n := up(false, whole...)
	began := n.Registered
	if n.Reason != "" || n.Inventory.Renumbered() {
		t.Errorf("whole: %+v", n)
	}
	cut := append(slicesOf(0, "3g.20gb", "1g.5gb"), whole[1])
	n = up(true, cut...)
	if n.Reason != "" || !n.Inventory.Renumbered() || len(n.Inventory.Found()) != 3 || !n.Registered.Equal(began) {
		t.Errorf("cut: %+v", n)
	}
	if g := n.Inventory.GPUs[1]; g.UUID != "GPU-1" {
		t.Errorf("the GPU that stays whole has another number: %+v", n.Inventory.GPUs)
	}
	if n = up(true, cut[:2]...); n.Reason != "" || len(n.Inventory.Found()) != 2 {
		t.Errorf("slices alone: %+v", n)
	}
	n = up(true, whole...)
	if n.Reason != "" || n.Inventory.GPUs[1].UUID != "GPU-1" || n.Inventory.Renumbered() || len(n.Inventory.Found()) != 2 {
		t.Errorf("whole again: %+v", n)
	}
	if n = up(false, whole[0]); n.Reason != "gpu: 1 of 2 found" || n.Registered.Equal(began) {
		t.Errorf("one of two: %+v", n)
	}
}
