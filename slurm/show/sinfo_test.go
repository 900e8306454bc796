package show

import (
	"fmt"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestStatesOfNodes: states with commas between them are alternatives, with & all of them must hold.
func TestStatesOfNodes(t *testing.T) {
	idle := &api.NodeInfo{Node: cluster.Node{Up: true}}
	drained := &api.NodeInfo{Node: cluster.Node{Up: true, Drain: true}}
	for states, want := range map[string]string{
		"idle,drain": "true true",
		"idle&drain": "false true",
		"idle":       "true true",
		"drain":      "false true",
		"down&drain": "false false",
	} {
		var o infoOptions
		if err := setInfoStates(&o, states); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(o.keeps(idle), o.keeps(drained)); got != want {
			t.Errorf("%s: of an idle and a drained node %s, want %s", states, got, want)
		}
	}
}
