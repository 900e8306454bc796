package cluster

import (
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
