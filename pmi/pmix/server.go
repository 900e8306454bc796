package pmix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"dev.muster/pmi"
)

// Statuses of PMIx that are given or got.
const (
	statusSuccess      = 0
	statusError        = -1
	statusAborted      = -7
	statusTimeout      = -24
	statusBadParam     = -27
	statusNotFound     = -46
	statusNotSupported = -47
	statusDuplicateKey = -53
	statusLost         = -61
	statusDone         = -157 // the call has ended already: nothing is called back
)

// callModex asks the node of a rank for what the rank has to tell the others.
const callModex = "modex"

// server does what the library asks for on behalf of local tasks. Its methods are called on the
// library's only thread, so none waits for anything: what has to be waited for ends by a function,
// done, which is called later and on another thread.
type server struct {
	*table
	link *pmi.Link
	log  io.Writer // lines for the step's user
	own  owners

	// request asks the library for what a local rank has to tell; the library waits until the
	// rank has said it.
	request func(p proc, answer func(status int, data []byte))
	// dead tells local tasks that a process is gone.
	dead func(proc)
}

// say writes a line for the step's user.
func (s *server) say(format string, args ...any) {
	go fmt.Fprintf(s.log, "error: mpi/pmix: "+format+"\n", args...)
}

// statusOf is the status that an answer of the hub or a node comes to.
func statusOf(err error, otherwise int) int {
	switch {
	case err == nil:
		return statusSuccess
	case errors.Is(err, pmi.ErrLost):
		return statusLost
	}
	return otherwise
}

// fence has the tasks of all nodes that take part wait for each other and exchange data.
func (s *server) fence(procs []proc, data []byte, done func(status int, all []byte)) int {
	return s.together("fence", procs, data, done)
}

// connect has tasks wait for each other before they take each other for one, or apart.
func (s *server) connect(procs []proc, join bool, done func(status int)) int {
	kind := "disconnect"
	if join {
		kind = "connect"
	}
	return s.together(kind, procs, nil, func(status int, _ []byte) { done(status) })
}

func (s *server) together(kind string, procs []proc, data []byte, done func(status int, all []byte)) int {
	m, err := s.of(procs)
	if err != nil {
		s.say("%s: %v", kind, err)
		return statusNotSupported
	}
	if len(m.nodes) == 1 {
		go done(statusSuccess, data)
		return statusSuccess
	}
	s.link.Fence(s.next(kind, m), m.nodes, data, func(all []byte, err error) {
		go done(statusOf(err, statusError), all)
	})
	return statusSuccess
}

// modex gets what a rank, of another node as a rule, has to tell.
func (s *server) modex(p proc, done func(status int, data []byte)) int {
	node, known := s.node(p)
	if !known {
		return statusNotFound
	}
	if node == s.setup.Node {
		go s.request(p, done)
		return statusSuccess
	}
	s.link.Call(node, callModex, binary.AppendUvarint(nil, uint64(p.rank)), func(data []byte, err error) {
		go done(statusOf(err, statusNotFound), data)
	})
	return statusSuccess
}

// called answers another node.
func (s *server) called(m pmi.Message) {
	if m.Key != callModex {
		s.link.Answer(m, nil, fmt.Sprintf("%q cannot be done", m.Key))
		return
	}
	number, n := binary.Uvarint(m.Data)
	p := proc{s.nspace, uint32(number)}
	if node, known := s.node(p); n <= 0 || !known || node != s.setup.Node {
		s.link.Answer(m, nil, fmt.Sprintf("rank %d is not on node %d", number, s.setup.Node))
		return
	}
	go s.request(p, func(status int, data []byte) {
		if status != statusSuccess {
			s.link.Answer(m, nil, fmt.Sprintf("PMIx has nothing of rank %d (status %d)", number, status))
			return
		}
		s.link.Answer(m, data, "")
	})
}

// abort asks for the step's end.
func (s *server) abort(p proc, code int, text string) int {
	if text == "N/A" { // Open MPI's word for none
		text = ""
	}
	s.link.Abort(int(p.rank), code, text)
	return statusDone
}

// lost tells local tasks of those of a node that is gone.
func (s *server) lost(node int) {
	if node < 0 || node >= len(s.setup.Ranks) {
		return
	}
	go func() {
		for _, r := range s.setup.Ranks[node] {
			s.dead(proc{s.nspace, uint32(r)})
		}
	}()
}

// directives are what a task says of names besides them.
type directives struct {
	within  uint8
	persist uint8
	wait    bool
	timeout time.Duration
}

// publish keeps values under names for the others of the step.
func (s *server) publish(p proc, d directives, items map[string]item, done func(status int)) int {
	if len(items) == 0 {
		return statusBadParam
	}
	all := &gather{left: len(items), end: func(status int) { go done(status) }}
	for key, it := range items {
		name := scoped(d.within, s.setup.Node, p.rank, key)
		s.link.Publish(name, it.encode(), d.persist == persistFirstRead, func(_ []byte, err error) {
			if err == nil {
				s.own.add(p.rank, name)
			}
			all.add(statusOf(err, statusDuplicateKey))
		})
	}
	return statusSuccess
}

// lookup finds what names stand for. Those that are not published are left out, or waited for.
func (s *server) lookup(p proc, d directives, keys []string, done func(status int, found map[string]item)) int {
	if len(keys) == 0 {
		return statusBadParam
	}
	var mu sync.Mutex
	found := map[string]item{}
	all := &gather{left: len(keys)}
	all.end = func(status int) {
		mu.Lock()
		defer mu.Unlock()
		if status == statusNotFound && len(found) > 0 {
			status = statusSuccess
		}
		answer := found
		found = map[string]item{} // a late answer leaves this one alone
		go done(status, answer)
	}
	for _, key := range keys {
		s.link.Lookup(scoped(d.within, s.setup.Node, p.rank, key), d.wait, func(data []byte, err error) {
			it, wrong := decodeItem(data)
			if err == nil && wrong == nil {
				mu.Lock()
				found[key] = it
				mu.Unlock()
			}
			all.add(statusOf(errors.Join(err, wrong), statusNotFound))
		})
	}
	if d.timeout > 0 {
		time.AfterFunc(d.timeout, func() { all.stop(statusTimeout) })
	}
	return statusSuccess
}

// unpublish forgets names of a task, all without keys.
func (s *server) unpublish(p proc, d directives, keys []string, done func(status int)) int {
	var names []string
	for _, key := range keys {
		names = append(names, scoped(d.within, s.setup.Node, p.rank, key))
	}
	names = s.own.drop(p.rank, names...)
	if len(names) == 0 {
		return statusDone
	}
	all := &gather{left: len(names), end: func(status int) { go done(status) }}
	for _, name := range names {
		// A name that a lookup took is as good as gone.
		s.link.Unpublish(name, func([]byte, error) { all.add(statusSuccess) })
	}
	return statusSuccess
}

// gather ends once, when as many as are left have ended or one cannot wait; the first status that
// is no success is that of all.
type gather struct {
	end func(status int)

	mu     sync.Mutex
	left   int
	status int
}

func (g *gather) add(status int) {
	g.mu.Lock()
	if g.status == statusSuccess {
		g.status = status
	}
	g.left--
	last, first := g.left == 0, g.status
	g.mu.Unlock()
	if last {
		g.end(first)
	}
}

// stop ends it before its time, unless it has ended.
func (g *gather) stop(status int) {
	g.mu.Lock()
	waits := g.left > 0
	g.left = 0
	g.mu.Unlock()
	if waits {
		g.end(status)
	}
}
