package pmi

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Server is what the tasks of a step on one node talk to.
type Server struct {
	setup   *Setup
	mapping string
	link    *Link
	nodes   []int     // all of the step
	log     io.Writer // lines for the step's user

	mu      sync.Mutex
	kvs     map[string]string // what tasks put here, and others up to the last fence
	fresh   []string          // keys and values since then
	inFence []*rank
	gone    int // local tasks that take part in no fence any more
	fences  int
	attrs   map[string]string // of the node
	born    *born             // nil: no task has asked for this step
	waiting map[string][]func(string)
}

// rank is one task's connection.
type rank struct {
	server *Server
	rank   int
	conn   io.ReadWriter
	over   bool
	// fenced answers the task that is in a fence.
	fenced func()
}

// NewServer makes the server of a node. It writes to the hub by up; log takes lines for the step's user.
func NewServer(s *Setup, up, log io.Writer) *Server {
	var nodes []int
	for i := range s.Ranks {
		nodes = append(nodes, i)
	}
	return &Server{
		setup:   s,
		mapping: Mapping(s.Ranks),
		link:    NewLink(up),
		nodes:   nodes,
		log:     log,
		kvs:     map[string]string{},
		attrs:   map[string]string{},
		waiting: map[string][]func(string){},
	}
}

// say writes a line for the step's user.
func (s *Server) say(format string, args ...any) {
	fmt.Fprintf(s.log, "error: mpi/pmi2: "+format+"\n", args...)
}

// Listen takes what the hub says, to its end.
func (s *Server) Listen(from io.Reader) error {
	refuse := func(m Message) { s.link.Answer(m, nil, m.Key+" cannot be done") }
	return s.link.Listen(from, refuse, func(int) {}) // tasks learn of lost nodes by their own connections
}

// Serve speaks with a local task, to its end. The task's first line says by which version.
func (s *Server) Serve(number int, conn io.ReadWriteCloser) {
	r := &rank{server: s, rank: number, conn: conn}
	defer conn.Close()
	defer s.leave(r)
	in := bufio.NewReaderSize(conn, 4<<10)
	line, err := readLine(in)
	if err != nil {
		return // the program does not use PMI, or has ended
	}
	c, err := parse1(line)
	if err == nil && c.name != "init" {
		err = fmt.Errorf("it begins with %q, not with init", c.name)
	}
	if err == nil {
		s.begin()
	}
	if err == nil && c.args["pmi_version"] == "2" {
		_ = r.reply1("response_to_init", "pmi_version", "2", "pmi_subversion", "0", "rc", "0")
		err = r.serve2(in)
	} else if err == nil {
		_ = r.reply1("response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "0")
		err = r.serve1(in)
	}
	if err != nil {
		s.say("task %d: %v", number, err)
	}
}

// leave ends a task's part in fences.
func (s *Server) leave(r *rank) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	s.gone++
}

// Limits of what a task may say at once, and of what is kept for it.
const (
	maxLine = 1 << 20
	maxKey  = 256
	maxVal  = 64 << 10
)

func tooLong(what, key, value string) error {
	return fmt.Errorf("%s of %d and %d bytes: at most %d and %d", what, len(key), len(value), maxKey, maxVal)
}

// put keeps a pair; the others of the step see it after the next fence.
func (s *Server) put(key, value string) error {
	if len(key) > maxKey || len(value) > maxVal {
		return tooLong("a pair", key, value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kvs[key] = value
	s.fresh = append(s.fresh, key, value)
	return nil
}

func (s *Server) get(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.kvs[key]
	return value, ok
}

// fence has a task wait for all others; then done is called.
func (s *Server) fence(r *rank, done func()) error {
	s.mu.Lock()
	if r.fenced != nil {
		s.mu.Unlock()
		return fmt.Errorf("it comes to a fence twice")
	}
	r.fenced = done
	s.inFence = append(s.inFence, r)
	if len(s.inFence) < len(s.setup.Local()) {
		s.mu.Unlock()
		return nil
	}
	data := appendTexts(nil, s.fresh...)
	s.fresh = nil
	s.fences++
	key := strconv.Itoa(s.fences)
	s.mu.Unlock()
	s.link.Fence(key, s.nodes, data, s.endFence)
	return nil
}

// endFence has the tasks see what the others have put, and go on.
func (s *Server) endFence(data []byte, err error) {
	pairs, wrong := readTexts(data)
	if wrong != nil || len(pairs)%2 != 0 {
		err = fmt.Errorf("%w: the pairs of a fence", ErrMessage)
	}
	if err != nil { // the tasks wait on: their step is being ended
		s.say("%v", err)
		return
	}
	s.mu.Lock()
	for i := 0; i < len(pairs); i += 2 {
		s.kvs[pairs[i]] = pairs[i+1]
	}
	var done []func()
	for _, r := range s.inFence {
		done = append(done, r.fenced)
		r.fenced = nil
	}
	s.inFence = nil
	s.mu.Unlock()
	for _, f := range done {
		f()
	}
}

// setAttr sets an attribute of the node, and tells those who wait for it.
func (s *Server) setAttr(key, value string) error {
	if len(key) > maxKey || len(value) > maxVal {
		return tooLong("an attribute", key, value)
	}
	s.mu.Lock()
	s.attrs[key] = value
	waiting := s.waiting[key]
	delete(s.waiting, key)
	s.mu.Unlock()
	for _, tell := range waiting {
		tell(value)
	}
	return nil
}

// attr is an attribute of the node. If it is not set and wait is not nil, that is called once it is.
func (s *Server) attr(key string, wait func(string)) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.attrs[key]
	if !ok && wait != nil {
		s.waiting[key] = append(s.waiting[key], wait)
	}
	return value, ok
}

// jobAttr is an attribute of the whole step, "" if it has none of that name.
func (s *Server) jobAttr(key string) string {
	switch key {
	case "PMI_process_mapping":
		return s.mapping
	case "universeSize":
		return strconv.Itoa(s.setup.Universe)
	case "mpi_reserved_ports":
		return s.setup.Ports
	}
	return ""
}

// abort asks for the step's end.
func (s *Server) abort(r *rank, code int, text string) {
	s.link.Abort(r.rank, code, text)
}

// readLine reads a line of PMI-1, without its end.
func readLine(in *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := in.ReadSlice('\n')
		if b.Len()+len(part) > maxLine {
			return "", fmt.Errorf("a line of more than %d bytes", maxLine)
		}
		b.Write(part)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return "", err
		}
		return strings.TrimSuffix(b.String(), "\n"), nil
	}
}
