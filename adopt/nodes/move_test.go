package nodes

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// errKilled ends a run in the middle of an action.
var errKilled = errors.New("killed")

// fake is a node in both systems. Each action counts; the one numbered kill takes effect, or not, and ends the run.
type fake struct {
	t             *testing.T
	slurm, muster State
	reserved      bool
	step, kill    int
	lost          bool // the action that is killed does not take effect
	unsure        string
	fails         bool // the burn-in
	log           []string
}

// act takes an action, and then checks that both never start jobs there.
func (f *fake) act(name string, do func()) error {
	f.step++
	dies := f.step == f.kill
	if !(dies && f.lost) {
		do()
		f.log = append(f.log, name)
	}
	takesSlurm := f.slurm.Up && !f.slurm.Drained || f.slurm.Busy
	takesMuster := f.muster.Up && !f.muster.Drained && !f.reserved || f.muster.Busy
	if takesSlurm && takesMuster {
		f.t.Fatalf("both may have jobs there after %q: %+v %+v", f.log, f.slurm, f.muster)
	}
	if dies || f.unsure == name {
		return errKilled
	}
	return nil
}

func (f *fake) InSlurm(*Move) (State, error) {
	s := f.slurm
	return s, f.act("ask Slurm", func() { f.slurm.Busy = false })
}
func (f *fake) InMuster(*Move) (State, error) {
	s := f.muster
	return s, f.act("ask muster", func() { f.muster.Busy = false })
}
func (f *fake) DrainSlurm(*Move) error {
	return f.act("drain Slurm", func() { f.slurm.Drained = true })
}
func (f *fake) ResumeSlurm(*Move) error {
	return f.act("resume Slurm", func() { f.slurm.Drained = false })
}
func (f *fake) DrainMuster(*Move) error {
	return f.act("drain muster", func() { f.muster.Drained, f.muster.Known = true, true })
}
func (f *fake) ReserveMuster(*Move) error { return f.act("reserve", func() { f.reserved = true }) }
func (f *fake) ResumeMuster(*Move) error {
	return f.act("resume muster", func() { f.muster.Drained = false })
}
func (f *fake) ReleaseMuster(*Move) error { return f.act("release", func() { f.reserved = false }) }
func (f *fake) RunLeave(m *Move) error {
	if m.Back() {
		return f.act("stop muster", func() { f.muster.Up = false })
	}
	return f.act("stop slurmd", func() { f.slurm.Up = false })
}

func (f *fake) RunJoin(m *Move) error {
	if m.Back() {
		return f.act("start slurmd", func() { f.slurm.Up = true })
	}
	return f.act("start muster", func() { f.muster.Up = true })
}
func (f *fake) StartTest(*Move) (uint32, error) { return 7, f.act("test", func() {}) }
func (f *fake) TestEnd(*Move) (over, passed bool, err error) {
	return true, !f.fails, f.act("test ends", func() {})
}

// run takes steps until the move is over; a run that was killed is begun again from the journal.
func (f *fake) run(m *Move) error {
	for range 200 {
		kept := *m // the journal
		_, err := Step(f, m, time.Unix(int64(f.step), 0))
		switch {
		case errors.Is(err, errKilled) && f.unsure == "":
			*m = kept
		case err != nil:
			return err
		case m.Done():
			return nil
		}
	}
	return errors.New("it does not end")
}

// TestMoveKilled: a move there and back that is ended at any action, before or after it takes effect, goes on to the
// same end, and at no moment both start jobs on the node.
func TestMoveKilled(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for kill := range 60 {
			f := &fake{t: t, slurm: State{Known: true, Up: true, Busy: true}, kill: kill, lost: lost}
			m := &Move{Node: "n1", From: "old", Phase: Planned}
			if err := f.run(m); err != nil || !f.slurm.Drained || f.slurm.Up || f.muster.Drained || f.reserved {
				t.Fatalf("killed at %d: %v, %+v\n%q", kill, err, f, f.log)
			}
			f.muster.Busy, m.Phase = true, Leaving
			if err := f.run(m); err != nil || f.slurm.Drained || !f.slurm.Up || !f.muster.Drained || f.muster.Up {
				t.Fatalf("killed at %d, on the way back: %v, %+v\n%q", kill, err, f, f.log)
			}
			if kill == 59 && f.step > kill {
				t.Fatalf("%d actions, of which %d were killed", f.step, kill)
			}
		}
	}
}

