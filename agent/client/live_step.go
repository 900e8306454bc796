package client

import (
	"context"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// liveStep is a step managed here: this client's node is the first of its job.
type liveStep struct {
	record  cluster.Step
	spec    cluster.StepSpec
	ids     []step.ID
	lead    cluster.NodeName // the job's first node, of this client
	key     string           // of the request that made it
	told    bool             // its start was reported
	endedAt time.Time        // all nodes are over
	killAt  time.Time        // TERM was sent; then what is left gets KILL
	goneAt  time.Time        // its srun has died; it is killed then, unless the script has ended, too
	killed  bool             // KILL or TERM was sent to all of it: nothing of it begins any more
	endedBy *uint32          // the user who cancelled it
	limited bool             // its time limit has ended it
	takers  map[*taker]bool  // of its output
	drained map[cluster.NodeName]bool
}

// taker is a connection that takes the output of a node's part of a step.
type taker struct {
	node cluster.NodeName
	cut  context.CancelFunc
}

// note is what comes back from the supervisor after a restart of this daemon.
type note struct {
	Record cluster.Step     `json:"record"`
	Spec   cluster.StepSpec `json:"spec"`
	IDs    []step.ID        `json:"ids"`
	Key    string           `json:"key,omitempty"`
	Lead   cluster.NodeName `json:"lead,omitempty"`
}

// memo is what each part carries, so that the first node's client knows its step after a restart.
func (ls *liveStep) memo() ([]byte, error) {
	return wire.Marshal(note{Record: ls.record, Spec: withoutEnv(ls.spec), IDs: ls.ids, Key: ls.key, Lead: ls.lead})
}

func withoutEnv(s cluster.StepSpec) cluster.StepSpec {
	s.Env = nil
	return s
}

// ranks are the ranks of each node.
func (ls *liveStep) ranks() [][]int {
	counts := make([]int, len(ls.record.Shares))
	for i, sh := range ls.record.Shares {
		counts[i] = sh.Tasks
	}
	ranks := cluster.RankLayout(counts, &ls.spec)
	if w := ls.spec.World; w != nil {
		for _, list := range ranks {
			for i := range list {
				list[i] += w.Rank
			}
		}
	}
	return ranks
}

// tasks is how many tasks the whole step has.
func (ls *liveStep) tasks() int {
	if w := ls.spec.World; w != nil {
		return w.Tasks
	}
	return ls.record.Tasks
}

// alone reports whether the step is nothing but files that are put on nodes.
func (ls *liveStep) alone() bool { return ls.record.ID.IsCast() }

// competes reports whether it is a step of the job that may hold what others want.
func (ls *liveStep) competes(job cluster.JobID) bool { return ls.record.ID.Job == job && !ls.alone() }

// take notes that somebody takes the output of a part, until ctx ends. Called with mu held.
func (ls *liveStep) take(ctx context.Context, i int) (context.Context, *taker) {
	ctx, cut := context.WithCancel(ctx)
	t := &taker{ls.ids[i].Node, cut}
	if ls.takers == nil {
		ls.takers = map[*taker]bool{}
	}
	ls.takers[t] = true
	return ctx, t
}

// leave ends that.
func (ls *liveStep) leave(t *taker) {
	t.cut()
	delete(ls.takers, t)
}

// cutOff ends the connections to a node that is lost: it may be silent, and they would wait for it.
func (ls *liveStep) cutOff(n cluster.NodeName) {
	for t := range ls.takers {
		if t.node == n {
			t.cut()
		}
	}
}
