package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// How often it is looked whether a task of a killed step is dead and not reaped.
const (
	deadPause    = time.Second / 2
	maxDeadPause = 8 * time.Second
)

// awaitDead ends the tasks of a killed step that are dead, though the kernel does not tell so: it tells the end of a
// traced process to the tracer alone. That may be any process of the same user, outside of the step, and has all time;
// a node whose step does not end is taken out of service.
func (r *run) awaitDead() {
	seen := map[int]bool{} // dead when it was last looked: what is about to be reaped is not there twice
	for wait := deadPause; ; wait = min(2*wait, maxDeadPause) {
		time.Sleep(wait)
		if !r.endDead(seen) {
			return
		}
	}
}

// endDead looks once, and reports whether some task of the step lives on.
func (r *run) endDead(seen map[int]bool) bool {
	s := r.sup
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps[r.id] != r {
		return false
	}
	for i, t := range r.tasks {
		if !t.live {
			continue
		}
		ws, dead := deadStatus(t.st.PID)
		if dead && seen[i] {
			s.taskExit(t, earlyWait{ws: ws})
		}
		seen[i] = dead
	}
	r.dying = r.live > 0
	return r.dying
}

// exitField is where the exit code is in /proc/PID/stat, behind the name.
const exitField = 49

// deadStatus is the status of a process that has ended with all of its threads and was not reaped; false: it lives, or
// is not there.
func deadStatus(pid int) (ws unix.WaitStatus, dead bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	threads, err := filepath.Glob(dir + "/task/[0-9]*")
	if err != nil || len(threads) == 0 {
		return 0, false
	}
	for _, thread := range threads {
		tid, _ := strconv.Atoi(filepath.Base(thread))
		if st, ok := step.ReadProcess(tid); ok && st.Alive() {
			return 0, false
		}
	}
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= exitField || fields[0] != "Z" {
		return 0, false
	}
	code, err := strconv.ParseUint(fields[exitField], 10, 32)
	return unix.WaitStatus(code), err == nil
}