// TestMoveUnsure: an action of which nobody knows whether it was done ends the run, and opens the node nowhere.
func TestMoveUnsure(t *testing.T) {
	for _, name := range []string{"ask Slurm", "drain Slurm", "stop slurmd", "start muster", "reserve", "test ends",
		"drain muster"} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, slurm: State{Known: true, Up: true}, unsure: name}
			m := &Move{Node: "n1", From: "old", Phase: Planned}
			if err := f.run(m); !errors.Is(err, errKilled) || m.Note == "" {
				t.Fatalf("%v %+v", err, m)
			}
			if f.muster.Up && !f.muster.Drained && !f.reserved || m.Done() {
				t.Errorf("%+v, %+v", m, f)
			}
		})
	}
}

// TestMoveRefused: a node that fails its test, or that somebody resumes in Slurm, does not take jobs in muster.
func TestMoveRefused(t *testing.T) {
	f := &fake{t: t, slurm: State{Known: true, Up: true}, fails: true}
	m := &Move{Node: "n1", From: "old", Phase: Planned}
	if err := f.run(m); err == nil || !strings.Contains(err.Error(), "failed its burn-in, job 7") || !f.muster.Drained {
		t.Errorf("%v %+v", err, f)
	}
	for _, phase := range []Phase{Empty, Stopped, Joined, Tested} {
		f = &fake{t: t, slurm: State{Known: true, Up: true}}
		m = &Move{Node: "n1", From: "old", Phase: phase}
		err := f.run(m)
		if err == nil || !strings.Contains(err.Error(), "not drained and empty in Slurm any more") || len(f.log) != 1 {
			t.Errorf("%s: %v %q", phase, err, f.log)
		}
	}
	for _, phase := range []Phase{Vacant, Left} {
		f = &fake{t: t, muster: State{Known: true, Up: true}}
		m = &Move{Node: "n1", From: "old", Phase: phase}
		err := f.run(m)
		if err == nil || !strings.Contains(err.Error(), "not drained and empty in muster any more") || len(f.log) != 1 {
			t.Errorf("%s: %v %q", phase, err, f.log)
		}
	}
	f = &fake{t: t}
	m = &Move{Node: "n1", Phase: Planned, At: time.Unix(100, 0)}
	if moved, err := Step(f, m, time.Unix(99, 0)); moved || err != nil {
		t.Errorf("before its time: %v %v", moved, err)
	}
	m = &Move{Node: "n1", Phase: Joining, Since: time.Unix(0, 0)}
	if _, err := Step(f, m, time.Unix(3600, 0)); err == nil || m.Phase != Stopped {
		t.Errorf("a node that does not join: %v %+v", err, m)
	}
}

// TestReadSlurm: what scontrol prints of a node, and what nothing may be concluded from.
func TestReadSlurm(t *testing.T) {
	const tail = " CPUAlloc=0 Reason=State=IDLE+x"
	for _, c := range []struct {
		line, jobs string
		want       State
	}{
		{"State=IDLE CPUAlloc=0", "", State{Known: true, Up: true}},
		{"State=IDLE+DRAIN" + tail, "", State{Known: true, Up: true, Drained: true}},
		{"State=IDLE+DRAIN" + tail, "7\n", State{Known: true, Up: true, Drained: true, Busy: true}},
		{"State=MIXED+DRAIN CPUAlloc=3", "7\n", State{Known: true, Up: true, Drained: true, Busy: true}},
		{"State=IDLE+COMPLETING+DRAIN" + tail, "", State{Known: true, Up: true, Drained: true, Busy: true}},
		{"State=DOWN*+DRAIN" + tail, "", State{Known: true, Drained: true}},
		{"State=DOWN+DRAIN+NOT_RESPONDING" + tail, "", State{Known: true, Drained: true}},
		{"State=DOWN+DRAIN" + tail, "", State{Known: true, Up: true, Drained: true}},
		{"State=IDLE*+DRAIN" + tail, "", State{Known: true, Drained: true}},
		{"State=IDLE+DRAIN", "", State{Known: true, Up: true, Drained: true, Busy: true}},
		{"State=ALLOCATED CPUAlloc=8", "", State{Known: true, Up: true, Busy: true}},
	} {
		t.Run(c.line, func(t *testing.T) {
			if got, err := ReadSlurm("n1", "NodeName=n1 Arch=x "+c.line, c.jobs); err != nil || got != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	for _, line := range []string{"", "NodeName=n2 State=IDLE CPUAlloc=0", "NodeName=n1 CPUAlloc=0"} {
		if got, err := ReadSlurm("n1", line, ""); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}
