package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestIDSetAgainstMaps compares every operation with the same on plain maps.
func TestIDSetAgainstMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() (IDSet, map[int]bool) {
		m, s := map[int]bool{}, IDSet{}
		for range r.IntN(12) {
			i := r.IntN(200)
			m[i] = true
			s = s.Union(NewIDSet(i))
		}
		if r.IntN(3) == 0 {
			lo := r.IntN(200)
			hi := lo + r.IntN(200) - 20 // an empty one now and then
			s = s.Union(RangeIDSet(lo, hi))
			for i := lo; i <= hi; i++ {
				m[i] = true
			}
		}
		return s, m
	}
	same := func(what string, s IDSet, m map[int]bool) {
		t.Helper()
		want := slices.Sorted(maps.Keys(m))
		if got := slices.Collect(s.All()); !slices.Equal(got, want) || s.Len() != len(m) || s.Empty() != (len(m) == 0) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		if len(want) > 0 && (s.Min() != want[0] || s.Max() != want[len(want)-1]) {
			t.Fatalf("%s: min %d max %d of %v", what, s.Min(), s.Max(), want)
		}
		for _, run := range strings.Split(s.String(), ",") { // each is as long as can be
			lo, hi, more := strings.Cut(run, "-")
			first, _ := strconv.Atoi(lo)
			last, _ := strconv.Atoi(hi)
			if run != "" && (m[first-1] || m[max(first, last)+1] || more && last <= first) {
				t.Fatalf("%s: %q of %v", what, run, want)
			}
		}
		back, err := ParseIDSet(s.String())
		if err != nil || !back.Equal(s) {
			t.Fatalf("%s: %q reads as %v: %v", what, s, back, err)
		}
		if n := len(want) / 2; !slices.Equal(slices.Collect(s.First(n).All()), want[:n]) && n > 0 {
			t.Fatalf("%s: first %d of %v are %s", what, n, want, s.First(n))
		}
	}
	for range 2000 {
		a, x := draw()
		b, y := draw()
		union, minus, inter := maps.Clone(x), map[int]bool{}, map[int]bool{}
		contains := true
		for k := range y {
			union[k] = true
			contains = contains && x[k]
		}
		for k := range x {
			if y[k] {
				inter[k] = true
			} else {
				minus[k] = true
			}
		}
		same("a", a, x)
		same("union", a.Union(b), union)
		same("minus", a.Minus(b), minus)
		same("intersect", a.Intersect(b), inter)
		if a.Contains(b) != contains || a.Equal(b) != maps.Equal(x, y) {
			t.Fatalf("%s contains %s: %v, equal %v", a, b, a.Contains(b), a.Equal(b))
		}
	}
}

func TestParseIDSet(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "3,1,2": "1-3", "0-3,2-5": "0-5", "10-20:5": "10,15,20", "7": "7", "0-0": "0",
	} {
		if s, err := ParseIDSet(text); err != nil || s.String() != want {
			t.Errorf("%q reads as %q: %v", text, s, err)
		}
	}
	for _, text := range []string{
		"x", "3-1", "-1", "1-", "1:2", "1-5:0", ",", "1,,2", "4000002", "1-99999999999", "1-2-3",
	} {
		if s, err := ParseIDSet(text); err == nil {
			t.Errorf("%q reads as %q", text, s)
		}
	}
}

func FuzzIDSet(f *testing.F) {
	for _, s := range []string{"", "0-3,8", "10-20:5", "5-1", "63,64,65", "0-100000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		s, err := ParseIDSet(text)
		if err != nil {
			return
		}
		back, err := ParseIDSet(s.String())
		if err != nil || !back.Equal(s) || back.String() != s.String() {
			t.Fatalf("%q → %q → %q: %v", text, s, back, err)
		}
		if s.Len() > 0 && (!s.Has(s.Min()) || !s.Has(s.Max()) || s.Has(s.Max()+1)) {
			t.Fatalf("%s: min %d max %d", s, s.Min(), s.Max())
		}
	})
}

