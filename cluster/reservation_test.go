package cluster

import (
	"strings"
	"testing"
	"time"
)

// TestTimeFloat: a reservation that moves along is always as far ahead, and the clock never ends it.
func TestTimeFloat(t *testing.T) {
	w := newWorld(t, 1)
	put := func(flags ResvFlags, ahead time.Duration) Command {
		return &ReservationPut{Reservation: Reservation{Name: "float", Start: w.now.Add(ahead), End: w.now.Add(ahead + time.Hour), Nodes: []NodeName{"n0"},
			Users: []string{"root"}, Flags: flags}}
	}
	w.refused(root, put(ResvTimeFloat, 0), ErrResvTime)
	w.refused(root, put(ResvTimeFloat|ResvDaily, time.Hour), ErrResvTime)
	w.ok(root, put(ResvTimeFloat, time.Hour))
	w.pass(48 * time.Hour)
	w.due()
	r, ok := w.s.Reservation("float")
	if !ok {
		t.Fatal("it is over")
	}
	if got := r.At(w.now); !got.Start.Equal(w.now.Add(time.Hour)) || !got.End.Equal(w.now.Add(2*time.Hour)) || got.Active(w.now) {
		t.Errorf("it lies from %v to %v, now is %v", got.Start, got.End, w.now)
	}
	if again := r.At(w.now).At(w.now.Add(time.Minute)); !again.Start.Equal(w.now.Add(61 * time.Minute)) {
		t.Errorf("a minute later it begins at %v", again.Start)
	}
}

// TestResvPrograms: the site's programs are called once when a reservation begins, and when its time is over; of one that repeats
// each time, of one that was deleted not.
func TestResvPrograms(t *testing.T) {
	w := newWorld(t, 1)
	cfg := DefaultConfig()
	cfg.ResvProlog, cfg.ResvEpilog = "/pro", "/epi"
	w.ok(root, &Configure{Config: &cfg})
	put := func(name string, flags ResvFlags, ahead, long time.Duration) {
		t.Helper()
		w.ok(root, &ReservationPut{Reservation: Reservation{Name: name, Start: w.now.Add(ahead), End: w.now.Add(ahead + long), Nodes: []NodeName{"n0"}, Users: []string{"root"}, Flags: flags}})
	}
	called := func(when, want string) {
		t.Helper()
		w.due()
		w.due()
		var out []string
		var done ErrandsDone
		for e := range w.s.Errands() {
			out = append(out, string(e.Kind)+" "+e.Reservation)
			done.Ends = append(done.Ends, ErrandEnd{ID: e.ID})
		}
		if got := strings.Join(out, ", "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		if len(done.Ends) > 0 {
			w.ok(sys, &done)
		}
	}
	put("later", ResvDaily, time.Minute, time.Minute)
	put("now", ResvOverlap, 0, time.Minute)
	called("at once", "resv_prolog now")
	w.ok(root, &ReservationDrop{Name: "now"})
	called("deleted", "")
	w.pass(time.Minute)
	called("begun", "resv_prolog later")
	r, _ := w.s.Reservation("later")
	again := *r
	again.Users, again.Begun = []string{"bob"}, false
	w.ok(root, &ReservationPut{Reservation: again, Update: true})
	called("changed meanwhile", "")
	w.pass(time.Minute)
	called("over", "resv_epilog later")
	w.pass(23 * time.Hour)
	w.pass(59 * time.Minute)
	called("the next day", "resv_prolog later")
}

// TestResvOverRun: a job of a reservation whose time is over ends with it, so much later, or when its own time is over.
func TestResvOverRun(t *testing.T) {
	for _, c := range []struct {
		over, limit time.Duration
		lives       time.Duration // beyond the end
	}{{0, time.Hour, 0}, {5 * time.Minute, time.Hour, 5 * time.Minute}, {5 * time.Minute, 0, 5 * time.Minute}, {5 * time.Minute, 12 * time.Minute, 2 * time.Minute}, {Unlimited, time.Hour, 50 * time.Minute}} {
		w := newWorld(t, 1)
		cfg := DefaultConfig()
		cfg.ResvOverRun = c.over
		w.ok(root, &Configure{Config: &cfg})
		w.ok(root, &ReservationPut{Reservation: Reservation{Name: "r", Start: w.now, End: w.now.Add(10 * time.Minute), Nodes: []NodeName{"n0"}, Users: []string{"alice"}}})
		id := w.submit(func(s *JobSpec) { s.Reservation, s.Limit = "r", c.limit })
		out := w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Start: &Alloc{Partition: "main", Reservation: "r", Shares: []Share{{Node: "n0", CPUs: NewIDSet(0), MemMB: 100, Tasks: 1}}}}}})
		if e := out.Result.([]*Error)[0]; e != nil {
			t.Fatal(e)
		}
		w.report("n0", id, NodeReady)
		w.pass(10 * time.Minute)
		w.due()
		if c.lives > 0 {
			w.want(id, Running)
			w.pass(c.lives - time.Second)
			w.due()
			w.want(id, Running)
			w.pass(time.Second)
			w.due()
		}
		if j := w.want(id, Ending); j.EndingWhy != TimedOut {
			t.Errorf("%+v: it ends as %v", c, j.EndingWhy)
		}
	}
}
