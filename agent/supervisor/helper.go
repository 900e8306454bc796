package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxHelper bounds what is told of what a helper said.
const maxHelper = 4096

// lastWords is how long the output of a helper that has ended is still read.
const lastWords = time.Second

// hookTime is how long a hook of the site may take.
const hookTime = time.Minute

// helper runs a command in the step's group, which is open, as its user, and waits for it: in a folder, or in this
// thread's. After a time, or when the step is to end, it is killed; 0: it is not.
func (j *job) helper(
	argv, env []string, dir string, limit time.Duration,
) (said []byte, ws unix.WaitStatus, err error) {
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, ws, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, ws, err
	}
	defer null.Close()
	s := j.l.sup
	attr := &syscall.ProcAttr{Env: env, Dir: dir, Sys: j.attributes(),
		Files: []uintptr{null.Fd(), theirs.Fd(), theirs.Fd()}}
	no := s.forkBegin()
	pid, wait, err := s.stub.exec(argv[0], argv, attr) // the program may be the user's, on a file system that hangs
	theirs.Close()
	var end <-chan earlyWait
	if err == nil {
		end = s.awaitStop(pid, no)
	}
	s.mu.Lock()
	s.forkEnd()
	s.mu.Unlock()
	if err != nil {
		return nil, ws, fmt.Errorf("start %s: %w", argv[0], err)
	}
	if limit > 0 {
		over := make(chan struct{})
		defer close(over)
		go j.r.endGroup(pid, limit, over)
	}
	if err := wait(); err != nil {
		j.awaitEnd(pid, end)
		return nil, ws, fmt.Errorf("start %s: %w", argv[0], err)
	}
	ended := make(chan earlyWait, 1)
	go func() {
		ended <- j.awaitEnd(pid, end)
		_ = out.SetReadDeadline(time.Now().Add(lastWords)) // others may hold the pipe open, by /proc/PID/fd
	}()
	said, err = io.ReadAll(io.LimitReader(out, maxHelper))
	if err == nil {
		_, err = io.Copy(io.Discard, out)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return said, (<-ended).ws, err
}

// awaitEnd waits for the end of a process that awaitStop tells of, or until it is dead and nobody reaps it.
func (j *job) awaitEnd(pid int, end <-chan earlyWait) earlyWait {
	s := j.r.sup
	for seen := false; ; {
		select {
		case e := <-end:
			return e
		case <-time.After(deadPause):
		}
		ws, dead := deadStatus(pid)
		if dead && seen {
			s.mu.Lock()
			delete(s.stops, pid)
			s.mu.Unlock()
			return earlyWait{ws: ws}
		}
		seen = dead
	}
}

// endGroup kills a process and its children after a time, or once the step is to end; it ends when over is closed.
func (r *run) endGroup(pid int, limit time.Duration, over chan struct{}) {
	t, began := time.NewTicker(imagePause), time.Now()
	defer t.Stop()
	for time.Since(began) < limit && !r.isEnding() {
		select {
		case <-over:
			return
		case <-t.C:
		}
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
}

// hook runs a program of the site's before its container is entered.
func (j *job) hook(path string, env []string) error {
	text, ws, err := j.helper([]string{path}, env, "/", hookTime)
	if err != nil || ws == 0 {
		return err
	}
	if ws.Signaled() && ws.Signal() == unix.SIGKILL {
		return fmt.Errorf("it was killed: it may take %s", hookTime)
	}
	return errors.New(cmp.Or(lastLine(text), fmt.Sprintf("it ended with code %d", ws.ExitStatus())))
}

// lastLine is the last line of a text that says something.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
