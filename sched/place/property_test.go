package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dev.muster/cluster"
	"dev.muster/sched/schedtest"
)

// trial is a small random cluster with jobs on it, and a job to place that must keep off some of it.
type trial struct {
	b    *schedtest.Testbed
	line string
	kind string
	off  Exclusion
}

func newTrial(t *testing.T, r *rand.Rand) trial {
	count := 1 + r.IntN(7)
	kind := [...]string{"flat", "tree", "block", "flat"}[r.IntN(4)]
	var nodes []cluster.Inventory
	weights := r.IntN(3) == 0
	for range count {
		inv := schedtest.Machine([...]string{"a", "b", "c"}[r.IntN(3)])
		if r.IntN(3) == 0 {
			inv.Features = append(inv.Features, "a")
		}
		inv.GPUs = inv.GPUs[:r.IntN(9)]
		if weights {
			inv.Weight = 1 + r.IntN(3)
		}
		nodes = append(nodes, inv)
	}
	b := schedtest.Named(t, func(cfg *cluster.Config) {
		cfg.GRES = []cluster.GRESLine{{Name: "lscratch", Count: 8}}
		cfg.LLN, cfg.SerialAtEnd = r.IntN(6) == 0, r.IntN(6) == 0
		half := (count + 1) / 2
		switch kind {
		case "tree":
			cfg.Topology = []cluster.Switch{
				{Name: "l1", Nodes: schedtest.Names(1, half)}, {Name: "l2", Nodes: schedtest.Names(half+1, count)},
				{Name: "top", Switches: []string{"l1", "l2"}},
			}
		case "block":
			cfg.BlockSizes = []int{2, 4}
			for k := 1; k <= count; k += 2 {
				cfg.Blocks = append(cfg.Blocks, cluster.Block{
					Name: fmt.Sprint("b", k), Nodes: schedtest.Names(k, min(k+1, count)),
				})
			}
		}
	}, nodes...)
	for range r.IntN(6) {
		line := fmt.Sprintf("-N1 -n%d --gpus-per-node=%d", 1+r.IntN(12), r.IntN(3))
		if r.IntN(3) == 0 {
			line += fmt.Sprintf(" --gres=lscratch:%d", 1+r.IntN(8))
		}
		b.Submit(schedtest.Ask(t, line))
	}
	placeAll(b)
	tr := trial{b: b, line: randomLine(r), kind: kind}
	if r.IntN(2) == 0 {
		tr.off.Parts = &ExcludedParts{}
		for i := range count {
			if from := r.IntN(24); from < 16 {
				tr.off.Parts.Exclude(int32(i), cluster.RangeIDSet(from, from+r.IntN(16-from)), randomGPUs(r))
			}
		}
	}
	return tr
}

// randomGPUs returns some of a node's GPUs, or none.
func randomGPUs(r *rand.Rand) cluster.IDSet {
	var ids []int
	for id := range 4 {
		if r.IntN(4) == 0 {
			ids = append(ids, id)
		}
	}
	return cluster.NewIDSet(ids...)
}

// randomLine asks for something that the brute force below can judge.
func randomLine(r *rand.Rand) string {
	line := ""
	add := func(one int, text string, args ...any) {
		if r.IntN(one) == 0 {
			line += " " + fmt.Sprintf(text, args...)
		}
	}
	lo := 1 + r.IntN(4)
	add(2, "-N%d-%d", lo, lo+r.IntN(2)*r.IntN(3))
	add(2, "-n%d", 1+r.IntN(40))
	add(3, "-c%d", 1+r.IntN(6))
	if r.IntN(2) == 0 {
		add(2, "--gpus=%d", 1+r.IntN(12))
	} else {
		add(2, "--gpus-per-node=%d", 1+r.IntN(4))
	}
	add(4, "--gres=lscratch:%d", 1+r.IntN(8))
	add(5, "--contiguous")
	add(6, "--exclusive")
	add(6, "--spread-job")
	add(6, "-w%s", schedtest.Numbered(1+r.IntN(3)))
	add(6, "-x%s", schedtest.Numbered(4+r.IntN(2)))
	add(3, "-C%s", [...]string{"a", "a|b", "[a|b]", "[a|b|c]", "a*1", "(a|b)&a"}[r.IntN(6)])
	add(8, "--prefer=c")
	return line
}

