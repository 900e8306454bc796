package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

func newRun(s *supervisor, sp step.Spec) *run {
	r := &run{sup: s, id: sp.ID, spec: sp}
	for i := range sp.Tasks {
		r.tasks = append(r.tasks, &task{run: r, index: i, st: step.TaskStatus{Rank: sp.Tasks[i].Rank}, pidfd: -1})
	}
	r.out = newOutput(r)
	return r
}

// ended records a task's end and begins the step's clean-up with the last; mu is held.
func (t *task) ended(st step.TaskStatus) {
	r := t.run
	t.st = st
	if t.live {
		t.live = false
		r.live--
	}
	if t.pidfd >= 0 {
		unix.Close(t.pidfd)
		t.pidfd = -1
	}
	if r.toSave() {
		r.last = t // it is told once the container is saved
	} else {
		t.tellEnd()
	}
	r.settle()
}

// tellEnd lets srun know of a task's end; mu is held.
func (t *task) tellEnd() {
	t.run.sup.jour.exit(t)
	t.tell()
}

// settle starts the clean-up once nothing is left to wait for; mu is held.
func (r *run) settle() {
	if r.launched && r.live == 0 && !r.cleaning && r.state != step.Ended {
		r.cleaning = true
		go r.sup.clean(r)
	}
	r.sup.changed(r)
}

// clean kills what is left of a step whose tasks have ended and declares its end.
func (s *supervisor) clean(r *run) {
	r.saveLast()
	if r.grp != nil {
		s.toldOOM(r)
		for wait := time.Millisecond; !r.grp.Remove(); wait = min(2*wait, time.Second) {
			if err := r.grp.Kill(); err != nil {
				slog.Error("kill failed", "job", r.id.Job, "node", r.id.Node, "err", err)
				time.Sleep(wait)
			}
			r.grp.AwaitEmpty(wait)
		}
	} else {
		leaders, marker := s.leaders(r)
		// A process in the middle of execve shows no environment, and one just forked may be missed
		// by a walk of /proc: only several walks that find nothing count.
		for empty := 0; empty < emptyWalks; {
			pids := stepProcs(leaders, marker)
			if len(pids) == 0 {
				if empty++; empty < emptyWalks {
					time.Sleep(walkPause)
				}
				continue
			}
			empty = 0
			list := func() []int { return stepProcs(leaders, marker) }
			signalListed(list, unix.SIGKILL, map[int]bool{}, func(int) bool { return false })
			awaitPID(pids[0], 100*time.Millisecond)
		}
	}
	r.removeDir()
	r.uncontain()
	r.out.awaitFiles()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.state, r.cleaning, r.grp, r.frozen = step.Ended, false, nil, false
	s.jour.ended(r)
	r.out.stepEnded()
	s.changed(r)
	s.named.leave(r)
	s.moved.Broadcast()
}

// oomTellTime bounds the wait until a file of the user's has the line about killed processes: its file system may hang.
const oomTellTime = 5 * time.Second

// toldOOM tells the step's user of processes that were killed because the job's memory was used up.
func (s *supervisor) toldOOM(r *run) {
	kills := r.grp.OOMKills()
	if kills == 0 {
		return
	}
	done := make(chan struct{})
	s.mu.Lock()
	r.oomKills = kills
	if r.spec.OOMText == "" {
		close(done)
	} else {
		s.tell(r, fmt.Sprintf(r.spec.OOMText, kills), false, done)
	}
	s.mu.Unlock()
	select {
	case <-done:
	case <-time.After(oomTellTime):
	}
}

// launchDone is called by the launcher after the last task was tried.
func (s *supervisor) launchDone(r *run) {
	s.mu.Lock()
	r.launched = true
	r.state = step.Running
	if r.grp != nil {
		r.grp.CloseFD()
	}
	r.spec.Env, r.spec.Script = nil, nil
	if r.spec.Server != nil {
		r.spec.Server = &step.Server{Dir: r.spec.Server.Dir} // its place in the stream stays
	}
	for i := range r.spec.Tasks {
		r.spec.Tasks[i].Env = nil
	}
	pending, frozen, g, live := r.pending, r.frozen, r.grp, r.live
	r.pending = nil
	r.settle()
	s.named.leave(r)
	s.moved.Broadcast()
	s.mu.Unlock()
	if live == 0 {
		return
	}
	for _, p := range pending {
		s.signal(r.id, p.sig, p.scope)
	}
	if frozen {
		s.applyFreeze(r, g, true)
	}
}

// removeScript removes the script of a step that is forgotten, unless the job's next attempt has put its own there:
// then the folder is that one's to remove. mu is held.
func (s *supervisor) removeScript(r *run) {
	if r.spec.ScriptPath == "" {
		return
	}
	for _, other := range s.steps {
		if other.spec.ScriptPath == r.spec.ScriptPath {
			other.leftDir = other.leftDir || r.madeDir || r.leftDir
			return
		}
	}
	os.Remove(r.spec.ScriptPath)
	if r.madeDir || r.leftDir {
		os.Remove(filepath.Dir(r.spec.ScriptPath))
	}
}
