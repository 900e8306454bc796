package server

import (
	"testing"
	"time"
)

// TestFollowers: a server votes once it has kept up for a while, and is dead when it has been silent for too long,
// since it was heard or since the lead began.
func TestFollowers(t *testing.T) {
	begin := time.Now()
	at := func(after time.Duration) time.Time { return begin.Add(after) }
	const dead = time.Minute
	f := newFollowers(dead, begin)

	f.answered("s2", 0, at(0))
	if f.stable("s2", at(stableAfter-1)) || !f.stable("s2", at(stableAfter)) {
		t.Error("a server that keeps up votes before or after its time")
	}
	f.answered("s2", keptUp+1, at(stableAfter))
	f.answered("s2", keptUp, at(stableAfter+1))
	if f.stable("s2", at(2*stableAfter)) || !f.stable("s2", at(2*stableAfter+1)) {
		t.Error("one that fell behind votes as if it had kept up")
	}
	if !f.heardOf("s2", at(stableAfter+2)) || f.heardOf("s2", at(stableAfter+1+askAgain)) || f.heardOf("s3", at(0)) {
		t.Error("who need not be asked again")
	}
	if f.silent("s2", at(stableAfter+1+dead)) || !f.silent("s2", at(stableAfter+2+dead)) {
		t.Error("one that was heard of is dead before or after its time")
	}
	if f.stable("s2", at(dead)) {
		t.Error("one that does not answer keeps up")
	}
	if f.silent("s3", at(dead)) || !f.silent("s3", at(dead+1)) {
		t.Error("one that was never heard of is dead before or after its time")
	}
}

// TestNoteLoss: the site is notified once of a server that is silent for longer than a restart takes, and once when it
// answers again.
func TestNoteLoss(t *testing.T) {
	begin := time.Now()
	f := newFollowers(10*time.Minute, begin)
	for _, c := range []struct {
		name      string
		after     time.Duration
		answers   bool
		was, lost bool
	}{
		{"silent for a moment", lostAfter - 1, false, false, false},
		{"silent since the lead began", lostAfter, false, false, true},
		{"still silent", 2 * lostAfter, false, true, true},
		{"it answers", 3 * lostAfter, true, true, false},
		{"it answers again", 4 * lostAfter, true, false, false},
		{"a short silence", 5*lostAfter - 1, false, false, false},
		{"a long one", 6 * lostAfter, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := begin.Add(c.after)
			if was, lost := f.noteLoss("s2", c.answers, now); was != c.was || lost != c.lost {
				t.Errorf("was %v, lost %v", was, lost)
			}
			if c.answers {
				f.answered("s2", 0, now)
			}
		})
	}
}
