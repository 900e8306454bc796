package replay

import (
	"encoding/csv"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"dev.muster/cluster"
	"dev.muster/sched"
)

var orders = flag.Int("orders", 1, "over how many random orders of its tasks TestPacking takes the mean")

// TestPacking fills the nodes of the Alibaba trace with its tasks in random order until they ask for as many GPUs
// as there are, and for 1.3 times as many; many ask for a part of one, and none ever leaves. An independent
// simulator gives out 86.7 and 87.9 % of the GPUs at random, 93.0 and 93.2 by best fit, and 94.3 and 94.5 where the
// least is spoiled; published for the last are 95.2 and 95.4 (Weng et al., USENIX ATC 2023). Two of three tasks ask for
// a part of a CPU, as the trace counts thousandths: a CPU here is a tenth of one of the trace, and a whole one in the
// row that has what the rounding up costs (it asks for 3.8 % more).
func TestPacking(t *testing.T) {
	if *traces == "" {
		t.Skip("no -traces folder given")
	}
	for _, c := range []struct {
		name  string
		word  func(*cluster.Config)
		cpu   int // what one CPU stands for, in thousandths
		least [2]float64
	}{
		{"usual", func(cfg *cluster.Config) { cfg.NoBestFit = true }, 100, [2]float64{0.89, 0.89}},
		{"best fit", func(*cluster.Config) {}, 100, [2]float64{0.93, 0.932}},
		{"fgd", func(cfg *cluster.Config) { cfg.Gradient = true }, 100, [2]float64{0.95, 0.952}},
		{"fgd, whole CPUs", func(cfg *cluster.Config) { cfg.Gradient = true }, 1000, [2]float64{0.948, 0.951}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got [2]float64
			for seed := range *orders {
				part := pack(t, c.word, c.cpu, uint64(seed+1))
				t.Logf("order %d: %.4f of the GPUs are given out", seed+1, part)
				got[0] += part[0] / float64(*orders)
				got[1] += part[1] / float64(*orders)
			}
			t.Logf("%.4f of the GPUs are given out on average", got)
			if got[0] < c.least[0] || got[1] < c.least[1] {
				t.Errorf("want %.3f", c.least)
			}
		})
	}
}

// pack tells what part is given out when as many are asked for, and when 1.3 times as many are.
func pack(t *testing.T, word func(*cluster.Config), cpu int, seed uint64) (out [2]float64) {
	s, index := cluster.NewState(), uint64(0)
	apply := func(c cluster.Command) any {
		index++
		a := s.Apply(cluster.Entry{Index: index, At: beginning, By: cluster.Identity{System: true}, Cmd: c})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a.Result
	}
	cfg := cluster.DefaultConfig()
	cfg.MaxJobCount = 100_000
	word(&cfg)
	nodes, milli := numbers(t, "openb_nodes.csv"), 0
	for _, r := range nodes {
		milli += 1000 * r[3]
		cfg.GRES = append(cfg.GRES, cluster.GRESLine{
			Nodes: []cluster.NodeName{nodeOf(r)}, Name: "shard", Count: 1000 * r[3],
		})
	}
	apply(&cluster.Configure{Config: &cfg})
	for _, r := range nodes {
		inv := cluster.Inventory{
			CPUs: r[1] / cpu, Sockets: 1, CoresPerSocket: r[1] / cpu, ThreadsPerCore: 1,
			MemMB: cluster.MemMB(r[2]), Hollow: true,
		}
		for k := range r[3] {
			inv.GPUs = append(inv.GPUs, cluster.GPU{Index: k, Minor: k})
		}
		apply(&cluster.NodeUp{Name: nodeOf(r), Inventory: inv})
	}
	tasks, rng := numbers(t, "openb_tasks.csv"), rand.New(rand.NewPCG(seed, 2))
	var scheduler sched.Scheduler
	asked, given := 0, 0
	for asked < milli*13/10 {
		r := tasks[rng.IntN(len(tasks))]
		spec := &cluster.JobSpec{Name: "task", UID: 1, User: "u",
			Layout: &cluster.Layout{MinNodes: 1, MaxNodes: 1, CPUsPerTask: max((r[1]+cpu-1)/cpu, 1),
				Mem: cluster.Mem{Per: cluster.MemPerNode, MB: cluster.MemMB(r[2])}}}
		switch {
		case r[3] == 1 && r[4] < 1000:
			spec.PerNode = []cluster.GRES{{Name: "shard", Count: int64(r[4])}}
		case r[3] > 0:
			spec.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(r[3])}}
		}
		id := apply(&cluster.Submit{Spec: spec}).(cluster.JobID)
		ds := scheduler.Schedule(s.Snapshot(), beginning)
		apply(&cluster.Decide{Decisions: ds})
		asked += r[3] * r[4]
		if j, _ := s.Job(id); j.Phase == cluster.Pending {
			apply(&cluster.Cancel{Ref: cluster.Ref{Job: id}})
		} else {
			given += r[3] * r[4]
		}
		out[1] = float64(given) / float64(milli)
		if asked-r[3]*r[4] < milli {
			out[0] = out[1]
		}
	}
	return out
}

// nodeOf names the node of a row.
func nodeOf(r []int) cluster.NodeName { return cluster.NodeName("n" + strconv.Itoa(r[0])) }

// numbers reads a file of numbers; the first column becomes the row's number, what is no number 0.
func numbers(t *testing.T, name string) (rows [][]int) {
	f, err := os.Open(*traces + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range list[1:] {
		row := []int{k}
		for _, cell := range r[1:] {
			n, _ := strconv.Atoi(cell)
			row = append(row, n)
		}
		rows = append(rows, row)
	}
	return rows
}