func TestPlaceStep(t *testing.T) {
	node := func(i, cpus int) Share {
		return Share{Node: NodeName(fmt.Sprint("n", i)), CPUs: RangeIDSet(0, cpus-1), GPUs: NewIDSet(0, 1)}
	}
	spec := &JobSpec{Layout: &Layout{PerNode: []GRES{{Name: "gpu", Count: 2}}}}
	big := &Job{Spec: spec, Alloc: &Alloc{Shares: []Share{node(0, 16), node(1, 2)}}}
	gang := &Job{Spec: spec, Alloc: &Alloc{Shares: []Share{node(0, 3), node(1, 1)}}}
	for i := range 2 {
		big.Alloc.Shares[i].MemMB, gang.Alloc.Shares[i].MemMB = 1000, 1000
	}
	uneven := &Job{Spec: spec, Alloc: &Alloc{Shares: []Share{node(0, 1), node(1, 3)}}}
	withCounted := &Job{Spec: spec, Alloc: &Alloc{Shares: []Share{node(0, 3)}}}
	withCounted.Alloc.Shares[0].Counted = []GRES{lscratch("", 10)}
	gpu := func(n int64) []GRES { return []GRES{{Name: "gpu", Count: n}} }
	mem := func(mb MemMB) Mem { return Mem{Per: MemPerNode, MB: mb} }
	within := func(l Layout) StepSpec { return StepSpec{Layout: l} }
	exactly := func(l Layout) StepSpec { return StepSpec{Exact: true, Layout: l} }
	taken := map[NodeName]StepUse{"n0": {CPUs: NewIDSet(0)}}
	takenGPUs := map[NodeName]StepUse{"n0": {GPUs: NewIDSet(0, 1)}}
	fullMem := map[NodeName]StepUse{"n0": {MemMB: 900}}
	fullMemOnBoth := map[NodeName]StepUse{"n0": {MemMB: 900}, "n1": {MemMB: 900}}
	memPerCPU := Mem{Per: MemPerCPU, MB: 400}
	one := 1
	bad := -1
	inv := &Inventory{CPUs: 16, Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1,
		Shared: []GRES{{Name: "bw", Count: 3, Unconsumed: true}}}
	for name, c := range map[string]struct {
		job  *Job
		used map[NodeName]StepUse
		spec StepSpec
		want string // node:tasks:cpus …
		kind ErrKind
	}{
		"-n18 is 16+2":           {job: big, spec: within(Layout{Tasks: 18}), want: "n0:16:0-15 n1:2:0-1"},
		"-n6 is 4+2":             {job: big, spec: within(Layout{Tasks: 6}), want: "n0:4:0-15 n1:2:0-1"},
		"-n4 is 2+2":             {job: big, spec: within(Layout{Tasks: 4}), want: "n0:2:0-15 n1:2:0-1"},
		"-n4 of 3,1":             {job: gang, spec: within(Layout{Tasks: 4}), want: "n0:3:0-2 n1:1:0"},
		"fewer tasks than nodes": {job: big, spec: within(Layout{Tasks: 1}), want: "n0:1:0-15"},
		"nothing asked":          {job: big, want: "n0:1:0-15 n1:1:0-1"},
		"too many":               {job: big, spec: within(Layout{Tasks: 19}), kind: ErrStepCPUs},
		"overcommit": {job: gang,
			spec: within(Layout{Tasks: 10, Overcommit: true}), want: "n0:5:0-2 n1:5:0"},
		"overcommit, one a node": {job: gang, spec: within(Layout{Overcommit: true}), want: "n0:1:0-2 n1:1:0"},
		"-c2 is exact": {job: big,
			spec: within(Layout{Tasks: 2, CPUsPerTask: 2}), want: "n0:1:0-1 n1:1:0-1"},
		"--exact, two sockets": {job: big,
			spec: exactly(Layout{Tasks: 3, NodeList: []NodeName{"n0"}, MinNodes: 1, MaxNodes: 1}), want: "n0:3:0-1,8"},
		"-r1":  {job: big, spec: StepSpec{Relative: &one}, want: "n1:1:0-1"},
		"-r-1": {job: big, spec: StepSpec{Relative: &bad}, kind: ErrStepNodes},
		"-w n1": {job: big,
			spec: within(Layout{NodeList: []NodeName{"n1"}, MinNodes: 1}), want: "n1:1:0-1"},
		"-w of a strange node": {job: big, spec: within(Layout{NodeList: []NodeName{"zz"}}), kind: ErrNodeConfig},
		"-N3 of two":           {job: big, spec: within(Layout{MinNodes: 3}), kind: ErrStepNodes},
		"-N1-2 -n6": {job: big,
			spec: within(Layout{MinNodes: 1, MaxNodes: 2, Tasks: 6}), want: "n0:4:0-15 n1:2:0-1"},
		"-N1-5 -n18": {job: big,
			spec: within(Layout{MinNodes: 1, MaxNodes: 5, Tasks: 18}), want: "n0:16:0-15 n1:2:0-1"},
		"-N1-2 -n1": {job: big,
			spec: within(Layout{MinNodes: 1, MaxNodes: 2, Tasks: 1}), want: "n0:1:0-15"},
		"beside a whole step": {job: gang, used: taken, kind: ErrBusy},
		"exact beside it":     {job: gang, used: taken, spec: exactly(Layout{Tasks: 2}), want: "n0:1:1 n1:1:0"},
		"overlap":             {job: gang, used: taken, spec: StepSpec{Overlap: true}, want: "n0:1:0-2 n1:1:0"},
		"-N1 where there is room": {job: gang, used: taken,
			spec: within(Layout{MinNodes: 1, Tasks: 1}), want: "n1:1:0"},
		"-N1 -n3 of 1,3": {job: uneven, spec: exactly(Layout{MinNodes: 1, Tasks: 3}), want: "n1:3:0-2"},
		"-N1 -n4 of 1,3": {job: uneven, spec: exactly(Layout{MinNodes: 1, Tasks: 4}), kind: ErrStepCPUs},
		"-N1-2 where one is full": {job: gang, used: taken,
			spec: within(Layout{MinNodes: 1, MaxNodes: 2}), want: "n1:1:0"},
		"the full one by name": {job: gang, used: taken,
			spec: within(Layout{MinNodes: 1, Tasks: 1, NodeList: []NodeName{"n0"}}), kind: ErrBusy},
		"memory in use": {job: gang, used: fullMem,
			spec: exactly(Layout{MinNodes: 1, Tasks: 1, Mem: mem(200)}), want: "n1:1:0"},
		"in use on both": {job: gang, used: fullMemOnBoth,
			spec: exactly(Layout{MinNodes: 1, Tasks: 1, Mem: mem(200)}), kind: ErrBusy},
		"no memory named": {job: gang, used: map[NodeName]StepUse{"n0": {MemMB: 1000}},
			spec: exactly(Layout{MinNodes: 1, Tasks: 1}), want: "n0:1:0"},
		"more than there is": {job: gang, spec: within(Layout{Mem: mem(1001)}), kind: ErrStepMem},
		"memory by CPU": {job: gang,
			spec: exactly(Layout{MinNodes: 1, Tasks: 3, Mem: memPerCPU}), kind: ErrStepMem},
		"-n2 -c2 of 3,1": {job: gang, spec: exactly(Layout{Tasks: 2, CPUsPerTask: 2}), want: "n0:1:0-1 n1:1:0"},
		"-n3 -c2 of 3,1": {job: gang, spec: exactly(Layout{Tasks: 3, CPUsPerTask: 2}), kind: ErrStepCPUs},
		"-n1 -c2 of 1,3": {job: uneven, spec: exactly(Layout{MinNodes: 1, Tasks: 1, CPUsPerTask: 2}), want: "n1:1:0-1"},
		"-n2 -c2 of 3,1, one in use": {job: gang, used: map[NodeName]StepUse{"n1": {CPUs: NewIDSet(0)}},
			spec: exactly(Layout{Tasks: 2, CPUsPerTask: 2}), kind: ErrBusy},
		"-c alone fills":  {job: big, spec: exactly(Layout{CPUsPerTask: 2}), want: "n0:8:0-15 n1:1:0-1"},
		"-c alone on one": {job: big, spec: exactly(Layout{CPUsPerTask: 4, MinNodes: 1}), want: "n0:4:0-15"},
		"GPU where one is free": {job: gang, used: takenGPUs,
			spec: exactly(Layout{MinNodes: 1, Tasks: 1, PerJob: gpu(1)}), want: "n1:1:0"},
		"GPUs of node and task": {job: gang,
			spec: exactly(Layout{Tasks: 2, PerNode: gpu(2), PerTask: gpu(2)}), want: "n0:1:0 n1:1:0"},
		"and too many tasks": {job: big,
			spec: exactly(Layout{Tasks: 3, PerNode: gpu(2), PerTask: gpu(2)}), kind: ErrStepGRES},
		"three GPUs of two": {job: gang,
			spec: within(Layout{PerNode: []GRES{{Name: "gpu", Count: 3}}}), kind: ErrStepGRES},
		"GPUs held by other step": {job: gang, used: map[NodeName]StepUse{"n0": {GPUs: NewIDSet(0)}},
			spec: StepSpec{Layout: Layout{PerNode: []GRES{{Name: "gpu", Count: 2}}}}, kind: ErrBusy},
		"counted": {job: withCounted, spec: exactly(Layout{PerNode: []GRES{lscratch("", 6)}}), want: "n0:1:0"},
		"counted, more than the job has": {job: withCounted,
			spec: exactly(Layout{PerNode: []GRES{lscratch("", 11)}}), kind: ErrStepGRES},
		"counted, held by another step": {job: withCounted,
			used: map[NodeName]StepUse{"n0": {Counted: []GRES{lscratch("", 6)}}},
			spec: exactly(Layout{PerNode: []GRES{lscratch("", 5)}}), kind: ErrBusy},
		"not consumed": {job: withCounted,
			spec: exactly(Layout{PerNode: []GRES{{Name: "bw", Count: 3}}}), want: "n0:1:0"},
	} {
		place := func(t *testing.T, j *Job, spec *StepSpec) {
			t.Helper()
			shares, err := PlaceStep(j, c.used, spec, func(NodeName) *Inventory { return inv })
			if c.kind != "" {
				if err == nil || err.Kind != c.kind {
					t.Fatalf("got %v %v, want a refusal of kind %s", shares, err, c.kind)
				}
				return
			}
			got := ""
			for i, s := range shares {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("%s:%d:%s", s.Node, s.Tasks, s.CPUs)
			}
			if err != nil || got != c.want {
				t.Errorf("got %q %v, want %q", got, err, c.want)
			}
		}
		t.Run(name, func(t *testing.T) { place(t, c.job, &c.spec) })
		if c.spec.Mem.MB > 0 || c.used["n0"].MemMB > 0 {
			continue
		}
		// The memory that a job has by its CPUs, and srun asks for again, changes nothing.
		t.Run(name+", memory by CPU", func(t *testing.T) {
			const each = 400
			j := *c.job
			j.Alloc = &Alloc{Shares: slices.Clone(c.job.Alloc.Shares)}
			for i := range j.Alloc.Shares {
				sh := &j.Alloc.Shares[i]
				sh.MemMB = each * MemMB(sh.CPUs.Len())
			}
			spec := c.spec
			spec.Mem = Mem{Per: MemPerCPU, MB: each}
			place(t, &j, &spec)
		})
	}
}

