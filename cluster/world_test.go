package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var (
	epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	root  = Identity{UID: 0}
	alice = Identity{UID: 1000, GID: 1000, User: "alice"}
	bob   = Identity{UID: 1001, GID: 1001, User: "bob"}
	sys   = Identity{System: true}
)

// world is a state under test: every entry passes through the log's encoding, and after each
// the state must be whole.
type world struct {
	t   testing.TB
	s   *State
	now time.Time
	seq map[NodeName]uint64
	log [][]byte // every entry so far, as the log holds it
}

func newWorld(t testing.TB, nodes int) *world {
	w := &world{t: t, s: NewState(), now: epoch, seq: map[NodeName]uint64{}}
	w.ok(sys, &RaiseLevel{Level: Newest})
	cfg := DefaultConfig()
	w.ok(root, &Configure{Config: &cfg})
	for i := range nodes {
		w.ok(sys, &NodeUp{Name: nodeName(i), Inventory: smallNode()})
	}
	return w
}

func nodeName(i int) NodeName { return NodeName(fmt.Sprintf("n%d", i)) }

func smallNode() Inventory {
	return Inventory{Sockets: 2, CoresPerSocket: 4, ThreadsPerCore: 1, CPUs: 8, MemMB: 8000, TmpMB: 100,
		GPUs: []GPU{
			{Index: 0, Type: "a100", Cores: RangeIDSet(0, 3)},
			{Index: 1, Type: "h100", Cores: RangeIDSet(4, 7)},
		}}
}

// content is the encoded state without index and time, which move even when a command is refused.
func content(t testing.TB, s *State) string {
	c := s.Snapshot()
	c.Index, c.Now = 0, time.Time{}
	var b bytes.Buffer
	if err := c.Encode(&b); err != nil {
		t.Fatalf("encode: %v", err)
	}
	return b.String()
}

// apply passes the command through the log's encoding and checks the state around it.
func (w *world) apply(by Identity, cmd Command) Applied {
	w.t.Helper()
	text, err := EncodeEntry(Entry{At: w.now, By: by, Cmd: cmd})
	if err != nil {
		w.t.Fatal(err)
	}
	w.log = append(w.log, text)
	e, err := DecodeEntry(text)
	if err != nil {
		w.t.Fatal(err)
	}
	before, phases := content(w.t, w.s), phasesOf(w.s)
	e.Index = w.s.Index + 1
	out := w.s.Apply(e)
	if out.Panic != "" {
		w.t.Fatal(out.Panic)
	}
	if out.Err != nil {
		if after := content(w.t, w.s); after != before {
			w.t.Fatalf("refused %s (%v) changed the state\nbefore %s\nafter %s", cmd.kind(), out.Err, before, after)
		}
		if out.Events != nil {
			w.t.Fatalf("refused %s told %d events", cmd.kind(), len(out.Events))
		}
	}
	if err := whole(w.t, w.s); err != nil {
		w.t.Fatalf("after %s: %v", text, err)
	}
	for id, to := range phasesOf(w.s) {
		if from, ok := phases[id]; ok && from != to && !slices.Contains(edges[from], to) {
			w.t.Fatalf("after %s: job %d went from phase %d to %d", text, id, from, to)
		}
	}
	return out
}

func phasesOf(s *State) map[JobID]Phase {
	m := map[JobID]Phase{}
	for j := range s.Jobs() {
		m[j.ID] = j.Phase
	}
	return m
}

func (w *world) ok(by Identity, cmd Command) Applied {
	w.t.Helper()
	out := w.apply(by, cmd)
	if out.Err != nil {
		w.t.Fatalf("%s: %v", cmd.kind(), out.Err)
	}
	return out
}

func (w *world) refused(by Identity, cmd Command, kind ErrKind) {
	w.t.Helper()
	if out := w.apply(by, cmd); out.Err == nil || out.Err.Kind != kind {
		w.t.Fatalf("%s: got %v, want a refusal of kind %q", cmd.kind(), out.Err, kind)
	}
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *world) submit(change func(*JobSpec)) JobID {
	w.t.Helper()
	spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID, User: "alice"}
	if change != nil {
		change(spec)
	}
	return w.ok(Identity{UID: spec.UID}, &Submit{Spec: spec}).Result.(JobID)
}

// start gives the job (or its task) CPU cpu on each of the nodes.
func (w *world) start(id JobID, task, cpu int, nodes ...NodeName) JobID {
	w.t.Helper()
	a := &Alloc{Partition: "main"}
	for _, n := range nodes {
		a.Shares = append(a.Shares, Share{Node: n, CPUs: NewIDSet(cpu), MemMB: 100, Tasks: 1})
	}
	next := w.s.NextID
	out := w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: task, Start: a}}})
	if e := out.Result.([]*Error)[0]; e != nil {
		w.t.Fatalf("start of %d: %v", id, e)
	}
	if w.s.NextID != next {
		return next
	}
	return id
}

func (w *world) run(id JobID, cpu int, nodes ...NodeName) JobID {
	w.t.Helper()
	id = w.start(id, TaskAny, cpu, nodes...)
	for _, n := range nodes {
		w.report(n, id, NodeReady)
	}
	w.want(id, Running)
	return id
}

