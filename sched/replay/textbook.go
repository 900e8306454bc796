package replay

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// never is later than all that happens.
const never int64 = math.MaxInt64

// Run is one job's place in a schedule.
type Run struct {
	Job        *Job
	Start, End int64
	Nodes      []int // places in the trace's list, rising
	Parts      []int // what it has of each of them: thousandths of a GPU, or of a CPU where there are none
}

// Policy is a scheduler of the textbook: jobs have one kind of need, and everybody tells a limit.
type Policy struct {
	Name, Title string
	// Order is how the queue is looked at; nil is by submission.
	order func(now int64, units func(*Job) int) func(a, b *Job) int
	fill  fill
	// shortest: jobs that pass the head are tried by their limit, shortest first.
	shortest bool
}

type fill int

const (
	fillNothing fill = iota // nobody passes the head of the queue
	fillAny                 // whatever fits passes it
	fillEasy                // what does not delay the head does (D. Lifka, 1995)
	fillAll                 // what delays nobody does (conservative: A. Mu'alem, D. Feitelson, 2001)
)

// Textbook lists the policies by name.
var Textbook = []Policy{
	{Name: "fifo", Title: "in order of submission; the first that does not fit blocks all"},
	{Name: "greedy", Title: "whatever fits, in order of submission; nothing is reserved", fill: fillAny},
	{Name: "easy", Title: "backfill that does not delay the first of the queue", fill: fillEasy},
	{Name: "conservative", Title: "backfill that delays no job that came earlier", fill: fillAll},
	{Name: "sjbf", Title: "easy, the shortest limit first among those that pass", fill: fillEasy, shortest: true},
	{Name: "sjf", Title: "easy, the queue by limit, shortest first", fill: fillEasy, order: byLimit},
	{Name: "wfp", Title: "easy, the queue by (wait/limit)³ × size, largest first", fill: fillEasy, order: byWFP},
}

func byLimit(int64, func(*Job) int) func(a, b *Job) int { return limitThenSubmit }

func limitThenSubmit(a, b *Job) int { return cmp.Compare(a.Limit, b.Limit) }

func byWFP(now int64, units func(*Job) int) func(a, b *Job) int {
	score := func(j *Job) float64 {
		x := float64(now-j.Submit) / float64(j.Limit)
		return float64(float64(x*x)*x) * float64(units(j))
	}
	return func(a, b *Job) int { return cmp.Compare(score(b), score(a)) }
}

// Textbook replays the trace under one policy. Where nodes belong to partitions, each partition is a cluster of
// its own with its own queue. tick, if not nil, is called with the number of jobs that have started.
func (t *Trace) Textbook(p Policy, better Placement, tick func(int)) []Run {
	units, _ := t.units()
	parts := t.parts()
	var out []Run
	for _, part := range parts {
		s := &textbook{
			Policy: p, machine: part.machine, units: units, better: better, nodes: part.nodes,
			live: map[int]*running{},
		}
		s.free, s.plan = slices.Clone(s.has), s.empty()
		var jobs []*Job
		for i := range t.Jobs {
			if j := &t.Jobs[i]; home(parts, j) == part {
				jobs = append(jobs, j)
			}
		}
		before := len(out)
		s.tick = func(n int) {
			if tick != nil {
				tick(before + n)
			}
		}
		out = append(out, s.run(jobs)...)
	}
	slices.SortStableFunc(out, func(a, b Run) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// running is a job at work; until is when its limit ends it.
type running struct {
	seq   int
	end   int64
	until int64
	at    []piece
}

// waiting is a job in the queue, with the start that a conservative scheduler has promised it.
type waiting struct {
	*Job
	start int64
	at    []piece
	seen  int // of what was left in the last compression, how much it has seen
}

// textbook is one replay at work.
type textbook struct {
	Policy
	machine
	units  func(*Job) int
	better Placement
	nodes  []int
	free   []int
	plan   *profile // the conservative policy's
	left   []span   // by those that moved in its last compression, in their order
	now    int64
	queue  []*waiting
	ends   endHeap
	live   map[int]*running // by seq
	seq    int
	out    []Run
	tick   func(int)
}

type endHeap []*running

func (h endHeap) Len() int { return len(h) }
func (h endHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].end, h[j].end), cmp.Compare(h[i].seq, h[j].seq)) < 0
}
func (h endHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)   { *h = append(*h, x.(*running)) }
func (h *endHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// run goes from instant to instant: ends first, then submissions, then one pass.
func (s *textbook) run(jobs []*Job) []Run {
	for next := 0; ; {
		if s.now = s.soonest(jobs[next:]); s.now == never {
			return s.out
		}
		var early []*running // what ended before its limit
		for len(s.ends) > 0 && s.ends[0].end == s.now {
			r := heap.Pop(&s.ends).(*running)
			give(s.free, r.at)
			delete(s.live, r.seq)
			if r.until > s.now {
				early = append(early, r)
			}
		}
		old := len(s.queue)
		for ; next < len(jobs) && jobs[next].Submit == s.now; next++ {
			s.queue = append(s.queue, &waiting{Job: jobs[next]})
		}
		if s.fill == fillAll {
			s.conservative(old, early)
		} else {
			s.pass()
		}
		s.tick(len(s.out))
	}
}

// soonest is when something happens next: a submission of those to come, an end, or a promised start.
func (s *textbook) soonest(coming []*Job) int64 {
	at := never
	if len(coming) > 0 {
		at = coming[0].Submit
	}
	if len(s.ends) > 0 {
		at = min(at, s.ends[0].end)
	}
	if s.fill == fillAll {
		for _, w := range s.queue {
			at = min(at, w.start)
		}
	}
	return at
}

func (s *textbook) start(j *Job, at []piece) {
	take(s.free, at)
	s.seq++
	r := &running{s.seq, s.now + j.Run, s.now + j.Limit, at}
	heap.Push(&s.ends, r)
	s.live[r.seq] = r
	run := Run{Job: j, Start: s.now, End: s.now + j.Run}
	for _, p := range slices.SortedFunc(slices.Values(at), func(a, b piece) int { return a.node - b.node }) {
		run.Nodes = append(run.Nodes, s.nodes[p.node])
		run.Parts = append(run.Parts, p.units*whole)
	}
	s.out = append(s.out, run)
}

// releases are the live jobs by the ends of their limits.
func (s *textbook) releases() []*running {
	out := make([]*running, 0, len(s.live))
	for _, r := range s.live {
		out = append(out, r)
	}
	slices.SortFunc(out,
		func(a, b *running) int { return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.seq, b.seq)) })
	return out
}

