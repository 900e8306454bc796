package supervisor

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

const (
	// handoverEnv names the variable with the descriptor of the handover.
	handoverEnv = "MUSTER_HANDOVER_FD"
	// launchWait bounds the wait for launches under way before an upgrade.
	launchWait = 10 * time.Second
)

// handover is what a supervisor that executes a newer binary leaves to itself. Descriptors
// are named by number: they stay open.
type handover struct {
	Lock     int        `json:"lock"`
	Listener int        `json:"listener"`
	Runs     []savedRun `json:"runs"`
}

type savedRun struct {
	Spec     step.Spec      `json:"spec"`
	Env      []byte         `json:"env,omitempty"`
	Script   []byte         `json:"script,omitempty"`
	State    step.State     `json:"state"`
	Frozen   bool           `json:"frozen,omitempty"`
	Launched bool           `json:"launched,omitempty"`
	Killed   bool           `json:"killed,omitempty"`
	MadeDir  bool           `json:"made_dir,omitempty"`
	Pending  [][2]int       `json:"pending,omitempty"`
	Tasks    []savedTask    `json:"tasks"`
	Frames   []stream.Frame `json:"frames,omitempty"`
	Seq      uint64         `json:"seq"`
	Adopted  bool           `json:"adopted,omitempty"`
	Dead     bool           `json:"dead,omitempty"`
	Over     bool           `json:"over,omitempty"`
	Done     bool           `json:"done,omitempty"`
	Sources  []savedSource  `json:"sources,omitempty"`
	Taken    uint64         `json:"taken,omitempty"`
	Written  uint64         `json:"written,omitempty"`
	Flying   [][3]uint64    `json:"flying,omitempty"` // number, size, tasks left
	Sinks    []savedSink    `json:"sinks,omitempty"`
}

type savedTask struct {
	Status step.TaskStatus `json:"status"`
	Ticks  uint64          `json:"ticks,omitempty"`
	Live   bool            `json:"live,omitempty"`
	Orphan bool            `json:"orphan,omitempty"` // adopted: not our child
}

type savedSource struct {
	Rank int32 `json:"rank"`
	FD   int   `json:"fd"`
	File int   `json:"file"`
	TTY  bool  `json:"tty,omitempty"`
	// Of a labelled file: its number, its label, and the line that was begun.
	To    int    `json:"to,omitempty"`
	Label string `json:"label,omitempty"`
	Begun []byte `json:"begun,omitempty"`
	// Late is what is left of the line that was being written.
	Late []byte `json:"late,omitempty"`
}

type savedSink struct {
	Rank  int32        `json:"rank"`
	File  int          `json:"file"` // -1: none yet, or the terminal's source
	TTY   bool         `json:"tty,omitempty"`
	Gone  bool         `json:"gone,omitempty"`
	Queue []savedPiece `json:"queue,omitempty"`
}

type savedPiece struct {
	Seq  uint64 `json:"seq"`
	Data []byte `json:"data,omitempty"`
	EOF  bool   `json:"eof,omitempty"`
}

// inherit reads the handover, if this process was executed with one.
func inherit() (*handover, error) {
	n, err := strconv.Atoi(os.Getenv(handoverEnv))
	if err != nil {
		return nil, nil
	}
	os.Unsetenv(handoverEnv)
	f := os.NewFile(uintptr(n), "handover")
	defer f.Close()
	b, err := io.ReadAll(f)
	h := &handover{}
	if err == nil {
		err = wire.Unmarshal(b, h)
	}
	if err != nil {
		return nil, fmt.Errorf("read handover: %w", err)
	}
	unix.CloseOnExec(h.Lock)
	unix.CloseOnExec(h.Listener)
	return h, nil
}

