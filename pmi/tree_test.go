package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"dev.muster/pmi/peer"
)

func newPeer() (Credential, error) { return peer.New() }

// TestTreeOf: each node but the first has one parent, no more children than it may, and a run of nodes as its subtree.
func TestTreeOf(t *testing.T) {
	for _, fan := range []int{1, 2, 16} {
		for nodes := 1; nodes < 300; nodes++ {
			tree := treeOf(nodes, fan)
			if end := checkSubtree(t, tree, 0, HubNode, fan); end != nodes {
				t.Fatalf("%d nodes, %d children each: the tree has %d", nodes, fan, end)
			}
		}
	}
	if got := fmt.Sprint(treeOf(7, 2)); got != "[{-1 [1 4]} {0 [2 3]} {1 []} {1 []} {0 [5 6]} {4 []} {4 []}]" {
		t.Error(got)
	}
}

// checkSubtree returns the node behind the last of a subtree.
func checkSubtree(t *testing.T, tree []branch, root, parent, fan int) int {
	t.Helper()
	b := tree[root]
	if b.parent != parent || len(b.children) > fan {
		t.Fatalf("node %d of %d: %+v", root, len(tree), b)
	}
	end := root + 1
	for _, c := range b.children {
		if c != end {
			t.Fatalf("node %d of %d has a child %d, not %d", root, len(tree), c, end)
		}
		end = checkSubtree(t, tree, c, root, fan)
	}
	return end
}

// setupOf is that of a node of a step with a task on each.
func setupOf(node, nodes int) *Setup {
	s := &Setup{Node: node, Addr: "127.0.0.1"}
	for i := range nodes {
		s.Ranks = append(s.Ranks, []int{i})
		s.Hosts = append(s.Hosts, fmt.Sprint("n", i))
	}
	return s
}

// silent is for servers that have nothing to say to the user.
func silent(t *testing.T) func(string, ...any) {
	return func(format string, args ...any) { t.Errorf("it says: "+format, args...) }
}

// grow has the servers of a step with so many nodes join a tree, and waits until they have.
func grow(t *testing.T, nodes, fan int) *linked {
	t.Helper()
	n := link(t, nodes)
	n.hub.fan = fan
	for i, l := range n.links {
		l.join(setupOf(i, nodes), silent(t), newPeer)
	}
	for _, l := range n.links {
		waitFor(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.way == byTree })
	}
	return n
}

// all are the numbers of so many nodes.
func all(nodes int) (list []int) {
	for i := range nodes {
		list = append(list, i)
	}
	return list
}

// leave breaks the connections of a server, as its end does.
func (n *linked) leave(node int) {
	l := n.links[node]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree.close()
}

// judge has the neighbours of a node look whether it is still in the step, and the hub take what they say.
func (n *linked) judge(node int) {
	asked := make(chan bool)
	for i, l := range n.links {
		if i == node {
			continue
		}
		for _, e := range l.tree.edges() {
			if e.node == node {
				l.judge(e)
			}
		}
		l.Lookup("nothing", false, func([]byte, error) { asked <- true }) // the hub answers what came before first
		<-asked
	}
}

// TestTreeFences: fences of all nodes do not go through the hub, those of some do; all end well.
func TestTreeFences(t *testing.T) {
	const nodes, size = 7, 10 << 10
	n := grow(t, nodes, 2)
	ends := make(chan string, 100)
	for _, key := range []string{"one", "two", "three"} {
		var want strings.Builder
		for i, l := range n.links {
			part := strings.Repeat(fmt.Sprint(i), size)
			want.WriteString(part)
			l.Fence(key, all(nodes), []byte(part), func(data []byte, err error) { ends <- string(data) + fmt.Sprint(err) })
		}
		for range nodes {
			if got := get(t, ends); got != want.String()+"<nil>" {
				t.Errorf("fence %s: %d bytes, beginning with %.30q", key, len(got), got)
			}
		}
	}
	if moved := n.up.Load(); moved > size {
		t.Errorf("the hub was sent %d bytes", moved)
	}
	n.links[2].Fence("some", []int{2, 5}, []byte("c"), into(ends))
	n.links[5].Fence("some", []int{2, 5}, []byte("f"), into(ends))
	for range 2 {
		if got := get(t, ends); got != "cf <nil>" {
			t.Error(got)
		}
	}
}

