package server

import (
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/cluster"
)

// TestClientConfig: a client gets the settings that it reads, and of what is declared of nodes only its own.
func TestClientConfig(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	cfg := *state.Snapshot().Config()
	cfg.Keys = map[string]string{"prologflags": "X11", "mpiparams": "ports=12000-12999"}
	cfg.Declared = []cluster.Node{{Name: "n1"}, {Name: "n2"}}
	out := state.Apply(cluster.Entry{Index: 100, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg}})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	got := clientConfig(state.Snapshot(), []cluster.NodeName{"n2"})
	if got.Keys["prologflags"] != "X11" || got.Keys["mpiparams"] == "" {
		t.Errorf("keys %v", got.Keys)
	}
	if len(got.Declared) != 1 || got.Declared[0].Name != "n2" {
		t.Errorf("declared %v", got.Declared)
	}
}
