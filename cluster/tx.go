package cluster

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

// tx is one command at work on the state. Every change goes through its put methods, which
// keep the derived tables in step and remember how to undo.
type tx struct {
	*tables
	at     time.Time
	by     Identity
	events []Event
	gone   []Change // records of the books that the change at hand has taken away
	undo   []func()

	emptied []NodeName // nodes whose last job has left
	unheard []JobID    // jobs that end before any of their nodes has heard of them
}

// Apply executes one entry. A rejected command changes nothing, nor does one that breaks what the state is sure of: see
// Applied.Panic.
func (s *State) Apply(e Entry) (out Applied) {
	t := &tx{tables: &s.tables, at: e.At, by: e.By}
	defer func() {
		if p := recover(); p != nil {
			out = t.broken(e, p)
		}
	}()
	s.Index = max(s.Index, e.Index)
	if e.At.After(s.Now) {
		s.Now = e.At
	}
	result, err := e.Cmd.apply(t)
	if err != nil {
		t.rollback()
		ce, ok := err.(*Error)
		if !ok {
			ce = Errorf(Internal, "", "%v", err)
		}
		return Applied{Err: ce}
	}
	t.endUnheard()
	watchEmptied(t)
	t.dateEvents()
	return Applied{Result: result, Events: t.events}
}

// broken takes back what a command did that could not be carried through.
func (t *tx) broken(e Entry, p any) Applied {
	t.rollback()
	if refused, ok := p.(*Error); ok { // from deep inside, where no error can be returned
		return Applied{Err: refused}
	}
	why := fmt.Sprintf("command %s failed: %v", e.Cmd.kind(), p)
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	return Applied{Err: Errorf(Internal, "", "%s", why), Panic: why + "\n" + string(stack)}
}

// endUnheard ends the jobs of which no node has heard: none will tell that it is clean.
func (t *tx) endUnheard() {
	for _, id := range t.unheard {
		j, ok := t.jobs.Get(id)
		if !ok || j.Phase != Ending || !j.Prelude.waits() {
			continue
		}
		for _, name := range j.AllocNodes() {
			if left, _ := t.jobs.Get(id); left.Phase == Ending {
				c := *left
				t.doneOn(&c, name)
			}
		}
	}
}

// dateEvents adds to what happened to nodes and reservations when that was, and a node that has just become empty
// while it is drained.
func (t *tx) dateEvents() {
	for _, name := range t.emptied {
		if n, ok := t.nodes.Get(name); ok && n.Drain {
			t.events = append(t.events, Event{Node: n})
		}
	}
	for i := range t.events {
		e := &t.events[i]
		if e.Node != nil {
			e.Idle = len(t.Load(e.Node.Name).Jobs) == 0
		}
		if e.Node != nil || e.Resv != nil || e.Gone != "" {
			e.At = t.at
		}
	}
}

func (t *tx) rollback() {
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.undo = nil
	t.events = nil
}

// since is the time of the command, or that of what came before it: clocks of leaders and nodes differ, and are set.
func (t *tx) since(before time.Time) time.Time { return later(t.at, before) }

func (t *tx) onUndo(f func()) { t.undo = append(t.undo, f) }

// keepOld remembers a single value of the state, which is about to change.
func keepOld[T any](t *tx, at *T) {
	old := *at
	t.onUndo(func() { *at = old })
}

// putValue puts a value into a table, and remembers what was there.
func putValue[K cmp.Ordered, V any](t *tx, in *btree.Map[K, V], k K, v V) {
	old, had := in.Set(k, v)
	t.onUndo(func() {
		if had {
			in.Set(k, old)
		} else {
			in.Delete(k)
		}
	})
}

// dropValue takes a value out of a table, and remembers it.
func dropValue[K cmp.Ordered, V any](t *tx, in *btree.Map[K, V], k K) {
	if old, had := in.Delete(k); had {
		t.onUndo(func() { in.Set(k, old) })
	}
}

// putItem is putValue for a table of items that are their own keys.
func putItem[T any](t *tx, in *btree.BTreeG[T], x T) {
	old, had := in.Set(x)
	t.onUndo(func() {
		if had {
			in.Set(old)
		} else {
			in.Delete(x)
		}
	})
}

// dropItem is dropValue for a table of items that are their own keys.
func dropItem[T any](t *tx, in *btree.BTreeG[T], x T) {
	if old, had := in.Delete(x); had {
		t.onUndo(func() { in.Set(old) })
	}
}

// tell records that history should know the job as it is now.
func (t *tx) tell(j *Job) { t.events = append(t.events, Event{Job: j}) }

func (t *tx) putJob(j *Job) {
	old, _ := t.jobs.Get(j.ID)
	t.replaceJob(old, j)
	t.onUndo(func() { t.replaceJob(j, old) })
	t.announce(old, j)
}

