package hooks

import (
	"slices"
	"testing"

	"dev.muster/cluster"
)

// TestLanesOfUsers: calls of one user, who may let each take a quarter of an hour, hold up neither the site's programs
// nor what others are told.
func TestLanesOfUsers(t *testing.T) {
	const bob, alice = 1000, 1001
	var hooks []*cluster.Hook
	add := func(kind cluster.HookKind, uid uint32, count int) {
		for range count {
			e := &cluster.Hook{ID: uint64(len(hooks) + 1), Kind: kind,
				Job: &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, UID: uid}}}
			if kind == cluster.HookTrigger {
				e.Trigger, e.Job = &cluster.TriggerRun{UID: uid}, nil
			}
			hooks = append(hooks, e)
		}
	}
	add(cluster.HookCall, bob, 10*atOnce)
	add(cluster.HookTrigger, bob, atOnce)
	add(cluster.HookProlog, bob, 1)
	add(cluster.HookProlog, alice, 1)
	add(cluster.HookMail, alice, 1)
	add(cluster.HookTrigger, 0, 2*atOnceFor)
	begun := map[cluster.HookKind]map[uint32]int{}
	for i := range lanes {
		busy := underway{}
		for range 2 { // the second time with those under way
			for _, e := range lanes[i].next(slices.Values(hooks), busy) {
				busy[e.ID] = work{user: userOf(e)}
				if begun[e.Kind] == nil {
					begun[e.Kind] = map[uint32]int{}
				}
				begun[e.Kind][userOf(e)]++
			}
		}
	}
	for _, c := range []struct {
		kind cluster.HookKind
		uid  uint32
		want int
	}{
		{cluster.HookCall, bob, atOnceFor}, {cluster.HookTrigger, bob, 0}, {cluster.HookProlog, bob, 1},
		{cluster.HookProlog, alice, 1}, {cluster.HookMail, alice, 1}, {cluster.HookTrigger, 0, 2 * atOnceFor},
	} {
		if got := begun[c.kind][c.uid]; got != c.want {
			t.Errorf("%d hooks of kind %s of user %d are begun, want %d", got, c.kind, c.uid, c.want)
		}
	}
}
