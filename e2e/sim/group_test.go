package sim

import (
	"bytes"
	"slices"
	"time"

	"dev.muster/agent/heartbeat"
	"dev.muster/cluster"
)

// Pace of the servers.
const (
	commitTime = 3 * time.Millisecond // until a proposal is in the log
	electTime  = 3 * time.Second      // without a leader, at most
	repeat     = time.Second          // then a call without an answer is made again
	lag        = 8                    // a follower applies what is new at one of so many entries
)

// replica is one server: its state, and how many entries of the log are in it.
type replica struct {
	s  *cluster.State
	at int
}

// proposal is commands on their way into the log. done hears what came of them; nil says that nobody knows.
type proposal struct {
	lines [][]byte
	done  func([]cluster.Applied)
}

// group is three servers and their log. The leader's own knowledge is lost with its lead: proposals not
// yet in the log, and whom it has heard of.
type group struct {
	servers    [3]*replica
	leads      int // the server that does; -1: none
	term       int
	log        [][]byte // committed, from the entry cut on: older ones are in every state
	cut        int
	seen       int // entries that have been judged
	flight     []*proposal
	heartbeats *heartbeat.Heartbeats
	restored   int // states that were made from a snapshot
}

func newGroup() group {
	g := group{heartbeats: heartbeat.New()}
	for i := range g.servers {
		g.servers[i] = &replica{s: cluster.NewState()}
	}
	return g
}

func (g *group) end() int { return g.cut + len(g.log) }

// propose sends commands to the leader; without one done hears that nobody knows.
func (w *world) propose(by cluster.Identity, done func([]cluster.Applied), cmds ...cluster.Command) {
	if w.leads < 0 {
		done(nil)
		return
	}
	p := &proposal{done: done}
	for _, c := range cmds {
		text, err := cluster.EncodeEntry(cluster.Entry{At: w.now, By: by, Cmd: c})
		if err != nil {
			w.fail("encode: %v", err)
		}
		p.lines = append(p.lines, text)
	}
	w.flight = append(w.flight, p)
	w.after(commitTime, func() {
		if i := slices.Index(w.flight, p); i >= 0 {
			w.flight = slices.Delete(w.flight, i, i+1)
			done(w.commit(p.lines))
		}
	})
}

// write has commands done as front-ends do: again until they are answered, which does twice what was
// done the first time.
func (w *world) write(by cluster.Identity, done func([]cluster.Applied), cmds ...cluster.Command) {
	w.propose(by, func(out []cluster.Applied) {
		switch {
		case out == nil:
			w.after(repeat, func() { w.write(by, done, cmds...) })
		case done != nil:
			done(out)
		}
	}, cmds...)
}

// commit puts lines into the log. The leader applies them at once, the others in their own time.
func (w *world) commit(lines [][]byte) []cluster.Applied {
	w.log = append(w.log, lines...)
	out := w.advance(w.servers[w.leads], w.end())
	for i, r := range w.servers {
		if i != w.leads && w.rng.IntN(lag) == 0 {
			w.advance(r, r.at+w.rng.IntN(w.end()-r.at+1))
		}
	}
	if w.end()-w.cut >= w.plan.check*40 {
		w.compare()
	}
	w.wake(10 * time.Millisecond)
	return out
}

// advance applies the log on one server up to an entry.
func (w *world) advance(r *replica, to int) (out []cluster.Applied) {
	for r.at < to {
		text := w.log[r.at-w.cut]
		e, err := cluster.DecodeEntry(text)
		if err != nil {
			w.fail("decode: %v", err)
		}
		first := r.at == w.seen
		var before []byte
		if first && w.plan.check == 1 {
			before = encode(w.t, r.s, true)
		}
		r.at++
		e.Index = uint64(r.at)
		a := r.s.Apply(e)
		if a.Panic != "" {
			w.fail("%s", a.Panic)
		}
		if out = append(out, a); first {
			w.seen++
			w.judge(r.s, text, a, before)
		}
	}
	return out
}

// judge checks an entry when the first server has applied it; before is the state without it, or nil.
func (w *world) judge(s *cluster.State, text []byte, a cluster.Applied, before []byte) {
	if a.Err != nil {
		if w.refused++; before != nil && !bytes.Equal(before, encode(w.t, s, true)) {
			w.fail("refused %s changed the state: %v", text, a.Err)
		}
		if a.Err.Code == cluster.Internal {
			w.fail("%s: %v", text, a.Err)
		}
	}
	w.follow(a.Events)
	if w.seen%w.plan.check == 0 {
		if err := s.Check(); err != nil {
			w.fail("after %s: %v", text, err)
		}
	}
}

// compare wants all servers to have the same bytes at the end of the log.
func (w *world) compare() {
	var first []byte
	for i, r := range w.servers {
		w.advance(r, w.end())
		switch text := encode(w.t, r.s, false); {
		case i == 0:
			first = text
		case !bytes.Equal(text, first):
			w.fail("servers 0 and %d were fed the same entries and differ after %d", i, w.end())
		}
	}
	w.cut += len(w.log)
	w.log = nil
	w.compared++
}

// restore makes a server's state again from a snapshot: its own, as after a restart, or the leader's, as
// when it was away for long.
func (w *world) restore(i int) {
	from := w.servers[i]
	if w.leads >= 0 && w.rng.IntN(2) == 0 {
		from = w.servers[w.leads]
	}
	s, err := cluster.Decode(bytes.NewReader(encode(w.t, from.s, false)))
	if err != nil {
		w.fail("restore server %d: %v", i, err)
	}
	w.servers[i] = &replica{s, from.at}
	w.restored++
}

// depose ends the leader. Of its proposals the last ones are lost; the others come into the log all the
// same, but nobody is told.
func (w *world) depose() {
	if w.leads < 0 {
		return
	}
	old, flight := w.leads, w.flight
	w.leads, w.flight, w.stepAt = -1, nil, time.Time{}
	w.term++
	var passed [][]byte
	for _, p := range flight[:w.rng.IntN(len(flight)+1)] {
		passed = append(passed, p.lines...)
	}
	for _, p := range flight {
		p.done(nil)
	}
	if w.rng.IntN(2) == 0 {
		w.restore(old)
	}
	for _, n := range w.nodes {
		n.hungUp()
	}
	w.after(time.Duration(w.rng.Int64N(int64(electTime))), func() { w.elect((old+1+w.rng.IntN(2))%3, passed) })
}

// elect makes a server the leader: it applies the whole log first, and trusts every node for a while.
func (w *world) elect(i int, passed [][]byte) {
	w.leads, w.s = i, w.servers[i].s
	w.advance(w.servers[i], w.end())
	w.commit(passed)
	w.heartbeats = heartbeat.New()
	w.heartbeats.Grace(w.s.Snapshot(), w.now)
	w.wake(0)
}