func (t *tx) deleteJob(j *Job) {
	t.replaceJob(j, nil)
	t.onUndo(func() { t.replaceJob(nil, j) })
}

// replaceJob is the only place where the job table and what derives from it change.
func (t *tables) replaceJob(old, j *Job) {
	t.changes.add(StateChange{Job: cmp.Or(old, j).ID})
	if old != nil {
		t.unindex(old)
		if old.Phase == Ended && j != nil && j.Phase != Ended && j.ArrayID != 0 {
			t.unend(old)
		}
		if j == nil {
			t.jobs.Delete(old.ID)
			if c, ok := t.arrays.Get(old.ArrayID); ok && c.pending+c.live+c.ended == 0 {
				t.arrays.Delete(old.ArrayID)
			}
		}
	}
	if j != nil {
		t.jobs.Set(j.ID, j)
		t.index(j)
	}
	if t.config.counting() {
		t.recount(old, j)
	}
}

func (j *Job) holds() bool {
	return j.Phase >= Starting && j.Phase <= Ending
}

func (t *tables) unindex(j *Job) {
	switch {
	case j.Phase == Pending:
		if k, ok := t.queueAt.Delete(j.ID); ok {
			t.queue.Delete(k)
		}
		for _, d := range j.Depends.Terms {
			t.depends.Delete(pairKey{d.Job, j.ID})
		}
	case j.holds():
		t.live.Delete(j.ID)
	}
	t.countTask(j, -1)
	if j.Phase != Ended {
		t.names.Delete(nameKey{j.Spec.UID, j.Spec.Name, j.ID})
	}
	if j.Key != "" {
		t.keys.Delete(submitKey{j.Spec.UID, j.Key, j.ID})
	}
	if j.ArrayID != 0 {
		t.members.Delete(pairKey{j.ArrayID, j.ID})
	}
	if ats, ok := t.timerAt.Delete(j.ID); ok {
		for _, at := range ats {
			t.timers.Delete(timerKey{at, j.ID})
		}
	}
}

func (t *tables) index(j *Job) {
	switch {
	case j.Phase == Pending:
		if !Elsewhere(j) {
			k := t.keyOf(j)
			t.queue.Set(k)
			t.queueAt.Set(j.ID, k)
		}
		for _, d := range j.Depends.Terms {
			t.depends.Set(pairKey{d.Job, j.ID})
		}
	case j.holds():
		t.live.Set(j.ID, j)
	}
	t.countTask(j, 1)
	if j.Phase != Ended {
		t.names.Set(nameKey{j.Spec.UID, j.Spec.Name, j.ID})
	}
	if j.Key != "" {
		t.keys.Set(submitKey{j.Spec.UID, j.Key, j.ID})
	}
	if j.ArrayID != 0 {
		t.members.Set(pairKey{j.ArrayID, j.ID})
	}
	if ats := t.timersOf(j); ats != [2]time.Time{} {
		t.timerAt.Set(j.ID, ats)
		for _, at := range ats {
			if !at.IsZero() {
				t.timers.Set(timerKey{at, j.ID})
			}
		}
	}
}

// timersOf is when the clock alone changes the job or makes it startable; zero if never.
func (t *tables) timersOf(j *Job) (at [2]time.Time) {
	switch j.Phase {
	case Pending:
		return pendingTimers(t, j)
	case Starting, Running:
		return runningTimers(t, j)
	case Suspended:
		at[0] = j.Preempt.until()
	case Ended:
		if t.hetOver(j) && !owes(t, j) && !BurstOpen(j) {
			at[0] = j.Ended.Add(t.config.MinJobAge)
		}
	}
	return at
}

func pendingTimers(t *tables, j *Job) (at [2]time.Time) {
	if Elsewhere(j) {
		return at
	}
	if j.Eligible.After(t.Now) {
		at[0] = j.Eligible
	}
	at[1] = j.deadline()
	return at
}

func runningTimers(t *tables, j *Job) (at [2]time.Time) {
	at[1] = j.deadline()
	if j.Preparing() {
		return at
	}
	if !Fetching(j) {
		at[0] = j.EndLimit(t.config)
	}
	at[0] = sooner(at[0], j.LaunchLimit(t.config))
	at[0] = sooner(at[0], j.Preempt.until())
	at[1] = sooner(at[1], j.nextNotice(t.config))
	return at
}

// touch derives a record's keys anew after something else that they depend on has changed.
func (t *tx) touch(jobs ...*Job) {
	for _, j := range jobs {
		c := *j
		t.putJob(&c)
	}
}

// begun is from when on the job's time counts: it loses none by waiting for its nodes.
func (j *Job) begun() time.Time {
	if j.Prelude != nil {
		return later(j.Started, j.Prelude.Over)
	}
	return j.Started
}