// upgrade stops launching and lets Main execute exe in this process's place. told
// is called when that is certain.
func (s *supervisor) upgrade(exe string, told func()) error {
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return err
		}
	}
	if err := unix.Access(exe, unix.X_OK); err != nil {
		return &os.PathError{Op: "access", Path: exe, Err: err}
	}
	late := false
	t := time.AfterFunc(launchWait, func() { s.mu.Lock(); late = true; s.moved.Broadcast(); s.mu.Unlock() })
	defer t.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen {
		return unix.EALREADY
	}
	s.frozen = true
	for s.launching > 0 && !late {
		s.moved.Wait()
	}
	if s.launching > 0 {
		s.frozen = false
		held := s.held
		s.held = nil
		for _, r := range held {
			s.submit(r)
		}
		return errors.New("a launch hangs")
	}
	told()
	s.end(exe)
	return nil
}

// replace executes s.exe with everything it needs left open. It returns only on failure.
func (s *supervisor) replace() error {
	s.mu.Lock() // for good: the reaper takes no status any more
	pumps := time.Now().Add(pauseTime)
	for _, r := range s.steps {
		r.out.pause(time.Until(pumps))
	}
	h := handover{Lock: keepFD(s.lock), Listener: keepFD(s.lis)}
	for _, r := range s.steps {
		h.Runs = append(h.Runs, r.save())
	}
	b, err := wire.Marshal(h)
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("handover", 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "handover")
	if _, err := f.Write(b); err != nil {
		return err
	}
	f.Seek(0, io.SeekStart)
	env := append(os.Environ(), handoverEnv+"="+strconv.Itoa(fd))
	err = syscall.Exec(s.exe, os.Args, env)
	slog.Error("upgrade failed, going on as before", "err", err)
	return syscall.Exec("/proc/self/exe", os.Args, env)
}

// keepFD makes a descriptor survive exec and returns its number, -1 if it has none.
func keepFD(c syscall.Conn) int {
	n := -1
	rc, err := c.SyscallConn()
	if err == nil {
		rc.Control(func(fd uintptr) {
			n = int(fd)
			unix.FcntlInt(fd, unix.F_SETFD, 0)
		})
	}
	return n
}

// pauseTime is how long is waited for writes to users' files that hold their threads: a file system may not answer.
const pauseTime = 5 * time.Second

// pause stops the pumps and feeds where they are, and waits for them for a time.
func (o *output) pause(most time.Duration) {
	o.mu.Lock()
	o.paused = true
	past := time.Unix(1, 0)
	for s := range o.sources {
		s.f.SetDeadline(past)
	}
	for _, k := range o.sinks {
		if k.f != nil && !k.gone {
			k.f.SetDeadline(past)
		}
	}
	o.stop()
	o.moved.Broadcast()
	o.mu.Unlock()
	stopped := make(chan struct{})
	go func() { // ends with the pumps, or with this program
		o.wg.Wait()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(max(most, 0)):
	}
}

func (r *run) save() savedRun {
	sv := savedRun{Spec: r.spec, Env: r.spec.Env, Script: r.spec.Script, State: r.state, Frozen: r.frozen,
		Launched: r.launched, Killed: r.killed, MadeDir: r.madeDir || r.leftDir}
	sv.Spec.Env, sv.Spec.Script = nil, nil
	for _, p := range r.pending {
		sv.Pending = append(sv.Pending, [2]int{int(p.sig), int(p.scope)})
	}
	for _, t := range r.tasks {
		sv.Tasks = append(sv.Tasks, savedTask{Status: t.st, Ticks: t.ticks, Live: t.live, Orphan: t.pidfd >= 0})
	}
	o := r.out
	o.mu.Lock()
	defer o.mu.Unlock()
	sv.Frames = o.frames
	sv.Seq = o.seq
	sv.Adopted = o.adopted
	sv.Over = o.over
	sv.Done = o.done
	sv.Taken = o.taken
	sv.Written = o.written
	sv.Dead = o.dead
	for s := range o.sources {
		saved := savedSource{Rank: s.rank, FD: s.fd, File: keepFD(s.f), TTY: s.tty}
		if w := s.labelled; w != nil {
			saved.To = keepFD(w.f)
			saved.Label = w.label
			saved.Begun, saved.Late = w.state()
		}
		sv.Sources = append(sv.Sources, saved)
	}
	for _, f := range o.flying {
		sv.Flying = append(sv.Flying, [3]uint64{f.seq, uint64(f.size), uint64(f.left)})
	}
	for _, k := range o.sinks {
		ss := savedSink{Rank: k.rank, File: -1, TTY: k.tty, Gone: k.gone}
		if k.f != nil && !k.tty && !k.gone {
			ss.File = keepFD(k.f)
		}
		for _, p := range k.queue {
			ss.Queue = append(ss.Queue, savedPiece{p.seq, p.data, p.eof})
		}
		sv.Sinks = append(sv.Sinks, ss)
	}
	return sv
}

