package faults

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var whole = flag.Bool("llama3", false, "simulate all of Llama 3's training; make drill does")

// small is a plan of a job that a test can afford.
func small() Plan {
	p := Usual()
	p.Nodes, p.Reserve, p.Spares, p.Repair = 48, 12, 6, 12*time.Hour
	return p
}

// TestAddsUp: all of the time is useful or lost for a reason, and spares lose less than a requeue.
func TestAddsUp(t *testing.T) {
	p := small()
	var useful []time.Duration
	for _, way := range Ways(&p) {
		t.Run(way.Name, func(t *testing.T) {
			s, err := Run(p, Llama3, way)
			if err != nil {
				t.Fatal(err)
			}
			parts := s.Useful + s.Saving + s.Redone + s.Unseen + s.Queued + s.Starting
			if parts != s.All {
				t.Errorf("%v of %v are known: %+v", parts, s.All, s)
			}
			if s.Faults != s.InPlace+s.Requeues {
				t.Errorf("%d faults, %d in place, %d requeues", s.Faults, s.InPlace, s.Requeues)
			}
			if spares := way.Resilience != nil && way.Resilience.Spares > 0; spares != (s.Swaps > 0) {
				t.Errorf("%d nodes were replaced", s.Swaps)
			}
			useful = append(useful, s.Useful)
			t.Logf("%.2f%% effective: %+v", 100*s.Effective(), s)
		})
	}
	if !(useful[0] < useful[1] && useful[1] < useful[2]) {
		t.Errorf("useful: %v", useful)
	}
}

// TestSame: a plan gives the same sum each time.
func TestSame(t *testing.T) {
	p := small()
	way := Ways(&p)[2]
	a, _ := Run(p, Llama3, way)
	if b, err := Run(p, Llama3, way); err != nil || a != b {
		t.Errorf("%v\n%+v\n%+v", err, a, b)
	}
}

// TestLlama3: the job of Llama 3's training is effective for at least 97% of its time with spares.
func TestLlama3(t *testing.T) {
	if !*whole {
		t.Skip("takes minutes: make drill")
	}
	p := Usual()
	for _, way := range Ways(&p) {
		s, err := Run(p, Llama3, way)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.2f%% effective: %+v", way.Name, 100*s.Effective(), s)
		if way.Resilience != nil && way.Resilience.Spares > 0 && s.Effective() < 0.97 {
			t.Errorf("%.2f%%, want 97%% at least", 100*s.Effective())
		}
	}
}

// TestTable: the table has all 419 interruptions.
func TestTable(t *testing.T) {
	n := 0
	for _, c := range Llama3 {
		n += c.Count
	}
	if n != 419 {
		t.Errorf("%d interruptions, want 419", n)
	}
}

// TestRead: a table of one's own is read, and what is wrong with it is named.
func TestRead(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"cause,count,effect\na,3,gpu\nb,4,crash\n", ""},
		{"", "want cause,count,effect"},
		{"cause,count,effect\na,x,gpu\n", `line 2: count "x"`},
		{"cause,count,effect\na,1,none\n", `line 2: effect "none"`},
		{"cause,count,effect\n", "0 faults"},
		{"cause,count,effect\na,1\n", "wrong number of fields"},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestSet: what a plan assumes can be changed, within bounds.
func TestSet(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"checkpoint=10m, spares=8,seed=7", ""},
		{"checkpoint=0s", "checkpoint=0s: want 1s at least"},
		{"spares=65", "spares=65: want 1 to the 64 nodes of reserve"},
		{"nodes=30000", "30000 nodes"},
		{"repair=x", "repair=x: want a number, or a time"},
		{"moon=1", `"moon" is not known: want NAME=VALUE,... of nodes,`},
	} {
		t.Run(c.text, func(t *testing.T) {
			p := Usual()
			err := p.Set(c.text)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
