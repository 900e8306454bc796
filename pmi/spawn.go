package pmi

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Spawn is what a task asks for by MPI_Comm_spawn: further tasks, in a step of their own.
type Spawn struct {
	Rank     int       // of the task that asks
	Programs []Program // their tasks have ranks one behind the other
	Preput   []string  // keys and values that the new tasks find in their key space
}

// Program is what some of the new tasks run.
type Program struct {
	Tasks int
	Argv  []string
	Info  []string // keys and values of MPI's info
}

// Tasks is how many are asked for.
func (s *Spawn) Tasks() (n int) {
	for _, p := range s.Programs {
		n += p.Tasks
	}
	return n
}

// maxTasks bounds what one call may ask for.
const maxTasks = 1 << 20

// SpawnedEnv tells the tasks of a step, and its servers, that a task has asked for it.
const SpawnedEnv = "PMI_SPAWNED"

// spawnWords are how a version of PMI says it. Keys that end in a number have it appended.
type spawnWords struct {
	program, tasks            string
	args, arg                 string
	firstArg                  int
	preputs, preKey, preValue string
	infos, infoKey, infoValue string
}

var (
	words1 = spawnWords{"execname", "nprocs", "argcnt", "arg", 1,
		"preput_num", "preput_key_", "preput_val_", "info_num", "info_key_", "info_val_"}
	words2 = spawnWords{"subcmd", "maxprocs", "argc", "argv", 0,
		"preputcount", "ppkey", "ppval", "infokeycount", "infokey", "infoval"}
)

var errSpawn = errors.New("what is to be started cannot be read")

// read reads a spawn: what holds for all programs, and a part for each.
func (w *spawnWords) read(whole map[string]string, parts []map[string]string) (*Spawn, error) {
	s := &Spawn{}
	var err error
	if s.Preput, err = pairs(whole, w.preputs, w.preKey, w.preValue); err != nil {
		return nil, err
	}
	for _, part := range parts {
		p, err := w.readProgram(part)
		if err != nil {
			return nil, err
		}
		s.Programs = append(s.Programs, p)
	}
	if len(s.Programs) == 0 || s.Tasks() > maxTasks {
		return nil, fmt.Errorf("%w: %d programs, %d tasks", errSpawn, len(s.Programs), s.Tasks())
	}
	return s, nil
}

// readProgram reads the part of one program.
func (w *spawnWords) readProgram(part map[string]string) (Program, error) {
	name := part[w.program]
	tasks, err := strconv.Atoi(part[w.tasks])
	if err != nil || name == "" || tasks < 1 || tasks > maxTasks {
		return Program{}, fmt.Errorf("%w: %.20q tasks of program %.80q", errSpawn, part[w.tasks], name)
	}
	p := Program{Tasks: tasks, Argv: []string{name}}
	args, err := count(part, w.args)
	for i := range args {
		p.Argv = append(p.Argv, part[w.arg+strconv.Itoa(i+w.firstArg)])
	}
	if err == nil {
		p.Info, err = pairs(part, w.infos, w.infoKey, w.infoValue)
	}
	return p, err
}

