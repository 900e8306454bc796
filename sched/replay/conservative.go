package replay

import (
	"math"
	"slices"
)

// profile is what is free from one moment to the next, if all run to their limits and start as promised.
type profile struct {
	times []int64
	free  [][]int
	total []int // sums of free
}

// conservative keeps a promise to every job of the queue. When a job ends before its limit, each gets the
// earliest start that delays nobody, in order of submission, if that is earlier than its own (compression).
// The jobs behind old are new.
func (s *textbook) conservative(old int, early []*running) {
	p := s.plan
	p.advance(s.now)
	for _, r := range early {
		p.add(s.now, r.until, r.at, 1)
	}
	if len(early) > 0 {
		for _, w := range s.queue[:old] {
			p.add(w.start, w.start+w.Limit, w.at, 1)
			if start, at := s.earliest(p, w.Job, w.start); start < w.start {
				w.start, w.at = start, at
			}
			p.add(w.start, w.start+w.Limit, w.at, -1)
		}
	}
	s.begin(&old)
	for _, w := range s.queue[old:] {
		w.start, w.at = s.earliest(p, w.Job, -1)
		p.add(w.start, w.start+w.Limit, w.at, -1)
	}
	all := len(s.queue)
	s.begin(&all)
}

// begin starts those of the first n in the queue whose time has come.
func (s *textbook) begin(n *int) {
	kept := s.queue[:0]
	for i, w := range s.queue {
		if i < *n && w.start == s.now {
			s.start(w.Job, w.at)
			continue
		}
		kept = append(kept, w)
	}
	*n -= len(s.queue) - len(kept)
	s.queue = kept
}

// empty is the profile of a machine without jobs.
func (m *machine) empty() *profile {
	return &profile{times: []int64{math.MinInt64}, free: [][]int{slices.Clone(m.has)}, total: []int{sum(m.has)}}
}

// advance forgets what was before a moment, and moments at which nothing changes.
func (p *profile) advance(now int64) {
	n := 0
	for k := p.cut(now); k < len(p.times); k++ {
		if n > 0 && p.total[k] == p.total[n-1] && slices.Equal(p.free[k], p.free[n-1]) {
			continue
		}
		p.times[n], p.free[n], p.total[n] = p.times[k], p.free[k], p.total[k]
		n++
	}
	p.times, p.free, p.total = p.times[:n], p.free[:n], p.total[:n]
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// cut makes a moment a boundary and returns its place.
func (p *profile) cut(at int64) int {
	i, ok := slices.BinarySearch(p.times, at)
	if !ok {
		p.times = slices.Insert(p.times, i, at)
		p.free = slices.Insert(p.free, i, slices.Clone(p.free[i-1]))
		p.total = slices.Insert(p.total, i, p.total[i-1])
	}
	return i
}

// add gives (sign 1) or takes (-1) pieces from one moment to another.
func (p *profile) add(from, to int64, pieces []piece, sign int) {
	a := p.cut(from)
	b := p.cut(to)
	for k := a; k < b; k++ {
		for _, x := range pieces {
			p.free[k][x.node] += sign * x.units
			p.total[k] += sign * x.units
		}
	}
}

// earliest finds the first start at which the job fits until its limit, without limit on the time if before is
// negative, else only one before that.
func (s *textbook) earliest(p *profile, j *Job, before int64) (int64, []piece) {
	units := s.units(j)
	least := make([]int, len(s.free))
next:
	for k := 0; k < len(p.times); k++ {
		start := p.times[k]
		if before >= 0 && start >= before {
			return before, nil
		}
		end := k
		for ; end < len(p.times) && p.times[end] < start+j.Limit; end++ {
			if p.total[end] < units {
				k = end // nothing that begins before this moment's end fits
				continue next
			}
		}
		copy(least, p.free[k])
		for _, free := range p.free[k+1 : end] {
			for i, f := range free {
				least[i] = min(least[i], f)
			}
		}
		if at := s.place(least, units, j.Nodes, s.better); at != nil {
			return start, at
		}
	}
	panic("a job that fits the empty machine does not fit after all others")
}
