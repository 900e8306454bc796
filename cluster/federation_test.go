package cluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster/federation"
)

// member is a world of a cluster of the federation f with alpha (1) and beta (2).
func member(t testing.TB, name string) *world {
	w := newWorld(t, 2)
	cfg := *w.s.config
	cfg.ClusterName = name
	w.ok(root, &Configure{Config: &cfg})
	other := map[string]string{"alpha": "beta", "beta": "alpha"}[name]
	w.ok(root, &PeerPut{
		Peer: PeerCluster{Name: other, URLs: "http://h:1", Send: "s", Accept: strings.Repeat("0a", 32)},
	})
	w.ok(root, &FederationPut{Record: twoMembers(1)})
	return w
}

func twoMembers(version uint64) federation.Record {
	return federation.Record{
		Name: "f", Version: version,
		Members: []federation.Member{{ID: 1, Name: "alpha"}, {ID: 2, Name: "beta"}},
	}
}

// orders has a cluster take what the origin says of a job now.
func orders(to, origin *world, id JobID) *Error {
	to.t.Helper()
	j, ok := origin.s.jobs.Get(id)
	row := FederationOrder{Job: id, Order: federation.Order{Over: true}}
	if ok {
		spec := AsAsked(j)
		row = FederationOrder{Job: id, Order: j.Fed.Part.Order(j.Phase == Ended), Spec: &spec,
			Hash: spec.Name, By: alice,
			Held: j.Held, Submitted: j.Submitted, Restarts: j.Restarts}
	}
	out := to.ok(sys, &FederationOrders{From: 1, Index: origin.s.Index, Rows: []FederationOrder{row}})
	return out.Result.([]*Error)[0]
}

// reports has the origin hear of a sibling.
func reports(origin, from *world, id JobID) {
	origin.t.Helper()
	j := from.job(id)
	row := ReportOf(j)
	origin.ok(sys, &FederationReports{From: 2, Rows: []FederationReport{row}})
}

func sharedSubmit(w *world, viable ...federation.ID) JobID {
	w.t.Helper()
	spec := JobSpec{UID: alice.UID, GID: alice.GID, User: "alice", Name: "one", Layout: &Layout{MinNodes: 1, Tasks: 1}}
	return w.ok(alice, &Submit{Spec: &spec, Viable: federation.SetOf(viable...)}).Result.(JobID)
}

// TestFederationLock: a job is offered to both clusters, and starts where the origin has granted it, once.
func TestFederationLock(t *testing.T) {
	a, b := member(t, "alpha"), member(t, "beta")
	id := sharedSubmit(a, 1, 2)
	if want := JobID(1<<26 | 1); id != want {
		t.Fatalf("the job has the number %d, want %d", id, want)
	}
	if err := orders(b, a, id); err != nil {
		t.Fatal(err)
	}
	if own := sharedSubmit(b, 2); own>>26 != 2 {
		t.Errorf("a job of beta is %d", own)
	}
	reports(a, b, id)
	if p := a.job(id).Fed.Part; p.Active != federation.SetOf(1, 2) {
		t.Errorf("siblings are at %b", p.Active)
	}
	start := func(w *world) []*Error {
		alloc := &Alloc{Partition: "main", Shares: []Share{{Node: "n0", CPUs: NewIDSet(0), MemMB: 10, Tasks: 1}}}
		return w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Start: alloc}}}).Result.([]*Error)
	}
	if start(b); !b.job(id).Fed.Part.Asks || b.job(id).Phase != Pending {
		t.Fatalf("beta does not ask: %+v", b.job(id).Fed)
	}
	reports(a, b, id)
	if p := a.job(id).Fed.Part; p.Holder != 2 || p.Begun {
		t.Fatalf("alpha has not granted it: %+v", p)
	}
	if start(a)[0] == nil {
		t.Error("alpha starts what it has granted to beta")
	}
	if !Elsewhere(a.job(id)) || a.s.QueueLen() != 0 {
		t.Error("the job is in alpha's queue")
	}
	_ = orders(b, a, id)
	if err := start(b)[0]; err != nil || b.job(id).Phase != Starting {
		t.Fatalf("beta does not start it: %v", err)
	}
	reports(a, b, id)
	if p := a.job(id).Fed.Part; !p.Begun {
		t.Errorf("alpha has not heard: %+v", p)
	}
	b.report("n0", id, NodeReady)
	if b.over(id, 0); !owes(&b.s.tables, b.job(id)) {
		t.Error("beta may forget a job whose end alpha does not know")
	}
	b.pass(time.Hour)
	b.due()
	reports(a, b, id)
	j := a.job(id)
	if j.Phase != Ended || j.Outcome != Revoked || RanAs(j) != Completed {
		t.Errorf("at alpha it is %v %v %v", j.Phase, j.Outcome, j.Fed.Ran)
	}
	_ = orders(b, a, id)
	if owes(&b.s.tables, b.job(id)) {
		t.Error("beta still owes it")
	}
	var text bytes.Buffer
	if err := b.s.Snapshot().Encode(&text); err != nil {
		t.Fatal(err)
	}
	if s, err := Decode(&text); err != nil || s.Federation().Link(1).Heard == 0 {
		t.Errorf("after a restart: %v", err)
	}
}

