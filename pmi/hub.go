package pmi

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Calls that the hub answers itself: a name service for MPI_Publish_name and what goes with it.
// Data is a name and, to publish, what it stands for. More may be said: to publish, that the first
// lookup takes the name away; to a lookup, that it waits for the name.
const (
	callPublish   = "publish"
	callLookup    = "lookup"
	callUnpublish = "unpublish"
	publishOnce   = "once"
	lookupWaits   = "wait"
)

// Aborted is the end that a task has asked for.
type Aborted struct {
	Rank, Code int
	Text       string
}

// Hub is srun's part: it ends fences and carries calls from node to node.
type Hub struct {
	nodes   []io.Writer // to the server of each node; one goroutine writes to each
	aborted func(Aborted)

	mu     *sync.Mutex // one for a step and those that its tasks have asked for
	fences map[string]*fence
	names  *names
	// start is for what a task asks for by MPI_Comm_spawn, and birth is how this step has come about; nil: not so.
	start func(*Spawn, func(job string, err error))
	birth *birth
	// fan and meetings are for the tree by which fences of all nodes may go.
	fan      int
	meetings map[string]*meeting
	lost     map[int]bool
	queues   []queue
	// written is how many writers have ended.
	written int
}

// names are those that the tasks of a step have published, and of those that its tasks have asked for.
type names struct {
	known map[string]published
	waits []waitingLookup
}

// published is what a name stands for.
type published struct {
	value string
	once  bool
}

// waitingLookup is a call that is answered once its name is published.
type waitingLookup struct {
	name string
	hub  *Hub
	node int
	id   uint64
}

// fence is one that is under way.
type fence struct {
	nodes []int
	parts map[int][]byte
	keep  map[int]bool // they need not be sent their own part
}

// queue is what a node has not been sent yet.
type queue struct {
	list   [][]byte // messages, or parts of them
	moved  *sync.Cond
	closed bool
}

// NewHub makes the hub of a step whose servers read what is written to nodes. aborted is called
// when a task asks for the step's end, perhaps several times.
func NewHub(nodes []io.Writer, aborted func(Aborted)) *Hub {
	return newHub(nodes, aborted, &sync.Mutex{}, &names{known: map[string]published{}})
}

func newHub(nodes []io.Writer, aborted func(Aborted), mu *sync.Mutex, names *names) *Hub {
	h := &Hub{
		nodes:    nodes,
		aborted:  aborted,
		mu:       mu,
		fences:   map[string]*fence{},
		names:    names,
		fan:      fanOut,
		meetings: newMeetings(),
		lost:     map[int]bool{},
		queues:   make([]queue, len(nodes)),
	}
	for i := range h.queues {
		h.queues[i].moved = sync.NewCond(h.mu)
		go h.write(i)
	}
	return h
}

// Close ends the writers, once each has written what it had.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.queues {
		h.queues[i].closed = true
		h.queues[i].moved.Signal()
	}
}

// write sends a node what is for it. A node that does not read holds up nobody else.
func (h *Hub) write(node int) {
	defer h.ended()
	q := &h.queues[node]
	for {
		h.mu.Lock()
		for len(q.list) == 0 && !q.closed {
			q.moved.Wait()
		}
		list := q.list
		q.list = nil
		h.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, text := range list {
			if _, err := h.nodes[node].Write(text); err != nil {
				return // whoever reads from the node sees its end
			}
		}
	}
}

// ended counts a writer that has nothing more to write.
func (h *Hub) ended() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written++
}

// send queues a message for a node; mu is held.
func (h *Hub) send(node int, m Message) { h.sendText(node, m.Append(nil)) }

// sendText queues an encoded message, in parts; mu is held.
func (h *Hub) sendText(node int, parts ...[]byte) {
	h.queues[node].list = append(h.queues[node].list, parts...)
	h.queues[node].moved.Signal()
}

