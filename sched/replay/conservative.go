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
	most  []int // the largest total of each blockSize moments, of as many blocks as it has
}

// blockSize is how many moments are passed over at once where too little is free.
const blockSize = 64

// span is the time in which some of the plan was given back.
type span struct{ from, to int64 }

func (a span) with(b span) span { return span{min(a.from, b.from), max(a.to, b.to)} }

// conservative keeps a promise to every job of the queue. After each job that ends before its limit, also where several
// end at once, each gets the earliest start that delays nobody, in order of submission, if that is earlier than its own
// (compression). The jobs behind old are new.
//
// When a job was last looked at there was no start before its own. If there is one now, the job would run in what
// was given back since, for a part of its time at least: by early ends, by those before it in this round, and by
// those behind it in the last one.
func (s *textbook) conservative(old int, early []*running) {
	p := s.plan
	p.advance(s.now)
	for _, r := range early {
		p.add(s.now, r.until, r.at, 1)
		s.round(s.queue[:old], span{s.now, r.until})
	}
	s.begin(&old)
	for _, w := range s.queue[old:] {
		w.start, w.at = s.earliest(p, w.Job, 0, never)
		w.seen = len(s.left)
		p.add(w.start, w.start+w.Limit, w.at, -1)
	}
	all := len(s.queue)
	s.begin(&all)
}

// round has each job move up, once, in order of submission, after some time was given back.
func (s *textbook) round(queue []*waiting, freed span) {
	last := s.left // from each on, all that was left in the last round
	for i := len(last) - 2; i >= 0; i-- {
		last[i] = last[i].with(last[i+1])
	}
	s.left = nil
	for _, w := range queue {
		news := freed
		if w.seen < len(last) {
			news = news.with(last[w.seen])
		}
		if left, ok := s.compress(w, news); ok {
			freed = freed.with(left)
			s.left = append(s.left, left)
		}
		w.seen = len(s.left)
	}
}

// compress gives a job the earliest start that the others leave, if that is before its own, and tells what it left
// for that.
func (s *textbook) compress(w *waiting, news span) (left span, moved bool) {
	p := s.plan
	from, before := max(s.now, news.from-w.Limit+1), min(news.to, w.start)
	first, ok := p.could(s.units(w.Job), w, from, before)
	if !ok {
		return left, false
	}
	left = span{w.start, w.start + w.Limit}
	p.add(left.from, left.to, w.at, 1)
	start, at := s.earliest(p, w.Job, first, before)
	if moved = at != nil; moved {
		w.start, w.at = start, at
	}
	p.add(w.start, w.start+w.Limit, w.at, -1)
	return left, moved
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
	p.changed(0)
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
		p.changed(i)
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
	p.changed(a)
}

// could finds the first moment of a range from which on so many are free, wherever, for as long as a waiting job
// runs at most. The job's own resources count as free.
func (p *profile) could(units int, w *waiting, from, before int64) (k int, ok bool) {
	if from >= before {
		return 0, false
	}
	k, _ = slices.BinarySearch(p.times, from)
next:
	for ; ; k++ {
		if k = p.skip(k, units); k == len(p.times) || p.times[k] >= before {
			return k, false
		}
		for end := k; end < len(p.times) && p.times[end] < p.times[k]+w.Limit; end++ {
			if p.times[end] >= w.start {
				return k, true // the rest of its time lies in what it holds
			}
			if p.total[end] < units {
				k = end // nothing that begins before this moment's end fits
				continue next
			}
		}
		return k, true
	}
}

// skip finds the first moment from k on at which so many are free, or how many moments there are.
func (p *profile) skip(k, units int) int {
	for k < len(p.total) {
		if k%blockSize == 0 {
			for b := k / blockSize; p.block(b) < units; b++ {
				if k += blockSize; k >= len(p.total) {
					return len(p.total)
				}
			}
		}
		if p.total[k] >= units {
			return k
		}
		k++
	}
	return k
}

// block is the largest total of a block.
func (p *profile) block(b int) int {
	for i := len(p.most); i <= b; i++ {
		p.most = append(p.most, slices.Max(p.total[i*blockSize:min((i+1)*blockSize, len(p.total))]))
	}
	return p.most[b]
}

// changed has the blocks of the moments from k on looked at again.
func (p *profile) changed(k int) { p.most = p.most[:min(len(p.most), k/blockSize)] }

// earliest finds the first start, from the kth moment on and before some time, at which the job fits until its
// limit; no place says that there is none.
func (s *textbook) earliest(p *profile, j *Job, k int, before int64) (int64, []piece) {
	units := s.units(j)
	parts, part := s.parts(units, j.Nodes)
	least := make([]int, len(s.free))   // of each node, while it matters
	able := make([]int, 0, len(s.free)) // nodes that can take a part
next:
	for ; ; k++ {
		if k = p.skip(k, units); k == len(p.times) || p.times[k] >= before {
			break
		}
		able = able[:0]
		for i, f := range p.free[k] {
			if least[i] = f; f >= part {
				able = append(able, i)
			}
		}
		start := p.times[k]
		for end := k; end < len(p.times) && p.times[end] < start+j.Limit; end++ {
			if p.total[end] < units {
				k = end // nothing that begins before this moment's end fits
				continue next
			}
			n, free := 0, p.free[end]
			for _, i := range able {
				if least[i] = min(least[i], free[i]); least[i] >= part {
					able[n] = i
					n++
				}
			}
			if able = able[:n]; n < parts {
				continue next
			}
		}
		if at := s.place(least, units, j.Nodes, s.better); at != nil {
			return start, at
		}
	}
	if before == never {
		panic("a job that fits the empty machine does not fit after all others")
	}
	return 0, nil
}
