package client

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// meteredClient is a client with one job of one node, of which steps run.
func meteredClient(t testing.TB, freq string, gpus int) *Client {
	t.Helper()
	inv := cluster.Inventory{CPUs: 8}
	for i := range gpus {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, UUID: fmt.Sprint("gpu", i)})
	}
	c := newClient(t, Config{Nodes: []machine.Node{{Name: "n1", Inventory: inv}},
		Sampler: usage.NewSampler(t.TempDir()),
		GPUs:    gpu.NewWatcher(nil, time.Hour, slog.New(slog.DiscardHandler))})
	share := cluster.Share{Node: "n1"}
	for i := range gpus {
		share.GPUs = share.GPUs.Union(cluster.NewIDSet(i))
	}
	c.nodes["n1"].jobs[7] = newHere("n1", &cluster.Job{
		ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{AcctgFreq: freq}},
		Alloc: &cluster.Alloc{Shares: []cluster.Share{share}},
	})
	return c
}

func runs(c *Client, number int, pids ...int) step.ID {
	id := step.ID{Job: 7, Step: number, Node: "n1"}
	st := &step.Status{ID: id, State: step.Running}
	for i, pid := range pids {
		st.Tasks = append(st.Tasks, step.TaskStatus{Rank: i, PID: pid})
	}
	c.have.Put(id, st)
	return id
}

// TestMeterTerms: a part is measured as often as its job has asked, with the GPUs of its job on the node; one whose job
// the servers have not named yet has no terms.
func TestMeterTerms(t *testing.T) {
	for _, k := range []struct {
		freq  string
		gpus  int
		every time.Duration
	}{
		{"", 0, 30 * time.Second},
		{"task=10", 0, 10 * time.Second},
		{"0", 0, cluster.Unlimited},
		{"", 2, 30 * time.Second},
	} {
		c := meteredClient(t, k.freq, k.gpus)
		runs(c, cluster.BatchStep, 100)
		source := meterSource{c}
		parts := source.Parts()
		if len(parts) != 1 {
			t.Fatalf("%d parts", len(parts))
		}
		got, ok := source.Terms(parts[0])
		if !ok || got.Every != k.every || len(got.GPUs) != k.gpus || got.Shared {
			t.Errorf("%q: %+v, known %t; want every %v, %d GPUs", k.freq, got, ok, k.every, k.gpus)
		}
		delete(c.nodes["n1"].jobs, 7)
		if _, ok := source.Terms(parts[0]); ok {
			t.Error("a part of a job that was not named has terms")
		}
	}
}

// TestMeterAlone: a job's script is alone until a step of the job runs beside it.
func TestMeterAlone(t *testing.T) {
	c := meteredClient(t, "", 0)
	batch := runs(c, cluster.BatchStep, 100)
	if !(meterSource{c}).Alone(batch) {
		t.Error("only the script runs")
	}
	runs(c, 0, 200)
	if (meterSource{c}).Alone(batch) {
		t.Error("a step runs beside the script")
	}
}

// TestUsedHere: what was measured is told of the parts here.
func TestUsedHere(t *testing.T) {
	c := meteredClient(t, "", 0)
	runs(c, cluster.BatchStep, os.Getpid())
	c.meter.Measure(t.Context(), time.Now(), true)
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := c.usedHere(api.PartsQuery{Job: 7, Step: cluster.AllSteps, Nodes: []cluster.NodeName{"n1"}})
	if len(parts) != 1 || parts[0].Tasks[0].MaxRSS == 0 || parts[0].Tasks[0].MaxVM == 0 || len(parts[0].PIDs) == 0 {
		t.Fatalf("live: %+v", parts)
	}
}
