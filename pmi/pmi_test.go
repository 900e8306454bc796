package pmi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// step is a step whose tasks are goroutines: the servers of its nodes, joined by a hub.
type testStep struct {
	t       *testing.T
	hub     *Hub
	tasks   []*task
	said    bytes.Buffer // by the servers, to the step's user
	saidMu  sync.Mutex
	aborted chan Aborted
}

func (s *testStep) Write(b []byte) (int, error) {
	s.saidMu.Lock()
	defer s.saidMu.Unlock()
	return s.said.Write(b)
}

// task is a client of PMI.
type task struct {
	t    *testing.T
	rank int
	conn net.Conn
	in   *bufio.Reader
}

// newStep makes a step of which ranks has those of each node.
func newStep(t *testing.T, ranks ...[]int) *testStep {
	return newStepOf(t, NewHub, func(*Server) {}, ranks...)
}

// newStepOf is newStep with another hub, and servers that begin with something.
func newStepOf(
	t *testing.T, newHub func([]io.Writer, func(Aborted)) *Hub, begin func(*Server), ranks ...[]int,
) *testStep {
	size := 0
	for _, list := range ranks {
		size += len(list)
	}
	s := &testStep{t: t, tasks: make([]*task, size), aborted: make(chan Aborted, size)}
	var toNodes []io.Writer
	var ins, outs []*io.PipeReader
	var fromNodes []*io.PipeWriter
	for range ranks {
		r, w := io.Pipe()
		toNodes, ins = append(toNodes, w), append(ins, r)
		r, w = io.Pipe()
		outs, fromNodes = append(outs, r), append(fromNodes, w)
	}
	hub := newHub(toNodes, func(a Aborted) { s.aborted <- a })
	s.hub = hub
	for node, list := range ranks {
		sv := NewServer(&Setup{
			Job: "7.0", Size: size, Universe: size, Node: node, Ranks: ranks, Ports: "12000-12003",
		}, fromNodes[node], s)
		go func() { _ = hub.Serve(node, outs[node]) }()
		begin(sv)
		go func() { _ = sv.Listen(ins[node]) }()
		for _, rank := range list {
			ours, theirs := net.Pipe()
			s.tasks[rank] = &task{t: t, rank: rank, conn: ours, in: bufio.NewReader(ours)}
			go sv.Serve(rank, theirs)
		}
	}
	t.Cleanup(func() {
		hub.Close()
		for _, k := range s.tasks {
			_ = k.conn.Close()
		}
		for i := range ranks {
			_, _ = fromNodes[i].Close(), toNodes[i].(*io.PipeWriter).Close()
		}
	})
	return s
}

// each runs what every task does, and waits for all.
func (s *testStep) each(do func(*task)) {
	var all sync.WaitGroup
	for _, k := range s.tasks {
		all.Go(func() { do(k) })
	}
	all.Wait()
}

// ask1 says a line of PMI-1 and wants an answer.
func (k *task) ask1(line, want string) {
	k.t.Helper()
	k.say(line + "\n")
	k.hear1(want)
}

func (k *task) say(text string) {
	_ = k.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(k.conn, text); err != nil {
		k.t.Errorf("task %d: %v", k.rank, err)
	}
}

func (k *task) hear1(want string) {
	k.t.Helper()
	got, err := k.in.ReadString('\n')
	if err != nil || got != want+"\n" {
		k.t.Errorf("task %d hears %q, %v; want %q", k.rank, got, err, want)
	}
}

// ask2 says a command of PMI-2 and wants an answer.
func (k *task) ask2(text, want string) {
	k.t.Helper()
	k.say(fmt.Sprintf("%6d%s", len(text), text))
	k.hear2(want)
}

func (k *task) hear2(want string) {
	k.t.Helper()
	head := make([]byte, 6)
	size := 0
	_, err := io.ReadFull(k.in, head)
	if err == nil {
		_, err = fmt.Sscan(string(head), &size)
	}
	body := make([]byte, size)
	if err == nil {
		_, err = io.ReadFull(k.in, body)
	}
	if err != nil || string(body) != want {
		k.t.Errorf("task %d hears %q, %v; want %q", k.rank, body, err, want)
	}
}

