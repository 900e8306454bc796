package supervisor

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"dev.muster/cluster"
)

// Timers is a step.Runner without processes: a step is a duration. For hollow nodes in thousands.
type Timers struct {
	length  func(step.Spec) (time.Duration, cluster.ExitStatus)
	changes chan step.Status

	mu     sync.Mutex
	steps  map[step.ID]*timed
	queue  []step.ID
	marks  map[step.ID]bool
	idle   bool // no delivery under way
	closed bool
	done   chan struct{}
	wg     sync.WaitGroup
}

type timed struct {
	st    step.Status
	exit  cluster.ExitStatus
	left  time.Duration // when stopped
	began time.Time     // of the present timer
	timer *time.Timer
	spec  *step.Spec // of a step whose output an srun reads
	out   *output    // once it does
}

// tell says how a step ended to who reads its output.
func (s *timed) tell() {
	if s.out == nil || s.st.State != step.Ended {
		return
	}
	for _, k := range s.st.Tasks {
		s.out.exit(int32(k.Rank), stream.TaskExit{Code: k.Exit.Code, Signal: k.Exit.Signal})
	}
	s.out.stepEnded()
}

// listen makes the stream of a step that writes nothing. Called with mu held.
func (t *Timers) listen(s *timed) {
	s.out = newOutput(&run{spec: *s.spec})
	s.out.signal = func(_ int32, sig syscall.Signal) { _ = t.Signal(s.st.ID, sig, step.Leaders) } // it may be over
	for i := range s.spec.Tasks {
		k := &s.spec.Tasks[i]
		for fd, to := range map[byte]step.IO{1: k.Stdout, 2: k.ErrorsTo()} {
			if to.Kind == step.Stream {
				s.out.mu.Lock()
				s.out.put(stream.EOF, int32(k.Rank), []byte{fd})
				s.out.mu.Unlock()
			}
		}
		s.out.noTask(int32(k.Rank))
	}
	s.tell()
}

var _ step.Runner = (*Timers)(nil)

// NewTimers returns a step.Runner whose steps last as long, and end as, length says.
func NewTimers(length func(step.Spec) (time.Duration, cluster.ExitStatus)) *Timers {
	return &Timers{length: length, changes: make(chan step.Status, 64), steps: map[step.ID]*timed{},
		marks: map[step.ID]bool{}, idle: true, done: make(chan struct{})}
}

// Start implements step.Runner.
func (t *Timers) Start(specs ...step.Spec) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return step.ErrClosed
	}
	for _, sp := range specs {
		if t.steps[sp.ID] != nil {
			continue
		}
		now := time.Now()
		d, exit := t.length(sp)
		s := &timed{st: step.Status{ID: sp.ID, State: step.Running, Note: sp.Note}, exit: exit, left: d, began: now}
		for _, k := range sp.Tasks {
			s.st.Tasks = append(s.st.Tasks, step.TaskStatus{Rank: k.Rank, PID: 1, Started: now})
		}
		if len(sp.Tasks) > 0 && sp.Tasks[0].Stdout.Kind == step.Stream {
			s.spec = &sp
		}
		t.steps[sp.ID] = s
		s.timer = time.AfterFunc(d, func() { t.end(s, s.exit, true) })
		t.changed(sp.ID)
	}
	return nil
}

func (t *Timers) end(s *timed, exit cluster.ExitStatus, expired bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.st.State == step.Ended || t.closed || s.st.Frozen && expired {
		return
	}
	s.timer.Stop()
	s.st.State, s.st.Frozen = step.Ended, false
	tasks := make([]step.TaskStatus, len(s.st.Tasks)) // earlier Statuses keep theirs
	copy(tasks, s.st.Tasks)
	for i := range tasks {
		tasks[i].Ended, tasks[i].Exit = time.Now(), exit
	}
	s.st.Tasks = tasks
	s.tell()
	t.changed(s.st.ID)
}

