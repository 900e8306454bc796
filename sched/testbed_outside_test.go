package sched_test

import (
	"testing"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/schedtest"
)

// Short names for parts of package schedtest.
var (
	epoch             = schedtest.Epoch
	strictOrderConfig = schedtest.StrictOrder
	nodeName          = schedtest.NodeName
	node              = schedtest.Node
	machine           = schedtest.Machine
	numbered          = schedtest.Numbered
	names             = schedtest.Names
	ask               = schedtest.Ask
	twoLeaves         = schedtest.TwoLeaves
)

// testbed is a cluster whose jobs are scheduled here.
type testbed struct{ *schedtest.Testbed }

// of is a testbed with this package's scheduler.
func of(b *schedtest.Testbed) *testbed {
	b.Schedule = sched.Schedule
	return &testbed{b}
}

func newTestbed(t testing.TB, nodes int, parts ...cluster.Partition) *testbed {
	return of(schedtest.New(t, nodes, parts...))
}

// namedBed is n1 … with as many nodes as there are inventories, under a configuration.
func namedBed(t *testing.T, change func(*cluster.Config), nodes ...cluster.Inventory) *testbed {
	return of(schedtest.Named(t, change, nodes...))
}

func eight(cfg func(*cluster.Config), t *testing.T) *testbed { return of(schedtest.Eight(t, cfg)) }
