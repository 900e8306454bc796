package sched

import (
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
)

// A forecast is a cycle that carries nothing out: what it starts starts now, what it plans is planned. Jobs that only wait
// for those before them get a start too: in the order of the queue, where and when nobody that goes first will be.

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

// sooner reports whether a start is before another; one that nobody knows is the last.
func (s *Start) sooner(than *Start) bool {
	return !s.At.IsZero() && (than.At.IsZero() || s.At.Before(than.At))
}

// Forecast tells of the jobs of the queue, as far as it goes, when they will start.
func Forecast(s *cluster.Snapshot, now time.Time) map[cluster.JobID]Start {
	return newForecast(s, now).run(0)
}

func forecastOf(s *cluster.Snapshot, now time.Time, id cluster.JobID) Start {
	return forecastTo(s, now, id)[id]
}

// forecastTo tells of a job when it will start, and of those that go before it.
func forecastTo(s *cluster.Snapshot, now time.Time, id cluster.JobID) map[cluster.JobID]Start {
	upTo := id
	if j, ok := s.Job(id); ok {
		upTo = leaderOf(j)
	}
	return newForecast(s, now).run(upTo)
}

// Test says when and where a job would start if it were submitted now (--test-only), and which number it would get.
func Test(s *cluster.Snapshot, now time.Time, by cluster.Identity, spec *cluster.JobSpec) (Start, cluster.JobID, error) {
	one := *spec
	one.Hold = false
	next, id, err := s.Try(now, by, &cluster.Submit{Spec: &one})
	if err != nil {
		return Start{}, 0, err
	}
	return forecastOf(next, now, id.(cluster.JobID)), id.(cluster.JobID), nil
}

// TestHet is Test for the components of a heterogeneous job; its number is the leader's.
func TestHet(s *cluster.Snapshot, now time.Time, by cluster.Identity, specs []*cluster.JobSpec) (out []Start, lead cluster.JobID, err error) {
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
	starts := newForecast(next, now).run(lead)
	for k := range specs {
		out = append(out, starts[lead+cluster.JobID(k)])
	}
	return out, lead, nil
}

// forecast is a cycle and what it has brought.
type forecast struct {
	*cycle
	starts map[cluster.JobID]Start
	taken  []*span
	offs   map[uint64]nodeSet // of the spans of a mask
	stays  []*stay            // by place
	extra  int
}

// span is a planned start of a job that goes before others from some time on, and the nodes that it will have as a whole.
type span struct {
	from, to time.Time
	nodes    nodeSet
	first    time.Time
}

// crosses reports whether it lasts at some time of another, of a job that heeds it.
func (t *span) crosses(from, to time.Time) bool {
	return t.from.Before(to) && from.Before(t.to) && !t.first.After(from)
}

// stay is a planned start on a node that leaves some of it to others.
type stay struct {
	*span
	place int
	share cluster.Share
	left  space // when it begins
}

func newForecast(s *cluster.Snapshot, now time.Time) *forecast {
	return &forecast{cycle: newCycle(s, now), starts: map[cluster.JobID]Start{}, offs: map[uint64]nodeSet{}}
}

// run looks at the queue as a pass does, up to one job or, with 0, as far as starts are planned.
func (f *forecast) run(only cluster.JobID) map[cluster.JobID]Start {
	if f.responsive {
		return f.turns(only)
	}
	for j := range f.s.Queue() {
		f.looked++
		switch own := j.ID == only; {
		case f.looked > maxLooked && !own && only != 0:
			continue
		case f.looked > maxLooked && !own, only == 0 && f.extra >= maxForecast:
			return f.starts
		}
		if j.Held == cluster.NotHeld {
			f.consider(j, j.ID == only)
		}
		if j.ID == only {
			break
		}
	}
	return f.starts
}

// turns is run in the responsive order.
func (f *forecast) turns(only cluster.JobID) map[cluster.JobID]Start {
	var last []*cluster.Job // those that begin later
	f.cycle.turns(maxLooked, func(j *cluster.Job) {
		if _, why := f.s.Ready(j, f.now); why == cluster.WaitBegin {
			last = append(last, j)
			return
		}
		f.consider(j, j.ID == only)
	}, func(b blocked) { f.note(b.job, b.job.ID == only, func() { f.line(b) }) })
	for _, j := range last {
		f.consider(j, j.ID == only)
	}
	if j, ok := f.s.Job(only); ok && f.starts[only] == (Start{}) && j.Held == cluster.NotHeld {
		f.responsive = false // it is too far back to be looked at
		f.consider(j, true)
	}
	return f.starts
}

// consider is that of the cycle, and notes when the job will start; if it must be told, however many starts are planned.
func (f *forecast) consider(j *cluster.Job, must bool) {
	f.note(j, must, func() { f.cycle.consider(j) })
}

func (f *forecast) note(j *cluster.Job, must bool, look func()) {
	if j.Het != nil {
		f.noteSet(j, must, look)
		return
	}
	out, heads, blocked := len(f.out), len(f.heads), len(f.blocked)
	if look(); len(f.blocked) > blocked {
		return // it is looked at again
	}
	st := Start{Why: j.Wait, Note: j.WaitNote} // what has not changed is not told again
	for _, d := range f.out[out:] {
		switch {
		case d.Job != j.ID || d.Resume:
		case d.Start != nil:
			f.starts[j.ID] = Start{At: f.now, Alloc: d.Start}
			return
		default:
			st.Why, st.Note = d.Wait, d.Note
		}
	}
	var r *reservation
	if len(f.heads) > heads {
		r = f.heads[len(f.heads)-1]
	} else if must || f.extra < maxForecast {
		r = f.later(j, st.Why)
		f.extra++
	}
	if r != nil {
		st.At, st.Alloc = later(r.at, f.now), r.alloc
		f.take(&span{from: st.At, to: until(st.At, j.Limit), first: begins(j)}, part{job: j, plan: r})
	}
	f.starts[j.ID] = st
}

