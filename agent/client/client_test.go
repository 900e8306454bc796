package client

import (
	"log/slog"
	"testing"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const self = cluster.NodeName("n1")

// newClient is a client of one node, if no others are named, that has not begun to work.
func newClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	cfg.Dir = t.TempDir()
	cfg.Dialect = plainDialect{}
	if cfg.Nodes == nil {
		cfg.Nodes = []machine.Node{{Name: self}}
	}
	c, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readyClient is a client of one node that has heard what to do: it has one job.
func readyClient(t testing.TB, cfg Config, h *jobHere) *Client {
	t.Helper()
	c := newClient(t, cfg)
	close(c.known)
	close(c.told)
	c.nodes[self].jobs[h.job.ID] = h
	return c
}

// here is a job on this node, with nodes as its allocation.
func here(phase cluster.Phase, nodes ...cluster.NodeName) *jobHere {
	j := &cluster.Job{ID: 1, Attempt: 1, Phase: phase, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}},
		Alloc: &cluster.Alloc{}, Started: now.Add(-time.Minute),
		EndingAt: now, Limit: cluster.Unlimited}
	for _, n := range nodes {
		j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n})
	}
	return newHere(self, j)
}

func batchStep(state step.State) map[step.ID]*step.Status {
	id := step.ID{Job: 1, Attempt: 1, Step: cluster.BatchStep, Node: self}
	return map[step.ID]*step.Status{id: {ID: id, State: state}}
}
