package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// A tree carries the fences of all nodes from server to server: each joins its part and those of its children's
// subtrees, and hands them to its parent. The root has the data of all, which goes down the same way. The messages
// that neighbors tell each other are Fence and Fenced, with the data of a subtree in the one and that of all nodes
// in the other.

// incomplete is the ID of a Fence or Fenced from neighbour to neighbour without data, since a part of it is lost.
const incomplete = 1

// fenceWay is how the fences of all nodes travel.
type fenceWay int

const (
	byHub     fenceWay = iota
	undecided          // they wait until the nodes have agreed
	byTree
)

// edge is the connection to a neighbour.
type edge struct {
	node    int
	name    string
	conn    Conn
	broken  error // nothing comes any more
	suspect bool  // that has cost a fence
}

// tree is a server's place among the others. It is guarded by the mutex of its link.
type tree struct {
	node     int
	rank     int   // of a local task, in whose name the server ends the step
	parent   *edge // nil: this is the root
	children []*edge
	parts    map[string]*gathering // of fences that this node's subtree has not all come to
}

// gathering is what has come for a fence: by node, this one's part or that of a child's subtree.
type gathering struct {
	parts      map[int][]byte
	incomplete bool
}

// has reports whether a node's part has come.
func (g *gathering) has(node int) bool {
	_, came := g.parts[node]
	return came
}

// brokenTime is how long a node that a fence could not reach may remain in the step. A node that has ended breaks its
// connections, too: srun says soon that it is lost, and why.
const brokenTime = 10 * time.Second

// lostTime is how long the last words of a lost node are waited for.
const lostTime = 30 * time.Second

// maxBegun bounds the fences that a child may come to before this node does.
const maxBegun = 1000

// edges are all connections.
func (t *tree) edges() []*edge {
	if t.parent == nil {
		return t.children
	}
	return slices.Concat([]*edge{t.parent}, t.children)
}

// close ends all connections, and so who listens to them.
func (t *tree) close() {
	for _, e := range t.edges() {
		_ = e.conn.Close()
	}
}

// whole reports whether a fence goes by the tree; mu is held.
func (l *Link) whole(nodes []int) bool { return l.way == byTree && len(nodes) == l.size }

// sendPart sends this node's part of a fence; mu is held.
func (l *Link) sendPart(m Message) {
	switch {
	case l.whole(m.Nodes):
		l.gather(l.tree.node, m)
	case l.way == undecided && len(m.Nodes) == l.size:
		l.held = append(l.held, m)
	default:
		l.send(m)
	}
}

// decide has fences go by a tree from now on, or by the hub if there is none.
func (l *Link) decide(t *tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.way = byHub
	if t != nil {
		l.way = byTree
		l.tree = t
	}
	for _, m := range l.held {
		if _, waits := l.fences[m.Key]; waits {
			m.ID = keepsOwn
			l.sendPart(m)
		}
	}
	l.held = nil
	if t == nil {
		return
	}
	for _, e := range t.edges() {
		go l.listenTo(e) // ends with the connection
	}
}

// gather takes a part of a fence; mu is held.
func (l *Link) gather(from int, m Message) {
	t := l.tree
	g := t.parts[m.Key]
	if g == nil {
		g = &gathering{parts: map[int][]byte{}}
		t.parts[m.Key] = g
	}
	g.parts[from] = m.Data
	g.incomplete = g.incomplete || from != t.node && m.ID == incomplete
	l.passOn(m.Key)
}

// passOn passes a fence on once each part has come, or cannot come any more; mu is held.
func (l *Link) passOn(key string) {
	t := l.tree
	g := t.parts[key]
	if !g.has(t.node) {
		return
	}
	all := [][]byte{g.parts[t.node]}
	for _, e := range t.children {
		switch {
		case g.has(e.node):
			all = append(all, g.parts[e.node])
		case e.broken == nil:
			return
		default:
			g.incomplete = true
			l.blame(e)
		}
	}
	delete(t.parts, key)
	m := Message{Kind: Fence, Key: key}
	if g.incomplete {
		m.ID = incomplete
	} else {
		m.Data = slices.Concat(all...)
	}
	l.passUp(m)
}