// changed queues a status; mu is held. A goroutine lives while there is something to deliver.
func (t *Timers) changed(id step.ID) {
	if !t.marks[id] {
		t.marks[id] = true
		t.queue = append(t.queue, id)
	}
	if t.idle {
		t.idle = false
		t.wg.Go(t.deliver)
	}
}

func (t *Timers) deliver() {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 || t.closed {
			t.idle = true
			t.mu.Unlock()
			return
		}
		id := t.queue[0]
		t.queue = t.queue[1:]
		delete(t.marks, id)
		s := t.steps[id]
		if s == nil {
			t.mu.Unlock()
			continue
		}
		st := s.st
		t.mu.Unlock()
		select {
		case t.changes <- st:
		case <-t.done:
		}
	}
}

// Signal implements Runner: KILL, TERM, INT and HUP end a step at once.
func (t *Timers) Signal(id step.ID, sig syscall.Signal, _ step.Scope) error {
	t.mu.Lock()
	s := t.steps[id]
	t.mu.Unlock()
	if s == nil {
		return step.ErrUnknown
	}
	switch sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		t.end(s, cluster.ExitStatus{Signal: int(sig)}, false)
	}
	return nil
}

// SetNote implements step.Runner.
func (t *Timers) SetNote(id step.ID, note []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[id]
	if s == nil {
		return step.ErrUnknown
	}
	s.st.Note = note
	return nil
}

// Freeze implements Runner: a stopped step's time stands still.
func (t *Timers) Freeze(id step.ID, stop bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[id]
	if s == nil {
		return step.ErrUnknown
	}
	if s.st.State == step.Ended {
		return syscall.ESRCH
	}
	if s.st.Frozen == stop {
		return nil
	}
	s.st.Frozen = stop
	if stop {
		s.timer.Stop()
		s.left = max(0, s.left-time.Since(s.began))
	} else {
		s.began = time.Now()
		s.timer = time.AfterFunc(s.left, func() { t.end(s, s.exit, true) })
	}
	t.changed(id)
	return nil
}

// List implements step.Runner.
func (t *Timers) List() ([]step.Status, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]step.Status, 0, len(t.steps))
	for _, s := range t.steps {
		list = append(list, s.st)
	}
	return list, nil
}

// Changes implements step.Runner.
func (t *Timers) Changes() <-chan step.Status { return t.changes }

// Instance implements Runner: the timers live in this process.
func (t *Timers) Instance() string { return fmt.Sprintf("%p", t) }

// Forget implements step.Runner.
func (t *Timers) Forget(ids ...step.ID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if s := t.steps[id]; s != nil && s.st.State == step.Ended {
			delete(t.steps, id)
			if s.out != nil {
				s.out.close()
			}
		}
	}
	return nil
}

// Adopt implements Runner: there are no processes.
func (t *Timers) Adopt(step.ID, int) error { return syscall.ENOTSUP }

// Release implements Runner: steps have nothing in common.
func (t *Timers) Release(step.ID) error { return nil }

// SetMemory implements step.Runner: steps that are no processes use no memory.
func (t *Timers) SetMemory(step.ID, cluster.MemMB) error { return nil }

// Attach implements Runner: who reads the output of a step hears how it ended.
func (t *Timers) Attach(id step.ID) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[id]
	switch {
	case t.closed:
		return nil, step.ErrClosed
	case s == nil:
		return nil, step.ErrUnknown
	case s.spec == nil:
		return nil, syscall.ENOTSUP
	case s.out == nil:
		t.listen(s)
	}
	near, far := net.Pipe()
	out := s.out
	t.wg.Go(func() { out.serve(far); far.Close() })
	return near, nil
}

// Close stops all timers and closes Changes.
func (t *Timers) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	for _, s := range t.steps {
		s.timer.Stop()
		if s.out != nil {
			s.out.close()
		}
	}
	close(t.done)
	t.mu.Unlock()
	t.wg.Wait()
	close(t.changes)
	return nil
}

// Say implements Runner: there is nobody to read it.
func (*Timers) Say(step.ID, string, bool) error { return nil }
