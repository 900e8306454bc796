package client

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestTextsOfSteps: the live steps of a job take so much memory, and those of others as much again.
func TestTextsOfSteps(t *testing.T) {
	s := &steps{tables: newTables(&Config{}, nil)}
	program := strings.Repeat("x", 1<<20)
	spec := &cluster.StepSpec{MultiProg: program}
	for number := range maxTextsHere >> 20 {
		if err := hasRoom(s.live, 7, spec); err != nil {
			t.Fatalf("step %d: %v", number, err)
		}
		s.live[cluster.StepID{Job: 7, Step: number}] = &liveStep{spec: *spec}
	}
	if err := hasRoom(s.live, 7, spec); err == nil || err.Kind != cluster.ErrBusy {
		t.Errorf("one more: %v", err)
	}
	if err := hasRoom(s.live, 8, spec); err != nil {
		t.Errorf("of another job: %v", err)
	}
}
