package faults

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// Way is how a job meets its faults.
type Way struct {
	Name       string
	Resilience *cluster.Resilience // nil: it only goes back into the queue
}

// Ways are compared, the plainest first.
func Ways(p *Plan) []Way {
	return []Way{
		{"requeue only", nil},
		{"requeue, hangs found", &cluster.Resilience{Hang: string(cluster.HangRequeue)}},
		{fmt.Sprintf("spares (%d)", p.Spares), &cluster.Resilience{Hang: string(cluster.HangSwap), Spares: p.Spares}},
	}
}

// Sum is what came of a job's time. Useful and what was lost add up to All.
type Sum struct {
	All, Useful time.Duration
	Saving      time.Duration // standing still at checkpoints
	Redone      time.Duration // training since the last checkpoint, which was lost
	Unseen      time.Duration // from a fault until it was known
	Queued      time.Duration // from then until the job was launched again
	Starting    time.Duration // from the launch to the first step

	Faults    int // that stopped the job
	InPlace   int // after which only the step started again
	Requeues  int // after which the job went through the queue
	Swaps     int // nodes that spares have replaced
	LongestTo time.Duration
}

// beginning is when simulations begin.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// event is something that happens to a node.
type event struct {
	at     time.Time
	effect Effect // "": the node is repaired
	node   cluster.NodeName
	draw   int // which node of the job it is, or which spare
}

// world is a simulation.
type world struct {
	plan  Plan
	way   Way
	state *cluster.State
	sched sched.Scheduler
	index uint64
	now   time.Time
	seq   map[cluster.NodeName]uint64
	bad   map[cluster.NodeName]Effect
	todo  []event // in order of time
	id    cluster.JobID
	up    time.Time // since when the job trains
	sum   Sum
}

// Run simulates a job that meets the faults of a table in a way.
func Run(p Plan, table []Cause, way Way) (Sum, error) {
	if err := p.check(); err != nil {
		return Sum{}, err
	}
	w := &world{plan: p, way: way, state: cluster.NewState(), now: beginning,
		seq: map[cluster.NodeName]uint64{}, bad: map[cluster.NodeName]Effect{}}
	if err := w.build(); err != nil {
		return Sum{}, err
	}
	if err := w.start(p.Cold); err != nil {
		return Sum{}, err
	}
	w.sum = Sum{} // the first start is no fault's
	began := w.up
	w.todo = draw(&p, table, began)
	end := began.Add(time.Duration(p.Days) * 24 * time.Hour)
	for len(w.todo) > 0 && w.todo[0].at.Before(end) {
		e := w.todo[0]
		w.todo = w.todo[1:]
		if err := w.happen(&e); err != nil {
			return Sum{}, err
		}
	}
	w.trained(later(end, w.up), false)
	w.sum.All = later(end, w.up).Sub(began)
	return w.sum, nil
}

// Compare simulates a job in each way, at once.
func Compare(p Plan, table []Cause) (ways []Way, sums []Sum, err error) {
	ways = Ways(&p)
	sums = make([]Sum, len(ways))
	errs := make([]error, len(ways))
	var all sync.WaitGroup
	for i := range ways {
		all.Go(func() { sums[i], errs[i] = Run(p, table, ways[i]) })
	}
	all.Wait()
	return ways, sums, errors.Join(errs...)
}

// draw spreads the faults of a table evenly over the time, in random order.
func draw(p *Plan, table []Cause, began time.Time) (out []event) {
	rnd := rand.New(rand.NewPCG(uint64(p.Seed), 0))
	all := time.Duration(p.Days) * 24 * time.Hour
	for i := range table {
		for range table[i].Count {
			at := began.Add(time.Duration(rnd.Int64N(int64(all)))).Truncate(time.Millisecond)
			out = append(out, event{at: at, effect: table[i].Effect, draw: rnd.IntN(1 << 30)})
		}
	}
	slices.SortStableFunc(out, func(a, b event) int { return a.at.Compare(b.at) })
	return out
}