// TestStepsOfWholeNodes: a step of a job that has its nodes' GPUs all has those that the job asked for, a shell in
// it all. The cases are Slurm's.
func TestStepsOfWholeNodes(t *testing.T) {
	inv := &Inventory{CPUs: 16, Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, GPU{Index: i, Type: []string{"a", "b"}[i/4]})
	}
	gpus := func(n int64) []GRES { return []GRES{{Name: "gpu", Count: n}} }
	for name, c := range map[string]struct {
		job, step Layout
		shell     bool
		nodes     int
		want      string
	}{
		"none":          {nodes: 1, want: ""},
		"a shell":       {nodes: 1, shell: true, want: "0-7"},
		"the step asks": {nodes: 1, step: Layout{PerNode: gpus(3)}, want: "0-2"},
		"a node":        {nodes: 2, job: Layout{PerNode: gpus(3)}, want: "0-2 0-2"},
		"of a type": {
			nodes: 1, job: Layout{PerNode: []GRES{{Name: "gpu", Type: "b", Count: 2}}}, want: "4-5",
		},
		"in all, two nodes":  {nodes: 2, job: Layout{PerJob: gpus(4)}, want: "0-2 0"},
		"in all, one a node": {nodes: 2, job: Layout{PerJob: gpus(2)}, want: "0 0"},
		"a task":             {nodes: 1, job: Layout{Tasks: 2, PerTask: gpus(1)}, want: "0-1"},
		"a socket":           {nodes: 1, job: Layout{PerSocket: gpus(1)}, want: "0-7"},
		"a socket, both": {
			nodes: 1, job: Layout{PerSocket: gpus(1)}, step: Layout{PerSocket: gpus(1), SocketsPerNode: 1}, want: "0-7",
		},
		"the step by socket": {nodes: 1, step: Layout{PerSocket: gpus(1)}, want: "0-7"},
		"none, though it has": {
			nodes: 1, job: Layout{PerNode: gpus(3)}, step: Layout{PerNode: []GRES{{Name: "none"}}},
			want: "",
		},
	} {
		j := &Job{Spec: &JobSpec{Layout: &c.job, Sharing: ShareExclusive}, Alloc: &Alloc{}}
		for n := range c.nodes {
			j.Alloc.Shares = append(j.Alloc.Shares, Share{
				Node: NodeName(fmt.Sprint("n", n)), CPUs: RangeIDSet(0, 15), GPUs: RangeIDSet(0, 7),
				Tasks: max(c.job.Tasks, 1),
			})
		}
		shares, err := PlaceStep(j, nil, &StepSpec{Layout: c.step, Interactive: c.shell},
			func(NodeName) *Inventory { return inv })
		var got []string
		for _, sh := range shares {
			got = append(got, sh.GPUs.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}

func TestRankLayout(t *testing.T) {
	for _, c := range []struct {
		counts []int
		spec   StepSpec
		want   string
	}{
		{[]int{3, 1}, StepSpec{}, "[[0 1 2] [3]]"},
		{[]int{3, 1}, StepSpec{Layout: Layout{Distribution: "block"}}, "[[0 1 2] [3]]"},
		{[]int{3, 1}, StepSpec{Layout: Layout{Distribution: "cyclic"}}, "[[0 2 3] [1]]"},
		{[]int{6, 1, 1}, StepSpec{Layout: Layout{Distribution: "cyclic:block"}}, "[[0 3 4 5 6 7] [1] [2]]"},
		{[]int{4, 4}, StepSpec{Layout: Layout{Distribution: "plane=2", PlaneSize: 2}}, "[[0 1 4 5] [2 3 6 7]]"},
		{
			[]int{2, 1},
			StepSpec{Layout: Layout{Distribution: "arbitrary", NodeList: []NodeName{"b", "a", "a"}}},
			"[[1 2] [0]]",
		},
	} {
		if got := fmt.Sprint(RankLayout(c.counts, &c.spec)); got != c.want {
			t.Errorf("%v %q: %s, want %s", c.counts, c.spec.Distribution, got, c.want)
		}
	}
}

// A list that cannot be met is reported, as Slurm does.
func TestBindGPUsNotes(t *testing.T) {
	for _, c := range []struct{ bind, want string }{
		{"map_gpu:5,6",
			"[0 0] [Bind request gpu:map_gpu:5,6 does not specify any devices within the allocation for task 0. Binding to the first device in the allocation instead." +
				" Bind request gpu:map_gpu:5,6 does not specify any devices within the allocation for task 1. Binding to the first device in the allocation instead.]"},
		{
			"single:0",
			"[0 1] [--gpu-bind=single:0 does not specify a valid number. Defaulting to 1. --gpu-bind=single:0 does not specify a valid number. Defaulting to 1.]",
		},
		{"per_task:3", "[0-1 0] [Not enough gpus to bind for gpus per task Not enough gpus to bind for gpus per task" +
			" Bind request gpu:per_task:3 does not specify any devices within the allocation for task 1. Binding to the first device in the allocation instead.]"},
	} {
		s := &StepSpec{}
		s.GPUBind = c.bind
		var sets []IDSet
		var notes []string
		for k := range 2 {
			b := BindGPUs(s, RangeIDSet(0, 1), k, &Inventory{})
			sets, notes = append(sets, b.GPUs), append(notes, b.Notes...)
		}
		if got := fmt.Sprint(sets, notes); got != c.want {
			t.Errorf("%s: %s, want %s", c.bind, got, c.want)
		}
	}
}

func TestBindGPUs(t *testing.T) {
	inv := &Inventory{Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1,
		GPUs: []GPU{{Cores: RangeIDSet(0, 7)}, {Cores: RangeIDSet(0, 7)},
			{Cores: RangeIDSet(8, 15)}, {Cores: RangeIDSet(8, 15)}}}
	all := RangeIDSet(0, 3)
	for _, c := range []struct {
		spec StepSpec
		want string // by local rank 0 to 3
	}{
		{StepSpec{}, "0-3 0-3 0-3 0-3"},
		{StepSpec{Layout: Layout{PerTask: []GRES{{Name: "gpu", Count: 1}}}}, "0 1 2 3"},
		{StepSpec{Layout: Layout{TasksPerGPU: 2}}, "0 0 1 1"},
		{StepSpec{Layout: Layout{GPUBind: "single:2"}}, "0 0 1 1"},
		{StepSpec{Layout: Layout{GPUBind: "map_gpu:3,2*2"}}, "3 2 2 3"},
		{StepSpec{Layout: Layout{GPUBind: "map_gpu:0*0"}}, "0 0 0 0"},
		{StepSpec{Layout: Layout{GPUBind: "mask_gpu:0x3,0x8"}}, "0-1 3 0-1 3"},
		{StepSpec{Layout: Layout{GPUBind: "closest"}}, "0-1 2-3 0-1 2-3"},
		{StepSpec{Layout: Layout{GPUBind: "none"}}, "0-3 0-3 0-3 0-3"},
		{StepSpec{Layout: Layout{GPUBind: "verbose,per_task:1"}}, "0 1 2 3"},
		{StepSpec{Layout: Layout{GPUBind: "map_gpu:0x3,5"}}, "3 0 3 0"}, // 5 is not among them: the first
	} {
		got := ""
		for i := range 4 {
			if i > 0 {
				got += " "
			}
			got += BindGPUs(&c.spec, all, i, inv).GPUs.String()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.spec.GPUBind, got, c.want)
		}
	}
}