// TestPMI1: four tasks on two nodes exchange keys as MPICH's do.
func TestPMI1(t *testing.T) {
	s := newStep(t, []int{0, 1, 2}, []int{3})
	s.each(func(k *task) {
		k.ask1("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
		k.ask1("cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024")
		k.ask1("cmd=get_appnum", "cmd=appnum appnum=0")
		k.ask1("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=7.0")
		k.ask1("cmd=get_universe_size", "cmd=universe_size size=4 rc=0")
		k.ask1("cmd=get kvsname=7.0 key=PMI_process_mapping",
			"cmd=get_result rc=0 msg=success value=(vector,(0,1,3),(1,1,1))")
		k.ask1("cmd=get kvsname=7.0 key=none", "cmd=get_result rc=-1 msg=key_none_not_found value=unknown")
		for round := range 3 {
			k.ask1(fmt.Sprintf("cmd=put kvsname=7.0 key=k%d value=of %d in %d", k.rank, k.rank, round),
				"cmd=put_result rc=0 msg=success")
			k.ask1("cmd=barrier_in", "cmd=barrier_out rc=0")
			next := (k.rank + 1) % 4
			k.ask1(fmt.Sprintf("cmd=get kvsname=7.0 key=k%d", next),
				fmt.Sprintf("cmd=get_result rc=0 msg=success value=of %d in %d", next, round))
			k.ask1("cmd=barrier_in", "cmd=barrier_out rc=0")
		}
		k.ask1("cmd=finalize", "cmd=finalize_ack rc=0")
	})
	if s.said.Len() > 0 {
		t.Errorf("the servers say %q", s.said.String())
	}
}

// TestPMI2: the same by PMI-2, with attributes of the node and the name service.
func TestPMI2(t *testing.T) {
	s := newStep(t, []int{0, 2}, []int{1, 3})
	s.each(func(k *task) {
		k.ask1("cmd=init pmi_version=2 pmi_subversion=0", "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0")
		k.ask2("cmd=fullinit;pmijobid=7.0;pmirank=0;threaded=FALSE;", fmt.Sprintf("cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;"+
			"rank=%d;size=4;appnum=0;debugged=FALSE;pmiverbose=FALSE;", k.rank))
		k.ask2("cmd=job-getid;", "cmd=job-getid-response;rc=0;jobid=7.0;")
		k.ask2("cmd=info-getjobattr;key=PMI_process_mapping;",
			"cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,2,1),(0,2,1));")
		k.ask2("cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;rc=0;found=TRUE;value=4;")
		k.ask2("cmd=info-getjobattr;key=mpi_reserved_ports;",
			"cmd=info-getjobattr-response;rc=0;found=TRUE;value=12000-12003;")
		k.ask2("cmd=info-getjobattr;key=other;", "cmd=info-getjobattr-response;rc=0;found=FALSE;")
		k.ask2(fmt.Sprintf("cmd=kvs-put;thrid=9;key=k%d;value=a;;b=%d;", k.rank, k.rank),
			"cmd=kvs-put-response;thrid=9;rc=0;")
		k.ask2("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;")
		next := (k.rank + 1) % 4
		k.ask2(fmt.Sprintf("cmd=kvs-get;jobid=7.0;srcid=-1;key=k%d;", next),
			fmt.Sprintf("cmd=kvs-get-response;rc=0;found=TRUE;value=a;;b=%d;", next))
		if k.rank < 2 { // the others of the node wait for it
			k.ask2("cmd=info-putnodeattr;key=shm;value=/x;", "cmd=info-putnodeattr-response;rc=0;")
		} else {
			k.ask2("cmd=info-getnodeattr;key=shm;wait=TRUE;", "cmd=info-getnodeattr-response;rc=0;found=TRUE;value=/x;")
		}
		k.ask2("cmd=info-getnodeattr;key=none;wait=FALSE;", "cmd=info-getnodeattr-response;rc=0;found=FALSE;")
	})
	first, last := s.tasks[0], s.tasks[3]
	first.ask2("cmd=name-publish;name=svc;port=tag#0;", "cmd=name-publish-response;rc=0;")
	last.ask2("cmd=name-publish;name=svc;port=tag#1;", `cmd=name-publish-response;rc=14;errmsg="svc" is published already;`)
	last.ask2("cmd=name-lookup;name=svc;", "cmd=name-lookup-response;rc=0;found=TRUE;value=tag#0;port=tag#0;")
	last.ask2("cmd=name-unpublish;name=svc;", "cmd=name-unpublish-response;rc=0;")
	first.ask2("cmd=name-lookup;name=svc;", `cmd=name-lookup-response;rc=14;errmsg="svc" is not published;`)
	s.each(func(k *task) { k.ask2("cmd=finalize;", "cmd=finalize-response;rc=0;") })
	if s.said.Len() > 0 {
		t.Errorf("the servers say %q", s.said.String())
	}
}

// TestLongPMI2: MPICH's own client sends six bytes of its memory behind each command.
func TestLongPMI2(t *testing.T) {
	zeros := strings.Repeat("\x00", head)
	for _, more := range []string{zeros, "    cm", ";md=kv", "ab;cd;", "cmd=a;", "k=bad;", "a=;b;c"} {
		c, err := parse2("cmd=kvs-put;key=k;value=a;;b;" + more)
		if err != nil || c.name != "kvs-put" || c.args["key"] != "k" || c.args["value"] != "a;b" {
			t.Errorf("%q: %+v, %v", more, c, err)
		}
	}
}

// TestAbort: a task that aborts tells the hub who it is, and why.
func TestAbort(t *testing.T) {
	s := newStep(t, []int{0}, []int{1})
	k := s.tasks[1]
	k.ask1("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	k.say("cmd=abort exitcode=7\n")
	if a := <-s.aborted; a != (Aborted{Rank: 1, Code: 7}) {
		t.Errorf("%+v", a)
	}
}

// TestNonsense: what is no PMI ends that task's connection with a sentence for the user, and nobody else's.
func TestNonsense(t *testing.T) {
	for text, want := range map[string]string{
		"GET / HTTP/1.1\n":                                         `task 0: it says "GET / HTTP/1.1", which is no PMI`,
		"cmd=barrier_in\n":                                         `task 0: it begins with "barrier_in", not with init`,
		"cmd=init pmi_version=1\nfoo\n":                            `task 0: it says "foo", which is no PMI`,
		"cmd=init pmi_version=1\ncmd=dance\n":                      `task 0: command "dance" is none of PMI-1`,
		"cmd=init pmi_version=1\ncmd=barrier_in\ncmd=barrier_in\n": "task 0: it comes to a fence twice",
		"cmd=init pmi_version=2\nabcdef":                           `task 0: "abcdef" is no length of a PMI-2 command`,
		"cmd=init pmi_version=2\n     5dance":                      `task 0: it says "dance", which is no PMI-2`,
		"cmd=init pmi_version=2\n    10cmd=dance;":                 `task 0: command "dance" is none of PMI-2`,
	} {
		s := newStep(t, []int{0, 1})
		k := s.tasks[0]
		go func() { _, _ = io.Copy(io.Discard, k.conn) }()
		k.say(text)
		waitFor(t, func() bool { s.saidMu.Lock(); defer s.saidMu.Unlock(); return s.said.Len() > 0 })
		if got := strings.TrimSpace(s.said.String()); got != "error: mpi/pmi2: "+want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		s.tasks[1].ask1("cmd=init pmi_version=1 pmi_subversion=1",
			"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing came in 20 s")
		}
	}
}

// TestHub: fences of some nodes, calls from node to node, and what servers may not say.
func TestHub(t *testing.T) {
	var to [3]bytes.Buffer
	h := NewHub([]io.Writer{&to[0], &to[1], &to[2]}, func(Aborted) {})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.take(2, Message{Kind: Fence, Key: "a", Nodes: []int{2, 0}, Data: []byte("two")}))
	must(h.take(0, Message{Kind: Fence, Key: "a", Nodes: []int{0, 2}, Data: []byte("nil")}))
	must(h.take(0, Message{Kind: Call, ID: 5, Node: 1, Key: "modex", Data: []byte("rank 1")}))
	must(h.take(1, Message{Kind: Reply, ID: 5, Node: 0, Data: []byte("blob")}))
	h.Lose(2)
	h.Lose(2)
	must(h.take(0, Message{Kind: Call, ID: 6, Node: 2, Key: "modex"}))
	for _, bad := range []Message{
		{Kind: Fence, Key: "b", Nodes: []int{1, 2}},
		{Kind: Fence, Key: "b", Nodes: []int{0, 3}},
		{Kind: Call, Node: 3},
		{Kind: Reply, Node: -1},
		{Kind: 77},
	} {
		if err := h.take(0, bad); !errors.Is(err, ErrMessage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	must(h.take(0, Message{Kind: Fence, Key: "c", Nodes: []int{0, 1}}))
	if err := h.take(0, Message{Kind: Fence, Key: "c", Nodes: []int{0, 1}}); !errors.Is(err, ErrMessage) {
		t.Errorf("a node that comes twice: %v", err)
	}
	h.Close()
	want := [][]Message{
		{{Kind: Fenced, Key: "a", Data: []byte("niltwo")},
			{Kind: Reply, ID: 5, Node: 1, Data: []byte("blob")}, {Kind: Lost, Node: 2},
			{Kind: Reply, ID: 6, Node: 2, Key: "the node is lost"}},
		{{Kind: Call, ID: 5, Node: 0, Key: "modex", Data: []byte("rank 1")}, {Kind: Lost, Node: 2}},
		{{Kind: Fenced, Key: "a", Data: []byte("niltwo")}},
	}
	waitFor(t, func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.written == len(want) })
	for node := range to {
		r := bufio.NewReader(&to[node])
		for _, w := range want[node] {
			got, err := ReadMessage(r)
			if len(got.Data) == 0 {
				got.Data = nil
			}
			if err != nil || !reflect.DeepEqual(got, w) {
				t.Errorf("node %d gets %+v, %v; want %+v", node, got, err, w)
			}
		}
		if m, err := ReadMessage(r); err != io.EOF {
			t.Errorf("node %d gets more: %+v, %v", node, m, err)
		}
	}
}

// TestMapping: where the ranks are, in blocks and in turn.
func TestMapping(t *testing.T) {
	for want, ranks := range map[string][][]int{
		"(vector,(0,1,1))":                 {{0}},
		"(vector,(0,3,2))":                 {{0, 1}, {2, 3}, {4, 5}},
		"(vector,(0,1,3),(1,1,1))":         {{0, 1, 2}, {3}},
		"(vector,(0,2,1),(0,2,1))":         {{0, 2}, {1, 3}},
		"(vector,(1,1,1),(0,1,1))":         {{1}, {0}},
		"(vector,(0,2,2),(2,1,1))":         {{0, 1}, {2, 3}, {4}},
		"(vector,(0,1,2),(1,1,1),(0,1,1))": {{0, 1, 3}, {2}},
	} {
		if got := Mapping(ranks); got != want {
			t.Errorf("%v: %s, want %s", ranks, got, want)
		}
	}
}

// FuzzMessage: whatever bytes come, reading ends without harm, and what was read is written alike.
func FuzzMessage(f *testing.F) {
	f.Add(Message{Kind: Fence, Key: "1", Nodes: []int{0, 5}, Data: []byte("x")}.Append(nil))
	f.Add([]byte("\xff\xff\xff\xff\x0fabc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadMessage(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		again, err := ReadMessage(bufio.NewReader(bytes.NewReader(m.Append(nil))))
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v, then %+v, %v", m, again, err)
		}
	})
}

// FuzzTask: a task may say what it likes.
func FuzzTask(f *testing.F) {
	f.Add([]byte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=a key=b value=c\ncmd=get key=b\n" +
		"mcmd=spawn\nnprocs=1\nexecname=a\nendcmd\ncmd=finalize\n"))
	f.Add([]byte("cmd=init pmi_version=2\n    67cmd=spawn;ncmds=1;preputcount=0;subcmd=a;maxprocs=1;argc=1;argv0=b;"))
	f.Add([]byte("cmd=init pmi_version=2\n    33cmd=kvs-put;thrid=1;key=a;value=;;b;    15cmd=kvs-get;key=a;"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sv := NewServer(&Setup{Job: "1.0", Size: 1, Ranks: [][]int{{0}}}, io.Discard, io.Discard)
		sv.Serve(0, &script{bytes.NewReader(b)})
	})
}

// script is a connection on which a task says what was written beforehand.
type script struct{ *bytes.Reader }

func (*script) Write(b []byte) (int, error) { return len(b), nil }
func (*script) Close() error                { return nil }
