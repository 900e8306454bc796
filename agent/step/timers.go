package step

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"dev.muster/cluster"
)

// Timers is a Runner without processes: a step is a duration. For hollow nodes in thousands.
type Timers struct {
	length  func(Spec) (time.Duration, cluster.ExitStatus)
	changes chan Status

	mu     sync.Mutex
	steps  map[ID]*timed
	queue  []ID
	marks  map[ID]bool
	idle   bool // no delivery under way
	closed bool
	done   chan struct{}
	wg     sync.WaitGroup
}

type timed struct {
	st    Status
	exit  cluster.ExitStatus
	left  time.Duration // when stopped
	began time.Time     // of the present timer
	timer *time.Timer
}

var _ Runner = (*Timers)(nil)

// NewTimers returns a Runner whose steps last as long, and end as, length says.
func NewTimers(length func(Spec) (time.Duration, cluster.ExitStatus)) *Timers {
	return &Timers{length: length, changes: make(chan Status, 64), steps: map[ID]*timed{},
		marks: map[ID]bool{}, idle: true, done: make(chan struct{})}
}

// Start implements Runner.
func (t *Timers) Start(specs ...Spec) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	for _, sp := range specs {
		if t.steps[sp.ID] != nil {
			continue
		}
		now := time.Now()
		d, exit := t.length(sp)
		s := &timed{st: Status{ID: sp.ID, State: Running, Note: sp.Note}, exit: exit, left: d, began: now}
		for _, k := range sp.Tasks {
			s.st.Tasks = append(s.st.Tasks, TaskStatus{Rank: k.Rank, PID: 1, Started: now})
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
	if s.st.State == Ended || t.closed || s.st.Frozen && expired {
		return
	}
	s.timer.Stop()
	s.st.State, s.st.Frozen = Ended, false
	tasks := make([]TaskStatus, len(s.st.Tasks)) // earlier Statuses keep theirs
	copy(tasks, s.st.Tasks)
	for i := range tasks {
		tasks[i].Ended, tasks[i].Exit = time.Now(), exit
	}
	s.st.Tasks = tasks
	t.changed(s.st.ID)
}

// changed queues a status; mu is held. A goroutine lives while there is something to deliver.
func (t *Timers) changed(id ID) {
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
func (t *Timers) Signal(id ID, sig syscall.Signal, _ Scope) error {
	t.mu.Lock()
	s := t.steps[id]
	t.mu.Unlock()
	if s == nil {
		return ErrUnknown
	}
	switch sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		t.end(s, cluster.ExitStatus{Signal: int(sig)}, false)
	}
	return nil
}

// SetNote implements Runner.
func (t *Timers) SetNote(id ID, note []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[id]
	if s == nil {
		return ErrUnknown
	}
	s.st.Note = note
	return nil
}

// Freeze implements Runner: a stopped step's time stands still.
func (t *Timers) Freeze(id ID, stop bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[id]
	if s == nil {
		return ErrUnknown
	}
	if s.st.State == Ended {
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

// List implements Runner.
func (t *Timers) List() ([]Status, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Status, 0, len(t.steps))
	for _, s := range t.steps {
		list = append(list, s.st)
	}
	return list, nil
}

// Changes implements Runner.
func (t *Timers) Changes() <-chan Status { return t.changes }

// Instance implements Runner: the timers live in this process.
func (t *Timers) Instance() string { return fmt.Sprintf("%p", t) }

// Forget implements Runner.
func (t *Timers) Forget(ids ...ID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if s := t.steps[id]; s != nil && s.st.State == Ended {
			delete(t.steps, id)
		}
	}
	return nil
}

// Adopt implements Runner: there are no processes.
func (t *Timers) Adopt(ID, int) error { return syscall.ENOTSUP }

// Release implements Runner: steps have nothing in common.
func (t *Timers) Release(ID) error { return nil }

// Attach implements Runner: there is nothing to attach to.
func (t *Timers) Attach(ID) (net.Conn, error) { return nil, syscall.ENOTSUP }

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
	}
	close(t.done)
	t.mu.Unlock()
	t.wg.Wait()
	close(t.changes)
	return nil
}