// TestFederationCancel: a job is ended wherever it waits, and where another cluster holds it that one hears of it.
func TestFederationCancel(t *testing.T) {
	a, b := member(t, "alpha"), member(t, "beta")
	id := sharedSubmit(a, 1, 2)
	_ = orders(b, a, id)
	a.ok(alice, &Cancel{Ref: Ref{Job: id}})
	_ = orders(b, a, id)
	if j := b.job(id); j.Phase != Ended || j.Outcome != Revoked {
		t.Errorf("at beta it is %v %v", j.Phase, j.Outcome)
	}
	id = sharedSubmit(a, 2)
	if !Elsewhere(a.job(id)) {
		t.Error("a job for beta waits at alpha")
	}
	_ = orders(b, a, id)
	row := ReportOf(b.job(id))
	row.Report.Asks = true
	a.ok(sys, &FederationReports{From: 2, Rows: []FederationReport{row}})
	a.ok(alice, &Cancel{Ref: Ref{Job: id}})
	if j := a.job(id); j.Phase != Pending || j.Fed.Part.Cancelled == nil {
		t.Fatalf("alpha has ended what beta may have started: %+v", j.Fed)
	}
	_ = orders(b, a, id)
	_ = orders(b, a, id)
	if j := b.job(id); j.Phase != Ended || j.Outcome != Cancelled {
		t.Errorf("at beta it is %v %v", j.Phase, j.Outcome)
	}
	reports(a, b, id)
	if j := a.job(id); j.Phase != Ended || RanAs(j) != Cancelled {
		t.Errorf("at alpha it is %v %v", j.Phase, RanAs(j))
	}
}

// TestFederationRecord: a federation has peers for members, and one record of it is the newest.
func TestFederationRecord(t *testing.T) {
	a := member(t, "alpha")
	r := twoMembers(2)
	r.Members = append(r.Members, federation.Member{ID: 3, Name: "gamma"})
	a.refused(root, &FederationPut{Record: r}, "")
	r.Members[2] = federation.Member{ID: 2, Name: "gamma"}
	a.refused(root, &FederationPut{Record: r}, "")
	a.refused(alice, &FederationPut{Record: twoMembers(3)}, ErrAccess)
	r = twoMembers(3)
	r.Members[1].State = federation.Drain
	a.ok(root, &FederationPut{Record: r})
	a.ok(root, &FederationPut{Record: twoMembers(2)})
	if m := a.s.Federation().Record.Member(2); m.State != federation.Drain {
		t.Errorf("an older record counts: %+v", m)
	}
	here, there := sharedSubmit(a, 1, 2), sharedSubmit(a, 2)
	r = federation.Record{Name: "f", Version: 4, Members: []federation.Member{{ID: 2, Name: "beta"}}}
	a.ok(root, &FederationPut{Record: r})
	for _, id := range []JobID{here, there} {
		if j := a.job(id); j.Fed != nil || j.Phase != Pending {
			t.Errorf("job %d after alpha has left: %+v", id, j.Fed)
		}
	}
	if id := a.submit(nil); id>>26 != 0 {
		t.Errorf("after alpha has left a job is %d", id)
	}
}

