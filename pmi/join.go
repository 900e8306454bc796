package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// treeNodes is from how many nodes on fences go by a tree.
const treeNodes = 8

// joinTime is how long servers try to reach each other. A fence waits for that, and goes by the hub if they do not.
const joinTime = 5 * time.Second

// Conn is a connection to the server of another node.
type Conn = interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// Credential is by what the servers of a step know each other: that of package peer, which says what its methods do.
type Credential interface {
	Digest() string
	Listen(host string) (addr string, err error)
	Close() error
	Await(ctx context.Context, known func(digest string) bool, give func(Conn, string))
	Connect(ctx context.Context, addr string, known func(digest string) bool) (Conn, string, error)
}

// joining is a server that looks for its place in a tree.
type joining struct {
	link  *Link
	setup *Setup
	say   func(format string, args ...any)
	own   Credential
}

// WayEnv is a variable of the step's environment: with the value WayHub fences go by srun, whatever the size of the
// step. It is for networks that drop what nodes say to each other, where each step would try for joinTime.
const (
	WayEnv = "MUSTER_MPI_FENCE"
	WayHub = "srun"
)

// Join has the fences of all nodes go by a tree of their servers, if the step has many nodes and the servers can reach
// each other. It waits for nothing. say writes a line for the step's user.
func (l *Link) Join(s *Setup, say func(format string, args ...any), newCredential func() (Credential, error)) {
	way := os.Getenv(WayEnv)
	if way != "" && way != WayHub && s.Node == 0 {
		say("%s=%s is not known: leave it out, or set it to %s", WayEnv, way, WayHub)
	}
	if way != WayHub && len(s.Ranks) >= treeNodes && s.Addr != "" {
		l.join(s, say, newCredential)
	}
}

// join is Join for a step of any size.
func (l *Link) join(s *Setup, say func(format string, args ...any), newCredential func() (Credential, error)) {
	j := &joining{link: l, setup: s, say: say}
	var err error
	if j.own, err = newCredential(); err != nil {
		return // this node's parts go to the hub, which has the others do the same
	}
	addr, err := j.own.Listen(s.Addr)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.mu.Lock()
	l.size = len(s.Ranks)
	l.way = undecided
	l.leave = cancel
	l.mu.Unlock()
	offer := appendTexts(nil, addr, j.own.Digest())
	l.Call(HubNode, callTree, offer, func(data []byte, err error) {
		go j.connect(ctx, data, err) // ends with ctx, or after joinTime
	})
}

// connect makes the connections to the neighbours, and agrees with all nodes that they go by the tree.
func (j *joining) connect(ctx context.Context, data []byte, refused error) {
	if refused != nil {
		_ = j.own.Close()
		j.link.decide(nil)
		return
	}
	near, err := readNeighbours(data, j.setup.Node, len(j.setup.Ranks))
	var t *tree
	if err == nil {
		t, err = j.reach(ctx, near)
	}
	_ = j.own.Close()
	failed := ""
	if err != nil {
		failed = err.Error()
	}
	j.link.Call(HubNode, callJoined, appendTexts(nil, failed), func(_ []byte, err error) { j.decide(ctx, t, err) })
}

// decide ends the search: all nodes have their connections, or err says why one has not.
func (j *joining) decide(ctx context.Context, t *tree, err error) {
	if err == nil {
		context.AfterFunc(ctx, t.close)
		j.link.decide(t)
		return
	}
	if t != nil {
		t.close()
	}
	if j.setup.Node == 0 { // one of them tells
		go j.say("fences go through srun: %v (set %s=%s to disable this)", err, WayEnv, WayHub)
	}
	j.link.decide(nil)
}

// reached is a connection to a neighbour, or why there is none.
type reached struct {
	edge *edge
	err  error
}

// reach makes the connections to all neighbours.
func (j *joining) reach(ctx context.Context, near []neighbour) (*tree, error) {
	ctx, cancel := context.WithTimeout(ctx, j.link.joinTime)
	defer cancel()
	to := make(chan reached)
	got := map[int]*edge{}
	go j.accept(ctx, near, to) // ends with the listener
	if len(near) > 0 && near[0].node < j.setup.Node {
		go j.dial(ctx, near[0], to) // ends with ctx
	}
	var err error
	for err == nil && len(got) < len(near) {
		err = collect(ctx, to, got)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = j.missing(near, got)
	}
	t := &tree{node: j.setup.Node, rank: j.setup.Local()[0], parts: map[string]*gathering{}}
	for _, n := range near {
		switch e := got[n.node]; {
		case e == nil:
		case n.node < t.node:
			t.parent = e
		default:
			t.children = append(t.children, e)
		}
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// collect takes one connection.
func collect(ctx context.Context, from <-chan reached, got map[int]*edge) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-from:
		if r.err != nil {
			return r.err
		}
		if old := got[r.edge.node]; old != nil {
			_ = old.conn.Close()
		}
		got[r.edge.node] = r.edge
		return nil
	}
}

// missing says which neighbour has not been reached.
func (j *joining) missing(near []neighbour, got map[int]*edge) error {
	for _, n := range near {
		if got[n.node] == nil {
			return fmt.Errorf("nodes %s and %s have not reached each other (at %s) in %s",
				j.name(j.setup.Node), j.name(n.node), n.addr, j.link.joinTime)
		}
	}
	return nil
}

// name is a node's name.
func (j *joining) name(node int) string {
	if node < len(j.setup.Hosts) {
		return j.setup.Hosts[node]
	}
	return strconv.Itoa(node)
}

// accept waits for the children. Others are turned away.
func (j *joining) accept(ctx context.Context, near []neighbour, to chan<- reached) {
	j.own.Await(ctx, knows(near), func(conn Conn, digest string) {
		give(ctx, to, reached{edge: j.edge(conn, near, digest)})
	})
}

// dial connects to the parent.
func (j *joining) dial(ctx context.Context, parent neighbour, to chan<- reached) {
	near := []neighbour{parent}
	conn, digest, err := j.own.Connect(ctx, parent.addr, knows(near))
	if err != nil {
		err = fmt.Errorf("node %s does not reach node %s: %w", j.name(j.setup.Node), j.name(parent.node), err)
		give(ctx, to, reached{err: err})
		return
	}
	give(ctx, to, reached{edge: j.edge(conn, near, digest)})
}

// edge is the connection to the neighbour that is known by a digest.
func (j *joining) edge(conn Conn, near []neighbour, digest string) *edge {
	n, _ := find(near, digest)
	return &edge{node: n.node, name: j.name(n.node), conn: conn}
}

// knows tells neighbours from others.
func knows(near []neighbour) func(digest string) bool {
	return func(digest string) bool {
		_, is := find(near, digest)
		return is
	}
}

// give hands a connection over, or closes it if nobody waits for it any more.
func give(ctx context.Context, to chan<- reached, r reached) {
	select {
	case to <- r:
	case <-ctx.Done():
		if r.edge != nil {
			_ = r.edge.conn.Close()
		}
	}
}

// find is the neighbour that is known by a digest.
func find(near []neighbour, digest string) (neighbour, bool) {
	for _, n := range near {
		if n.digest == digest {
			return n, true
		}
	}
	return neighbour{}, false
}
