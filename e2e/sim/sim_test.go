package sim

import (
	"bytes"
	"container/heap"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"dev.muster/agent/server"
	"dev.muster/cluster"
	"dev.muster/sched"
)

var (
	seedFlag = flag.Uint64("seed", 1, "seed of the simulation")
	fullFlag = flag.Bool("full", false, "simulate 10,000 nodes")
)

var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// fault is one thing that goes wrong at a time.
type fault struct {
	at   time.Duration
	what string // leader, snapshot, reboot, partition
	from int    // first node, or the server
	n    int    // how many nodes
	last time.Duration
}

// plan is a whole run as data.
type plan struct {
	name        string
	seed        uint64
	nodes, jobs int
	span        time.Duration // in which jobs are submitted
	loss, dup   float64
	check       int // entries between checks; 1: all, with comparison of refused commands
	faults      []fault
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any     { old := *a; e := old[len(old)-1]; *a = old[:len(old)-1]; return e }

// world is a run.
type world struct {
	t      *testing.T
	plan   plan
	rng    *rand.Rand
	now    time.Time
	seq    int
	todo   agenda
	nodes  []*node
	byName map[cluster.NodeName]*node

	group
	s         *cluster.State // of the server that leads, or did last
	stepped   time.Time      // when the leader stepped last
	scheduler sched.Scheduler
	stepAt    time.Time // when the leader's next step is due; zero if none is
	phases    map[cluster.JobID]cluster.Phase
	ended     map[task]bool
	submitted map[task]bool
	runs      map[run]int
	compared  int
	refused   int
	steps     int
	busySince map[run]time.Time
}

type task struct {
	job  cluster.JobID
	task int
}

type run struct {
	job     cluster.JobID
	attempt int
}

func newWorld(t *testing.T, p plan) *world {
	w := &world{t: t, plan: p, rng: rand.New(rand.NewPCG(p.seed, 42)), now: epoch, group: newGroup(),
		byName: map[cluster.NodeName]*node{}, phases: map[cluster.JobID]cluster.Phase{},
		ended: map[task]bool{}, submitted: map[task]bool{}, runs: map[run]int{},
		busySince: map[run]time.Time{}}
	w.s = w.servers[0].s
	cfg := cluster.DefaultConfig()
	cfg.MinJobAge, cfg.NodeTimeout, cfg.KillWait = 2*time.Minute, timeout, 10*time.Second
	w.write(cluster.Identity{System: true}, nil, &cluster.Configure{Config: &cfg})
	for i := range p.nodes {
		n := newNode(w, i)
		w.nodes, w.byName[n.name] = append(w.nodes, n), n
		w.after(w.delay()+time.Duration(w.rng.IntN(5000))*time.Millisecond, n.beat)
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d, %s, %s after the start: %s\nrun it again: make sim SEED=%d", w.plan.seed, w.plan.name, w.now.Sub(epoch),
		fmt.Sprintf(format, args...), w.plan.seed)
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.todo, event{w.now.Add(d), w.seq, do})
}

// delay is how long a message takes.
func (w *world) delay() time.Duration {
	d := time.Duration(200+w.rng.IntN(3000)) * time.Microsecond
	if w.rng.IntN(100) == 0 {
		d += time.Duration(w.rng.IntN(4000)) * time.Millisecond
	}
	return d
}

// send carries a message between a node and the servers, unless it is lost at once.
func (w *world) send(n *node, do func()) bool {
	if n.cut || w.rng.Float64() < w.plan.loss {
		return false
	}
	arrive := func() {
		if !n.cut {
			do()
		}
	}
	w.after(w.delay(), arrive)
	if w.rng.Float64() < w.plan.dup {
		w.after(w.delay()+time.Duration(w.rng.IntN(20))*time.Second, arrive)
	}
	return true
}