// TestFederationPlaces: where a job may run changes while it waits at its origin, and its siblings with that.
func TestFederationPlaces(t *testing.T) {
	a, b := member(t, "alpha"), member(t, "beta")
	r := twoMembers(2)
	r.Members[1].Features = []string{"gpu"}
	a.ok(root, &FederationPut{Record: r})
	id := sharedSubmit(a, 1, 2)
	_ = orders(b, a, id)
	reports(a, b, id)
	text := func(s string) *string { return &s }
	update := func(p Patch) *UpdateJob { return &UpdateJob{Ref: Ref{Job: id}, Patch: p, Runs: true} }
	viable := func(what string, want federation.Set) {
		t.Helper()
		if p := a.job(id).Fed.Part; p.Viable != want {
			t.Errorf("%s: it may run at %b, want %b", what, p.Viable, want)
		}
	}
	a.refused(alice, update(Patch{Features: text("none")}), ErrFedFeature)
	a.refused(alice, update(Patch{Clusters: text("alpha,gamma")}), ErrClusterName)
	a.ok(alice, update(Patch{Clusters: text("alpha")}))
	viable("clusters=alpha", federation.SetOf(1))
	_ = orders(b, a, id)
	reports(a, b, id)
	if j := b.job(id); j.Outcome != Revoked || a.job(id).Fed.Part.Active != federation.SetOf(1) {
		t.Errorf("at beta it is %v, active %b", j.Outcome, a.job(id).Fed.Part.Active)
	}
	a.ok(alice, update(Patch{Clusters: text(""), Features: text("gpu")}))
	viable("clusterfeatures=gpu", federation.SetOf(2))
	if !Elsewhere(a.job(id)) || a.s.QueueLen() != 0 {
		t.Error("it waits at alpha, where it may not run")
	}
	_ = orders(b, a, id)
	if j := b.job(id); j.Phase != Pending {
		t.Errorf("at beta it is %v", j.Phase)
	}
	r = twoMembers(3)
	r.Members[0].State = federation.Drain
	a.ok(root, &FederationPut{Record: r})
	a.refused(alice, update(Patch{Clusters: text("alpha"), Features: text("")}), ErrFedFeature)
	a.ok(root, &FederationPut{Record: twoMembers(4)})
	a.ok(alice, update(Patch{Features: text("")}))
	viable("clusterfeatures=", federation.SetOf(1, 2))
	if a.s.QueueLen() != 1 {
		t.Error("it is not in alpha's queue again")
	}
	_ = orders(b, a, id)
	row := ReportOf(b.job(id))
	row.Report.Asks = true
	a.ok(sys, &FederationReports{From: 2, Rows: []FederationReport{row}})
	a.refused(alice, update(Patch{Clusters: text("alpha")}), ErrNotPending)
	own := b.submit(nil)
	b.refused(alice, &UpdateJob{Ref: Ref{Job: own}, Patch: Patch{Clusters: text("alpha")}}, "")
}

// TestFederationParents: a job waits for jobs that another cluster has made, until that one says how they have ended.
func TestFederationParents(t *testing.T) {
	a, b := member(t, "alpha"), member(t, "beta")
	here := a.submit(nil)
	there, bad := b.submit(nil), b.submit(nil)
	child := func(any bool, terms ...Depend) JobID {
		return a.submit(func(s *JobSpec) { s.Depends = Depends{Any: any, Terms: terms} })
	}
	ok := Depend{Type: AfterOK, Job: there, Task: TaskAny}
	worse := Depend{Type: AfterOK, Job: bad, Task: TaskAny}
	own := Depend{Type: AfterAny, Job: here, Task: TaskAny}
	both, either, vain, one := child(false, own, ok), child(true, worse, ok), child(false, worse), child(true, own, ok)
	sayBack(a, b)
	for _, id := range []JobID{both, either, vain, one} {
		if j := a.job(id); j.Wait != WaitDependency || j.DependNever() {
			t.Errorf("job %d before anything has ended waits for %v", id, j.Wait)
		}
	}
	b.run(there, 0, "n0")
	b.over(there, 0)
	b.run(bad, 0, "n0")
	b.over(bad, 1)
	sayBack(a, b)
	for id, want := range map[JobID]Reason{both: WaitDependency, either: NoReason, vain: WaitDependencyNever,
		one: NoReason} {
		if j := a.job(id); j.Wait != want {
			t.Errorf("job %d waits for %v %+v, want %v", id, j.Wait, j.Depends, want)
		}
	}
	if list := TermsOf(a.s.Snapshot(), 2); len(list) != 0 {
		t.Errorf("it is still asked for %+v", list)
	}
	a.ok(alice, &Cancel{Ref: Ref{Job: here}})
	if j := a.job(both); j.Wait != NoReason {
		t.Errorf("job %d waits for %v %+v", both, j.Wait, j.Depends)
	}
	a.refused(alice, &FederationParents{From: 2, Rows: []ParentTerm{{Term: ok}}}, ErrAccess)
	a.refused(sys, &FederationParents{From: 2, Rows: []ParentTerm{{Term: own}}}, ErrAccess)
}

