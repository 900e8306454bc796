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

// Link is a server's end of the stream to the hub, for servers that may wait for nothing: what they
// say is queued, and what comes back is handed to functions, which Listen calls one after the other
// and which must not wait either.
type Link struct {
	up io.Writer

	mu     sync.Mutex
	moved  *sync.Cond
	queue  []Message
	fences map[string]waitingFence
	calls  map[uint64]waitingCall
	lastID uint64
	lost   map[int]bool

	// way is that of fences of all nodes, which are so many.
	way  fenceWay
	size int
	held []Message // parts of fences, until it is decided
	tree *tree
	// leave ends what Join has begun, and left is that it has.
	leave      func()
	left       bool
	joinTime   time.Duration
	brokenTime time.Duration
	// isLost tells the server of a lost node, and late are those of which it is told after a fence.
	isLost func(node int)
	late   []int
}

type waitingFence struct {
	nodes []int
	own   []byte
	done  func(data []byte, err error)
}

type waitingCall struct {
	node   int
	answer func(data []byte, err error)
}

// ErrLost is the error of what a lost node had to take part in.
var ErrLost = errors.New("a node of the step is lost")

// NewLink makes the link of a server that writes to the hub by up.
func NewLink(up io.Writer) *Link {
	l := &Link{
		up:         up,
		fences:     map[string]waitingFence{},
		calls:      map[uint64]waitingCall{},
		lost:       map[int]bool{},
		leave:      func() {},
		joinTime:   joinTime,
		brokenTime: brokenTime,
	}
	l.moved = sync.NewCond(&l.mu)
	go l.write()
	return l
}

// write sends what is queued, until the hub is gone.
func (l *Link) write() {
	for {
		l.mu.Lock()
		for len(l.queue) == 0 {
			l.moved.Wait()
		}
		list := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, m := range list {
			if _, err := l.up.Write(m.Append(nil)); err != nil {
				return // the end of what Listen reads tells
			}
		}
	}
}

// send queues a message; mu is held.
func (l *Link) send(m Message) {
	l.queue = append(l.queue, m)
	l.moved.Signal()
}

// Fence has this node take part in a fence; done gets the data of all nodes that do. They name the
// fence and each other alike.
func (l *Link) Fence(key string, nodes []int, data []byte, done func(data []byte, err error)) {
	l.mu.Lock()
	_, twice := l.fences[key]
	gone := slices.ContainsFunc(nodes, func(n int) bool { return l.lost[n] })
	if !twice && !gone {
		l.fences[key] = waitingFence{nodes, data, done}
		l.sendPart(Message{Kind: Fence, ID: keepsOwn, Key: key, Nodes: nodes, Data: data})
	}
	l.mu.Unlock()
	switch {
	case twice:
		done(nil, fmt.Errorf("%w: fence %q is under way already", ErrMessage, key))
	case gone:
		done(nil, ErrLost)
	}
}

// Call asks a node, or the hub, something. The answer is an error if there is none; data may tell more of it.
func (l *Link) Call(node int, what string, data []byte, answer func(data []byte, err error)) {
	l.mu.Lock()
	gone := l.lost[node]
	if !gone {
		l.lastID++
		l.calls[l.lastID] = waitingCall{node, answer}
		l.send(Message{Kind: Call, ID: l.lastID, Node: node, Key: what, Data: data})
	}
	l.mu.Unlock()
	if gone {
		answer(nil, ErrLost)
	}
}

// Publish has the hub keep what a name stands for; with once, the first lookup takes it away.
func (l *Link) Publish(name, value string, once bool, answer func(data []byte, err error)) {
	args := []string{name, value}
	if once {
		args = append(args, publishOnce)
	}
	l.Call(HubNode, callPublish, appendTexts(nil, args...), answer)
}

// Lookup asks the hub what a name stands for; with wait, it is answered once the name is published.
func (l *Link) Lookup(name string, wait bool, answer func(data []byte, err error)) {
	args := []string{name}
	if wait {
		args = append(args, lookupWaits)
	}
	l.Call(HubNode, callLookup, appendTexts(nil, args...), answer)
}