// EndLimit is when the job's time limit runs out, zero if it has none or has not started.
func (j *Job) EndLimit(c *Config) time.Time {
	if j.Started.IsZero() || j.Limit == 0 || j.Limit == Unlimited {
		return time.Time{}
	}
	all := j.Limit + j.SuspendTotal + c.OverTimeLimit
	if all < j.Limit {
		return time.Time{} // longer than a duration can tell
	}
	return j.begun().Add(all)
}

// deadline is when the clock ends the job for its deadline, zero if it has none: while it waits, as soon as it
// can not end in time any more, even with its shortest time limit.
func (j *Job) deadline() time.Time {
	at := j.Spec.Deadline
	if j.Phase != Pending || at.IsZero() {
		return at
	}
	if need := cmp.Or(j.Spec.LimitMin, j.Spec.Limit); need != 0 && need != Unlimited {
		return at.Add(time.Second - need)
	}
	return at
}

func (t *tx) putNode(n *Node) {
	old, _ := t.nodes.Get(n.Name)
	t.setNode(old, n)
	t.onUndo(func() { t.setNode(n, old) })
	t.regather(old, n)
	watchNode(t, old, n)
}

func (t *tables) setNode(old, n *Node) {
	if old == nil || n == nil || !old.Registered.Equal(n.Registered) || old.counts() != n.counts() {
		t.scale = nil
	}
	if old == nil || n == nil || !n.hosts(old) {
		t.changes.add(StateChange{Node: cmp.Or(old, n).Name})
	}
	t.regroup(old, n)
	if old != nil {
		if n == nil || n.Order != old.Order {
			t.order.Delete(old.Order)
		}
		t.reboots.Delete(old.Name)
		t.powers.Delete(old.Name)
		t.mute.Delete(old.Name)
	}
	if n == nil {
		t.listed.Delete(old)
		t.nodes.Delete(old.Name)
		return
	}
	t.nodes.Set(n.Name, n)
	t.order.Set(n.Order, n)
	t.listed.Set(n)
	if n.Reboot != nil {
		t.reboots.Set(n.Name, n)
	}
	if n.Power != nil {
		t.powers.Set(n.Name, n)
	}
	if n.Quiet {
		t.mute.Set(n.Name, n)
	}
}

func (t *tx) deleteNode(n *Node) {
	t.setNode(n, nil)
	dropValue(t, t.loads, n.Name)
	t.onUndo(func() { t.setNode(nil, n) })
	t.regather(n, nil)
}

func (t *tx) putLoad(l *Load) {
	old, had := t.loads.Set(l.Node, l)
	t.changes.add(StateChange{Load: l.Node})
	if len(l.Jobs) == 0 && had && len(old.Jobs) > 0 {
		t.emptied = append(t.emptied, l.Node)
	}
	t.onUndo(func() {
		t.changes.add(StateChange{Load: l.Node})
		if had {
			t.loads.Set(l.Node, old)
		} else {
			t.loads.Delete(l.Node)
		}
	})
}

func (t *tx) putConfig(c *Config) {
	old := t.config
	t.config = c
	t.scale = nil
	t.onUndo(func() { t.config, t.scale = old, nil })
	if !c.countsAs(old) {
		t.retally()
	}
}

// refBlob counts d more (or fewer) users of a stored text.
func (t *tx) refBlob(h BlobHash, d int) error {
	if h == "" {
		return nil
	}
	b, ok := t.blobs.Get(h)
	if !ok {
		return Errorf(Conflict, "", "stored text %s is not here", h)
	}
	n := *b
	n.Refs += d
	n.Added = t.at
	t.putBlob(&n)
	return nil
}

func (t *tx) putBlob(b *Blob) {
	old, had := t.blobs.Get(b.Hash)
	t.setBlob(b)
	t.onUndo(func() {
		t.idle.Delete(b.Hash)
		if had {
			t.setBlob(old)
		} else {
			t.blobs.Delete(b.Hash)
		}
	})
}

func (t *tables) setBlob(b *Blob) {
	t.blobs.Set(b.Hash, b)
	if b.Refs == 0 {
		t.idle.Set(b.Hash, b)
	} else {
		t.idle.Delete(b.Hash)
	}
}

func (t *tx) deleteBlob(b *Blob) {
	t.blobs.Delete(b.Hash)
	t.idle.Delete(b.Hash)
	t.onUndo(func() { t.setBlob(b) })
}

// move changes a job's phase along the table of edges.
func (t *tx) move(j *Job, to Phase) error {
	if !slices.Contains(edges[j.Phase], to) {
		return fmt.Errorf("job %d cannot go from phase %d to %d", j.ID, j.Phase, to)
	}
	j.Phase = to
	return nil
}

