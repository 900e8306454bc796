package history

import (
	"context"
	"testing"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
)

// spanHistory has one event of a node, and reservations of a user and of a group.
type spanHistory struct{ heldHistory }

func (spanHistory) Whole() bool { return true }

func (spanHistory) Flush(context.Context) error { return nil }

func (spanHistory) Usage(context.Context, cluster.UsageQuery) ([]cluster.UsageRow, error) {
	return nil, nil
}

func (spanHistory) NodeSpans(context.Context, cluster.Span) ([]cluster.NodeSpan, error) {
	return []cluster.NodeSpan{{Node: "n00001", Reason: "broken"}}, nil
}

func (spanHistory) Reservations(context.Context, cluster.Span) ([]cluster.ResvSpan, error) {
	return []cluster.ResvSpan{
		{Name: "of ada", Users: []string{"ada"}},
		{Name: "of a group"},
		{Name: "of all but bob", Users: []string{"bob"}, UsersNot: true},
	}, nil
}

// TestPrivateSpans: PrivateData hides what happened to nodes, and reservations of others, in history as well.
func TestPrivateSpans(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	do := agenttest.Doing(t, state, 100)
	k := New(spanHistory{heldHistory{reached: 1 << 40}})
	k.Known = func() uint64 { return 1 }
	k.Applied = func(context.Context, uint64) error { return nil }
	k.After = func(context.Context, uint64) (*cluster.Snapshot, error) { return state.Snapshot(), nil }
	who := func(uid uint32, user string) api.Caller {
		return api.Caller{Identity: cluster.Identity{UID: uid, User: user}}
	}
	for _, c := range []struct {
		private string
		who     api.Caller
		events  bool
		resvs   int
	}{
		{"", who(1001, "bob"), true, 3},
		{"events,reservations", who(1001, "bob"), false, 0},
		{"nodes", who(1001, "bob"), false, 3},
		{"events,reservations", who(1000, "ada"), false, 2},
		{"events,reservations", who(0, "root"), true, 3},
	} {
		cfg := *state.Config()
		cfg.Keys = map[string]string{"privatedata": c.private}
		do(&cluster.Configure{Config: &cfg})
		q := api.UsageRequest{Reservations: true}
		q.Time = cluster.Span{From: 1, To: 1 << 30}
		got, err := k.ShowUsage(t.Context(), c.who, q)
		if err != nil || len(got.Reservations) != c.resvs {
			t.Errorf("%q, %s: %d reservations, %v", c.private, c.who.User, len(got.Reservations), err)
		}
		q.NodeSpans = true
		got, err = k.ShowUsage(t.Context(), c.who, q)
		if (err == nil) != c.events || len(got.Nodes) > 0 != c.events {
			t.Errorf("%q, %s: %d events, %v", c.private, c.who.User, len(got.Nodes), err)
		}
	}
}