// Unpublish has the hub forget a name.
func (l *Link) Unpublish(name string, answer func(data []byte, err error)) {
	l.Call(HubNode, callUnpublish, appendTexts(nil, name), answer)
}

// Answer answers a call of another node. failed is empty, or says why there is no answer.
func (l *Link) Answer(call Message, data []byte, failed string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send(Message{Kind: Reply, ID: call.ID, Node: call.Node, Key: failed, Data: data})
}

// Abort asks for the step's end.
func (l *Link) Abort(rank, code int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send(Message{Kind: Abort, ID: uint64(max(code, 0)), Node: rank, Key: text})
}

// Listen takes what the hub says, to its end: called gets the calls of other nodes, lost the nodes
// that are gone.
func (l *Link) Listen(from io.Reader, called func(Message), lost func(node int)) error {
	defer l.end()
	l.mu.Lock()
	l.isLost = lost
	l.mu.Unlock()
	r := bufio.NewReader(from)
	for {
		m, err := ReadMessage(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch m.Kind {
		case Fenced:
			l.endFence(m)
		case Reply:
			l.endCall(m)
		case Call:
			called(m)
		case Lost:
			if !l.lose(m.Node) {
				lost(m.Node)
			}
		default:
			return fmt.Errorf("%w: kind %d", ErrMessage, m.Kind)
		}
	}
}

// end leaves the tree.
func (l *Link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	l.leave()
}

// endFence ends a fence as the hub says.
func (l *Link) endFence(m Message) {
	l.finish(m.Key, func(f waitingFence) ([]byte, error) { return withOwn(&m, f.own) })
}

// finish ends a fence, unless a lost node has ended it before.
func (l *Link) finish(key string, data func(waitingFence) ([]byte, error)) {
	l.mu.Lock()
	f, waits := l.fences[key]
	delete(l.fences, key)
	var late []int
	if !l.inWhole() {
		late = l.late
		l.late = nil
	}
	l.mu.Unlock()
	if waits {
		f.done(data(f))
	}
	for _, node := range late {
		l.isLost(node)
	}
}

// inWhole reports whether a fence is under way in the tree; mu is held.
func (l *Link) inWhole() bool {
	for _, f := range l.fences {
		if l.whole(f.nodes) {
			return true
		}
	}
	return false
}

// withOwn is the data of all nodes, of which the own may be missing in a message.
func withOwn(m *Message, own []byte) ([]byte, error) {
	if m.ID == 0 {
		return m.Data, nil
	}
	at := m.ID - 1
	if at > uint64(len(m.Data)) {
		return nil, fmt.Errorf("%w: a part at %d of %d bytes", ErrMessage, at, len(m.Data))
	}
	return slices.Concat(m.Data[:at], own, m.Data[at:]), nil
}

func (l *Link) endCall(m Message) {
	l.mu.Lock()
	c, waits := l.calls[m.ID]
	delete(l.calls, m.ID)
	l.mu.Unlock()
	if !waits {
		return
	}
	if m.Key != "" {
		c.answer(m.Data, errors.New(m.Key))
		return
	}
	c.answer(m.Data, nil)
}

// lose ends what a lost node will take no part in any more. With a fence under way in the tree the server is told
// later: the node may have ended well after that fence, of which the tree brings the end.
func (l *Link) lose(node int) (later bool) {
	var ends []func([]byte, error)
	l.mu.Lock()
	l.lost[node] = true
	if l.tree != nil {
		l.loseTree(node)
	}
	if later = l.inWhole(); later {
		l.late = append(l.late, node)
	}
	for key, f := range l.fences {
		if slices.Contains(f.nodes, node) && !l.whole(f.nodes) {
			ends = append(ends, f.done)
			delete(l.fences, key)
		}
	}
	for id, c := range l.calls {
		if c.node == node {
			ends = append(ends, c.answer)
			delete(l.calls, id)
		}
	}
	l.mu.Unlock()
	for _, end := range ends {
		end(nil, ErrLost)
	}
	return later
}