// apply does a command now, as the leader or a node would.
func (w *world) apply(c cluster.Command) (any, error) {
	w.index++
	got := w.state.Apply(cluster.Entry{Index: w.index, At: w.now, By: cluster.Identity{System: true}, Cmd: c})
	if got.Err != nil {
		return nil, got.Err
	}
	return got.Result, nil
}

// inventory is what a node has.
func (w *world) inventory(name cluster.NodeName) cluster.Inventory {
	inv := cluster.Inventory{CPUs: 64, Sockets: 1, CoresPerSocket: 64, ThreadsPerCore: 1, MemMB: 1 << 20, Hollow: true}
	for i := range w.plan.GPUs {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Minor: i, Type: "h100", UUID: fmt.Sprintf("%s-%d", name, i)})
	}
	return inv
}

// build makes the cluster, and submits the job.
func (w *world) build() error {
	cfg := cluster.DefaultConfig()
	cmds := []cluster.Command{&cluster.RaiseLevel{Level: cluster.Newest}, &cluster.Configure{Config: &cfg}}
	for i := range w.plan.Nodes + w.plan.Reserve {
		name := cluster.NodeName(fmt.Sprintf("n%05d", i))
		cmds = append(cmds, &cluster.NodeUp{Name: name, Inventory: w.inventory(name)})
	}
	for _, c := range cmds {
		if _, err := w.apply(c); err != nil {
			return err
		}
	}
	nodes := w.plan.Nodes
	if w.way.Resilience != nil {
		nodes += w.way.Resilience.Spares
	}
	again := true
	id, err := w.apply(&cluster.Submit{Spec: &cluster.JobSpec{
		Name: "train", UID: 1000, User: "u", Kind: cluster.Batch, WorkDir: "/", Limit: cluster.Unlimited,
		Requeue: &again, Resilience: w.way.Resilience,
		Layout: &cluster.Layout{MinNodes: nodes, MaxNodes: nodes, TasksPerNode: w.plan.GPUs,
			PerNode: []cluster.GRES{{Name: "gpu", Count: int64(w.plan.GPUs)}}},
	}})
	if err != nil {
		return err
	}
	w.id = id.(cluster.JobID)
	return nil
}

// job is the job now.
func (w *world) job() *cluster.Job {
	j, _ := w.state.Job(w.id)
	return j
}

// start passes the time until the scheduler has started the job and it trains, which takes init from its launch.
func (w *world) start(init time.Duration) error {
	from := w.now
	for w.job().Phase == cluster.Pending {
		if err := w.pass(); err != nil {
			return err
		}
		if w.job().Phase != cluster.Pending {
			break
		}
		w.now = w.now.Add(w.plan.PassInterval)
		if w.now.Sub(from) > patience {
			w.now = later(w.now, w.nextRepair())
		}
		if err := w.repair(w.now); err != nil {
			return err
		}
		if w.now.Sub(from) > maxTime {
			return fmt.Errorf("the job does not start: %s; give the cluster more nodes in reserve", w.job().Wait)
		}
	}
	for _, name := range w.job().AllocNodes() {
		if err := w.report(name, cluster.NodeReady); err != nil {
			return err
		}
	}
	w.sum.Queued += w.now.Sub(from)
	w.trains(init)
	return nil
}

// patience is how long the scheduler is tried again and again before the next node to be repaired is awaited.
const patience = 5 * time.Second

// nextRepair is when the next node serves again; zero: none is being repaired.
func (w *world) nextRepair() time.Time {
	for i := range w.todo {
		if w.todo[i].effect == "" {
			return w.todo[i].at
		}
	}
	return time.Time{}
}

// trains has the job train after a time from now.
func (w *world) trains(init time.Duration) {
	w.sum.Starting += init
	w.up = w.now.Add(init)
}

// pass lets the clock and the scheduler decide.
func (w *world) pass() error {
	for _, c := range cluster.Due(w.state.Snapshot(), w.now) {
		if _, err := w.apply(c); err != nil {
			return err
		}
	}
	decisions := w.sched.Schedule(w.state.Snapshot(), w.now)
	if len(decisions) == 0 {
		return nil
	}
	_, err := w.apply(&cluster.Decide{Decisions: decisions})
	return err
}

