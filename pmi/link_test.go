package pmi

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// linked are servers' links to one hub.
type linked struct {
	hub     *Hub
	links   []*Link
	aborts  chan Aborted
	lost    chan string
	calling func(node int, l *Link, m Message)
	up      atomic.Int64 // bytes to the hub
}

// counted counts what is written.
type counted struct {
	to  io.Writer
	sum *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sum.Add(int64(len(b)))
	return c.to.Write(b)
}

func link(t *testing.T, nodes int) *linked {
	t.Helper()
	n := &linked{aborts: make(chan Aborted, 10), lost: make(chan string, 1000)}
	var down []io.Writer
	var ups []io.Reader
	var all sync.WaitGroup
	var ends []io.Closer
	for i := range nodes {
		upR, upW := io.Pipe()
		downR, downW := io.Pipe()
		l := NewLink(counted{upW, &n.up})
		n.links, down, ups, ends = append(n.links, l), append(down, downW), append(ups, upR), append(ends, upW, downW)
		all.Go(func() {
			called := func(m Message) { n.calling(i, l, m) }
			if err := l.Listen(downR, called, func(lost int) { n.lost <- fmt.Sprint(i, " lost ", lost) }); err != nil {
				t.Error(err)
			}
		})
	}
	n.hub = NewHub(down, func(a Aborted) { n.aborts <- a })
	for i, r := range ups {
		all.Go(func() { _ = n.hub.Serve(i, r) })
	}
	t.Cleanup(func() {
		n.hub.Close()
		for _, c := range ends {
			_ = c.Close()
		}
		all.Wait()
	})
	return n
}

// get waits for the text that a callback leaves.
func get(t *testing.T, from chan string) string {
	t.Helper()
	select {
	case text := <-from:
		return text
	case <-time.After(10 * time.Second):
		t.Fatal("no answer within 10 s")
		return ""
	}
}

func into(to chan string) func([]byte, error) {
	return func(data []byte, err error) { to <- fmt.Sprint(string(data), " ", err) }
}

func TestLinkFences(t *testing.T) {
	n := link(t, 3)
	out := make(chan string, 10)
	n.links[2].Fence("some", []int{0, 2}, []byte("c"), into(out))
	n.links[0].Fence("some", []int{0, 2}, []byte("a"), into(out))
	for range 2 {
		if got := get(t, out); got != "ac <nil>" {
			t.Error(got)
		}
	}
	n.links[1].Fence("twice", []int{0, 1}, nil, into(out))
	n.links[1].Fence("twice", []int{0, 1}, nil, into(out))
	if got := get(t, out); got == " <nil>" {
		t.Error(got)
	}
}

func TestLinkCalls(t *testing.T) {
	n := link(t, 2)
	n.calling = func(node int, l *Link, m Message) {
		if m.Key != "ask" {
			l.Answer(m, []byte("why"), "no")
			return
		}
		l.Answer(m, fmt.Append(m.Data, " of ", m.Node, " at ", node), "")
	}
	out := make(chan string, 10)
	n.links[0].Call(1, "ask", []byte("it"), into(out))
	if got := get(t, out); got != "it of 0 at 1 <nil>" {
		t.Error(got)
	}
	n.links[1].Call(0, "other", nil, into(out))
	if got := get(t, out); got != "why no" {
		t.Error(got)
	}
	n.links[1].Abort(3, 7, "enough")
	if a := <-n.aborts; a != (Aborted{3, 7, "enough"}) {
		t.Error(a)
	}
}

func TestLinkLoses(t *testing.T) {
	n := link(t, 2)
	n.calling = func(int, *Link, Message) {} // it never answers
	errs := make(chan error, 10)
	keep := func(_ []byte, err error) { errs <- err }
	n.links[0].Fence("f", []int{0, 1}, nil, keep)
	n.links[0].Call(1, "ask", nil, keep)
	n.hub.Lose(1)
	if got := get(t, n.lost); got != "0 lost 1" {
		t.Error(got)
	}
	n.links[0].Fence("g", []int{0, 1}, nil, keep)
	n.links[0].Call(1, "ask", nil, keep)
	for range 4 {
		if err := <-errs; !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	}
}

func TestLinkNames(t *testing.T) {
	n := link(t, 2)
	a, b := n.links[0], n.links[1]
	out := make(chan string, 10)
	expect := func(want string) {
		t.Helper()
		if got := get(t, out); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	b.Lookup("x", false, into(out))
	expect(` "x" is not published`)
	b.Lookup("x", true, into(out))
	a.Lookup("other", false, into(out)) // by now the hub has the lookup before, or will soon
	expect(` "other" is not published`)
	a.Publish("x", "1", false, func([]byte, error) {})
	expect("1 <nil>")
	a.Publish("x", "2", false, into(out))
	expect(` "x" is published already`)
	b.Unpublish("x", into(out))
	expect("1 <nil>")
	a.Publish("y", "3", true, into(out))
	expect(" <nil>")
	b.Lookup("y", true, into(out))
	expect("3 <nil>")
	b.Lookup("y", false, into(out))
	expect(` "y" is not published`)
}

// TestFenceOwn: a large part does not come back to its node, which has it; the data is the same for all.
func TestFenceOwn(t *testing.T) {
	n := link(t, 3)
	parts := []string{strings.Repeat("a", 20), strings.Repeat("b", 3*smallPart), strings.Repeat("c", smallPart+1)}
	all := make(chan string, len(parts))
	for i, l := range n.links {
		l.Fence("1", nil, []byte(parts[i]), func(data []byte, err error) { all <- string(data) + fmt.Sprint(err) })
	}
	for range parts {
		if got := get(t, all); got != strings.Join(parts, "")+"<nil>" {
			t.Errorf("a node got %d bytes, beginning with %.30q", len(got), got)
		}
	}
	if _, err := withOwn(&Message{ID: 9, Data: []byte("x")}, nil); err == nil {
		t.Error("a part that belongs nowhere was taken")
	}
}
