package cluster

import (
	"strings"
	"testing"

	"dev.muster/cluster/federation"
)

// TestCheckAsked: numbers that stand for nothing are refused at the door.
func TestCheckAsked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*JobSpec)
		want   bool
	}{
		"nothing":          {func(*JobSpec) {}, true},
		"srun's own":       {func(s *JobSpec) { s.Kind = SrunJob }, true},
		"no kind":          {func(s *JobSpec) { s.Kind = External + 1 }, false},
		"shared":           {func(s *JobSpec) { s.Sharing = ShareOver }, true},
		"shared somehow":   {func(s *JobSpec) { s.Sharing = 200 }, false},
		"memory of a GPU":  {func(s *JobSpec) { s.Mem = Mem{Per: MemPerGPU, MB: 1} }, true},
		"memory of what":   {func(s *JobSpec) { s.Mem = Mem{Per: 7, MB: 1} }, false},
		"segments below 0": {func(s *JobSpec) { s.Segment = -1 }, false},
		"planes below 0":   {func(s *JobSpec) { s.PlaneSize = -1 }, false},
	} {
		spec := &JobSpec{Layout: &Layout{}}
		c.change(spec)
		if err := CheckAsked(spec); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	over, none := Sharing(9), -1
	for name, p := range map[string]Patch{
		"nodes": {MinNodes: &none}, "memory": {Mem: &Mem{Per: 9}}, "sharing": {Sharing: &over},
	} {
		if err := p.check(); err == nil {
			t.Errorf("a change of %s to nothing is taken", name)
		}
	}
}

// TestCheckHold: a hold that there is not is refused at the door: it would take the place of an administrator's, and
// the job's user could release it.
func TestCheckHold(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(nil)
	w.ok(root, &HoldJobs{Ref: Ref{Job: id}, Hold: HeldAdmin})
	for hold, want := range map[Hold]bool{NotHeld: true, HeldUser: true, HeldAdmin: true, HeldAdmin + 1: false} {
		err := Check(w.s.Snapshot(), &HoldJobs{Ref: Ref{Job: id}, Hold: hold})
		if (err == nil) != want {
			t.Errorf("hold %d: %v", hold, err)
		}
		if err == nil {
			w.apply(alice, &HoldJobs{Ref: Ref{Job: id}, Hold: hold})
		}
	}
	w.apply(alice, &HoldJobs{Ref: Ref{Job: id}})
	if j, _ := w.s.Job(id); j.Held != HeldAdmin {
		t.Errorf("its user has released a job that an administrator holds: %d", j.Held)
	}
}

// TestCheckMembers: a member of a federation says nothing of jobs with numbers of others, and nothing that stands for
// nothing.
func TestCheckMembers(t *testing.T) {
	own := JobID(federation.ID(2).Number(7))
	for o, want := range map[FederationOrder]bool{
		{Job: own}: true, {Job: own, Held: HeldAdmin, Restarts: 3}: true,
		{Job: 7}: false, {Job: JobID(federation.ID(1).Number(7))}: false, {Job: JobID(federation.ID(2).Number(0))}: false,
		{Job: 0}: false, {Job: own, Held: HeldAdmin + 1}: false, {Job: own, Restarts: -1}: false,
	} {
		if err := o.Check(2); (err == nil) != want {
			t.Errorf("order %+v: %v", o, err)
		}
	}
	for r, want := range map[FederationReport]bool{
		{Job: own, Outcome: Completed, Reason: "NodeDown"}: true, {Outcome: outcomes}: false, {Restarts: -1}: false,
		{Held: HeldAdmin + 1}: false, {Reason: Reason(strings.Repeat("x", maxPeerText+1))}: false,
	} {
		if err := r.Check(); (err == nil) != want {
			t.Errorf("report with outcome %d: %v", r.Outcome, err)
		}
	}
}
