package federation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// site is a cluster of the model: its part of one job, and where that stands.
type site struct {
	part  Part
	at    Phase
	has   bool // there is a record
	heard int  // the newest of the origin's orders that it has obeyed, by the origin's clock
}

// message is one on its way: messages come late, twice, in another order or never.
type message struct {
	from, to ID
	report   *Report
	order    *Order
	clock    int
}

// world is a federation with one job, made at cluster 1.
type world struct {
	t      *testing.T
	rnd    *rand.Rand
	sites  map[ID]*site
	flying []message
	clock  int // of the origin's log
	over   bool
	starts int
	again  int // how often it was requeued after it had begun
	log    []string
}

func newWorld(t *testing.T, seed uint64, viable Set) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), sites: map[ID]*site{}}
	for id := ID(1); id <= 4; id++ {
		w.sites[id] = &site{}
	}
	w.sites[1] = &site{part: Part{Self: 1, Origin: 1, Viable: viable, Active: SetOf(1) & viable}, has: true}
	return w
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) running() (n int) {
	for _, s := range w.sites {
		if s.has && s.at == Runs {
			n++
		}
	}
	return n
}

// start has a cluster try to start the job, as its scheduler would.
func (w *world) start(id ID) {
	s := w.sites[id]
	if !s.has || s.at != Waits || s.part.Away() || w.over && id == 1 {
		return
	}
	switch next, ok := s.part.Take(); {
	case id == 1 && !ok:
		return
	case id == 1:
		s.part = next
		w.clock++
	case !s.part.Mine():
		s.part.Asks = true
		return
	default:
		s.part = next
	}
	s.at = Runs
	w.starts++
	w.note("start at %d by grant %d", id, s.part.Grant)
	if n := w.running(); n > 1 {
		w.t.Fatalf("it runs %d times at once:\n%v", n, w.log)
	}
	if w.starts > 1+w.again {
		w.t.Fatalf("started %d times, requeued %d times:\n%v", w.starts, w.again, w.log)
	}
}

// end ends what runs at a cluster, or puts it back.
func (w *world) end(id ID, again bool) {
	s := w.sites[id]
	if s.at != Runs {
		return
	}
	w.note("end at %d again=%v", id, again)
	if again {
		w.again++
		s.part, s.at = s.part.Again(), Waits
	} else if s.at = Ended; id == 1 {
		w.over = true
	}
	if id == 1 {
		w.clock++
	}
}

// giveBack returns a grant that was not used.
func (w *world) giveBack(id ID) {
	if s := w.sites[id]; id != 1 && s.has && s.at == Waits && s.part.Mine() {
		s.part = s.part.Return()
		w.note("%d gives back %d", id, s.part.Returned)
	}
}

// tell sends what a cluster has to say now.
func (w *world) tell(id ID) {
	s := w.sites[id]
	if id == 1 {
		for to := range s.part.Viable.All() {
			o := s.part.Order(w.over)
			w.flying = append(w.flying, message{from: 1, to: to, order: &o, clock: w.clock})
		}
		return
	}
	if s.has {
		r := s.part.Report(s.at)
		w.flying = append(w.flying, message{from: id, to: 1, report: &r})
	}
}

// arrive has some message arrive, and perhaps once more later.
func (w *world) arrive() {
	if len(w.flying) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.flying))
	m := w.flying[i]
	if w.rnd.IntN(3) > 0 {
		w.flying = append(w.flying[:i], w.flying[i+1:]...)
	}
	if m.report != nil {
		w.hear(m)
	} else if m.to != 1 {
		w.obey(m)
	}
}

func (w *world) hear(m message) {
	s := w.sites[1]
	next, v := s.part.Hear(m.from, *m.report, !w.over && s.at == Waits && s.part.Holder == 0)
	if w.over {
		return
	}
	if next != s.part {
		w.clock++
	}
	s.part = next
	if v == Over {
		w.over, s.at = true, Revoked
	}
}

