package client

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

func init() {
	refusedMove = func(from, to phase) { panic(fmt.Sprintf("a move that is not permitted: %s to %s", from, to)) }
}

// TestPhases: each phase has a row, moves stay on their side of an attempt, and none leads back from its end.
func TestPhases(t *testing.T) {
	first := []phase{arrived, untouched, going, unswept}
	side := func(p phase) (at int) {
		for i, f := range first {
			if p >= f {
				at = i
			}
		}
		return at
	}
	reached := map[phase]bool{confirmedBefore: true} // a new life begins there
	for _, p := range first {
		reached[p] = true
	}
	for i, row := range phaseRows {
		p := phase(i)
		if row.name == "" || row.means == "" {
			t.Errorf("phase %d has no row", i)
		}
		for _, next := range row.next {
			reached[next] = true
			if side(next) != side(p) {
				t.Errorf("%s goes on to %s, which is another side", p, next)
			}
			if side(p) != side(going) && next < p && next != launching {
				t.Errorf("%s goes back to %s", p, next)
			}
		}
	}
	for i := range phaseRows {
		if !reached[phase(i)] {
			t.Errorf("nothing leads to %s", phase(i))
		}
	}
}

// TestRefusedMove: what the table does not have changes nothing.
func TestRefusedMove(t *testing.T) {
	told := 0
	old := refusedMove
	refusedMove = func(phase, phase) { told++ }
	defer func() { refusedMove = old }()
	p := clean
	if p.to(launching) || p != clean || told != 1 {
		t.Errorf("a clean attempt went on to %s, told %d times", p, told)
	}
	if !p.to(clean) || told != 1 {
		t.Error("to stay was refused")
	}
}

// TestKillAgain: the first KILL counts for how long processes outlive it, the last for when the next is due.
func TestKillAgain(t *testing.T) {
	s := newHere(self, nil).sides
	begin := time.Now()
	s.kill(begin)
	s.kill(begin.Add(killAgain))
	if s.end != killed || !s.killedFirst.Equal(begin) || !s.killedLast.Equal(begin.Add(killAgain)) {
		t.Errorf("%+v", s)
	}
	s.end.to(unkillable)
	s.kill(begin.Add(2 * killAgain))
	if !s.isStuck() {
		t.Error("one KILL more, and it is not unkillable any more")
	}
}

// TestPhaseTable: DESIGN.md has the table as the code has it.
func TestPhaseTable(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := phaseTable(); !strings.Contains(string(text), want) {
		t.Errorf("DESIGN.md lacks this table:\n%s", want)
	}
}

// TestConfirmsAgain: a node that did not confirm a job is well if it never heard of that; if it did, it is believed
// once, and not without a supervisor.
func TestConfirmsAgain(t *testing.T) {
	heard := map[cluster.JobID]*jobHere{1: newHere("a", &cluster.Job{ID: 1, Phase: cluster.Starting})}
	runs := map[cluster.JobID]*jobHere{1: newHere("a", &cluster.Job{ID: 1, Phase: cluster.Running})}
	n := &node{}
	for i, c := range []struct {
		unconfirmed, able bool
		old               map[cluster.JobID]*jobHere
		want              bool
	}{
		{false, true, heard, false}, // nothing is said of it
		{true, true, nil, true},
		{true, true, runs, true},
		{false, true, nil, false},
		{true, false, heard, false},
		{true, true, nil, false}, // it was not able
		{false, true, nil, false},
		{true, true, heard, true},
		{false, true, nil, false},
		{true, true, heard, false}, // the second time
		{true, true, nil, false},
	} {
		if got := n.confirmsAgain(c.unconfirmed, c.able, c.old); got != c.want {
			t.Errorf("line %d: %v, want %v", i, got, c.want)
		}
	}
}