// Serve takes what the server of a node says, to its end. An error is one of the server's, which
// speaks nonsense.
func (h *Hub) Serve(node int, from io.Reader) error {
	r := bufio.NewReader(from)
	for {
		m, err := ReadMessage(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := h.take(node, m); err != nil {
			return err
		}
	}
}

// take does what one message of a node asks for.
func (h *Hub) take(node int, m Message) error {
	if m.Kind == Abort {
		h.aborted(Aborted{Rank: m.Node, Code: int(m.ID), Text: m.Key})
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.Kind {
	case Fence:
		return h.fence(node, m)
	case Call:
		return h.call(node, m)
	case Reply:
		if m.Node < 0 || m.Node >= len(h.nodes) {
			return fmt.Errorf("%w: an answer for node %d of %d", ErrMessage, m.Node, len(h.nodes))
		}
		h.send(m.Node, Message{Kind: Reply, ID: m.ID, Node: node, Key: m.Key, Data: m.Data})
		return nil
	}
	return fmt.Errorf("%w: kind %d", ErrMessage, m.Kind)
}

// fence takes a node's part, and with the last one ends the fence; mu is held.
func (h *Hub) fence(node int, m Message) error {
	if _, knows := h.meetings[callTree].calls[node]; !knows {
		h.object(callTree, fmt.Sprintf("node %d knows no tree", node))
	}
	nodes := slices.Clone(m.Nodes)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) == 0 {
		for i := range h.nodes {
			nodes = append(nodes, i)
		}
	}
	if b := h.birth; b != nil && !b.asked[node] {
		return fmt.Errorf("node %d knows no MPI_Comm_spawn: upgrade its client", node)
	}
	if nodes[0] < 0 || nodes[len(nodes)-1] >= len(h.nodes) || !slices.Contains(nodes, node) {
		return fmt.Errorf("%w: a fence of nodes %v by node %d of %d", ErrMessage, nodes, node, len(h.nodes))
	}
	f := h.fences[m.Key]
	if f == nil {
		f = &fence{nodes: nodes, parts: map[int][]byte{}, keep: map[int]bool{}}
		h.fences[m.Key] = f
	}
	if _, twice := f.parts[node]; twice || !slices.Equal(f.nodes, nodes) {
		return fmt.Errorf("%w: node %d comes to fence %q again, or with others", ErrMessage, node, m.Key)
	}
	f.parts[node] = m.Data
	f.keep[node] = m.ID == keepsOwn
	if len(f.parts) < len(f.nodes) {
		return nil
	}
	delete(h.fences, m.Key)
	h.endFence(m.Key, f)
	return nil
}

// smallPart is a part that is sent back to its own node, since that is one write.
const smallPart = 16 << 10

// endFence sends all nodes of a fence what the others have; mu is held. The data may be large: it is there once.
func (h *Hub) endFence(key string, f *fence) {
	size := 0
	for _, n := range f.nodes {
		size += len(f.parts[n])
	}
	whole := Message{Kind: Fenced, Key: key}.appendHead(nil, size)
	for _, n := range f.nodes {
		whole = append(whole, f.parts[n]...)
	}
	data := whole[len(whole)-size:]
	at := 0
	for _, n := range f.nodes {
		own := len(f.parts[n])
		if f.keep[n] && own > smallPart {
			head := Message{Kind: Fenced, ID: uint64(at) + 1, Key: key}.appendHead(nil, len(data)-own)
			h.sendText(n, head, data[:at], data[at+own:])
		} else {
			h.sendText(n, whole)
		}
		at += own
	}
}

// call leads a call to its node, or answers it; mu is held.
func (h *Hub) call(node int, m Message) error {
	switch {
	case m.Node == HubNode:
		h.serve(node, m)
	case m.Node < 0 || m.Node >= len(h.nodes):
		return fmt.Errorf("%w: a call of node %d of %d", ErrMessage, m.Node, len(h.nodes))
	case h.lost[m.Node]:
		h.send(node, Message{Kind: Reply, ID: m.ID, Node: m.Node, Key: "the node is lost"})
	default:
		h.send(m.Node, Message{Kind: Call, ID: m.ID, Node: node, Key: m.Key, Data: m.Data})
	}
	return nil
}

// maxNames bounds what tasks may publish, and how many may wait for names.
const maxNames = 100_000

// serve is the hub's own services; mu is held.
func (h *Hub) serve(node int, m Message) {
	reply := Message{Kind: Reply, ID: m.ID, Node: HubNode}
	args, err := readTexts(m.Data)
	switch {
	case err != nil || len(args) == 0:
		reply.Key = "the call cannot be read"
	case h.meetings[m.Key] != nil:
		h.meet(node, m, args)
		return
	case m.Key == callSpawn && h.start != nil:
		h.spawn(node, reply, args)
		return
	case m.Key == callBirth && h.birth != nil:
		reply.Data = h.birth.tell(node)
	case m.Key == callBegun && h.birth != nil:
		h.birth.begin(node, len(h.nodes))
	case m.Key == callPublish:
		reply.Key = h.names.publish(args)
	case m.Key == callUnpublish:
		value, known := h.names.known[args[0]]
		delete(h.names.known, args[0])
		reply.Key, reply.Data = notPublished(args[0], known), []byte(value.value)
	case m.Key == callLookup:
		value, known := h.names.known[args[0]]
		if !known && slices.Contains(args[1:], lookupWaits) && len(h.names.waits) < maxNames {
			h.names.waits = append(h.names.waits, waitingLookup{args[0], h, node, m.ID})
			return
		}
		if value.once {
			delete(h.names.known, args[0])
		}
		reply.Key, reply.Data = notPublished(args[0], known), []byte(value.value)
	default:
		reply.Key = m.Key + " cannot be done"
	}
	h.send(node, reply)
}

func notPublished(name string, known bool) string {
	if known {
		return ""
	}
	return fmt.Sprintf("%q is not published", name)
}

// publish takes a name, what it stands for and perhaps publishOnce, and answers who waits for it; mu is held.
func (n *names) publish(args []string) (failed string) {
	name := args[0]
	if _, known := n.known[name]; known {
		return fmt.Sprintf("%q is published already", name)
	}
	if len(args) < 2 || len(n.known) >= maxNames {
		return fmt.Sprintf("%q cannot be published: it stands for nothing, or there are %d names already",
			name, len(n.known))
	}
	value := published{args[1], slices.Contains(args[2:], publishOnce)}
	taken := false
	n.waits = slices.DeleteFunc(n.waits, func(w waitingLookup) bool {
		if w.name != name || taken {
			return false
		}
		w.hub.send(w.node, Message{Kind: Reply, ID: w.id, Node: HubNode, Data: []byte(value.value)})
		taken = value.once
		return true
	})
	if !taken {
		n.known[name] = value
	}
	return ""
}

// Lose tells the other servers that a node is gone.
func (h *Hub) Lose(node int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost[node] {
		return
	}
	h.lost[node] = true
	h.objectAll(fmt.Sprintf("node %d is lost", node))
	for i := range h.nodes {
		if i != node {
			h.send(i, Message{Kind: Lost, Node: node})
		}
	}
}