func (w *world) obey(m message) {
	s := w.sites[m.to]
	if m.clock < s.heard {
		return
	}
	s.heard = m.clock
	if !s.has {
		if m.order.shuts(m.to) || m.order.Holder == m.to && m.order.Begun {
			return
		}
		*s = site{part: Part{Self: m.to, Origin: 1}, has: true, heard: m.clock}
	}
	var v Verdict
	if s.part, v = s.part.Obey(*m.order, s.at); v == Revoke {
		s.at = Revoked
	} else if v == Revive {
		s.at = Waits
	}
	w.note("order %+v at %d: %+v %d", *m.order, m.to, s.part, s.at)
	if over := s.at == Ended || s.at == Revoked; over && !s.part.Owes(s.at == Ended) && w.rnd.IntN(4) == 0 {
		s.has, s.at = false, Waits // it is forgotten
	}
}

// TestOneStart plays a job of a federation with messages that come late, twice or never: it is started once, and once
// more for each time that it is put back; and when all messages arrive in the end it does start and is over.
func TestOneStart(t *testing.T) {
	for seed := range uint64(4000) {
		w := newWorld(t, seed, []Set{SetOf(1, 2, 3, 4), SetOf(2, 3), SetOf(1, 2)}[seed%3])
		for range 200 {
			id := ID(1 + w.rnd.IntN(4))
			switch w.rnd.IntN(12) {
			case 0, 1:
				w.start(id)
			case 2:
				w.end(id, w.rnd.IntN(2) == 0)
			case 3:
				w.giveBack(id)
			case 4, 5, 6:
				w.tell(id)
			default:
				w.arrive()
			}
		}
		w.flying = nil
		for round := 0; !w.over; round++ {
			if round > 50 {
				t.Fatalf("seed %d: it never ends: %+v %+v\n%v", seed, w.sites[1], w.sites[2], w.log)
			}
			for id := ID(1); id <= 4; id++ {
				w.start(id)
				w.end(id, false)
				w.tell(id)
			}
			for len(w.flying) > 0 {
				w.arrive()
			}
		}
		for range 3 {
			w.tell(1)
			for len(w.flying) > 0 {
				w.arrive()
			}
		}
		for id, s := range w.sites {
			if s.has && (s.at == Waits || s.part.Owes(s.at == Ended)) {
				t.Fatalf("seed %d: it is over, and cluster %d has %+v\n%v", seed, id, s, w.log)
			}
		}
	}
}

func TestSets(t *testing.T) {
	s := SetOf(1, 63)
	if !s.Has(1) || !s.Has(63) || s.Has(2) || s.Has(0) || s.Without(63) != SetOf(1) {
		t.Errorf("%b", s)
	}
	if id := ID(2); Of(id.Number(7)) != 2 || id.Number(7) != 134217735 || Of(7) != 0 {
		t.Errorf("%d", id.Number(7))
	}
	r := Record{Members: []Member{{ID: 1}, {ID: 3}}}
	if r.FreeID() != 2 || r.Member(3) == nil || r.Member(2) != nil {
		t.Errorf("%+v", r)
	}
	m := Member{Features: []string{"a", "b"}}
	if !m.Fits([]string{"a"}, false) || m.Fits([]string{"a", "c"}, false) || m.Fits([]string{"a"}, true) || !m.Fits([]string{"c"}, true) {
		t.Error("features do not fit")
	}
}

// TestVersion: a version from the future is refused, because no later record could replace it.
func TestVersion(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ahead, ok := range map[time.Duration]bool{-time.Hour: true, time.Hour: true, 25 * time.Hour: false} {
		r := Record{Name: "f", By: "b", Version: uint64(now.Add(ahead).UnixMilli())}
		if err := r.CheckVersion(now); (err == nil) != ok {
			t.Errorf("%s ahead: %v", ahead, err)
		}
	}
	if (&Record{Version: 1<<64 - 1}).CheckVersion(now) == nil {
		t.Error("the last version is taken")
	}
}
