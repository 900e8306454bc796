package machine

import (
	"reflect"
	"testing"
	"time"
)

// TestHollowLoad: the load of hollow GPUs depends on nodes, GPUs and time alone; some of jobs' GPUs do nothing, and
// none of the others does anything.
func TestHollowLoad(t *testing.T) {
	nodes, err := ParseHollow("8x16c64g8gpu:h100")
	if err != nil {
		t.Fatal(err)
	}
	NameGPUs(nodes)
	at := time.Unix(1_700_000_000, 0)
	uuids, idle := map[string]bool{}, 0
	for i := range nodes {
		for k := range nodes[i].Inventory.GPUs {
			g := &nodes[i].Inventory.GPUs[k]
			uuids[g.UUID] = true
			l := hollowLoad(nodes[i].Name, g, at, true)
			if !reflect.DeepEqual(l, hollowLoad(nodes[i].Name, g, at, true)) {
				t.Errorf("%s: another load at the same time", g.UUID)
			}
			later := hollowLoad(nodes[i].Name, g, at.Add(time.Minute), true)
			if l.Util < 0 || l.Util > 100 || l.Util > 0 && l.Util < 50 || later.EnergyMJ <= l.EnergyMJ {
				t.Errorf("%s: %+v, a minute later %+v", g.UUID, l, later)
			}
			if l.Util == 0 {
				idle++
			}
			free := hollowLoad(nodes[i].Name, g, at, false)
			if free.Util != 0 || free.MemUsedMB != 0 || free.PowerMW != 1000*restWatts {
				t.Errorf("%s without a job: %+v", g.UUID, free)
			}
		}
	}
	if len(uuids) != 64 || idle < 4 || idle > 20 {
		t.Errorf("%d UUIDs, %d idle GPUs", len(uuids), idle)
	}
}