// report tells what happened to the job on a node.
func (w *world) report(name cluster.NodeName, kind cluster.UpdateKind) error {
	w.seq[name]++
	_, err := w.apply(&cluster.Report{Node: name, Seq: w.seq[name], Updates: []cluster.Update{
		{Kind: kind, Job: w.id, Attempt: w.job().Attempt, At: w.now}}})
	return err
}

// repair brings nodes back whose repair is over.
func (w *world) repair(now time.Time) error {
	for i := 0; i < len(w.todo) && !w.todo[i].at.After(now); {
		if w.todo[i].effect != "" {
			i++
			continue
		}
		e := w.todo[i]
		w.todo = slices.Delete(w.todo, i, i+1)
		if err := w.repaired(e.node); err != nil {
			return err
		}
	}
	return nil
}

// repaired has a node serve again.
func (w *world) repaired(name cluster.NodeName) error {
	delete(w.bad, name)
	_, err := w.apply(&cluster.NodeUp{Name: name, Inventory: w.inventory(name), Seq: w.seq[name]})
	if err != nil {
		return err
	}
	resume := &cluster.NodeSet{Nodes: []cluster.NodeName{name}, Action: cluster.NodeResume}
	_, _ = w.apply(resume) // it may be up already
	return nil
}

// trained adds up the training until a moment. If the job stops then, the work since its last checkpoint is lost.
func (w *world) trained(until time.Time, stops bool) {
	ran := max(until.Sub(w.up), 0)
	cycle := w.plan.Checkpoint + w.plan.Stall
	saved := int64(ran / cycle)
	w.sum.Saving += time.Duration(saved) * w.plan.Stall
	w.sum.Useful += time.Duration(saved) * w.plan.Checkpoint
	rest := ran % cycle
	if stops {
		w.sum.Redone += rest
		return
	}
	w.sum.Useful += rest
}

// happen has one thing happen to the cluster.
func (w *world) happen(e *event) error {
	w.now = later(w.now, e.at)
	if e.effect == "" {
		return w.repaired(e.node)
	}
	j := w.job()
	nodes := append(j.AllocNodes(), cluster.SpareNodes(j)...)
	name := nodes[e.draw%len(nodes)]
	if w.bad[name] != "" {
		return nil // it is out already
	}
	spare := !slices.Contains(j.AllocNodes(), name)
	if e.effect == Crashes && spare || e.effect == Hangs && spare {
		return nil // nothing runs there
	}
	if w.up.After(w.now) { // the job is just starting: what was begun is for nothing
		w.sum.Starting -= w.up.Sub(w.now)
		w.up = w.now
	}
	if !spare {
		w.trained(w.now, true)
		w.sum.Faults++
	}
	fell, was := w.now, j
	if err := w.found(e.effect, name, spare); err != nil {
		return err
	}
	if e.effect != Crashes {
		w.out(name, e.effect)
	}
	if spare {
		w.now = fell // nothing waits for it
		return nil
	}
	w.sum.Unseen += w.now.Sub(fell)
	err := w.goOn(was)
	w.sum.LongestTo = max(w.sum.LongestTo, w.up.Sub(fell))
	return err
}

// out has a node repaired later.
func (w *world) out(name cluster.NodeName, effect Effect) {
	w.bad[name] = effect
	e := event{at: w.now.Add(w.plan.Repair), node: name}
	i, _ := slices.BinarySearchFunc(w.todo, e, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), -1) })
	w.todo = slices.Insert(w.todo, i, e)
}

// found passes the time until a fault is known, and does what the cluster does then.
func (w *world) found(effect Effect, name cluster.NodeName, spare bool) error {
	switch effect {
	case LosesGPU:
		w.now = w.now.Add(w.plan.GPUSeen)
		return w.lostGPU(name)
	case LosesNode:
		w.now = w.now.Add(w.plan.NodeSeen)
		_, err := w.apply(&cluster.NodeDown{Nodes: []cluster.NodeName{name}, Why: "Not responding"})
		return err
	case Hangs:
		return w.hangs(name)
	}
	w.now = w.now.Add(w.plan.CrashSeen)
	return w.fails()
}

