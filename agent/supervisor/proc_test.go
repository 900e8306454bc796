package supervisor

import (
	"testing"

	"dev.muster/agent/step"
)

// TestMarkerOwner: two supervisors on one machine mark steps of the same number differently, and a
// supervisor that is started again marks them as before.
func TestMarkerOwner(t *testing.T) {
	id := step.ID{Job: 7, Attempt: 1, Step: 0, Node: "n1"}
	a, b := t.TempDir(), t.TempDir()
	before := marker(id, owner(a))
	if before == marker(id, owner(b)) {
		t.Error("the processes of two supervisors cannot be told apart")
	}
	if after := marker(id, owner(a)); after != before {
		t.Error("a restarted supervisor does not know its processes")
	}
}