func encode(t *testing.T, s *cluster.State, bare bool) []byte {
	snap := s.Snapshot()
	if bare {
		snap.Index, snap.Now = 0, time.Time{}
	}
	var b bytes.Buffer
	if err := snap.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// follow checks the moves of jobs and tells the nodes concerned.
func (w *world) follow(events []cluster.Event) {
	touched := map[cluster.NodeName]bool{}
	for _, e := range events {
		j := e.Job
		if j == nil {
			if e.Purged != 0 {
				delete(w.phases, e.Purged)
			}
			continue
		}
		if from, ok := w.phases[j.ID]; ok && from != j.Phase && !slices.Contains(cluster.Edges()[from], j.Phase) {
			w.fail("job %d went from phase %d to %d", j.ID, from, j.Phase)
		}
		w.phases[j.ID] = j.Phase
		for _, n := range j.AllNodes() {
			touched[n] = true
		}
		over := j.Phase == cluster.Ended
		for _, k := range tasksOf(j) {
			w.ended[k] = over
		}
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		n := w.byName[name]
		n.work = uint64(w.seen)
		w.offer(n)
	}
}

func tasksOf(j *cluster.Job) (out []task) {
	if j.ArrayID == 0 {
		return []task{{j.ID, cluster.TaskAny}}
	}
	if j.Tasks.Empty() {
		return []task{{j.ArrayID, j.Task}}
	}
	for k := range j.Tasks.All() {
		out = append(out, task{j.ArrayID, k})
	}
	return out
}

// wake makes the leader step soon, but not closer than a second to its last step, for the
// simulation's speed.
func (w *world) wake(d time.Duration) {
	at := w.now.Add(d)
	if first := w.stepped.Add(time.Second); at.Before(first) {
		at = first
	}
	if w.leads < 0 || !w.stepAt.IsZero() && !w.stepAt.After(at) {
		return
	}
	w.stepAt = at
	w.after(at.Sub(w.now), func() {
		if w.leads >= 0 && w.stepAt.Equal(at) {
			w.stepAt = time.Time{}
			w.step()
		}
	})
}

// step is one step of the leader; its commands reach the log a little later.
func (w *world) step() {
	w.steps++
	w.stepped = w.now
	snap := w.s.Snapshot()
	cmds := server.Step(snap, w.heartbeats.Leases(snap, w.now), w.now, &w.scheduler)
	if len(cmds) == 0 {
		w.wake(5 * time.Second) // leases and the clock
		return
	}
	for _, c := range cmds {
		if down, ok := c.(*cluster.NodeDown); ok {
			w.mayBeDown(down.Nodes)
		}
	}
	w.propose(cluster.Identity{System: true}, func([]cluster.Applied) { w.wake(time.Second) }, cmds...)
}

// mayBeDown fails if a node is given up that was there all the time.
func (w *world) mayBeDown(names []cluster.NodeName) {
	for _, name := range names {
		if n := w.byName[name]; !n.cut && !n.off && w.now.Sub(n.trouble) > timeout {
			w.fail("node %s is well and was given up", name)
		}
	}
}

func (w *world) inject(f fault) {
	switch {
	case f.what == "leader":
		w.depose()
		return
	case f.what == "snapshot" && f.from != w.leads:
		w.restore(f.from)
		return
	}
	for i := f.from; i < f.from+f.n && i < len(w.nodes); i++ {
		n := w.nodes[i]
		switch f.what {
		case "reboot":
			n.reboot(f.last)
		case "partition":
			n.cut = true
			w.after(f.last, func() { n.cut, n.trouble = false, w.now })
		}
	}
}

// spec draws a job.
func (w *world) spec(last []cluster.JobID) *cluster.JobSpec {
	r := w.rng
	s := &cluster.JobSpec{
		Layout: &cluster.Layout{}, Name: fmt.Sprint("job", r.IntN(50)), UID: uint32(1000 + r.IntN(5)),
		Limit: time.Duration(5+r.IntN(60)) * time.Minute,
	}
	s.Hold = r.IntN(60) == 0
	length := time.Duration(10+r.IntN(600)) * time.Second
	if r.IntN(20) == 0 {
		length = 2 * time.Hour // runs into its limit
	}
	s.Comment = length.String() // node.launch reads it
	if r.IntN(40) == 0 {
		no := false
		s.Requeue = &no
	}
	switch k := r.IntN(100); {
	case k < 15:
		s.MinNodes = 2 << r.IntN(6)
		s.MinNodes = min(s.MinNodes, w.plan.nodes/3)
		s.MaxNodes, s.TasksPerNode = s.MinNodes, 1+r.IntN(8)
	case k < 35:
		s.PerNode = []cluster.GRES{{Name: "gpu", Type: []string{"", "a100"}[r.IntN(2)], Count: int64(1 + r.IntN(4))}}
		s.CPUsPerTask = 1 + r.IntN(4)
	case k < 40:
		s.Sharing = cluster.ShareExclusive
	case k < 45:
		s.Array = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, r.IntN(20)), Limit: r.IntN(6)}
	default:
		s.CPUsPerTask = 1 + r.IntN(16)
		s.Mem = cluster.Mem{Per: cluster.MemPerCPU, MB: cluster.MemMB(500 * (1 + r.IntN(6)))}
	}
	if len(last) > 0 && r.IntN(12) == 0 {
		kind := []cluster.DependType{
			cluster.After, cluster.AfterAny, cluster.AfterOK, cluster.AfterNotOK, cluster.SingletonOf,
			cluster.AfterCorr,
		}[r.IntN(6)]
		d := cluster.Depend{Type: kind, Job: last[r.IntN(len(last))], Task: cluster.TaskAny}
		if kind == cluster.SingletonOf {
			d.Job = 0
		}
		s.Depends.Terms = []cluster.Depend{d}
	}
	if r.IntN(30) == 0 {
		s.Begin = w.now.Add(time.Duration(r.IntN(20)) * time.Minute)
	}
	return s
}

