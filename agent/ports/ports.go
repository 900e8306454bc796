// Package ports says which network ports of its nodes a step has for itself (MpiParams=ports=FIRST-LAST). It has the
// same ones on all of them. The client that leads the step chooses; the client of each node holds them for the node's
// part of it, or refuses, since a step of another job has some of them there.
package ports

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// Table is which ports parts of steps hold. It gives no port back: a part holds its ports for as long as it lives.
type Table struct {
	lives func(step.ID) bool
	last  int // the place in the range of the port that was chosen last
	held  map[cluster.NodeName]map[step.ID]cluster.IDSet
}

// New is a table of no ports. lives reports whether a part is still there: ready to begin, or running.
func New(lives func(step.ID) bool) *Table {
	return &Table{lives: lives, held: map[cluster.NodeName]map[step.ID]cluster.IDSet{}}
}

// Wanted is how many ports of each node a step gets: as many as it asks for, else one more than the most tasks that
// it has on a node.
func Wanted(r cluster.PortRange, s *cluster.StepSpec, shares []cluster.Share) int {
	switch {
	case s.Interactive:
		return 0
	case s.Ports != nil:
		return *s.Ports
	case r.Len() == 0:
		return 0
	}
	most := slices.MaxFunc(shares, func(a, b cluster.Share) int { return cmp.Compare(a.Tasks, b.Tasks) })
	return most.Tasks + 1
}

// Choose finds n ports of a range that nobody is known to hold on any of a step's nodes, and none of avoid. They go
// around the range, as Slurm's do: a port that has just become free may still be known to those who are late.
func (t *Table) Choose(r cluster.PortRange, n int, shares []cluster.Share, avoid cluster.IDSet) (
	cluster.IDSet, *cluster.Error) {
	if n == 0 {
		return cluster.IDSet{}, nil
	}
	if n > r.Len() {
		return cluster.IDSet{}, cluster.Errorf(cluster.Invalid, cluster.ErrPortsMany,
			"%d ports of each node are asked for, steps have %d (MpiParams in slurm.conf): "+
				"--resv-ports=N (SLURM_RESV_PORTS) asks for N, 0 for none", n, r.Len())
	}
	if !avoid.Empty() { // another client chooses at the same time: not in step with it
		t.last = rand.IntN(r.Len())
	}
	busy := avoid
	for _, sh := range shares {
		busy = busy.Union(t.heldOn(sh.Node, step.ID{}))
	}
	var got []int
	for k := range r.Len() {
		at := (t.last + 1 + k) % r.Len()
		if !busy.Has(r.First + at) {
			got = append(got, r.First+at)
		}
		if len(got) == n {
			t.last = at
			return cluster.NewIDSet(got...), nil
		}
	}
	return cluster.IDSet{}, cluster.Errorf(cluster.Conflict, cluster.ErrPortsBusy,
		"%d ports are asked for, %d of %d are free on all nodes of the step", n, len(got), r.Len())
}

// HoldAll has all parts of a step hold its ports.
func (t *Table) HoldAll(s *cluster.Step) *cluster.Error {
	nodes := make([]cluster.NodeName, len(s.Shares))
	for i, sh := range s.Shares {
		nodes[i] = sh.Node
	}
	return t.Hold(s, nodes)
}

// Hold has the parts of a step on nodes hold its ports. If others hold some of these on one of them, none does, and
// the error tells what Taken reads.
func (t *Table) Hold(s *cluster.Step, nodes []cluster.NodeName) *cluster.Error {
	ports, err := cluster.ParseIDSet(s.Ports)
	if err != nil {
		return cluster.Errorf(cluster.Invalid, "", "ports %q of step %d.%d: %v", s.Ports, s.ID.Job, s.ID.Step, err)
	}
	if ports.Empty() {
		return nil
	}
	for _, n := range nodes {
		others := t.heldOn(n, partOf(s, n))
		if both := others.Intersect(ports); !both.Empty() {
			refused := cluster.Errorf(cluster.Conflict, cluster.ErrPortsBusy, "ports %s of node %s are in use", both, n)
			refused.Hint = others.String()
			return refused
		}
	}
	for _, n := range nodes {
		if t.held[n] == nil {
			t.held[n] = map[step.ID]cluster.IDSet{}
		}
		t.held[n][partOf(s, n)] = ports
	}
	return nil
}

// partOf is the name of a step's part on a node.
func partOf(s *cluster.Step, n cluster.NodeName) step.ID {
	return step.ID{Job: s.ID.Job, Attempt: s.Attempt, Step: s.ID.Step, Node: n}
}

// heldOn are the ports that parts other than one hold on a node. It forgets those that are gone.
func (t *Table) heldOn(n cluster.NodeName, but step.ID) (out cluster.IDSet) {
	parts := t.held[n]
	maps.DeleteFunc(parts, func(id step.ID, _ cluster.IDSet) bool { return !t.lives(id) })
	for id, ports := range parts {
		if id != but {
			out = out.Union(ports)
		}
	}
	return out
}

// Taken are the ports that others hold where a node has refused a step's, none if that is not what the error says.
func Taken(err error) cluster.IDSet {
	var e *cluster.Error
	if !errors.As(err, &e) || e.Kind != cluster.ErrPortsBusy {
		return cluster.IDSet{}
	}
	taken, _ := cluster.ParseIDSet(e.Hint) // what can't be read tells nothing
	return taken
}

// pace is how long who waits for ports does, before it looks again whether those of other clients have become free.
const pace = time.Second

// Again tells when to look again after an error, if ports are what is missing: nobody says that they are free.
func Again(err *cluster.Error) <-chan time.Time {
	if err.Kind != cluster.ErrPortsBusy {
		return nil
	}
	return time.After(pace + rand.N(pace/4))
}
