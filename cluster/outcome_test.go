package cluster

import "testing"

// TestOutcomes wants each outcome to have all its words, and no two the same.
func TestOutcomes(t *testing.T) {
	seen := map[string]Outcome{}
	for _, o := range Outcomes() {
		t.Run(o.String(), func(t *testing.T) {
			for _, word := range []string{o.String(), o.State(), o.Phrase(false)} {
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
