// Package nodes moves nodes from Slurm to muster and back, one phase at a time. A phase says what is done; the journal
// keeps it, so that a move continues wherever it was interrupted. A World carries out the actions.
package nodes

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Phase is how far a node has moved.
type Phase string

// The phases of a move to muster, and of one back.
const (
	Planned  Phase = "planned"
	Draining Phase = "draining"
	Empty    Phase = "empty"
	Stopped  Phase = "stopped"
	Joining  Phase = "joining"
	Joined   Phase = "joined"
	Testing  Phase = "testing"
	Tested   Phase = "tested"
	Moved    Phase = "taking jobs"

	Leaving  Phase = "draining in muster"
	Vacant   Phase = "empty in muster"
	Left     Phase = "stopped in muster"
	Starting Phase = "starting in Slurm"
	Returned Phase = "returned to Slurm"
)

// Move is one node that moves.
type Move struct {
	Node  string    `json:"node"`
	From  string    `json:"from"` // the peer
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`          // of the phase
	At    time.Time `json:"at,omitzero"`    // when the drain begins
	Leave string    `json:"leave"`          // commands; empty: the usual ones
	Join  string    `json:"join"`           //
	Test  uint32    `json:"test,omitempty"` // the job of the burn-in
	Note  string    `json:"note,omitempty"` // why it does not go on
}

// Done reports whether the move is over.
func (m *Move) Done() bool { return slices.Contains([]Phase{Moved, Returned}, m.Phase) }

// Back reports whether the node is on its way to Slurm, or there.
func (m *Move) Back() bool {
	return slices.Contains([]Phase{Leaving, Vacant, Left, Starting, Returned}, m.Phase)
}

// State is what one of the two says of a node.
type State struct {
	Known   bool // it has that node
	Up      bool // its daemon answers
	Drained bool // it starts no jobs there
	Busy    bool // jobs are there, or end
}

// World is all that a move acts on. Each action may be repeated. An error says that it is not known what happened.
type World interface {
	InSlurm(*Move) (State, error)
	DrainSlurm(*Move) error
	ResumeSlurm(*Move) error
	InMuster(*Move) (State, error)
	DrainMuster(*Move) error   // also of a node that muster does not know yet
	ReserveMuster(*Move) error // for root's jobs alone
	ResumeMuster(*Move) error
	ReleaseMuster(*Move) error // ends the reservation
	RunLeave(*Move) error
	RunJoin(*Move) error
	StartTest(*Move) (job uint32, err error)
	TestEnd(*Move) (over, passed bool, err error)
}

// joinTime is how long a daemon may take until its node is up.
const joinTime = 10 * time.Minute

// Step takes the next step of a move, and reports whether the phase is another one then. If not, it has to wait.
func Step(w World, m *Move, now time.Time) (moved bool, err error) {
	next, err := step(w, m, now)
	if err != nil {
		m.Note = err.Error()
		return false, err
	}
	if next == m.Phase {
		return false, nil
	}
	m.Phase, m.Since, m.Note = next, now, ""
	return true, nil
}

// action is something that is done with a node. Methods of World are actions.
type action func(World, *Move) error

// phaseStep leads from a phase to the next one. It returns the same phase if it has to wait.
type phaseStep struct {
	from Phase
	take func(w World, m *Move, now time.Time) (Phase, error)
}

// steps are those of both directions.
func steps() []phaseStep {
	return []phaseStep{
		{Planned, begin},
		{Draining, waitEmpty},
		{Empty, then(Stopped, stayOut, World.DrainMuster, closedInMuster, World.RunLeave)},
		{Stopped, then(Joining, stayOut, World.RunJoin)},
		{Joining, waitJoined},
		{Joined, then(Testing, stayOut, World.ReserveMuster, World.ResumeMuster, startTest)},
		{Testing, waitTest},
		{Tested, then(Moved, stayOut, World.ReleaseMuster)},

		{Leaving, waitVacant},
		{Vacant, then(Left, keepOut, World.RunLeave)},
		{Left, then(Starting, keepOut, World.RunJoin)},
		{Starting, waitStarted},
	}
}

// step takes the step of the move's phase.
func step(w World, m *Move, now time.Time) (Phase, error) {
	for _, s := range steps() {
		if s.from == m.Phase {
			return s.take(w, m, now)
		}
	}
	return m.Phase, nil
}

// then takes actions in order until one fails, and leads to the next phase.
func then(next Phase, actions ...action) func(World, *Move, time.Time) (Phase, error) {
	return func(w World, m *Move, _ time.Time) (Phase, error) {
		for _, act := range actions {
			if err := act(w, m); err != nil {
				return m.Phase, err
			}
		}
		return next, nil
	}
}

// begin drains a node in Slurm, once its time has come.
func begin(w World, m *Move, now time.Time) (Phase, error) {
	if now.Before(m.At) {
		return m.Phase, nil
	}
	return Draining, w.DrainSlurm(m)
}

// waitEmpty waits until Slurm has no jobs on a node that it has drained.
func waitEmpty(w World, m *Move, _ time.Time) (Phase, error) {
	s, err := w.InSlurm(m)
	if err != nil || s.Drained && s.Busy {
		return m.Phase, err
	}
	if !s.Drained { // somebody has resumed it
		return m.Phase, w.DrainSlurm(m)
	}
	return Empty, nil
}

// stayOut makes sure that Slurm starts no jobs on a node, and has none there.
func stayOut(w World, m *Move) error {
	s, err := w.InSlurm(m)
	return checkClosed(m, "Slurm", s, err)
}

// keepOut makes sure that muster starts no jobs on a node, and has none there.
func keepOut(w World, m *Move) error {
	s, err := w.InMuster(m)
	return checkClosed(m, "muster", s, err)
}

// checkClosed refuses a node that is not drained and empty, or of which that is not known.
func checkClosed(m *Move, where string, s State, err error) error {
	if err != nil {
		return err
	}
	if s.Drained && !s.Busy {
		return nil
	}
	return fmt.Errorf("node %s is not drained and empty in %s any more: drain it there (scontrol update nodename=%s "+
		"state=drain reason=moving), wait until its jobs have ended, and run this again", m.Node, where, m.Node)
}

// closedInMuster makes sure that muster starts nothing on a node, also when it registers.
func closedInMuster(w World, m *Move) error {
	s, err := w.InMuster(m)
	if err == nil && !s.Drained {
		err = fmt.Errorf("muster did not drain node %s: scontrol show node %s in muster shows why", m.Node, m.Node)
	}
	return err
}

// waitJoined waits until a node is up in muster, drained.
func waitJoined(w World, m *Move, now time.Time) (Phase, error) {
	s, err := w.InMuster(m)
	if err != nil {
		return m.Phase, err
	}
	if s.Up && !s.Drained {
		why := "it was resumed in muster before its burn-in; it is drained again: run this again"
		return m.Phase, drainFor(w, m, why)
	}
	if s.Up {
		return Joined, nil
	}
	return waitDaemon(m, now, Stopped, "muster-client")
}

// waitDaemon waits for the daemon of a node. After too long, the next run starts it again.
func waitDaemon(m *Move, now time.Time, again Phase, unit string) (Phase, error) {
	if now.Sub(m.Since) <= joinTime {
		return m.Phase, nil
	}
	m.Phase, m.Since = again, now
	return m.Phase, fmt.Errorf("%s of node %s did not answer within %v: see its journal (journalctl -u %s), "+
		"and run this again", unit, m.Node, joinTime, unit)
}

// drainFor drains a node in muster and ends with the reason.
func drainFor(w World, m *Move, why string) error {
	if err := w.DrainMuster(m); err != nil {
		return err
	}
	return errors.New(why)
}

// startTest begins the burn-in. The node is open to root's jobs alone then.
func startTest(w World, m *Move) (err error) {
	m.Test, err = w.StartTest(m)
	return err
}

// waitTest waits for the burn-in. A node that fails is drained.
func waitTest(w World, m *Move, _ time.Time) (Phase, error) {
	over, passed, err := w.TestEnd(m)
	if err != nil || !over {
		return m.Phase, err
	}
	if passed {
		return Tested, nil
	}
	m.Phase = Joined // the next run tests it again
	return m.Phase, drainFor(w, m, fmt.Sprintf("node %s failed its burn-in, job %d: see muster burnin --show %s; "+
		"repair it and run this again, or give it back (muster adopt return %s)", m.Node, m.Test, m.Node, m.Node))
}

// waitVacant waits until muster has no jobs on a node that it has drained.
func waitVacant(w World, m *Move, _ time.Time) (Phase, error) {
	if err := w.DrainMuster(m); err != nil {
		return m.Phase, err
	}
	s, err := w.InMuster(m)
	if err != nil || !s.Drained || s.Busy {
		return m.Phase, err
	}
	return Vacant, w.ReleaseMuster(m)
}

// waitStarted waits until Slurm's daemon answers, and has Slurm start jobs there.
func waitStarted(w World, m *Move, now time.Time) (Phase, error) {
	s, err := w.InSlurm(m)
	if err != nil {
		return m.Phase, err
	}
	if s.Up {
		return then(Returned, keepOut, World.ResumeSlurm)(w, m, now)
	}
	return waitDaemon(m, now, Left, "slurmd")
}
