package supervisor

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// maxReplies bounds the answers waiting for a Remote that does not read them.
const maxReplies = 4096

// control serves a Remote until its connection ends.
func (s *supervisor) control(conn *net.UnixConn) {
	c := &control{conn: conn, marks: map[step.ID]bool{}, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	b, _ := wire.Marshal(s.list())
	c.out = step.AppendMessage(nil, step.MsgFull, b)
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	c.poke()
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() { s.writeTo(c, done) })
	for {
		kind, body, err := step.ReadMessage(conn, step.MaxMessage)
		if err != nil {
			break
		}
		n, body, err := step.CutNumber(body)
		if err == nil && slow(kind) {
			asked := bytes.Clone(body)
			go s.request(c, kind, n, asked) // ends after adoptTime, or soon after starveTime
			continue
		}
		if err != nil || !s.request(c, kind, n, body) {
			break
		}
	}
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	close(done)
	conn.Close()
	wg.Wait()
}

// slow reports whether a request waits, for a launch or for the kernel: others must not wait for it.
func slow(kind byte) bool { return kind == step.MsgAdopt || kind == step.MsgMemory }

func (s *supervisor) list() []step.Status {
	list := make([]step.Status, 0, len(s.steps))
	for _, r := range s.steps {
		list = append(list, r.status())
	}
	return list
}

func (s *supervisor) writeTo(c *control, done chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-c.wake:
		}
		s.mu.Lock()
		out := c.out
		var list []step.Status
		for _, id := range c.dirty {
			if r := s.steps[id]; r != nil {
				list = append(list, r.status())
			}
		}
		c.out, c.outN, c.dirty = nil, 0, c.dirty[:0]
		clear(c.marks)
		s.mu.Unlock()
		if len(list) > 0 {
			b, _ := wire.Marshal(list)
			out = step.AppendMessage(out, step.MsgPush, b)
		}
		if len(out) == 0 {
			continue
		}
		if _, err := c.conn.Write(out); err != nil {
			c.conn.Close() // ends the reader
			return
		}
	}
}

// asked does what a request asks for; bad: it cannot be read.
func asked[Q any](body []byte, do func(Q) error) (rep step.Reply, bad bool) {
	var q Q
	if wire.Unmarshal(body, &q) != nil {
		return rep, true
	}
	return step.ReplyTo(do(q)), false
}

// request carries out one request; false ends the connection.
func (s *supervisor) request(c *control, kind byte, n uint32, body []byte) bool {
	var rep step.Reply
	bad := false
	switch kind {
	case step.MsgStart:
		specs, err := step.DecodeSpecs(body)
		bad = err != nil
		if !bad {
			rep = step.ReplyTo(s.start(specs))
		}
	case step.MsgSignal:
		rep, bad = asked(body, func(q step.SignalRequest) error {
			return s.signal(q.ID, syscall.Signal(q.Sig), q.Scope)
		})
	case step.MsgFreeze:
		rep, bad = asked(body, func(q step.FreezeRequest) error { return s.freeze(q.ID, q.Stop) })
	case step.MsgSetNote:
		rep, bad = asked(body, func(q step.NoteRequest) error { return s.setNote(q.ID, q.Note) })
	case step.MsgSay:
		rep, bad = asked(body, func(q step.SayRequest) error { return s.say(q.ID, q.Text, !q.Only) })
	case step.MsgList:
		s.mu.Lock()
		rep.List = s.list()
		s.mu.Unlock()
	case step.MsgForget:
		rep, bad = asked(body, func(ids []step.ID) error { return s.forget(ids) })
	case step.MsgAdopt:
		rep, bad = asked(body, func(q step.AdoptRequest) error { return s.takeIn(q.ID, q.PID) })
	case step.MsgMemory:
		rep, bad = asked(body, func(q step.MemoryRequest) error { return setMemory(s, q.ID, q.MB) })
	case step.MsgRelease:
		var id step.ID
		if bad = wire.Unmarshal(body, &id) != nil; !bad {
			s.release(id)
		}
	case step.MsgStop:
		rep = step.ReplyTo(s.stop(func() {
			c.conn.Write(step.AppendMessage(nil, step.MsgReply, step.Number(n), []byte("{}")))
		}))
	case step.MsgUpgrade:
		var exe string
		if bad = wire.Unmarshal(body, &exe) != nil; !bad {
			rep = step.ReplyTo(s.upgrade(exe, func() {
				c.conn.Write(step.AppendMessage(nil, step.MsgReply, step.Number(n), []byte("{}")))
			}))
		}
	default:
		bad = true
	}
	if bad {
		return false
	}
	b, _ := wire.Marshal(rep)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.out = step.AppendMessage(c.out, step.MsgReply, step.Number(n), b)
	c.outN++
	c.poke()
	return c.outN <= maxReplies
}

func (s *supervisor) start(specs []step.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range specs {
		sp := &specs[i]
		if s.steps[sp.ID] != nil {
			continue
		}
		if !uniqueRanks(sp.Tasks) {
			return unix.EINVAL
		}
		if len(s.steps) >= MaxSteps {
			return unix.ENOSPC
		}
		r := newRun(s, *sp)
		s.steps[r.id] = r
		s.jour.start(r)
		s.submit(r)
	}
	return nil
}

func uniqueRanks(tasks []step.Task) bool {
	seen := make(map[int]bool, len(tasks))
	for i := range tasks {
		if seen[tasks[i].Rank] {
			return false
		}
		seen[tasks[i].Rank] = true
	}
	return len(tasks) > 0
}

func (s *supervisor) forget(ids []step.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if r := s.steps[id]; r != nil && r.state == step.Ended {
			s.drop(id)
		}
	}
	s.jour.compact(s)
	return nil
}

// drop forgets an ended step; mu is held.
func (s *supervisor) drop(id step.ID) {
	r := s.steps[id]
	delete(s.steps, id)
	s.jour.forget(id)
	r.out.close()
	s.removeScript(r)
}

// stop kills every step, waits for their end, calls told and ends the process.
func (s *supervisor) stop(told func()) error {
	s.mu.Lock()
	var ids []step.ID
	for id := range s.steps {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.signal(id, syscall.SIGKILL, step.All)
	}
	late := false
	t := time.AfterFunc(stopWait, func() { s.mu.Lock(); late = true; s.moved.Broadcast(); s.mu.Unlock() })
	defer t.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !late && s.busy() {
		s.moved.Wait()
	}
	if late {
		return errors.New("processes did not end")
	}
	for id := range s.steps {
		s.drop(id)
	}
	told()
	s.end("")
	return nil
}

func (s *supervisor) busy() bool {
	for _, r := range s.steps {
		if r.state != step.Ended {
			return true
		}
	}
	return false
}
