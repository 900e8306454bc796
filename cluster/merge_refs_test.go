package cluster

import (
	"testing"
	"time"
)

// TestMergeRefs: many references to tasks of one array are one, and few stay as they are.
func TestMergeRefs(t *testing.T) {
	few := []Ref{{Job: 1, Tasks: NewIDSet(1)}, {Job: 1, Tasks: NewIDSet(2)}}
	if got := MergeRefs(few); len(got) != 2 {
		t.Errorf("of two references %d are left", len(got))
	}
	many := []Ref{{Job: 9}, {Job: 2, Tasks: NewIDSet(4_000_000)}, {Job: 3, Part: 1}, {Job: 3, Part: 2}}
	for i := range 100_000 {
		many = append(many, Ref{Job: 2, Tasks: NewIDSet(i % 50)}, Ref{Job: 9, Tasks: NewIDSet(7)})
	}
	began := time.Now()
	got := MergeRefs(many)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(got) != 4 || got[0].Job != 9 || !got[0].Tasks.Empty() || got[1].Tasks.Len() != 51 || got[3].Part != 2 {
		t.Errorf("%d references: %+v %+v", len(got), got[0], got[1].Tasks.Len())
	}
}
