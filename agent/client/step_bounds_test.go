package client

import (
	"testing"

	"dev.muster/cluster"
)

// TestStepBounds: a step with numbers that none can have is refused before anything is placed, counted or taken for it:
// what a user asks for may neither fill the daemon's memory nor break it while it holds its tables.
func TestStepBounds(t *testing.T) {
	const huge = 1 << 62
	for name, spec := range map[string]*cluster.StepSpec{
		"tasks": {Layout: cluster.Layout{Tasks: 1 << 23, Overcommit: true}},
		"devices": {Layout: cluster.Layout{
			PerTask: []cluster.GRES{{Name: "gpu", Count: huge}}, PerJob: []cluster.GRES{{Name: "gpu"}},
		}},
		"a part": {World: &cluster.StepWorld{Job: 1, Tasks: huge}},
	} {
		h := here(cluster.Running, self)
		h.job.Alloc.Shares[0].CPUs = cluster.NewIDSet(0)
		h.job.Het = &cluster.HetPart{ID: h.job.ID, Size: 2}
		cl := readyClient(t, Config{}, h)
		if ls, err := cl.steps.placeAny(h, spec); err == nil {
			t.Errorf("%s: step %d has %d tasks", name, ls.record.ID.Step, ls.tasks())
		}
	}
}