var root = cluster.Identity{}

// users submits the jobs over the span, and cancels, requeues, holds and releases some.
func (w *world) users() {
	var ids []cluster.JobID
	for i := range w.plan.jobs {
		w.after(time.Duration(w.rng.Int64N(int64(w.plan.span))), func() {
			s := w.spec(ids[max(0, len(ids)-30):])
			w.write(cluster.Identity{UID: s.UID}, func(out []cluster.Applied) {
				if out[0].Err != nil {
					w.fail("submit: %v", out[0].Err)
				}
				id := out[0].Result.(cluster.JobID)
				ids = append(ids, id)
				j, _ := w.s.Job(id)
				for _, k := range tasksOf(j) {
					w.submitted[k] = true
				}
				w.meddle(cluster.Ref{Job: id})
			}, &cluster.Submit{Spec: s, Key: fmt.Sprint(i)})
		})
	}
	w.after(w.plan.span+20*time.Minute, w.tidyUp)
}

// meddle changes its mind about some jobs.
func (w *world) meddle(ref cluster.Ref) {
	later := time.Duration(w.rng.IntN(900)) * time.Second
	var cmd cluster.Command
	switch w.rng.IntN(25) {
	case 0:
		cmd = &cluster.Cancel{Ref: ref}
	case 1:
		cmd = &cluster.Requeue{Ref: ref}
	case 2:
		cmd = &cluster.HoldJobs{Ref: ref, Hold: cluster.HeldUser}
	case 3:
		cmd = &cluster.Suspend{Ref: ref}
		w.after(later+time.Minute, func() { w.resume(ref) })
	case 4: // it gives nodes back if it runs
		least := 1
		cmd = &cluster.UpdateJob{Ref: ref, Patch: cluster.Patch{MinNodes: &least}, Runs: true}
	default:
		return
	}
	w.after(later, func() { w.write(root, nil, cmd) })
}

func (w *world) resume(ref cluster.Ref) {
	w.write(root, func(out []cluster.Applied) {
		if e := out[0].Err; e != nil && e.Kind == cluster.ErrBusy {
			w.after(time.Minute, func() { w.resume(ref) })
		}
	}, &cluster.Suspend{Ref: ref, Resume: true})
}