func (w *world) report(n NodeName, id JobID, kinds ...UpdateKind) {
	w.t.Helper()
	w.seq[n]++
	r := &Report{Node: n, Seq: w.seq[n]}
	for _, k := range kinds {
		r.Updates = append(r.Updates, Update{Kind: k, Job: id, Attempt: w.job(id).Attempt, At: w.now})
	}
	w.ok(sys, r)
}

// over ends a running job on its nodes with an exit code.
func (w *world) over(id JobID, code int) {
	w.t.Helper()
	for i, n := range w.job(id).AllocNodes() {
		w.seq[n]++
		r := &Report{Node: n, Seq: w.seq[n]}
		if i == 0 {
			r.Updates = append(r.Updates, Update{
				Kind: BatchOver, Job: id, Attempt: w.job(id).Attempt, At: w.now,
				Exit: ExitStatus{Code: code},
			})
		}
		r.Updates = append(r.Updates, Update{Kind: NodeDone, Job: id, Attempt: w.job(id).Attempt, At: w.now})
		w.ok(sys, r)
	}
	w.want(id, Ended)
}

func (w *world) job(id JobID) *Job {
	w.t.Helper()
	j, ok := w.s.Job(id)
	if !ok {
		w.t.Fatalf("job %d is not there", id)
	}
	return j
}

func (w *world) want(id JobID, p Phase) *Job {
	w.t.Helper()
	j := w.job(id)
	if j.Phase != p {
		w.t.Fatalf("job %d is in phase %d (%v), want %d", id, j.Phase, j.Wait, p)
	}
	return j
}

func (w *world) wantWait(id JobID, r Reason) *Job {
	w.t.Helper()
	j := w.want(id, Pending)
	if j.Wait != r {
		w.t.Fatalf("job %d waits for %q, want %q", id, j.Wait, r)
	}
	return j
}

func (w *world) ready(id JobID) bool {
	_, why := w.s.Ready(w.job(id), w.now)
	return why == NoReason
}

// due applies what the clock demands.
func (w *world) due() {
	w.t.Helper()
	for _, c := range Due(w.s.Snapshot(), w.now) {
		w.ok(sys, c)
	}
}

// whole checks the state against itself and against what Decode derives from its encoding.
func whole(t testing.TB, s *State) error {
	if err := s.Check(); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := s.Snapshot().Encode(&b); err != nil {
		return err
	}
	back, err := Decode(bytes.NewReader(b.Bytes()))
	if err != nil {
		return err
	}
	if x, y := content(t, s), content(t, back); x != y {
		return fmt.Errorf("decoded state encodes differently\n%s\n%s", x, y)
	}
	return sameDerived(&s.tables, &back.tables)
}

// sameDerived compares every derived table, by its row or, where that would not do, by hand.
func sameDerived(a, b *tables) error {
	var errs []error
	same := func(what string, x, y any) {
		if fmt.Sprint(x) != fmt.Sprint(y) {
			errs = append(errs, fmt.Errorf("%s: have %v, derived anew %v", what, x, y))
		}
	}
	for _, row := range tableRows {
		if row.stored == nil && !row.loose {
			same(row.name, row.tree.keys(a), row.tree.keys(b))
		}
	}
	same("next timer", a.NextTimer(a.Now), b.NextTimer(b.Now))
	same("running", pairs(a), pairs(b))
	same("listed", namesOf(a), namesOf(b))
	after := func(t *tables) (out []timerKey) {
		for _, k := range t.timers.Items() {
			if k.at.After(t.Now) {
				out = append(out, k)
			}
		}
		return out
	}
	same("timers", after(a), after(b))
	for n := range a.Nodes() {
		x, y := a.Load(n.Name), b.Load(n.Name)
		same("load of "+string(n.Name), fmt.Sprint(x.CPUs, x.GPUs, x.MemMB, x.Jobs),
			fmt.Sprint(y.CPUs, y.GPUs, y.MemMB, y.Jobs))
	}
	live, queued := map[JobID]bool{}, 0
	for j := range a.Live() {
		if cur, _ := a.Job(j.ID); cur != j {
			errs = append(errs, fmt.Errorf("live has an old record of job %d", j.ID))
		}
		live[j.ID] = true
	}
	for j := range a.Jobs() {
		if j.holds() != live[j.ID] {
			errs = append(errs, fmt.Errorf("job %d in phase %d, live %v", j.ID, j.Phase, live[j.ID]))
		}
		if j.Phase == Pending && !Elsewhere(j) {
			queued++
		}
	}
	same("queue length", a.QueueLen(), queued)
	return errors.Join(errs...)
}

func pairs(t *tables) (out []string) {
	t.arrays.Scan(func(id JobID, n arrayCount) bool { out = append(out, fmt.Sprint(id, "=", n)); return true })
	return out
}

func namesOf(t *tables) (out []NodeName) {
	for n := range t.Nodes() {
		out = append(out, n.Name)
	}
	return out
}