// sayBack has a cluster hear what another says of the jobs for which its own wait.
func sayBack(to, from *world) {
	to.t.Helper()
	cmd := &FederationParents{From: 2}
	for _, d := range TermsOf(to.s.Snapshot(), 2) {
		if row, settled, _ := JudgeFor(from.s.Snapshot(), d, from.now); settled {
			cmd.Rows = append(cmd.Rows, row)
		}
	}
	to.ok(sys, cmd)
}

// TestFederationParentsLeft: what waits for a job of a cluster that leaves can never start; where this one leaves,
// that is so for all clusters but itself.
func TestFederationParentsLeft(t *testing.T) {
	for _, leaver := range []federation.ID{1, 2} {
		a := member(t, "alpha")
		far, near := JobID(federation.ID(2).Number(9)), a.submit(nil)
		wait := func(id JobID) JobID {
			return a.submit(func(s *JobSpec) { s.Depends.Terms = []Depend{{Type: AfterAny, Job: id, Task: TaskAny}} })
		}
		vain, waits := wait(far), wait(near)
		r := twoMembers(2)
		r.Members = slices.DeleteFunc(r.Members, func(m federation.Member) bool { return m.ID == leaver })
		a.ok(root, &FederationPut{Record: r})
		if v, w := a.job(vain), a.job(waits); v.Wait != WaitDependencyNever || w.Wait != WaitDependency {
			t.Errorf("cluster %d has left: %v %v", leaver, v.Wait, w.Wait)
		}
		a.ok(alice, &Cancel{Ref: Ref{Job: near}})
		if v, w := a.job(vain), a.job(waits); v.Wait != WaitDependencyNever || w.Wait != NoReason {
			t.Errorf("cluster %d has left, the other parent has ended: %v %v", leaver, v.Wait, w.Wait)
		}
	}
}

// TestFederationParentsChecked: what cannot be asked of another cluster is refused.
func TestFederationParentsChecked(t *testing.T) {
	a := member(t, "alpha")
	term := func(kind DependType, of federation.ID) []Depend {
		return []Depend{{Type: kind, Job: JobID(of.Number(1)), Task: TaskAny}}
	}
	for _, c := range []struct {
		terms []Depend
		taken bool
	}{
		{term(AfterOK, 1), true},
		{term(AfterOK, 2), true},
		{term(AfterOK, 3), false},
		{term(AfterCorr, 1), true},
		{term(AfterCorr, 2), false},
		{term(ExpandJob, 2), false},
		{[]Depend{{Type: SingletonOf}}, true},
	} {
		if err := CheckParents(a.s.Snapshot(), c.terms); (err == nil) != c.taken {
			t.Errorf("%+v: %v", c.terms, err)
		}
	}
}

// TestFederationParentsPast: of a job that was forgotten history tells how it has ended, and when it began.
func TestFederationParentsPast(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := &Job{Task: 1, Phase: Ended, Outcome: Failed, Started: began}
	well := &Job{Task: 2, Phase: Ended, Outcome: Completed, Started: began}
	for _, c := range []struct {
		term           Depend
		settled, never bool
	}{
		{Depend{Type: AfterOK, Task: TaskAny}, true, true},
		{Depend{Type: AfterOK, Task: 1}, true, true},
		{Depend{Type: AfterOK, Task: 2}, true, false},
		{Depend{Type: AfterOK, Task: 3}, true, false}, // it is not known, which counts as met
		{Depend{Type: AfterNotOK, Task: TaskAny}, true, false},
		{Depend{Type: AfterAny, Task: TaskAny}, true, false},
		{Depend{Type: After, Task: TaskAny, Plus: time.Minute}, true, false},
		{Depend{Type: After, Task: TaskAny, Plus: time.Hour}, false, false},
	} {
		row, settled := JudgePast(c.term, []*Job{failed, well}, began.Add(30*time.Minute))
		if settled != c.settled || row.Never != c.never {
			t.Errorf("%+v: settled %v, never %v", c.term, settled, row.Never)
		}
	}
}
