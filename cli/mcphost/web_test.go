package mcphost

import (
	"testing"

	"dev.muster/agent/eventlog"
	"dev.muster/slurm/front"
)

// TestQuestionsAtOnce: a user asks one question in SQL at a time, and all users together a few.
func TestQuestionsAtOnce(t *testing.T) {
	t.Parallel()
	x := &web{asking: eventlog.Followers[uint32]{All: maxQuestions, Each: 1}}
	first, err := x.begin(&front.Sys{UID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.begin(&front.Sys{UID: 1}); err == nil {
		t.Error("a user asks twice at a time")
	}
	for uid := range uint32(maxQuestions - 1) {
		if _, err := x.begin(&front.Sys{UID: 2 + uid}); err != nil {
			t.Errorf("user %d: %v", 2+uid, err)
		}
	}
	if _, err := x.begin(&front.Sys{UID: 99}); err == nil {
		t.Errorf("more than %d questions are answered at a time", maxQuestions)
	}
	first()
	if _, err := x.begin(&front.Sys{UID: 99}); err != nil {
		t.Errorf("after one was answered: %v", err)
	}
}
