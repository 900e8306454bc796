package sched

import (
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// A forecast is a cycle that carries nothing out: what it starts starts now, what it plans is planned. Jobs that only
// wait for those before them get a start too: in the order of the queue, where and when nobody that goes first will
// be.

// maxForecast is how many starts are planned beside those of the cycle itself.
const maxForecast = 32

// Start is when and where a job is expected to start.
type Start struct {
	At    time.Time      // zero: nobody knows
	Alloc *cluster.Alloc // nil: nobody knows
	Why   cluster.Reason // what it waits for
	Note  string
}

// Nodes are where it will be.
func (s *Start) Nodes() (out []cluster.NodeName) {
	if s.Alloc != nil {
		for _, sh := range s.Alloc.Shares {
			out = append(out, sh.Node)
		}
	}
	return out
}

// Sooner reports whether a start is before another; one that nobody knows is the last.
func (s *Start) Sooner(than *Start) bool {
	return !s.At.IsZero() && (than.At.IsZero() || s.At.Before(than.At))
}

// Forecast tells of the jobs of the queue, as far as it goes, when they will start.
func Forecast(s *cluster.Snapshot, now time.Time) map[cluster.JobID]Start {
	return newForecast(s, now).runTo(0)
}

// ForecastOf tells of a job when it will start.
func ForecastOf(s *cluster.Snapshot, now time.Time, id cluster.JobID) Start {
	return ForecastTo(s, now, id)[id]
}

// ForecastTo tells of a job when it will start, and of those that go before it.
func ForecastTo(s *cluster.Snapshot, now time.Time, id cluster.JobID) map[cluster.JobID]Start {
	upTo := id
	if j, ok := s.Job(id); ok {
		upTo = leaderOf(j)
	}
	return newForecast(s, now).runTo(upTo)
}

// Test says when and where a job would start if it were submitted now (--test-only), and which number it would get.
func Test(
	s *cluster.Snapshot, now time.Time, by cluster.Identity, spec *cluster.JobSpec,
) (Start, cluster.JobID, error) {
	one := *spec
	one.Hold = false
	next, id, err := s.Try(now, by, &cluster.Submit{Spec: &one})
	if err != nil {
		return Start{}, 0, err
	}
	return ForecastOf(next, now, id.(cluster.JobID)), id.(cluster.JobID), nil
}

// TestHet is Test for the components of a heterogeneous job; its number is the leader's.
func TestHet(
	s *cluster.Snapshot, now time.Time, by cluster.Identity, specs []*cluster.JobSpec,
) (out []Start, lead cluster.JobID, err error) {
	c := &cluster.SubmitHet{}
	for _, spec := range specs {
		one := *spec
		one.Hold = false
		c.Specs = append(c.Specs, &one)
	}
	next, id, err := s.Try(now, by, c)
	if err != nil {
		return nil, 0, err
	}
	lead = id.(cluster.JobID)
	starts := newForecast(next, now).runTo(lead)
	for k := range specs {
		out = append(out, starts[lead+cluster.JobID(k)])
	}
	return out, lead, nil
}

// forecast is a cycle and what it has brought.
type forecast struct {
	*cycle
	starts       map[cluster.JobID]Start
	spans        []*plannedSpan
	nodesByMask  map[uint64]place.NodeSet // what the spans of a mask have as a whole
	shares       []*plannedShare          // by index
	extraPlanned int
}

// plannedSpan is the time in which a planned job will run, and the nodes that it will have as a whole.
type plannedSpan struct {
	from, to   time.Time
	nodes      place.NodeSet
	heededFrom time.Time
}

// overlapsWith reports whether a job that runs from one time to another must consider it.
func (t *plannedSpan) overlapsWith(from, to time.Time) bool {
	return t.from.Before(to) && from.Before(t.to) && !t.heededFrom.After(from)
}

// plannedShare is a planned job on a node that leaves some of it to others.
type plannedShare struct {
	*plannedSpan
	node      int
	share     cluster.Share
	partition string
	left      place.NodeFree // what the node has left when it begins
}

func newForecast(s *cluster.Snapshot, now time.Time) *forecast {
	return &forecast{
		cycle:       newCycle(s, now),
		starts:      map[cluster.JobID]Start{},
		nodesByMask: map[uint64]place.NodeSet{},
	}
}

// runTo looks at the queue as a full pass does, up to one job or, with 0, as far as starts are planned.
func (f *forecast) runTo(only cluster.JobID) map[cluster.JobID]Start {
	if f.responsive {
		return f.runByScore(only)
	}
	for j := range f.s.Queue() {
		f.looked++
		switch own := j.ID == only; {
		case f.looked > maxLooked && !own && only != 0:
			continue
		case f.looked > maxLooked && !own, only == 0 && f.extraPlanned >= maxForecast:
			return f.starts
		}
		if j.Held == cluster.NotHeld {
			f.decideAndRecord(j, j.ID == only)
		}
		if j.ID == only {
			break
		}
	}
	return f.starts
}

// runByScore is runTo in the responsive order.
func (f *forecast) runByScore(only cluster.JobID) map[cluster.JobID]Start {
	var last []*cluster.Job // those that begin later
	plan := func(b blockedJob) { f.recordStart(b.job, b.job.ID == only, func() { f.planBlocked(b) }) }
	for j := range f.order(maxLooked, plan) {
		if _, why := f.s.Ready(j, f.now); why == cluster.WaitBegin {
			last = append(last, j)
			continue
		}
		f.decideAndRecord(j, j.ID == only)
	}
	for _, j := range last {
		f.decideAndRecord(j, j.ID == only)
	}
	if j, ok := f.s.Job(only); ok && f.starts[only] == (Start{}) && j.Held == cluster.NotHeld {
		f.responsive = false // it is too far back to be looked at
		f.decideAndRecord(j, true)
	}
	return f.starts
}

// decideAndRecord decides a record and records when the job will start; must: however many starts are planned already.
func (f *forecast) decideAndRecord(j *cluster.Job, must bool) {
	f.recordStart(j, must, func() { f.decide(j) })
}

func (f *forecast) recordStart(j *cluster.Job, must bool, look func()) {
	if j.Het != nil {
		f.recordHetStart(j, must, look)
		return
	}
	out := len(f.decisions)
	planned := len(f.planned)
	blocked := len(f.blocked)
	look()
	if len(f.blocked) > blocked {
		return // it is looked at again
	}
	st := Start{Why: j.Wait, Note: j.WaitNote} // what has not changed is not told again
	for _, d := range f.decisions[out:] {
		switch {
		case d.Job != j.ID || d.Resume:
		case d.Start != nil:
			f.starts[j.ID] = Start{At: f.now, Alloc: d.Start}
			return
		default:
			st.Why = d.Wait
			st.Note = d.Note
		}
	}
	var ps *place.PlannedStart
	if len(f.planned) > planned {
		ps = f.planned[len(f.planned)-1]
	} else if must || f.extraPlanned < maxForecast {
		ps = f.planLater(j, st.Why)
		f.extraPlanned++
	}
	if ps != nil {
		st.At = laterOf(ps.At, f.now)
		st.Alloc = ps.Alloc
		f.takeSpan(&plannedSpan{
			from: st.At, to: EndOf(st.At, j.Limit), heededFrom: BeginsAt(j),
		}, place.ComponentStart{Job: j, Start: ps})
	}
	f.starts[j.ID] = st
}

// planLater plans a start for a job that the cycle plans none for, if time alone is what it lacks.
func (f *forecast) planLater(j *cluster.Job, why cluster.Reason) (best *place.PlannedStart) {
	from := f.now
	switch why {
	case cluster.WaitPriority, cluster.WaitResources, cluster.WaitNodeNotAvail, cluster.WaitReservation:
	case cluster.WaitBegin:
		from = laterOf(from, BeginsAt(j))
	default:
		return nil
	}
	ends := f.releaseMoments(from)
	for _, own := range f.comingReservations(j) {
		for _, name := range j.Spec.Partitions {
			p, ok := f.s.Partition(name)
			if !ok || f.partitionCloses(p, j) != cluster.NoReason || f.meter.Blocked(j, name, nil) != cluster.NoReason {
				continue
			}
			shape := f.shapeFor(p, j, own)
			if shape.why != cluster.NoReason {
				continue
			}
			ps := place.FindStart(f.freeWithOverlap(shape.demand.JobsPerCPU), ends, shape.demand,
				func(fs *place.FreeSet, at time.Time) place.Exclusion {
					if at.Before(from) {
						return place.Exclusion{Nodes: f.free.AllNodes()}
					}
					return f.exclusionWithTaken(fs, f.exclusionFor(own, j, at, EndOf(at, j.Limit)), at,
						EndOf(at, j.Limit))
				}).PlannedStart
			if ps != nil && (best == nil || ps.At.Before(best.At)) {
				best = ps
			}
		}
	}
	return best
}

// releaseMoments are the times from which on more may be free, and one of the caller's.
func (f *forecast) releaseMoments(from time.Time) []place.Release {
	ends := append(slices.Clone(f.releaseTimeline()), place.Release{At: from})
	for _, t := range f.spans {
		ends = append(ends, place.Release{At: t.to})
	}
	slices.SortStableFunc(ends, func(a, b place.Release) int { return a.At.Compare(b.At) })
	return ends
}

// comingReservations is reservationsFor, with those that have not begun.
func (f *forecast) comingReservations(j *cluster.Job) (out []*reservedNodes) {
	for _, rn := range f.reserved {
		if rn.isAskedFor(j) && rn.Allows(j.Spec) {
			out = append(out, rn)
		}
	}
	if j.Spec.Reservation == "" {
		out = append(out, nil)
	}
	return out
}

// BeginsAt is from when on a job is looked at.
func BeginsAt(j *cluster.Job) time.Time { return laterOf(j.Eligible, j.Spec.Begin) }

// maxSpans is how many planned starts others keep off.
const maxSpans = 64

// takeSpan has later jobs keep off what a planned start, or each component of one, will have.
func (f *forecast) takeSpan(t *plannedSpan, comps ...place.ComponentStart) {
	if len(f.spans) >= maxSpans {
		return
	}
	f.spans = append(f.spans, t)
	t.nodes = f.free.NoNodes()
	for _, p := range comps {
		for k := range p.Start.Alloc.Shares {
			sh := &p.Start.Alloc.Shares[k]
			i, ok := f.free.Index(sh.Node)
			if !ok {
				continue
			}
			t.nodes[i] = f.free.TakesWhole(i, sh, p.Job.Spec.Sharing == cluster.ShareUser)
			if !t.nodes[i] {
				f.addShare(&plannedShare{plannedSpan: t, node: i, share: *sh, partition: p.Start.Alloc.Partition})
			}
		}
	}
}

// addShare adds a share, and takes shares of one time from each other.
func (f *forecast) addShare(n *plannedShare) {
	n.left = f.expectedFree(n.node, n.from)
	n.left.TakeShare(n.share, n.partition, false)
	from, upTo := f.sharesOn(n.node)
	for _, o := range f.shares[from:upTo] {
		if !o.from.After(n.from) && n.from.Before(o.to) {
			n.left.TakeShare(o.share, o.partition, false)
		}
		if !o.from.Before(n.from) && o.from.Before(n.to) {
			o.left.TakeShare(n.share, n.partition, false)
		}
	}
	f.shares = slices.Insert(f.shares, upTo, n)
}

// sharesOn finds the shares on a node.
func (f *forecast) sharesOn(node int) (from, upTo int) {
	from = sort.Search(len(f.shares), func(k int) bool { return f.shares[k].node >= node })
	for upTo = from; upTo < len(f.shares) && f.shares[upTo].node == node; upTo++ {
	}
	return from, upTo
}

// exclusionWithTaken excludes, too, what planned jobs will have while a job runs, except those that will not be
// looked at before it.
func (f *forecast) exclusionWithTaken(fs *place.FreeSet, ex place.Exclusion, from, to time.Time) place.Exclusion {
	mask := uint64(0)
	for i, t := range f.spans {
		mask |= uint64(b2i(t.overlapsWith(from, to))) << i
	}
	set, ok := f.nodesByMask[mask]
	if !ok {
		for i, t := range f.spans {
			if mask&(1<<i) != 0 {
				set = set.Union(t.nodes)
			}
		}
		f.nodesByMask[mask] = set
	}
	ex = ex.WithNodes(set)
	for k := 0; k < len(f.shares); {
		i := f.shares[k].node
		free := fs.Node(i)
		less := false
		for ; k < len(f.shares) && f.shares[k].node == i; k++ {
			switch n := f.shares[k]; {
			case !n.overlapsWith(from, to):
				continue
			case n.from.After(from):
				free.LimitTo(&n.left)
			default:
				free.TakeShare(n.share, n.partition, false)
			}
			less = true
		}
		if less {
			ex = ex.ReduceNode(i, free)
		}
	}
	return ex
}