// give adds the job's shares to the loads of its nodes; take removes those of the given nodes.
func (t *tx) give(j *Job) error {
	for _, sh := range j.Alloc.Shares {
		n, ok := t.nodes.Get(sh.Node)
		if !ok || !n.Usable() {
			return Errorf(Conflict, ErrBusy, "node %s is not usable", sh.Node)
		}
		if err := t.giveShare(j, sh, n); err != nil {
			return err
		}
	}
	return nil
}

// giveShare gives a job its share of a node, if that is free.
func (t *tx) giveShare(j *Job, sh Share, n *Node) error {
	l := *t.Load(sh.Node)
	if sh.MemMB < 0 || slices.Contains(l.Jobs, j.ID) {
		return Errorf(Internal, "", "job %d: the share of node %s makes no sense", j.ID, sh.Node)
	}
	if !n.Inventory.holds(&sh) || !l.leaves(&sh, j.Alloc.Over, &n.Inventory) {
		return Errorf(Conflict, ErrBusy, "node %s is full", sh.Node)
	}
	if !j.Spec.mayUse(&n.Inventory, &sh) {
		return Errorf(Conflict, ErrBusy, "job %d: its tasks can not run on CPUs %s of node %s", j.ID,
			sh.Usable, sh.Node)
	}
	if !t.mayJoin(&l, j.Spec) {
		return Errorf(Conflict, ErrBusy, "node %s has jobs of another user, and one of them is not shared", sh.Node)
	}
	if j.HoldsCPUs() {
		l.Give(sh.CPUs, j.Alloc.Over > 0)
	}
	l.MemMB += sh.MemMB
	l.addGPUs(&sh)
	l.Jobs = append(slices.Clone(l.Jobs), j.ID)
	slices.Sort(l.Jobs)
	l.Closed = max(l.Closed, closes(j.Spec))
	t.putLoad(&l)
	return nil
}

// holds reports whether a node has the CPUs and GPUs of a share, given out or not.
func (inv *Inventory) holds(sh *Share) bool {
	return sh.CPUs.Max() < inv.CPUs && sh.GPUs.Minus(inv.Devices()).Empty()
}

// leaves reports whether a share is free of what is given out on a node.
func (l *Load) leaves(sh *Share, over int, inv *Inventory) bool {
	if !l.Taken(over).Intersect(sh.CPUs).Empty() || !l.GPUs.Intersect(sh.GPUs).Empty() {
		return false
	}
	enough := sh.MemMB <= 0 || l.MemMB+sh.MemMB <= inv.MemMB
	return enough && inv.mayGive(l, sh.Part)
}

// closes is what Load.Closed becomes of a job.
func closes(s *JobSpec) int64 {
	if s.Sharing != ShareUser {
		return 0
	}
	return int64(s.UID) + 1
}

// mayJoin reports whether users let a job onto a node beside those that are there.
func (t *tables) mayJoin(l *Load, s *JobSpec) bool {
	if l.Closed != 0 && l.Closed != int64(s.UID)+1 {
		return false
	}
	return s.Sharing != ShareUser || t.AllOf(l, s.UID)
}

// AllOf reports whether all jobs of a node are one user's.
func (t *tables) AllOf(l *Load, uid uint32) bool {
	return !slices.ContainsFunc(l.Jobs, func(id JobID) bool { j, ok := t.jobs.Get(id); return ok && j.Spec.UID != uid })
}

func (t *tx) take(j *Job, nodes ...NodeName) {
	for _, sh := range append(slices.Clip(j.Alloc.Shares), j.Leaving()...) {
		if !slices.Contains(nodes, sh.Node) {
			continue
		}
		l := *t.Load(sh.Node)
		if j.HoldsCPUs() {
			l.TakeBack(sh.CPUs)
		}
		l.dropGPUs(&sh)
		l.MemMB -= sh.MemMB
		l.Jobs = slices.DeleteFunc(slices.Clone(l.Jobs), func(id JobID) bool { return id == j.ID })
		if l.Closed != 0 {
			l.Closed = 0
			for _, id := range l.Jobs {
				if o, ok := t.jobs.Get(id); ok {
					l.Closed = max(l.Closed, closes(o.Spec))
				}
			}
		}
		t.putLoad(&l)
	}
}

// AllocNodes lists the nodes of the allocation in order.
func (j *Job) AllocNodes() []NodeName {
	if j.Alloc == nil {
		return nil
	}
	names := make([]NodeName, len(j.Alloc.Shares))
	for i, sh := range j.Alloc.Shares {
		names[i] = sh.Node
	}
	return names
}

// Share finds what the job has on a node.
func (j *Job) Share(n NodeName) (Share, bool) {
	if j.Alloc != nil {
		for _, sh := range j.Alloc.Shares {
			if sh.Node == n {
				return sh, true
			}
		}
	}
	return Share{}, false
}