// lostGPU has a node report a GPU that has fallen off the bus.
func (w *world) lostGPU(name cluster.NodeName) error {
	inv := w.inventory(name)
	inv.Faults = []cluster.Fault{{Part: inv.GPUs[0].UUID, Cause: "lost", Action: cluster.FaultDrainNow,
		Text: "GPU 0 has fallen off the bus"}}
	_, err := w.apply(&cluster.NodeUp{Name: name, Inventory: inv, Seq: w.seq[name], Again: true})
	return err
}

// hangs has the ranks of a node hang. An operator, or a check, drains the node once it is named.
func (w *world) hangs(name cluster.NodeName) error {
	watched := w.way.Resilience != nil
	drain := func() error {
		why := "ranks hang"
		_, err := w.apply(&cluster.NodeSet{Nodes: []cluster.NodeName{name}, Action: cluster.NodeDrain, Reason: &why})
		return err
	}
	if !watched {
		w.now = w.now.Add(w.plan.HangTimeout)
		if err := drain(); err != nil {
			return err
		}
		return w.fails()
	}
	w.now = w.now.Add(w.plan.HangSeen)
	_, err := w.apply(&cluster.HangFound{Job: w.id, Attempt: w.job().Attempt, Kind: cluster.HangRAS, Node: name,
		Text: "NCCL's RAS gets no answer of a rank"})
	if err != nil {
		return err
	}
	if err := drain(); err != nil {
		return err
	}
	j := w.job()
	if _, there := j.Share(name); there && j.Phase == cluster.Running { // muster has only reported it: its user acts
		_, err = w.apply(&cluster.Requeue{Ref: cluster.Ref{Job: w.id}})
	}
	return err
}

// fails has the program end with an error. A job with spares starts its step again in a loop of its script; others
// have their script ask for a requeue.
func (w *world) fails() error {
	if r := w.way.Resilience; r != nil && r.Spares > 0 {
		return nil
	}
	_, err := w.apply(&cluster.Requeue{Ref: cluster.Ref{Job: w.id}})
	return err
}

// goOn passes the time until the job trains again; was is the job before the fault.
func (w *world) goOn(was *cluster.Job) error {
	j := w.job()
	for _, sh := range j.Leaving() {
		if w.bad[sh.Node] == LosesNode {
			continue // it tells nothing
		}
		if err := w.report(sh.Node, cluster.NodeDone); err != nil {
			return err
		}
	}
	if j.Phase == cluster.Running {
		w.sum.InPlace++
		w.sum.Swaps += len(cluster.ReplacedNodes(j)) - len(cluster.ReplacedNodes(was))
		w.trains(w.plan.Warm)
		return nil
	}
	w.sum.Requeues++
	ended := w.now
	w.now = w.now.Add(w.plan.Teardown)
	for _, name := range slices.Clone(j.Waiting) {
		if err := w.report(name, cluster.NodeDone); err != nil {
			return err
		}
	}
	w.sum.Queued += w.now.Sub(ended)
	if p := w.job().Phase; p != cluster.Pending {
		return fmt.Errorf("the job is in phase %v after a fault, want it in the queue", p)
	}
	if err := w.start(0); err != nil {
		return err
	}
	w.trains(w.initTime(was))
	return nil
}

// initTime is how long the job takes from its launch to its first step: cold, unless it kept all its nodes but those
// that it lost.
func (w *world) initTime(was *cluster.Job) time.Duration {
	known := append(was.AllocNodes(), cluster.SpareNodes(was)...)
	for _, name := range w.job().AllocNodes() {
		if !slices.Contains(known, name) {
			return w.plan.Cold
		}
	}
	if w.way.Resilience == nil || w.way.Resilience.Spares == 0 {
		return w.plan.Cold
	}
	return w.plan.Warm
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Effective is the part of the time in which the job trained, and what it trained was kept.
func (s *Sum) Effective() float64 { return s.Useful.Seconds() / s.All.Seconds() }

// MeanStop is the time from a fault until the job trains again, on average.
func (s *Sum) MeanStop() time.Duration {
	return (s.Unseen + s.Queued + s.Starting) / time.Duration(max(s.Faults, 1))
}