// allowed judges a set of nodes against everything that was asked, by enumeration and without any
// order of choice.
func (tr trial) allowed(d *Demand, fs *FreeSet, set []int) bool {
	if len(set) < d.MinNodes || len(set) > d.mostNodes(len(fs.all)) {
		return false
	}
	tasks := 0
	gpus := make([]int64, len(d.gpuJob))
	for _, i := range set {
		free := tr.off.Parts.without(int32(i), &fs.nodes[i])
		n := d.tasksOnAny(free)
		if n == 0 {
			return false
		}
		tasks += n
		for k, g := range d.gpuJob {
			gpus[k] += int64(d.gpusGivenBy(free, g.Type))
		}
	}
	for k, g := range d.gpuJob {
		if gpus[k] < g.Count {
			return false
		}
	}
	for _, name := range d.wanted {
		if i, ok := fs.Index(name); !ok || !slices.Contains(set, i) {
			return false
		}
	}
	if d.flags.has(contiguous) && set[len(set)-1]-set[0] != len(set)-1 {
		return false
	}
	if tr.kind == "block" && !d.flags.has(contiguous) && !tr.inBlock(d, set) {
		return false
	}
	return tasks >= d.tasks && (d.wishes == nil || slices.ContainsFunc(d.wishes, func(w cluster.Wish) bool {
		for _, i := range set {
			if !w.All(fs.nodes[i].node.Inventory.Features) {
				return false
			}
		}
		for _, c := range w.Counts {
			n := 0
			for _, i := range set {
				n += b2i(c.Has(fs.nodes[i].node.Inventory.Features))
			}
			if n < c.Nodes {
				return false
			}
		}
		return true
	}))
}

// inBlock holds a set to one block of its size; a job that asked for no number of nodes may take a larger one.
func (tr trial) inBlock(d *Demand, set []int) bool {
	for _, size := range []int{2, 4, 8} {
		if size >= len(set) {
			return set[0]/size == set[len(set)-1]/size || !d.countAsked && set[0]/8 == set[len(set)-1]/8
		}
	}
	return false
}

// TestEveryPlacement generates clusters and jobs: what is given meets all that was asked and is free, and where
// nothing is found no set of nodes would do.
func TestEveryPlacement(t *testing.T) {
	seed := rand.Uint64()
	found := 0
	none := 0
	for round := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, round))
		tr := newTrial(t, r)
		if n := tr.b.S.Snapshot().NodeCount(); n < 4 && slices.ContainsFunc([]string{"-w", "-x"},
			func(w string) bool { return contains(tr.line, w) }) {
			continue // it would name nodes that are not there
		}
		spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: []string{"main"}}
		schedtest.Ask(t, tr.line)(spec)
		snap := tr.b.S.Snapshot()
		part, _ := snap.Partition("main")
		d := NewDemand(snap, part, spec, nil)
		fs := NewFreeSet(snap)
		a := d.FindIn(fs, tr.off)
		if a == nil {
			none++
			for mask := 1; mask < 1<<len(fs.all); mask++ {
				var set []int
				for i := range fs.all {
					if mask>>i&1 == 1 {
						set = append(set, i)
					}
				}
				if tr.allowed(d, fs, set) {
					t.Fatalf("seed %d round %d: %s%s found nothing, nodes %v would do", seed, round,
						tr.kind, tr.line, set)
				}
			}
			continue
		}
		found++
		if why := tr.wrong(d, fs, a); why != "" {
			t.Fatalf("seed %d round %d: %s%s got %+v: %s", seed, round, tr.kind, tr.line, a.Shares, why)
		}
	}
	if found < 500 || none < 200 {
		t.Errorf("%d placed and %d not: the trials say little", found, none)
	}
}

func contains(line, word string) bool {
	for i := range line {
		if len(line) >= i+len(word) && line[i:i+len(word)] == word && (i == 0 || line[i-1] == ' ') {
			return true
		}
	}
	return false
}

// wrong tells what of an allocation is more than is free or less than was asked.
func (tr trial) wrong(d *Demand, fs *FreeSet, a *cluster.Alloc) string {
	var set []int
	tasks := 0
	gpus := 0
	for _, sh := range a.Shares {
		i, _ := fs.Index(sh.Node)
		free := tr.off.Parts.without(int32(i), &fs.nodes[i])
		set = append(set, i)
		tasks, gpus = tasks+sh.Tasks, gpus+sh.GPUs.Len()
		switch {
		case !free.cpus.Contains(sh.CPUs) || !free.gpus.Contains(sh.GPUs):
			return "more than is free on " + string(sh.Node)
		case sh.CPUs.Len() < sh.Tasks*d.cpusPerTask || sh.Tasks < 1:
			return "too few CPUs on " + string(sh.Node)
		case d.exclusive && (free.busy || sh.CPUs.Len() < 16):
			return "not the whole of " + string(sh.Node)
		case int64(sh.GPUs.Len()) < sumGRES(d.gpuNode):
			return "too few GPUs on " + string(sh.Node)
		}
	}
	if !slices.IsSorted(set) {
		return "nodes out of order"
	}
	if tasks < d.tasks || int64(gpus) < sumGRES(d.gpuJob) {
		return fmt.Sprintf("%d tasks and %d GPUs", tasks, gpus)
	}
	if !tr.allowed(d, fs, set) {
		return "not what was asked for"
	}
	return ""
}
