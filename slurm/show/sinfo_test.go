package show

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestStatesOfNodes: states with commas between them are alternatives, with & all of them must hold.
func TestStatesOfNodes(t *testing.T) {
	idle := &api.NodeInfo{Node: cluster.Node{Up: true}}
	drained := &api.NodeInfo{Node: cluster.Node{Up: true, Drain: true}}
	for states, want := range map[string]string{
		"idle,drain": "true true",
		"idle&drain": "false true", "idle+drain": "false true",
		"~drain": "true false", "idle&~drain": "true false", "~idle": "false false",
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

// TestReservationOfNodes: sinfo names the reservation that has a node now, not one that begins later.
func TestReservationOfNodes(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	list := []cluster.Reservation{
		{Name: "maint", Start: now.Add(-time.Hour), End: now.Add(time.Hour), Nodes: []cluster.NodeName{"n1", "n2"}},
		{Name: "later", Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Nodes: []cluster.NodeName{"n3"}},
	}
	if got := fmt.Sprint(namesByNode(list, now)); got != "map[n1:maint n2:maint]" {
		t.Errorf("reservations of nodes: %s", got)
	}
	v := &View{}
	if got := v.reservationOf(&api.NodeInfo{}); got != "" {
		t.Errorf("a node without a reservation: %q", got)
	}
}
