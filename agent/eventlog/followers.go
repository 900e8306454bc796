package eventlog

import "sync"

// Followers bounds those who follow a cluster at a time: each costs work whenever something happens.
type Followers[K comparable] struct {
	All, Each int // at most: of all, and of one

	mu sync.Mutex
	n  int
	of map[K]int
}

// Enter counts one more of somebody, if there may be one; leave is to be called then, once. Root has no bound but that
// of all: bounded is false.
func (f *Followers[K]) Enter(who K, bounded bool) (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n >= f.All || bounded && f.of[who] >= f.Each {
		return nil, false
	}
	if f.of == nil {
		f.of = map[K]int{}
	}
	f.n++
	f.of[who]++
	return func() { f.leave(who) }, true
}

func (f *Followers[K]) leave(who K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.of[who]--; f.of[who] == 0 {
		delete(f.of, who)
	}
}

// Count returns how many follow.
func (f *Followers[K]) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}
