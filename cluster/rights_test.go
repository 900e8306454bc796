package cluster

import "testing"

// TestRights: what only operators may say of a job is refused to others.
func TestRights(t *testing.T) {
	one, text := 1, "x"
	for name, c := range map[string]struct {
		asked any
		who   string // who may not: "user"; "": all may
	}{
		"a plain job":                {&JobSpec{Name: "a", Layout: &Layout{}}, ""},
		"the site's part":            {&JobSpec{Site: 5}, "user"},
		"an admin comment":           {&JobSpec{AdminComment: "x"}, "user"},
		"a comment":                  {&JobSpec{Comment: "x"}, ""},
		"changed: the site's part":   {&Patch{Site: &one}, "user"},
		"changed: an admin comment":  {&Patch{AdminComment: &text}, "user"},
		"changed: what a job leaves": {&Patch{CoreSpec: &one}, "user"},
		"changed: a comment":         {&Patch{Comment: &text}, ""},
		"afterwards: a comment":      {&Amendment{Comment: &text}, ""},
		"afterwards: a wckey":        {&Amendment{WCKey: &text}, "user"},
	} {
		if err := CheckRights(Identity{UID: 1000}, c.asked); (err != nil) != (c.who == "user") {
			t.Errorf("%s, by a user: %v", name, err)
		}
		if err := CheckRights(Identity{UID: 0}, c.asked); err != nil {
			t.Errorf("%s, by root: %v", name, err)
		}
	}
}

// TestAdminHoldStays: a job that an administrator holds is not made one that its owner holds, whatever the owner
// asks for; nor is a hold of a running job forgotten when it is requeued.
func TestAdminHoldStays(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(nil)
	ref := Ref{Job: id}
	w.ok(root, &HoldJobs{Ref: ref, Hold: HeldAdmin})
	zero := uint32(0)
	for _, cmd := range []Command{
		&HoldJobs{Ref: ref, Hold: HeldUser}, &Requeue{Ref: ref, Hold: true},
		&UpdateJob{Ref: ref, Patch: Patch{Priority: &zero}},
	} {
		w.apply(alice, cmd)
		if j := w.wantWait(id, WaitHeldAdmin); j.Held != HeldAdmin {
			t.Errorf("after %s by its owner it is held by %d", cmd.kind(), j.Held)
		}
	}
	w.refused(alice, &HoldJobs{Ref: ref}, ErrAccess)
	w.ok(root, &HoldJobs{Ref: ref})
	w.run(id, 0, "n0")
	w.ok(root, &HoldJobs{Ref: ref, Hold: HeldAdmin})
	w.ok(alice, &Requeue{Ref: ref})
	w.report("n0", id, NodeDone)
	if j := w.wantWait(id, WaitHeldAdmin); j.Held != HeldAdmin || j.Priority != 0 {
		t.Errorf("requeued: %+v", j)
	}
	if err := Check(w.s.Snapshot(), &Requeue{Ref: ref, Hold: true}); err == nil {
		t.Error("a job that waits is requeued and held")
	}
}