// TestTreeFencesAtOnce: a fence begins before the nodes have agreed on a tree, and others while it is under way.
func TestTreeFencesAtOnce(t *testing.T) {
	const nodes = 6
	n := link(t, nodes)
	n.hub.fan = 2
	ends := make(chan string, 100)
	for i, l := range n.links {
		l.join(setupOf(i, nodes), silent(t), newPeer)
		for k := range 5 {
			l.Fence(fmt.Sprint(k), all(nodes), fmt.Append(nil, k), into(ends))
		}
	}
	got := map[string]int{}
	for range 5 * nodes {
		got[get(t, ends)]++
	}
	for k := range 5 {
		if want := strings.Repeat(fmt.Sprint(k), nodes) + " <nil>"; got[want] != nodes {
			t.Errorf("%d nodes have the end of fence %d", got[want], k)
		}
	}
}

// TestTreeLastFence: a server ends with its tasks, and so before others have heard of the end of the last fence. They
// hear of that nevertheless, and then of the node's end.
func TestTreeLastFence(t *testing.T) {
	const nodes = 5
	for range 20 {
		n := grow(t, nodes, 2)
		ends := make(chan string, nodes)
		for i, l := range n.links {
			l.Fence("last", all(nodes), []byte("x"), func(data []byte, err error) {
				n.hub.Lose(i)
				n.leave(i)
				ends <- fmt.Sprint(string(data), " ", err)
			})
		}
		for range nodes {
			if got := get(t, ends); got != "xxxxx <nil>" {
				t.Fatal(got)
			}
		}
	}
}

// TestTreeLoses: a node that is lost in a fence ends it for all, whatever its place is, and the servers hear of it
// after that. Nobody asks for the step's end, which srun sees to.
func TestTreeLoses(t *testing.T) {
	const nodes = 7
	for lost := range nodes {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			n := grow(t, nodes, 2)
			ends := make(chan error, nodes)
			for i, l := range n.links {
				l.brokenTime = time.Hour
				if i != lost {
					l.Fence("1", all(nodes), nil, func(_ []byte, err error) { ends <- err })
				}
			}
			n.hub.Lose(lost)
			for _, l := range n.links {
				waitFor(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.lost[lost] || l == n.links[lost] })
			}
			n.leave(lost)
			for range nodes - 1 {
				if err := <-ends; !errors.Is(err, ErrLost) {
					t.Error(err)
				}
				get(t, n.lost)
			}
			n.links[(lost+1)%nodes].Fence("2", all(nodes), nil, func(_ []byte, err error) { ends <- err })
			if err := <-ends; !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			n.judge(lost)
			select {
			case a := <-n.aborts:
				t.Errorf("%+v", a)
			default:
			}
		})
	}
}

// TestTreeBreaks: a connection that breaks between nodes that both remain ends the step with a sentence, once a fence
// needs it.
func TestTreeBreaks(t *testing.T) {
	n := grow(t, 3, 1)
	for _, l := range n.links {
		l.brokenTime = time.Millisecond
	}
	n.leave(2)
	waitFor(t, func() bool {
		l := n.links[1]
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.tree.children[0].broken != nil
	})
	ends := make(chan error, 3)
	for _, l := range n.links {
		l.Fence("1", all(3), nil, func(_ []byte, err error) { ends <- err })
	}
	for range n.links {
		if err := <-ends; !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	}
	const want = "the connection to node n2 has broken in a fence: "
	a := <-n.aborts
	for a.Rank != 1 { // node 2 says it of node 1
		a = <-n.aborts
	}
	if a.Code != 1 || !strings.HasPrefix(a.Text, want) {
		t.Errorf("%+v", a)
	}
}

// TestTreeNonsense: a neighbour that says what it must not ends the step with a sentence.
func TestTreeNonsense(t *testing.T) {
	fence := Message{Kind: Fence, Key: "1"}.Append(nil)
	fenced := Message{Kind: Fenced, Key: "1"}.Append(nil)
	var many []byte
	for i := range maxBegun + 1 {
		many = Message{Kind: Fence, Key: fmt.Sprint(i)}.Append(many)
	}
	for want, text := range map[string]string{
		"malformed PMI message: 3 bytes":                                     "\x03abc",
		"malformed PMI message: kind 4":                                      string(Message{Kind: Reply}.Append(nil)),
		"malformed PMI message: kind 2":                                      string(fenced),
		`malformed PMI message: it comes to fence "1" again`:                 string(fence) + string(fence),
		fmt.Sprint("malformed PMI message: more than ", maxBegun, " fences"): string(many),
	} {
		n := grow(t, 2, 2)
		if _, err := io.WriteString(n.links[1].tree.parent.conn, text); err != nil {
			t.Fatal(err)
		}
		if a := <-n.aborts; a != (Aborted{0, 1, "node n1 has sent nonsense: " + want}) {
			t.Errorf("%+v", a)
		}
	}
}

