package server

import (
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestAllowGroups: one partition that lets the user in is enough, with EnforcePartLimits=ALL all must.
func TestAllowGroups(t *testing.T) {
	for _, c := range []struct {
		enforce string
		parts   []string
		refused bool
	}{
		{"NO", []string{"ours"}, true}, {"NO", []string{"ours", "main"}, false},
		{"ANY", []string{"main", "ours"}, false},
		{"ALL", []string{"main", "ours"}, true}, {"ALL", []string{"ours", "main"}, true},
		{"ALL", []string{"main"}, false},
	} {
		cfg := cluster.DefaultConfig()
		cfg.EnforcePartLimits = c.enforce
		cfg.Partitions = append(cfg.Partitions, cluster.Partition{
			Name: "ours", All: true, State: cluster.PartitionUp,
			PartitionAccess: cluster.PartitionAccess{AllowGroups: []string{"no-such-group"}},
		})
		st := cluster.NewState()
		if out := st.Apply(cluster.Entry{At: time.Unix(1e9, 0), By: cluster.Identity{System: true}, Cmd: &cluster.Configure{Config: &cfg}}); out.Err != nil {
			t.Fatal(out.Err)
		}
		s := &Server{}
		s.ahead.Store(st.Snapshot())
		spec := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 1000, GID: 1000, User: "u", Partitions: c.parts}
		if err := s.admitGroups(api.Caller{Identity: cluster.Identity{UID: 1000}}, spec); (err != nil) != c.refused {
			t.Errorf("%s, %s: %v", c.enforce, c.parts, err)
		}
		if err := s.admitGroups(api.Caller{}, spec); err != nil {
			t.Errorf("%s, %s by root: %v", c.enforce, c.parts, err)
		}
	}
}