// passUp hands a subtree's data to the parent, or begins the way down; mu is held.
func (l *Link) passUp(m Message) {
	up := l.tree.parent
	switch {
	case up == nil:
		m.Kind = Fenced
		go l.handDown(m) // ends when the children have it
	case up.broken != nil:
		l.blame(up)
		go l.handDown(Message{Kind: Fenced, ID: incomplete, Key: m.Key})
	default:
		go up.send(m.Append(nil)) // ends when the parent has it
	}
}

// send sends a message. That it fails is found out by who listens.
func (e *edge) send(text []byte) { _, _ = e.conn.Write(text) }

// handDown gives the end of a fence to the children and then to the tasks here: after their last fence these end, and
// their server with them.
func (l *Link) handDown(m Message) {
	text := m.Append(nil)
	var sent sync.WaitGroup
	for _, e := range l.tree.children {
		sent.Go(func() { e.send(text) })
	}
	sent.Wait()
	if m.ID == incomplete {
		l.finish(m.Key, func(waitingFence) ([]byte, error) { return nil, ErrLost })
		return
	}
	l.finish(m.Key, func(waitingFence) ([]byte, error) { return m.Data, nil })
}

// listenTo takes what a neighbour says, to the end of the connection.
func (l *Link) listenTo(e *edge) {
	defer e.conn.Close()
	r := bufio.NewReader(e.conn)
	for {
		m, err := ReadMessage(r)
		switch {
		case err != nil:
		case e == l.tree.parent && m.Kind == Fenced:
			l.handDown(m) // before the parent's end is heard of, which would be that of the fence
		default:
			err = l.hear(e, m)
		}
		if err != nil {
			l.breakOff(e, err)
			return
		}
	}
}

// hear takes the part of a child's subtree.
func (l *Link) hear(e *edge, m Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tree
	if m.Kind != Fence || e == t.parent {
		return fmt.Errorf("%w: kind %d", ErrMessage, m.Kind)
	}
	g := t.parts[m.Key]
	if g == nil && len(t.parts) >= maxBegun {
		return fmt.Errorf("%w: more than %d fences", ErrMessage, maxBegun)
	}
	if g != nil && g.has(e.node) {
		return fmt.Errorf("%w: it comes to fence %q again", ErrMessage, m.Key)
	}
	l.gather(e.node, m)
	return nil
}

// breakOff ends the fences that wait for what a neighbour brings no more, and the step if it has said nonsense.
func (l *Link) breakOff(e *edge, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left {
		return
	}
	e.broken = err
	if errors.Is(err, ErrMessage) && !errors.Is(err, io.ErrUnexpectedEOF) {
		l.abort(fmt.Sprintf("node %s has sent nonsense: %v", e.name, err))
	}
	if e != l.tree.parent {
		for key := range l.tree.parts {
			l.passOn(key)
		}
		return
	}
	for key, f := range l.fences {
		if l.whole(f.nodes) && l.tree.parts[key] == nil { // its data has gone up
			l.passUp(Message{Kind: Fence, Key: key})
		}
	}
}

// blame has the step end if a fence fails by a connection of nodes that both remain; mu is held.
func (l *Link) blame(e *edge) {
	if e.suspect {
		return
	}
	e.suspect = true
	time.AfterFunc(l.brokenTime, func() { l.judge(e) })
}

// judge ends the step if a node that a fence could not reach remains in it.
func (l *Link) judge(e *edge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lost[e.node] && !l.left {
		l.abort(fmt.Sprintf("the connection to node %s has broken in a fence: %v", e.name, e.broken))
	}
}

// abort ends the step in the name of a local task; mu is held.
func (l *Link) abort(text string) {
	l.send(Message{Kind: Abort, ID: 1, Node: l.tree.rank, Key: text})
}

// loseTree waits for the last words of a lost node, and to be rid of those for it; mu is held. The fences of all end
// when the tree says so: a node that has done its part and has ended is called lost, too.
func (l *Link) loseTree(node int) {
	for _, e := range l.tree.edges() {
		if e.node == node {
			_ = e.conn.SetDeadline(time.Now().Add(lostTime))
		}
	}
}
