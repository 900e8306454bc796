package cluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// restoredFrom is the world as it was when it was saved, brought back; w goes on by itself.
func restoredFrom(t *testing.T, w *world) *world {
	t.Helper()
	var file bytes.Buffer
	if err := w.s.Snapshot().Encode(&file); err != nil {
		t.Fatal(err)
	}
	s, err := Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	s.Restore(w.now, w.now.Add(time.Hour))
	return &world{t: t, s: s, now: w.now.Add(time.Hour), seq: map[NodeName]uint64{}}
}

// tells has a node come to the restored world with what it knows of the one that went on.
func (w *world) tells(now *world, n NodeName, next JobID) {
	w.t.Helper()
	node, _ := now.s.Node(n)
	c := &NodeTell{Node: n, NextJob: next}
	for _, id := range now.s.Load(n).Jobs {
		c.Jobs = append(c.Jobs, now.job(id))
	}
	for _, h := range w.s.HeldOn(n) {
		if j := now.job(h.Job); j.Phase == Ended {
			c.Ended = append(c.Ended, Update{
				Kind: BatchOver, Job: h.Job, Attempt: h.Attempt, At: now.now, Exit: j.Exit,
			},
				Update{Kind: NodeDone, Job: h.Job, Attempt: h.Attempt, At: now.now})
		}
	}
	w.ok(sys, &NodeUp{Name: n, Inventory: node.Inventory, Seq: now.seq[n]})
	w.seq[n] = now.seq[n]
	w.ok(sys, c)
}

func (w *world) differs() (out []string) {
	for _, d := range w.s.Restored().Differs {
		out = append(out, string(d.Node)+": "+strings.TrimSpace(d.User+" "+d.What))
	}
	return out
}

// TestRestored: jobs that were begun after the save and run are taken into the restored state as the nodes know
// them; of those that ended it is known that they did, and no number is given twice.
func TestRestored(t *testing.T) {
	w := newWorld(t, 2)
	runs := w.submit(func(*JobSpec) {})
	w.run(runs, 0, "n0")
	ends := w.submit(func(*JobSpec) {})
	w.run(ends, 1, "n0")
	waits := w.submit(func(*JobSpec) {})
	array := w.submit(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: NewIDSet(0, 1, 2)} })
	r := restoredFrom(t, w)
	if got := r.s.Unsure(); !slices.Equal(got, []NodeName{"n0", "n1"}) {
		t.Errorf("unsure are %v", got)
	}
	next := r.s.NextID

	w.pass(time.Second)
	w.over(ends, 3)
	w.run(w.submit(func(*JobSpec) {}), 1, "n0") // in its place
	w.run(waits, 0, "n1")
	task := w.start(array, 1, 1, "n1")
	w.report("n1", task, NodeReady)
	later := w.submit(func(s *JobSpec) { s.Name = "later" })
	w.run(later, 2, "n1")

	r.ok(sys, &NodeQuiet{Nodes: []NodeName{"n0"}})
	if n, _ := r.s.Node("n0"); n.Usable() {
		t.Error("a node is used that has not told what it knows")
	}
	r.tells(w, "n0", next+50)
	r.tells(w, "n1", 0)
	if got := r.s.Unsure(); len(got) > 0 {
		t.Errorf("unsure are %v", got)
	}
	if n, _ := r.s.Node("n0"); !n.Usable() || r.s.NextID < next+50 {
		t.Errorf("the node is usable %v, the next number %d, want %d at least", n.Usable(), r.s.NextID, next+50)
	}
	for id, phase := range map[JobID]Phase{runs: Running, ends: Ended, waits: Running, task: Running, later: Running} {
		j, ok := r.s.Job(id)
		if !ok || j.Phase != phase {
			t.Errorf("job %d: there %v, %+v", id, ok, j)
			continue
		}
		if was, _ := w.s.Job(id); phase == Running && !slices.Equal(j.AllocNodes(), was.AllocNodes()) {
			t.Errorf("job %d is on %v, runs on %v", id, j.AllocNodes(), was.AllocNodes())
		}
	}
	if rest, _ := r.s.Job(array); !rest.Tasks.Equal(NewIDSet(0, 2)) {
		t.Errorf("of the array wait %v", rest.Tasks)
	}
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}
	if got := r.differs(); len(got) != 5 || !strings.Contains(got[0], "has ended since") || !strings.Contains(got[3], "runs on") {
		t.Errorf("differences: %q", got)
	}
	if j := r.job(ends); j.Outcome != Failed || j.Exit.Code != 3 {
		t.Errorf("what had ended did as %v with %v", j.Outcome, j.Exit)
	}
	r.over(later, 0)
	if j := r.want(later, Ended); j.Outcome != Completed {
		t.Errorf("what was adopted ended as %v", j.Outcome)
	}
	r.tells(w, "n1", 0) // twice means nothing
	if got := r.differs(); len(got) != 5 {
		t.Errorf("differences: %q", got)
	}
}