// count is a number of further keys, of which there cannot be more than keys at all.
func count(args map[string]string, key string) (int, error) {
	text, given := args[key]
	if !given {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > len(args) {
		return 0, fmt.Errorf("%w: %s=%.20q", errSpawn, key, text)
	}
	return n, nil
}

// pairs are keys and values that are numbered.
func pairs(args map[string]string, number, key, value string) (list []string, err error) {
	n, err := count(args, number)
	for i := range n {
		k := strconv.Itoa(i)
		list = append(list, args[key+k], args[value+k])
	}
	return list, err
}

// encode is the spawn as readSpawn reads it: lists of texts, each with their number before.
func (s *Spawn) encode() []byte {
	texts := []string{strconv.Itoa(s.Rank)}
	add := func(list []string) { texts = append(append(texts, strconv.Itoa(len(list))), list...) }
	add(s.Preput)
	for _, p := range s.Programs {
		texts = append(texts, strconv.Itoa(p.Tasks))
		add(p.Argv)
		add(p.Info)
	}
	return appendTexts(nil, texts...)
}

// lists takes numbers and lists off the front of texts.
type lists struct {
	texts  []string
	failed bool
}

func (l *lists) number(atMost int) int {
	if l.failed || len(l.texts) == 0 {
		l.failed = true
		return 0
	}
	n, err := strconv.Atoi(l.texts[0])
	l.texts = l.texts[1:]
	if err != nil || n < 0 || n > atMost {
		l.failed = true
		return 0
	}
	return n
}

func (l *lists) list() []string {
	n := l.number(len(l.texts))
	if n > len(l.texts) {
		l.failed = true
		return nil
	}
	list := l.texts[:n]
	l.texts = l.texts[n:]
	return slices.Clone(list)
}

// readSpawn reads what a server passes on.
func readSpawn(texts []string) (*Spawn, error) {
	l := lists{texts: texts}
	s := &Spawn{Rank: l.number(maxTasks), Preput: l.list()}
	for len(l.texts) > 0 && !l.failed {
		p := Program{Tasks: l.number(maxTasks), Argv: l.list(), Info: l.list()}
		l.failed = l.failed || p.Tasks == 0 || len(p.Argv) == 0 || len(p.Info)%2 != 0
		s.Programs = append(s.Programs, p)
	}
	if l.failed || len(s.Programs) == 0 || len(s.Preput)%2 != 0 || s.Tasks() > maxTasks {
		return nil, errSpawn
	}
	return s, nil
}

// birth is what the servers of a step are told that a task has asked for.
type birth struct {
	spawner string // the step of that task
	spawn   *Spawn
	begun   func()
	asked   map[int]bool // nodes whose server knows that it has a parent
	ready   map[int]bool // nodes whose tasks have all begun with PMI
}

// begin notes that the tasks of one of so many nodes have begun.
func (b *birth) begin(node, nodes int) {
	before := len(b.ready)
	b.ready[node] = true
	if before < nodes && len(b.ready) == nodes {
		b.begun()
	}
}

// tell is the birth as readBirth reads it, for a node.
func (b *birth) tell(node int) []byte {
	b.asked[node] = true
	texts := append([]string{b.spawner, strconv.Itoa(len(b.spawn.Preput))}, b.spawn.Preput...)
	for _, p := range b.spawn.Programs {
		texts = append(texts, strconv.Itoa(p.Tasks))
	}
	return appendTexts(nil, texts...)
}

// readBirth reads it: tasks are those of each program.
func readBirth(data []byte) (spawner string, preput []string, tasks []int, err error) {
	texts, err := readTexts(data)
	if err != nil || len(texts) == 0 {
		return "", nil, nil, errSpawn
	}
	l := lists{texts: texts[1:]}
	preput = l.list()
	for len(l.texts) > 0 && !l.failed {
		tasks = append(tasks, l.number(maxTasks))
	}
	if l.failed || len(preput)%2 != 0 {
		return "", nil, nil, errSpawn
	}
	return texts[0], preput, tasks, nil
}

// Calls of the hub about tasks that were asked for by tasks.
const (
	// callSpawn asks for further tasks; the answer is the name of their step. An older hub says that it cannot be
	// done.
	callSpawn = "MPI_Comm_spawn"
	// callBirth asks what the task has put that has asked for this step. All nodes of such a step call it first.
	callBirth = "birth"
	// callBegun tells that all tasks of the node have begun with PMI.
	callBegun = "begun"
)

// Starts has the hub start what tasks ask for by MPI_Comm_spawn. start is called in a goroutine of its own, and calls
// done once.
func (h *Hub) Starts(start func(s *Spawn, done func(job string, err error))) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.start = start
}

// Child makes the hub of a step that a task of the step spawner, which is this hub's, has asked for. begun is called
// once all of the new tasks have begun with PMI, and must not wait.
func (h *Hub) Child(nodes []io.Writer, aborted func(Aborted), spawner string, s *Spawn, begun func()) *Hub {
	child := newHub(nodes, aborted, h.mu, h.names)
	child.birth = &birth{spawner: spawner, spawn: s, begun: begun, asked: map[int]bool{}, ready: map[int]bool{}}
	return child
}

// spawn has further tasks started, and replies when they have begun; mu is held.
func (h *Hub) spawn(node int, reply Message, args []string) {
	s, err := readSpawn(args)
	if err != nil {
		reply.Key = err.Error()
		h.send(node, reply)
		return
	}
	go h.start(s, func(job string, err error) {
		reply.Data = []byte(job)
		if err != nil {
			reply.Key = err.Error()
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.send(node, reply)
	})
}
