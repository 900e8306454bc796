package sched

import (
	"slices"
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
	taken  []span
	offs   map[uint64]nodeSet // of the spans of a mask
	extra  int
}

// span is nodes that a planned start will have, of a job that goes before others from some time on.
type span struct {
	from, to time.Time
	nodes    nodeSet
	first    time.Time
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
		if len(f.taken) < 64 {
			f.taken = append(f.taken, span{st.At, until(st.At, j.Limit), r.nodes, begins(j)})
		}
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
			r, _ := plan(f.row(q.want.over), ends, q.want, func(at time.Time) off {
				if at.Before(from) {
					return off{nodes: f.all()}
				}
				over := until(at, j.Limit)
				return f.off(own, j, at, over).and(f.beside(at, over))
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

// beside is the nodes that others will have in a span of time, but for those that will not be looked at before it.
func (f *forecast) beside(from, to time.Time) nodeSet {
	mask := uint64(0)
	for i, t := range f.taken {
		if t.from.Before(to) && from.Before(t.to) && !t.first.After(from) {
			mask |= 1 << i
		}
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
	return set
}

func (f *forecast) all() nodeSet { return slices.Repeat(nodeSet{true}, len(f.free.spaces)) }
