package nodetest

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestBurninPartition: the test of a node is in a partition where it can run, with a time limit that is allowed there.
func TestBurninPartition(t *testing.T) {
	part := func(name string, change func(*cluster.Partition)) cluster.Partition {
		p := cluster.Partition{Name: name, All: true, State: cluster.PartitionUp}
		if change != nil {
			change(&p)
		}
		return p
	}
	short := part("short", func(p *cluster.Partition) { p.MaxTime, p.Default = 30*time.Minute, true })
	few := part("few", func(p *cluster.Partition) { p.MaxCPUsPerNode, p.Default = 4, true })
	down := part("down", func(p *cluster.Partition) { p.State, p.Default = cluster.PartitionDown, true })
	other := part("other", func(p *cluster.Partition) { p.All, p.Nodes = false, []cluster.NodeName{"n2"} })
	main := part("main", func(p *cluster.Partition) { p.Default = true })
	long := part("long", nil)
	for name, c := range map[string]struct {
		parts []cluster.Partition
		want  string
		limit time.Duration
	}{
		"the default one":         {[]cluster.Partition{long, main}, "main", burninLimit},
		"one that is long enough": {[]cluster.Partition{short, long}, "long", burninLimit},
		"one with all CPUs":       {[]cluster.Partition{few, long}, "long", burninLimit},
		"only a short one":        {[]cluster.Partition{short}, "short", 30 * time.Minute},
		"one that is up":          {[]cluster.Partition{down, other, short}, "short", 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := partitionOf(c.parts, "n1")
			if p == nil || p.Name != c.want || burninTime(p) != c.limit {
				t.Errorf("%+v, want %s for %v", p, c.want, c.limit)
			}
		})
	}
	if p := partitionOf([]cluster.Partition{down, other}, "n1"); p != nil {
		t.Errorf("a node in no partition that is up: %s", p.Name)
	}
}
