package conf

import (
	"fmt"
	"strings"
	"testing"
)

// TestNodeStates: NodeName and DownNodes lines say in which state nodes begin, and why; what is no state is told.
func TestNodeStates(t *testing.T) {
	cfg, notes, err := Load(putDir(t, map[string]string{"slurm.conf": "DownNodes=n[1-2],x State=DRAIN Reason=\"new fans\"\nDownNodes=n3\nDownNodes=n4 State=FUNNY Color=red\n" +
		"NodeName=n[1-4] State=UNKNOWN\nNodeName=n5 State=FAIL Reason=old\nNodeName=n6 State=CLOUD Reason=none\nNodeName=n7 State=nice\n"}))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, n := range cfg.Declared {
		got += fmt.Sprintf("%s %s %q %s,", n.Name, stateWord(&n), n.Reason, n.ReasonBy)
	}
	if want := `n1 DRAIN "new fans" root,n2 DRAIN "new fans" root,n3 DOWN "" root,n4  "" ,n5 FAIL "old" root,n6 CLOUD "" ,n7  "" ,`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for i, want := range []string{"slurm.conf:1: DownNodes: there is no NodeName line for x; ignored",
		"slurm.conf:3: DownNodes: color is neither State nor Reason; ignored",
		"slurm.conf:3: State=FUNNY is not known: want UNKNOWN, CLOUD, FUTURE, DOWN, DRAIN or FAIL; ignored",
		"slurm.conf:7: State=nice is not known"} {
		if len(notes) != 4 || !strings.Contains(notes[i], want) {
			t.Errorf("%q, want %q", notes, want)
		}
	}
}