// TestRestoredConflict: what cannot be taken in is ended, and known as that; an attempt that was begun before the
// save is never taken for one that was begun after.
func TestRestoredConflict(t *testing.T) {
	w := newWorld(t, 2)
	waits := w.submit(func(*JobSpec) {})
	r := restoredFrom(t, w)
	later := w.submit(func(*JobSpec) {})
	w.run(later, 0, "n1")
	w.run(waits, 0, "n0")

	r.tells(w, "n0", 0)                                                      // adopted
	r.ok(sys, &NodeUp{Name: "n1", Inventory: smallNode(), Seq: w.seq["n1"]}) // it does not tell yet
	stray := *w.job(later)
	stray.Alloc = &Alloc{Shares: []Share{{Node: "n0", CPUs: NewIDSet(0), Tasks: 1}}}
	r.ok(sys, &NodeTell{Node: "n1", Jobs: []*Job{&stray}, Unknown: []JobID{77}})
	j := r.want(later, Ended)
	if j.Outcome != NodeFailed || !strings.Contains(j.WaitNote, "restored") {
		t.Errorf("it ended as %v: %q", j.Outcome, j.WaitNote)
	}
	if got := r.differs(); len(got) != 3 || !strings.Contains(got[1], "is ended") || !strings.Contains(got[2], "nothing is known of it") {
		t.Errorf("differences: %q", got)
	}
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}

	q := restoredFrom(t, newQueue(t, waits))
	for _, n := range []NodeName{"n0", "n1"} {
		q.ok(sys, &NodeTell{Node: n})
	}
	q.run(waits, 0, "n1") // n0, where it runs, never came
	if begun := q.job(waits).Attempt; begun <= 1 {
		t.Errorf("attempt %d can be taken for the one before", begun)
	}
}

// newQueue is a world in which a job waits.
func newQueue(t *testing.T, id JobID) *world {
	w := newWorld(t, 2)
	if got := w.submit(func(*JobSpec) {}); got != id {
		t.Fatalf("job %d, want %d", got, id)
	}
	return w
}

// TestRestoredDown: a node that was down when the file was saved, and one that the file does not name, have run
// jobs since.
func TestRestoredDown(t *testing.T) {
	w := newWorld(t, 2)
	waits := w.submit(func(*JobSpec) {})
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}, Why: "lost"})
	r := restoredFrom(t, w)
	w.pass(time.Second)
	w.ok(sys, &NodeUp{Name: "n1", Inventory: smallNode(), Seq: w.seq["n1"]})
	w.ok(sys, &NodeUp{Name: "new", Inventory: smallNode()})
	w.run(waits, 0, "n1")
	later := w.submit(func(*JobSpec) {})
	w.run(later, 0, "new")

	for _, n := range []NodeName{"n1", "new"} {
		r.tells(w, n, later+1)
		if node, _ := r.s.Node(n); !node.Usable() {
			t.Errorf("node %s has told, and is not used", n)
		}
	}
	r.want(waits, Running)
	r.want(later, Running)
	if err := r.s.Check(); err != nil {
		t.Error(err)
	}
}

// TestRestoredGang: nodes that had confirmed a job do not so again. The last message that they got about it may be
// older than that, as may the file.
func TestRestoredGang(t *testing.T) {
	w := newWorld(t, 2)
	saved := w.start(w.submit(func(s *JobSpec) { s.MinNodes = 2 }), TaskAny, 0, "n0", "n1")
	waits := w.submit(func(s *JobSpec) { s.MinNodes = 2 })
	r := restoredFrom(t, w)
	later := w.start(waits, TaskAny, 1, "n0", "n1")
	for _, n := range []NodeName{"n0", "n1"} {
		r.tells(w, n, 0)
	}
	r.want(saved, Running)
	r.want(later, Running)
}

// TestRestoredBelieved: a node is believed of itself, and no further: what the file does not know is taken in only
// where it is on the machine that tells of it, and is no job of root's; and it gives the machine no right to speak
// for the job's user.
func TestRestoredBelieved(t *testing.T) {
	for _, c := range []struct {
		name  string
		known bool
		spoil func(*Job)
		phase Phase
		why   string
	}{
		{"as it runs", false, func(*Job) {}, Running, "runs on"},
		{"of root", false, func(j *Job) { j.Spec.UID = 0 }, Ended, "root"},
		{"of root's group", false, func(j *Job) { j.Spec.GID = 0 }, Ended, "root"},
		{"on another machine", false, func(j *Job) { j.Alloc.Shares[0].Node = "n1" }, Ended, "not on it"},
		{"on another machine too", false, func(j *Job) {
			j.Alloc.Shares = append(j.Alloc.Shares, Share{Node: "n1", CPUs: NewIDSet(0), Tasks: 1})
		}, Ended, "n1"},
		{"from before the save", false, func(j *Job) { j.Submitted = epoch.Add(-time.Hour) }, Ended, "save"},
		{"from after the restore", false, func(j *Job) { j.Submitted = epoch.Add(9 * time.Hour) }, Ended, "started"},
		{"known, of another command", true, func(j *Job) { j.Spec.Command = "/bin/other" }, Running, "runs on"},
		{"known, on another machine", true, func(j *Job) { j.Alloc.Shares[0].Node = "n1" }, Pending, "not on it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 2)
			var id JobID
			if c.known {
				id = w.submit(func(*JobSpec) {})
			}
			r := restoredFrom(t, w)
			w.pass(time.Minute)
			if !c.known {
				id = w.submit(func(*JobSpec) {})
			}
			w.run(id, 0, "n0")
			for _, n := range []NodeName{"n0", "n1"} {
				r.ok(sys, &NodeUp{Name: n, Inventory: smallNode(), Owner: string(n)})
			}
			told, spec, alloc := *w.job(id), *w.job(id).Spec, *w.job(id).Alloc
			alloc.Shares = slices.Clone(alloc.Shares)
			told.Spec, told.Alloc = &spec, &alloc
			c.spoil(&told)
			r.ok(sys, &NodeTell{Node: "n0", Jobs: []*Job{&told}})
			j := r.want(id, c.phase)
			if j.Spec.Command == "/bin/other" {
				t.Error("the node's command is believed")
			}
			if got := strings.Join(r.differs(), "\n"); !strings.Contains(got, c.why) {
				t.Errorf("differences: %q, want %q", got, c.why)
			}
			if r.s.Hearsay(j) == c.known && c.phase == Running {
				t.Errorf("known by a node's word alone: %v", r.s.Hearsay(j))
			}
		})
	}
}
