package cluster

import "testing"

// TestOutcomes wants each outcome to have all its words, and no two the same.
func TestOutcomes(t *testing.T) {
	seen := map[string]Outcome{}
	for _, o := range Outcomes() {
		t.Run(o.String(), func(t *testing.T) {
			for _, word := range []string{o.String(), o.State(), o.Short(), o.Phrase(false), o.Means()} {
				if word == "" {
					t.Errorf("outcome %d lacks a word: %+v", o, o.row())
				}
				if other, taken := seen[word]; taken {
					t.Errorf("%q is also of outcome %d", word, other)
				}
				seen[word] = o
			}
			if o.Phrase(true) == "" {
				t.Errorf("of several jobs it is said %q", o.Phrase(true))
			}
			if o.Lost() && o.OwnFailure() {
				t.Error("it is the job's fault and the platform's")
			}
		})
	}
}

// TestOutcomeOfNewer: a newer version's outcome is no panic.
func TestOutcomeOfNewer(t *testing.T) {
	for _, o := range []Outcome{outcomes, 255} {
		if o.String() != "" || o.State() != "" || o.Phrase(true) != "" || o.Failure() {
			t.Errorf("outcome %d has words: %+v", o, o.row())
		}
	}
	if !Outcome(255).Gentle() {
		t.Error("processes of a job that ended in an unknown way are not asked to end")
	}
}

// TestNumberedOutcome: each outcome is found by its number in Slurm's database, and by that number beside the numbers
// of living jobs where it is a flag; other numbers are none.
func TestNumberedOutcome(t *testing.T) {
	for _, o := range Outcomes() {
		t.Run(o.String(), func(t *testing.T) {
			n := o.row().number
			if got, ok := NumberedOutcome(n); !ok || got != o {
				t.Errorf("%d is %v, %v", n, got, ok)
			}
			if n < 1<<8 {
				return
			}
			if got, ok := NumberedOutcome(n | 1); !ok || got != o {
				t.Errorf("%d is %v, %v", n|1, got, ok)
			}
		})
	}
	for _, n := range []uint32{0, 1, 2, 12, 1 << 15, 1 << 31} {
		if got, ok := NumberedOutcome(n); ok {
			t.Errorf("%d is %v", n, got)
		}
	}
}