// resume takes up a step from the handover; mu is held.
func (s *supervisor) resume(sv *savedRun) {
	sv.Spec.Env, sv.Spec.Script = cluster.BlobText(sv.Env), cluster.BlobText(sv.Script)
	r := newRun(s, sv.Spec)
	s.steps[r.id] = r
	r.state = sv.State
	r.frozen = sv.Frozen
	r.launched = sv.Launched
	r.killed = sv.Killed
	r.madeDir = sv.MadeDir
	for _, p := range sv.Pending {
		r.pending = append(r.pending, pendingSignal{syscall.Signal(p[0]), step.Scope(p[1])})
	}
	if r.launched && r.state != step.Ended && s.cg != nil {
		r.grp = s.cg.Adopt(r.id.GroupPath())
	}
	r.out.resume(sv)
	for i, t := range r.tasks {
		k := sv.Tasks[i]
		t.st, t.ticks = k.Status, k.Ticks
		switch {
		case k.Live && k.Orphan:
			if !s.adoptTask(t) {
				t.st.Lost, t.st.Ended = true, time.Now()
				t.tell()
			}
		case k.Live:
			t.live = true
			r.live++
			s.pids[t.st.PID] = t
		}
	}
}

func (o *output) resume(sv *savedRun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames = sv.Frames
	o.seq = sv.Seq
	o.adopted = sv.Adopted
	o.over = sv.Over
	o.done = sv.Done
	o.taken = sv.Taken
	o.written = sv.Written
	o.dead = sv.Dead
	for i := range o.frames {
		o.bytes += cost(&o.frames[i])
	}
	for _, f := range sv.Flying {
		o.flying = append(o.flying, flying{f[0], int(f[1]), int(f[2])})
		o.flyingN += int(f[1])
	}
	ttys := map[int32]*os.File{}
	o.sources = map[*source]bool{}
	for _, ss := range sv.Sources {
		unix.CloseOnExec(ss.File)
		s := &source{rank: ss.Rank, fd: ss.FD, f: os.NewFile(uintptr(ss.File), "pipe"), tty: ss.TTY}
		if ss.Label != "" {
			unix.CloseOnExec(ss.To)
			s.labelled = newLabelledFile(ss.To, "output", ss.Label, len(sv.Sources))
			s.labelled.begun, s.labelled.late = ss.Begun, ss.Late
		}
		if s.tty {
			ttys[s.rank], o.pty = s.f, s.f
		}
		o.startPump(s)
	}
	for _, ss := range sv.Sinks {
		k := &sink{rank: ss.Rank, tty: ss.TTY, gone: ss.Gone, f: ttys[ss.Rank]}
		for _, p := range ss.Queue {
			k.queue = append(k.queue, piece{p.Seq, p.Data, p.EOF})
		}
		if ss.File >= 0 {
			unix.CloseOnExec(ss.File)
			k.f = os.NewFile(uintptr(ss.File), "pipe")
		}
		o.sinks[k.rank] = k
		if k.f != nil && !k.gone {
			o.wg.Go(func() { o.feed(k) })
		}
	}
}