// pass starts what may start now: the head of the queue as long as it fits, then those that may pass it.
func (s *textbook) pass() {
	if s.order != nil {
		less := s.order(s.now, s.units)
		slices.SortStableFunc(s.queue, func(a, b *waiting) int {
			return cmp.Or(less(a.Job, b.Job), cmp.Compare(a.Submit, b.Submit))
		})
	}
	n := 0
	for ; n < len(s.queue); n++ {
		j := s.queue[n].Job
		at := s.place(s.free, s.units(j), j.Nodes, s.better)
		if at == nil {
			break
		}
		s.start(j, at)
	}
	s.queue = slices.Delete(s.queue, 0, n)
	if len(s.queue) < 2 || s.fill == fillNothing {
		return
	}
	shadow, future := s.reserve(s.queue[0].Job)
	others := s.queue[1:]
	if s.shortest {
		others = slices.Clone(others)
		slices.SortStableFunc(others, func(a, b *waiting) int { return limitThenSubmit(a.Job, b.Job) })
	}
	begun := map[*Job]bool{}
	least := [2]int{math.MaxInt, math.MaxInt} // the smallest that did not fit; what is larger does not either
	avail := make([]int, len(s.free))
	for _, w := range others {
		j, late := w.Job, 0
		free := s.free
		if s.fill == fillEasy && s.now+j.Limit > shadow {
			late = 1
		}
		if j.Nodes <= 1 && s.units(j) >= least[late] {
			continue
		}
		if late == 1 { // it must leave the head what it will use
			for i := range avail {
				avail[i] = min(s.free[i], future[i])
			}
			free = avail
		}
		at := s.place(free, s.units(j), j.Nodes, s.better)
		if at == nil {
			if j.Nodes <= 1 {
				least[late] = min(least[late], s.units(j))
			}
			continue
		}
		if late == 1 {
			take(future, at)
		}
		s.start(j, at)
		begun[j] = true
	}
	if len(begun) > 0 {
		s.queue = slices.DeleteFunc(s.queue, func(w *waiting) bool { return begun[w.Job] })
	}
}

// reserve finds when the head of the queue will start if all run to their limits (the shadow time), and what
// will then be free beside it.
func (s *textbook) reserve(head *Job) (shadow int64, future []int) {
	if s.fill != fillEasy {
		return never, nil
	}
	future = slices.Clone(s.free)
	ends := s.releases()
	for i := 0; i < len(ends); {
		at := ends[i].until
		for ; i < len(ends) && ends[i].until == at; i++ {
			give(future, ends[i].at)
		}
		if p := s.place(future, s.units(head), head.Nodes, s.better); p != nil {
			take(future, p)
			return at, future
		}
	}
	return never, future // it never fits
}

// Named finds a policy of the textbook; its name is empty if there is none.
func Named(name string) Policy {
	for _, p := range Textbook {
		if p.Name == name {
			return p
		}
	}
	return Policy{}
}
