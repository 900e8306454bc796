package pmix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/pmi"
)

// setupOf is a step of so many tasks on each node.
func setupOf(ranks ...[]int) pmi.Setup {
	s := pmi.Setup{Job: "7.1", Ranks: ranks}
	for i, list := range ranks {
		s.Size += len(list)
		s.Hosts = append(s.Hosts, fmt.Sprintf("n%d", i))
	}
	s.Universe = s.Size
	return s
}

func TestMembers(t *testing.T) {
	s := setupOf([]int{0, 1}, []int{2, 3}, []int{4})
	s.Node = 1
	tab := newTable(&s)
	of := func(ranks ...uint32) (list []proc) {
		for _, r := range ranks {
			list = append(list, proc{"slurm.pmix.7.1", r})
		}
		return list
	}
	for _, c := range []struct {
		procs []proc
		name  string
		nodes []int
	}{
		{of(rankWildcard), "all", []int{0, 1, 2}},
		{of(3, 1, 0, 2, 4), "all", []int{0, 1, 2}},
		{of(4, 1, 0), "0-1,4", []int{0, 2}},
		{of(rankLocalPeers, 0), "0,2-3", []int{0, 1}},
		{of(3), "3", []int{1}},
	} {
		m, err := tab.of(c.procs)
		if err != nil || m.name != c.name || !slices.Equal(m.nodes, c.nodes) {
			t.Errorf("%v: %+v, %v", c.procs, m, err)
		}
	}
	if _, err := tab.of([]proc{{"another", 0}}); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	if _, err := tab.of(of(5)); err == nil {
		t.Error("rank 5 of 5 takes part")
	}
	a, _ := tab.of(of(0, 4))
	b, _ := tab.of(of(0, 3))
	names := []string{tab.next("fence", a), tab.next("fence", b), tab.next("fence", a), tab.next("connect", a)}
	if want := []string{"fence 0,4 #1", "fence 0,3 #1", "fence 0,4 #2", "connect 0,4 #1"}; !slices.Equal(names, want) {
		t.Error(names)
	}
	var odd []int
	for i := range 500 {
		odd = append(odd, 2*i+1)
	}
	if name := rangesOf(odd); len(name) != 64 || name == rangesOf(odd[1:]) {
		t.Error(name)
	}
}