// later plans a start for a job that the cycle plans none for, if time alone is what it lacks.
func (f *forecast) later(j *cluster.Job, why cluster.Reason) (best *reservation) {
	from := f.now
	switch why {
	case cluster.WaitPriority, cluster.WaitResources, cluster.WaitNodeNotAvail, cluster.WaitReservation:
	case cluster.WaitBegin:
		from = later(from, begins(j))
	default:
		return nil
	}
	ends := f.moments(from)
	for _, own := range f.coming(j) {
		for _, name := range j.Spec.Partitions {
			p, ok := f.s.Partition(name)
			if !ok || f.closed(p, j) != cluster.NoReason || f.limits.Blocked(j, name, nil) != cluster.NoReason {
				continue
			}
			q := f.ask(p, j, own)
			if q.why != cluster.NoReason {
				continue
			}
			r, _ := plan(f.row(q.want.over), ends, q.want, func(p *pool, at time.Time) off {
				if at.Before(from) {
					return off{nodes: f.all()}
				}
				return f.beside(p, f.off(own, j, at, until(at, j.Limit)), at, until(at, j.Limit))
			})
			if r != nil && (best == nil || r.at.Before(best.at)) {
				best = r
			}
		}
	}
	return best
}

// moments are the times from which on more may be free, and one of the caller's.
func (f *forecast) moments(from time.Time) []release {
	ends := append(slices.Clone(f.timeline()), release{at: from})
	for _, t := range f.taken {
		ends = append(ends, release{at: t.to})
	}
	slices.SortStableFunc(ends, func(a, b release) int { return a.at.Compare(b.at) })
	return ends
}

// coming lists the reservations that a job may run in, now or once they begin, as parts does.
func (f *forecast) coming(j *cluster.Job) (out []*keptNodes) {
	for _, k := range f.reserved {
		asked := slices.Contains(j.Spec.ResvNames(), k.Name) || j.Spec.Reservation == "" && k.Flags&cluster.ResvMagnetic != 0
		if asked && k.Allows(j.Spec) {
			out = append(out, k)
		}
	}
	if j.Spec.Reservation == "" {
		out = append(out, nil)
	}
	return out
}

// begins is from when on a job is looked at.
func begins(j *cluster.Job) time.Time { return later(j.Eligible, j.Spec.Begin) }

// maxSpans is how many planned starts others keep off.
const maxSpans = 64

// take has others keep off what a planned start, or each part of one, will have.
func (f *forecast) take(t *span, parts ...part) {
	if len(f.taken) >= maxSpans {
		return
	}
	f.taken = append(f.taken, t)
	t.nodes = make(nodeSet, len(f.free.spaces))
	for _, p := range parts {
		for k := range p.plan.alloc.Shares {
			sh := &p.plan.alloc.Shares[k]
			i, ok := f.free.at(sh.Node)
			if !ok {
				continue
			}
			sp := &f.free.spaces[i]
			t.nodes[i] = f.free.shared || f.free.wholePlans || p.job.Spec.Sharing == cluster.ShareUser || sh.Part != nil || len(sp.parts) > 0 ||
				sh.CPUs.Len() == f.free.models[sp.model].cpus.Len()
			if !t.nodes[i] {
				f.stay(&stay{span: t, place: i, share: *sh})
			}
		}
	}
}

// stay adds one to those on its node.
func (f *forecast) stay(n *stay) {
	n.left = f.expected(n.place, n.from)
	n.left.take(n.share, false)
	from, upTo := f.on(n.place)
	for _, o := range f.stays[from:upTo] {
		if !o.from.After(n.from) && n.from.Before(o.to) {
			n.left.take(o.share, false)
		}
		if !o.from.Before(n.from) && o.from.Before(n.to) {
			o.left.take(n.share, false)
		}
	}
	f.stays = slices.Insert(f.stays, upTo, n)
}

// on tells which of the stays are those on a node.
func (f *forecast) on(place int) (from, upTo int) {
	from = sort.Search(len(f.stays), func(k int) bool { return f.stays[k].place >= place })
	for upTo = from; upTo < len(f.stays) && f.stays[upTo].place == place; upTo++ {
	}
	return from, upTo
}

// beside is what a job must keep off that runs in a span of time, with what others will have in it, but for those that will
// not be looked at before it.
func (f *forecast) beside(p *pool, o off, from, to time.Time) off {
	mask := uint64(0)
	for i, t := range f.taken {
		mask |= uint64(b2i(t.crosses(from, to))) << i
	}
	set, ok := f.offs[mask]
	if !ok {
		for i, t := range f.taken {
			if mask&(1<<i) != 0 {
				set = union(set, t.nodes)
			}
		}
		f.offs[mask] = set
	}
	o = o.and(set)
	for k := 0; k < len(f.stays); {
		i := f.stays[k].place
		sp, less := p.spaces[i], false
		for ; k < len(f.stays) && f.stays[k].place == i; k++ {
			switch n := f.stays[k]; {
			case !n.crosses(from, to):
				continue
			case n.from.After(from):
				sp.atMost(&n.left)
			default:
				sp.take(n.share, false)
			}
			less = true
		}
		if less {
			o.less = append(o.less, lessened{i, sp})
		}
	}
	return o
}

func (f *forecast) all() nodeSet { return slices.Repeat(nodeSet{true}, len(f.free.spaces)) }