// TestNoTree: where one node knows no tree, or nodes do not reach each other, fences go by the hub.
func TestNoTree(t *testing.T) {
	const nodes = 3
	said := make(chan string, nodes)
	say := func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
	for name, c := range map[string]struct {
		prepare func(n *linked)
		joins   []int
		says    string
	}{
		"an old node": {func(*linked) {}, []int{0, 1}, ""},
		"no way": {func(n *linked) {
			l := n.links[1]
			offer := appendTexts(nil, "127.0.0.1:1", strings.Repeat("x", 32)) // where nobody listens
			l.Call(HubNode, callTree, offer, func([]byte, error) {
				l.Call(HubNode, callJoined, appendTexts(nil, ""), func([]byte, error) {})
			})
			n.links[0].joinTime = 10 * time.Millisecond
		}, []int{0, 2}, "fences go through srun: node"},
	} {
		t.Run(name, func(t *testing.T) {
			n := link(t, nodes)
			n.hub.fan = 1
			c.prepare(n)
			for _, i := range c.joins {
				n.links[i].join(setupOf(i, nodes), say, newPeer)
			}
			ends := make(chan string, nodes)
			for _, l := range n.links {
				l.Fence("1", all(nodes), []byte("x"), into(ends))
			}
			for range nodes {
				if got := get(t, ends); got != "xxx <nil>" {
					t.Error(got)
				}
			}
			if c.says == "" {
				return
			}
			if got := get(t, said); !strings.HasPrefix(got, c.says) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// TestJoin: steps of few nodes have no tree, nor those whose user wants none; what he says must be known.
func TestJoin(t *testing.T) {
	for _, c := range []struct {
		nodes     int
		addr, way string
		want      fenceWay
		says      string
	}{
		{treeNodes, "127.0.0.1", "", undecided, ""},
		{treeNodes - 1, "127.0.0.1", "", byHub, ""},
		{treeNodes, "", "", byHub, ""},
		{treeNodes, "127.0.0.1", "srun", byHub, ""},
		{treeNodes, "127.0.0.1", "tree", undecided, "MUSTER_MPI_FENCE=tree is not known: leave it out, or set it to srun"},
	} {
		t.Setenv(WayEnv, c.way)
		l := NewLink(io.Discard)
		s := setupOf(0, c.nodes)
		s.Addr = c.addr
		said := ""
		l.Join(s, func(format string, args ...any) { said = fmt.Sprintf(format, args...) }, newPeer)
		if l.way != c.want || said != c.says {
			t.Errorf("%+v: way %d, says %q", c, l.way, said)
		}
		l.leave()
	}
}

// TestOldHub: a call that a hub does not know is refused, and so is one for a tree by a hub that knows none.
func TestOldHub(t *testing.T) {
	n := link(t, 1)
	ends := make(chan string, 1)
	n.links[0].Call(HubNode, "shrub", appendTexts(nil, "x"), into(ends))
	if got := get(t, ends); got != " shrub cannot be done" {
		t.Error(got)
	}
}

// TestTreeStrangers: who is no neighbour has no way in, and keeps none out.
func TestTreeStrangers(t *testing.T) {
	l := NewLink(io.Discard)
	join := func(node int) *joining {
		own, err := newPeer()
		if err != nil {
			t.Fatal(err)
		}
		return &joining{link: l, setup: setupOf(node, 2), own: own}
	}
	parent, child, stranger := join(0), join(1), join(1)
	addr, err := parent.own.Listen("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer parent.own.Close()
	at := neighbour{0, addr, parent.own.Digest()}
	got := make(chan *tree, 1)
	go func() {
		near := []neighbour{{1, "", child.own.Digest()}}
		tree, err := parent.reach(t.Context(), near)
		if err != nil {
			t.Error(err)
		}
		got <- tree
	}()
	mute, err := net.Dial("tcp", at.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	if _, err := io.WriteString(mute, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	to := make(chan reached, 2)
	stranger.dial(t.Context(), at, to)
	r := <-to
	err = r.err
	if err == nil { // the refusal comes with the first answer
		_, err = r.edge.conn.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a stranger is let in")
	}
	other := at
	other.digest = stranger.own.Digest()
	child.dial(t.Context(), other, to)
	if r := <-to; r.err == nil || !strings.HasPrefix(r.err.Error(), "node n1 does not reach node n0: ") {
		t.Errorf("a parent with another certificate: %v", r.err)
	}
	child.dial(context.Background(), at, to)
	if r := <-to; r.err != nil || r.edge.node != 0 {
		t.Errorf("the parent: %v", r.err)
	}
	if tree := <-got; tree == nil || len(tree.children) != 1 || tree.children[0].name != "n1" {
		t.Errorf("the parent has %+v", tree)
	}
}