func TestCheck(t *testing.T) {
	good := setupOf([]int{0, 2}, []int{1})
	if err := check(&good); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*pmi.Setup){
		"hosts":   func(s *pmi.Setup) { s.Hosts = s.Hosts[1:] },
		"twice":   func(s *pmi.Setup) { s.Ranks[1][0] = 2 },
		"beyond":  func(s *pmi.Setup) { s.Ranks[1][0] = 3 },
		"below":   func(s *pmi.Setup) { s.Ranks[1][0] = -1 },
		"missing": func(s *pmi.Setup) { s.Size = 4 },
		"name":    func(s *pmi.Setup) { s.Job = strings.Repeat("1", 300) },
	} {
		bad := setupOf([]int{0, 2}, []int{1})
		if spoil(&bad); check(&bad) == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func TestJobInfo(t *testing.T) {
	s := setupOf([]int{0, 3}, []int{1, 2})
	s.Node = 1
	if got := nodeList(&s) + " " + procList(&s); got != "n0,n1 0,3;1,2" {
		t.Error(got)
	}
	list := jobInfo(&s, "/d", "nodes", "procs")
	find := func(list []info, key string) any {
		i := slices.IndexFunc(list, func(i info) bool { return i.key == key })
		return list[i].value
	}
	for key, want := range map[string]any{keyJobSize: uint32(4), keyLocalSize: uint32(2),
		keyNumNodes: uint32(2), keyLocalPeers: "1,2",
		keyLeader: rank(1), keyNodeID: uint32(1), keyHostname: "n1", keySessionID: uint32(7),
		keyMapping: "(vector,(0,1,1),(1,1,2),(0,1,1))"} {
		if got := find(list, key); got != want {
			t.Errorf("%s is %v", key, got)
		}
	}
	var last []info
	for _, i := range list {
		if i.key == keyProcData {
			last = i.value.([]info)
		}
	}
	if last[0] != (info{keyRank, rank(2)}) || find(last, keyLocalRank) != uint16(1) || find(last, keyHostname) != "n1" {
		t.Error(last)
	}
}

func TestItem(t *testing.T) {
	for _, it := range []item{
		{3, typeString, []byte("text")}, {0, typeByteObject, nil}, {1 << 20, typeUint32, make([]byte, 24)},
	} {
		got, err := decodeItem([]byte(it.encode()))
		if err != nil || got.rank != it.rank || got.kind != it.kind || !bytes.Equal(got.data, it.data) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for _, b := range [][]byte{nil, {1}, {1, 0}, {1, 22}, {1, 39}, {0xff}} {
		if it, err := decodeItem(b); err == nil {
			t.Errorf("%v is %+v", b, it)
		}
	}
}

// nodes are servers without a library, and their hub.
type nodes struct {
	t       *testing.T
	hub     *pmi.Hub
	servers []*server
	dead    chan string
	aborts  chan pmi.Aborted
}

func serversOf(t *testing.T, s pmi.Setup) *nodes {
	t.Helper()
	n := &nodes{t: t, dead: make(chan string, 10), aborts: make(chan pmi.Aborted, 10)}
	var downs []io.Writer
	var ups []io.Reader
	var ends []io.Closer
	var all sync.WaitGroup
	for i := range s.Ranks {
		own := s
		own.Node = i
		upR, upW := io.Pipe()
		downR, downW := io.Pipe()
		sv := &server{table: newTable(&own), link: pmi.NewLink(upW), log: io.Discard}
		sv.request = func(p proc, answer func(int, []byte)) {
			if p.rank == 0 {
				answer(statusNotFound, nil)
				return
			}
			answer(statusSuccess, fmt.Append(nil, "of rank ", p.rank, " by node ", i))
		}
		sv.dead = func(p proc) { n.dead <- fmt.Sprint(p.rank, " is dead, node ", i, " hears") }
		n.servers = append(n.servers, sv)
		downs = append(downs, downW)
		ups = append(ups, upR)
		ends = append(ends, upW, downW)
		all.Go(func() { _ = sv.link.Listen(downR, sv.called, sv.lost) })
	}
	n.hub = pmi.NewHub(downs, func(a pmi.Aborted) { n.aborts <- a })
	for i, up := range ups {
		all.Go(func() { _ = n.hub.Serve(i, up) })
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

// answers collects what is called back.
type answers struct {
	t    *testing.T
	list chan string
}

func (a answers) blob(status int, data []byte) { a.list <- fmt.Sprint(status, " ", string(data)) }

func (a answers) op(status int) { a.list <- fmt.Sprint(status) }

// want waits for answers, in any order.
func (a answers) want(texts ...string) {
	a.t.Helper()
	var got []string
	for range texts {
		select {
		case text := <-a.list:
			got = append(got, text)
		case <-time.After(10 * time.Second):
			a.t.Fatalf("only %q after 10 s", got)
		}
	}
	slices.Sort(got)
	slices.Sort(texts)
	if !slices.Equal(got, texts) {
		a.t.Errorf("%q, not %q", got, texts)
	}
}

func (n *nodes) proc(rank uint32) proc { return proc{n.servers[0].nspace, rank} }

func TestServerFence(t *testing.T) {
	n := serversOf(t, setupOf([]int{0, 1}, []int{2}, []int{3}))
	a := answers{t, make(chan string, 10)}
	everyone := []proc{n.proc(rankWildcard)}
	for range 2 { // the second is another fence
		for i, s := range n.servers {
			if status := s.fence(everyone, []byte{byte('a' + i)}, a.blob); status != statusSuccess {
				t.Fatal(status)
			}
		}
		a.want("0 abc", "0 abc", "0 abc")
	}
	some := []proc{n.proc(0), n.proc(3)}
	n.servers[0].fence(some, []byte("x"), a.blob)
	n.servers[2].fence([]proc{some[1], some[0]}, []byte("y"), a.blob)
	a.want("0 xy", "0 xy")
	n.servers[0].fence([]proc{n.proc(0), n.proc(1)}, []byte("here"), a.blob)
	a.want("0 here")
	n.servers[0].connect(some, true, a.op)
	n.servers[2].connect(some, true, a.op)
	a.want("0", "0")
	if status := n.servers[0].fence([]proc{{"another", 0}}, nil, a.blob); status != statusNotSupported {
		t.Error(status)
	}
}

func TestServerModex(t *testing.T) {
	n := serversOf(t, setupOf([]int{0, 1}, []int{2, 3}))
	a := answers{t, make(chan string, 10)}
	n.servers[0].modex(n.proc(3), a.blob)
	a.want("0 of rank 3 by node 1")
	n.servers[1].modex(n.proc(0), a.blob)
	a.want(fmt.Sprint(statusNotFound, " "))
	n.servers[1].modex(n.proc(2), a.blob)
	a.want("0 of rank 2 by node 1")
	if status := n.servers[0].modex(n.proc(4), a.blob); status != statusNotFound {
		t.Error(status)
	}
}

func TestServerLost(t *testing.T) {
	n := serversOf(t, setupOf([]int{0}, []int{1, 2}))
	a := answers{t, make(chan string, 10)}
	n.servers[0].fence([]proc{n.proc(rankWildcard)}, nil, a.blob)
	n.hub.Lose(1)
	a.want(fmt.Sprint(statusLost, " "))
	for _, r := range []int{1, 2} {
		if got := <-n.dead; got != fmt.Sprint(r, " is dead, node 0 hears") {
			t.Error(got)
		}
	}
	n.servers[0].modex(n.proc(1), a.blob)
	a.want(fmt.Sprint(statusLost, " "))
}

func TestServerAbort(t *testing.T) {
	n := serversOf(t, setupOf([]int{0}, []int{1}))
	if status := n.servers[1].abort(n.proc(1), 9, "N/A"); status != statusDone {
		t.Error(status)
	}
	if got := <-n.aborts; got != (pmi.Aborted{Rank: 1, Code: 9}) {
		t.Errorf("%+v", got)
	}
}

func TestServerNames(t *testing.T) {
	n := serversOf(t, setupOf([]int{0}, []int{1}))
	a := answers{t, make(chan string, 10)}
	found := func(status int, items map[string]item) {
		var list []string
		for key, it := range items {
			list = append(list, fmt.Sprintf("%s=%s by %d", key, it.data, it.rank))
		}
		slices.Sort(list)
		a.list <- fmt.Sprint(status, list)
	}
	wide := directives{within: rangeSession}
	here := directives{within: rangeLocal}
	text := func(rank uint32, s string) item { return item{rank, typeString, []byte(s)} }
	zero, one := n.servers[0], n.servers[1]
	zero.publish(n.proc(0), wide, map[string]item{"a": text(0, "1"), "b": text(0, "2")}, a.op)
	a.want("0")
	one.lookup(n.proc(1), wide, []string{"a", "b", "c"}, found)
	a.want("0 [a=1 by 0 b=2 by 0]")
	one.lookup(n.proc(1), wide, []string{"c"}, found)
	a.want(fmt.Sprint(statusNotFound, " []"))
	one.publish(n.proc(1), wide, map[string]item{"a": text(1, "3")}, a.op)
	a.want(fmt.Sprint(statusDuplicateKey))
	one.publish(n.proc(1), here, map[string]item{"a": text(1, "4")}, a.op)
	a.want("0")
	one.lookup(n.proc(1), here, []string{"a"}, found)
	a.want("0 [a=4 by 1]")
	one.lookup(n.proc(1), directives{within: rangeSession, wait: true}, []string{"later"}, found)
	zero.publish(n.proc(0), directives{
		within: rangeSession, persist: persistFirstRead,
	}, map[string]item{"later": text(0, "5")}, a.op)
	a.want("0", "0 [later=5 by 0]")
	one.lookup(n.proc(1), directives{
		within: rangeSession, wait: true, timeout: time.Millisecond,
	}, []string{"never"}, found)
	a.want(fmt.Sprint(statusTimeout, " []"))
	zero.unpublish(n.proc(0), wide, nil, a.op)
	a.want("0")
	one.lookup(n.proc(1), wide, []string{"a", "b"}, found)
	a.want(fmt.Sprint(statusNotFound, " []"))
	if status := zero.unpublish(n.proc(0), wide, nil, a.op); status != statusDone {
		t.Error(status)
	}
}

func TestForm(t *testing.T) {
	var plain []int
	for kind := range uint16(100) {
		if formOf(kind) == formPlain {
			plain = append(plain, int(kind))
		}
	}
	if want := []int{
		1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 30, 33, 40,
	}; !reflect.DeepEqual(plain, want) {
		t.Error(plain)
	}
}

// The servers of a step's nodes have names and folders of their own.
func TestServerInfo(t *testing.T) {
	seen := map[string]bool{}
	for node := range 2 {
		s := setupOf([]int{0}, []int{1})
		s.Node = node
		name := ""
		for _, i := range serverInfo(&s, fmt.Sprint("/tmp/", node)) {
			if i.key == keyServerRank || i.key == keyServerTmpdir || i.key == keyHostname {
				name += fmt.Sprint(i.value, " ")
			}
		}
		seen[name] = true
	}
	if !seen["/tmp/0 0 n0 "] || !seen["/tmp/1 1 n1 "] {
		t.Error(seen)
	}
}

func TestDirective(t *testing.T) {
	for key, want := range map[string]bool{keyRange: true, keyUserID: true, "service": false, "1234:connect": false} {
		if directive(key) != want {
			t.Errorf("directive(%q) is %v", key, !want)
		}
	}
}