// tidyUp releases what is held and cancels what can never start, again and again.
func (w *world) tidyUp() {
	for j := range w.s.Snapshot().Queue() {
		if j.DependNever() {
			w.write(root, nil, &cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
		} else if j.Held != cluster.NotHeld {
			w.write(root, nil, &cluster.HoldJobs{Ref: cluster.Ref{Job: j.ID}})
		} else if j.Wait == cluster.WaitDependency && j.Spec.Depends.Terms[0].Type == cluster.AfterCorr {
			w.write(root, nil, &cluster.Cancel{Ref: cluster.Ref{Job: j.ID}}) // its counterpart failed
		}
	}
	w.after(5*time.Minute, w.tidyUp)
}

// attended checks that every running job's first node is there for it: it has the script, or has
// something to say, or was away a while ago.
func (w *world) attended() {
	for j := range w.s.Live() {
		key := run{j.ID, j.Attempt}
		n := w.byName[j.Alloc.Shares[0].Node]
		if j.Phase != cluster.Running || n.cut || n.off || n.has(j) || len(n.outbox) > 0 {
			delete(w.busySince, key)
			continue
		}
		since, seen := w.busySince[key]
		if !seen {
			w.busySince[key] = w.now
		} else if w.now.Sub(since) > 2*time.Minute {
			w.fail("job %d runs on %s, which knows nothing of attempt %d", j.ID, n.name, j.Attempt)
		}
	}
	w.after(30*time.Second, w.attended)
}

// play runs until every job has ended, or the virtual time is up.
func (w *world) play() {
	for _, f := range w.plan.faults {
		w.after(f.at, func() { w.inject(f) })
	}
	w.users()
	w.attended()
	end := epoch.Add(w.plan.span + 48*time.Hour)
	for w.now.Before(end) {
		e := heap.Pop(&w.todo).(event)
		w.now = e.at
		e.do()
		if w.now.Sub(epoch) > w.plan.span && w.seq%64 == 0 && w.s.QueueLen() == 0 && w.idle() {
			break
		}
	}
	for k := range w.submitted {
		if !w.ended[k] {
			for j := range w.s.Jobs() {
				if (j.ID == k.job || j.ArrayID == k.job) && j.Phase != cluster.Ended {
					w.t.Logf("phase %d wait %q note %q alloc %v waiting %v depends %v", j.Phase, j.Wait,
						j.WaitNote, j.AllocNodes(), j.Waiting, j.Depends)
				}
			}
			w.fail("job %d task %d has not ended", k.job, k.task)
		}
	}
	w.compare()
	if err := w.s.Check(); err != nil {
		w.fail("%v", err)
	}
	w.t.Logf("%s: seed %d, %d nodes, %d tasks, %d entries (%d refused), %d steps of %d leaders, %d states restored, %d times all compared, %s of virtual time",
		w.plan.name, w.plan.seed, w.plan.nodes, len(w.submitted), w.seen, w.refused, w.steps, w.term+1, w.restored, w.compared, w.now.Sub(epoch))
}

func (w *world) idle() bool {
	for range w.s.Live() {
		return false
	}
	return true
}

// draw makes a plan with faults from a seed.
func draw(name string, seed uint64, nodes, jobs, check int, span time.Duration) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{name: name, seed: seed, nodes: nodes, jobs: jobs, span: span, loss: 0.01, dup: 0.01, check: check}
	when := func() time.Duration { return time.Duration(r.Int64N(int64(span))) }
	for range 8 {
		p.faults = append(p.faults, fault{at: when(), what: "leader"}, fault{
			at: when(), what: "snapshot", from: r.IntN(3),
		})
	}
	for range 3 + nodes/10 {
		p.faults = append(p.faults, fault{
			at: when(), what: "reboot", from: r.IntN(nodes), n: 1,
			last: time.Duration(5+r.IntN(120)) * time.Second,
		})
	}
	for range 3 {
		p.faults = append(p.faults, fault{
			at: when(), what: "partition", from: r.IntN(nodes), n: max(nodes/20, 2),
			last: time.Duration(5+r.IntN(180)) * time.Second,
		})
	}
	return p
}

func TestSim(t *testing.T) {
	if *fullFlag {
		defer debug.SetGCPercent(debug.SetGCPercent(400))
		newWorld(t, draw("full", *seedFlag, 10_000, 60_000, 5000, 3*time.Hour)).play()
		return
	}
	t.Run("every entry", func(t *testing.T) {
		for k := range uint64(3) {
			newWorld(t, draw("every entry", *seedFlag+k, 12, 120, 1, 30*time.Minute)).play()
		}
	})
	t.Run("same seed, same run", func(t *testing.T) {
		var ends [2][]byte
		for i := range ends {
			w := newWorld(t, draw("twice", *seedFlag, 12, 100, 100, 20*time.Minute))
			w.play()
			ends[i] = encode(t, w.s, false)
		}
		if !bytes.Equal(ends[0], ends[1]) {
			t.Errorf("seed %d gives two different runs", *seedFlag)
		}
	})
	if !testing.Short() {
		t.Run("large",
			func(t *testing.T) { newWorld(t, draw("large", *seedFlag, 200, 3000, 200, 90*time.Minute)).play() })
	}
}
