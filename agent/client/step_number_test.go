package client

import (
	"errors"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestStepNumbers: neither a user, by a part of a step of a heterogeneous job, nor another node has a step begin that
// goes for the script or for the sessions of a job: the supervisor believes that the daemon has chosen the files of
// the sessions, and opens them as root.
func TestStepNumbers(t *testing.T) {
	for number, want := range map[int]bool{
		cluster.ExternStep: false, cluster.BatchStep: false, cluster.InteractiveStep: false,
		cluster.FirstCast: false, 0: true, 7: true,
	} {
		h := here(cluster.Running, self)
		h.job.Alloc.Shares[0].CPUs = cluster.NewIDSet(0)
		h.job.Het = &cluster.HetPart{ID: h.job.ID, Size: 2}
		cl := readyClient(t, Config{}, h)
		spec := &cluster.StepSpec{World: &cluster.StepWorld{Job: h.job.ID, Number: number}}
		ls, err := cl.steps.place(h, spec)
		if want != (err == nil) {
			t.Errorf("step %d: %v", number, err)
		}
		if ls != nil && ls.record.ID.Step != number {
			t.Errorf("step %d became %d", number, ls.record.ID.Step)
		}
	}
	for _, number := range []int{cluster.ExternStep, cluster.BatchStep, prologStep, epilogStep, fetchStep} {
		cl := readyClient(t, Config{}, here(cluster.Running, self))
		q := api.PartsRequest{Step: cluster.Step{ID: cluster.StepID{Job: 1, Step: number}, Attempt: 1}}
		_, err := cl.parts.startParts(t.Context(), api.Caller{Member: "n2"}, q)
		var e *cluster.Error
		if !errors.As(err, &e) || e.Code != cluster.Denied {
			t.Errorf("another node starts step %d: %v", number, err)
		}
	}
}

// TestOwnNumbers: what is asked for never becomes a step of the node's own, whoever has given it its number.
func TestOwnNumbers(t *testing.T) {
	for number, want := range map[int]bool{
		cluster.ExternStep: false, cluster.BatchStep: false, prologStep: false, fetchStep: false,
		cluster.InteractiveStep: true, 0: true,
	} {
		h := here(cluster.Running, self)
		cl := readyClient(t, Config{}, h)
		ls := cl.steps.newStep(h, &cluster.StepSpec{}, number, []cluster.Share{{Node: self}})
		sp, err := cl.steps.build.stepSpec(h, ls, [][]int{nil}, 0, nil)
		if want != (err == nil) || sp.Own {
			t.Errorf("step %d: %v, own: %t", number, err, sp.Own)
		}
	}
}
