package replay

import (
	"cmp"
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
func (s *textbook) conservative(old int, early bool) {
	if !early && len(s.queue) == old { // promises come true, no more
		s.begin(&old)
		return
	}
	p := s.profile(s.queue[:old])
	if early {
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

func (s *textbook) profile(promised []*waiting) *profile {
	type change struct {
		at   int64
		p    []piece
		sign int
	}
	var list []change
	for _, r := range s.live {
		list = append(list, change{r.until, r.at, 1})
	}
	for _, w := range promised {
		list = append(list, change{w.start, w.at, -1}, change{w.start + w.Limit, w.at, 1})
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	p := &profile{}
	free := slices.Clone(s.free)
	p.times, p.free, p.total = append(p.times, s.now), append(p.free, free), append(p.total, sum(free))
	for i := 0; i < len(list); {
		at := list[i].at
		if at > p.times[len(p.times)-1] {
			p.times, p.free = append(p.times, at), append(p.free, slices.Clone(p.free[len(p.free)-1]))
			p.total = append(p.total, 0)
		}
		last := len(p.free) - 1
		for ; i < len(list) && list[i].at == at; i++ {
			for _, x := range list[i].p {
				p.free[last][x.node] += list[i].sign * x.units
			}
		}
		p.total[last] = sum(p.free[last])
	}
	return p
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
