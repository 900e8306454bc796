package stage

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// watching is what sattach's line asks for, and what it looks at.
type watching struct {
	sys           *front.Sys
	input         int // which task gets what is typed; everyone: all
	output, error int // whose output is printed
	label         bool
	layout        bool
	pty           bool
	quiet         int

	step  api.StepResponse
	nodes []*stream.Watcher

	mu    sync.Mutex
	begun map[lineKey][]byte // lines without an end yet
	worst int
}

// lineKey is one of the two output streams of a task.
type lineKey struct {
	task int32
	kind stream.Kind
}

// everyone is that no task is chosen.
const everyone = -1

type watchOption = opt.Option[watching]

// SattachOptions are the options of sattach.
var SattachOptions = []watchOption{
	{Long: "input-filter", Arg: opt.Required, On: opt.Sattach, Meta: "taskid",
		Help: "send stdin to only the specified task",
		Set:  func(w *watching, v string) error { return setTask(&w.input, "input", v) }},
	{Long: "output-filter", Arg: opt.Required, On: opt.Sattach, Meta: "taskid",
		Help: "only print stdout from the specified task",
		Set:  func(w *watching, v string) error { return setTask(&w.output, "output", v) }},
	{Long: "error-filter", Arg: opt.Required, On: opt.Sattach, Meta: "taskid",
		Help: "only print stderr from the specified task",
		Set:  func(w *watching, v string) error { return setTask(&w.error, "error", v) }},
	{Long: "label", Short: 'l', On: opt.Sattach, Help: "prepend task number to lines of stdout & stderr",
		Set: func(w *watching, _ string) error { w.label = true; return nil }},
	{Long: "layout", On: opt.Sattach, Help: "print task layout info and exit (does not attach to tasks)",
		Set: func(w *watching, _ string) error { w.layout = true; return nil }},
	{Long: "pty", On: opt.Sattach, Help: "the step has a terminal: use this one as it is",
		Set: func(w *watching, _ string) error { w.pty = true; return nil }},
	{Long: "debugger-test", On: opt.Sattach, Newer: true, Ignored: "no debugger attaches by sattach"},
	{Long: "quiet", Short: 'Q', On: opt.Sattach, Help: "quiet mode (suppress informational messages)",
		Set: func(w *watching, _ string) error { w.quiet++; return nil }},
	{Long: "verbose", Short: 'v', On: opt.Sattach, Help: "verbose mode: what there is to tell is told anyway",
		Set: func(*watching, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Sattach, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sattach, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", Short: 'u', On: opt.Sattach, Group: opt.HelpGroup, Help: "print a short help"},
}

// setTask reads the number of a task.
func setTask(to *int, what, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return opt.Errorf(opt.CodeError, "error: Invalid numeric value \"%s\" for %s-filter.", v, what)
	}
	*to = n
	return nil
}

// Sattach shows what the tasks of a running step print from now on, and sends them what is typed. The step
// does not notice: it goes on when sattach ends.
func Sattach(s *front.Sys, argv []string) int {
	w := &watching{sys: s, input: everyone, output: everyone, error: everyone, begun: map[lineKey][]byte{}}
	rest, code := front.ParseQuery(s, opt.Sattach, SattachOptions, w, argv)
	if code >= 0 {
		return code
	}
	id, code := w.named(rest)
	if code != 0 {
		return code
	}
	resp, err := front.Call(s, api.DescribeStep, api.StepWait{ID: id})
	if err = api.OldClient(err); err != nil {
		s.Say("error: Could not get job step info: %s", whyNot(s, id.Job, err))
		return 1
	}
	w.step = resp
	if w.layout {
		w.printLayout()
		return 0
	}
	restore := w.raw()
	defer restore()
	return w.follow()
}

// ownSteps are those that have names.
var ownSteps = map[string]int{
	"batch":       cluster.BatchStep,
	"extern":      cluster.ExternStep,
	"interactive": cluster.InteractiveStep,
}

// named reads which step is meant.
func (w *watching) named(rest []string) (id cluster.StepID, code int) {
	s := w.sys
	if w.pty && max(w.input, w.output, w.error) != everyone {
		s.Say("error: don't specify both --pty and I/O filtering")
		return id, 1
	}
	usage := func(why string) (cluster.StepID, int) {
		s.Say("error: %s", why)
		fmt.Fprintln(s.Stdout, "Usage: sattach [options] <jobid.stepid>")
		return id, 1
	}
	if len(rest) != 1 {
		return usage("too many parameters")
	}
	job, number, ok := strings.Cut(rest[0], ".")
	step, err := strconv.Atoi(number)
	if id.Job = jobOf(s, job); !ok || id.Job == 0 {
		return usage("Failed to parse stepid from command line options")
	}
	if id.Step = step; err != nil {
		if id.Step, ok = ownSteps[number]; !ok {
			s.Say("fatal: Bad step specified: %s", job)
			return id, 1
		}
	}
	return id, 0
}

// printLayout tells which tasks run where.
func (w *watching) printLayout() {
	var nodes []cluster.NodeName
	for _, n := range w.step.Nodes {
		nodes = append(nodes, n.Node)
	}
	out := w.sys.Stdout
	fmt.Fprintf(out, "Job step layout:\n\t%d tasks, %d nodes (%s)\n\n",
		w.step.Step.Tasks, len(nodes), front.NodeText(nodes))
	for i, n := range w.step.Nodes {
		fmt.Fprintf(out, "\tNode %d (%s), %d task(s): ", i, n.Node, len(n.Ranks))
		for _, rank := range n.Ranks {
			fmt.Fprintf(out, "%d ", rank)
		}
		fmt.Fprintln(out)
	}
}

// raw has the terminal pass on what is typed, if the step has a terminal of its own.
func (w *watching) raw() (restore func()) {
	f, ok := w.sys.Stdin.(*os.File)
	if !w.pty || !ok || !front.IsTerminal(f) {
		return func() {}
	}
	restore, err := front.MakeRaw(f)
	if err != nil {
		w.sys.Say("error: the terminal could not be made raw: %v", err)
		return func() {}
	}
	return restore
}

// follow prints until the step has ended on all nodes; the result is the exit code.
func (w *watching) follow() int {
	var over sync.WaitGroup
	for _, n := range w.step.Nodes {
		dial := Attach(w.sys, api.WatchStep, w.step.Step.ID, n.Node)
		to := stream.NewWatcher(dial)
		w.nodes = append(w.nodes, to)
		over.Go(func() { w.listen(n, to) })
	}
	go w.feed() // ends with the input, or with sattach
	over.Wait()
	return w.worst
}

// listen prints what comes from a node.
func (w *watching) listen(n api.StepNode, from *stream.Watcher) {
	ended := 0
	for {
		f, err := from.Next()
		switch {
		case err != nil:
			w.sys.Say("error: Node %s: %v", n.Node, err)
			w.fail(1)
			return
		case f.Kind == stream.Done && ended == 0:
			w.inform("Node %s: no tasks running", n.Node)
		case f.Kind == stream.Exit:
			ended++
			w.exited(f)
		}
		if f.Kind == stream.Done {
			return
		}
		w.print(f)
	}
}

// inform says what is no error, unless -Q.
func (w *watching) inform(format string, args ...any) {
	if w.quiet == 0 {
		w.sys.Say(format, args...)
	}
}

func (w *watching) fail(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.worst = max(w.worst, code)
}

// exited tells of a task that has ended with an exit code. Of signals Slurm says nothing.
func (w *watching) exited(f stream.Frame) {
	x, _ := f.TaskExit()
	if x.Code == 0 {
		return
	}
	w.sys.Say("error: task %d exited with exit code %d", f.Task, x.Code)
	w.fail(x.Code)
}

// print writes what a task, or its node, has printed.
func (w *watching) print(f stream.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := lineKey{f.Task, f.Kind}
	if f.Kind == stream.EOF {
		k.kind = stream.Kind(f.FD())
		w.flush(k)
		return
	}
	to, only := w.to(f.Kind)
	of := f.Task >= 0 // else it is of the node itself
	switch {
	case to == nil, of && only != everyone && only != int(f.Task):
	case of && w.label:
		w.begun[k] = w.lines(to, f.Task, append(w.begun[k], f.Data...))
	default:
		_, _ = to.Write(f.Data)
	}
}

// to is where a kind of output goes, and whose is printed.
func (w *watching) to(kind stream.Kind) (io.Writer, int) {
	switch kind {
	case stream.Stdout:
		return w.sys.Stdout, w.output
	case stream.Stderr:
		return w.sys.Stderr, w.error
	}
	return nil, everyone
}

// lines writes whole lines with the number of their task; it returns what is left.
func (w *watching) lines(to io.Writer, task int32, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return bytes.Clone(text)
		}
		fmt.Fprintf(to, "%s%s", cluster.RankLabel(int(task), w.step.Step.Tasks), text[:i+1])
		text = text[i+1:]
	}
}

// flush writes a line that has no end.
func (w *watching) flush(k lineKey) {
	if to, _ := w.to(k.kind); to != nil && len(w.begun[k]) > 0 {
		w.lines(to, k.task, append(w.begun[k], '\n'))
	}
	delete(w.begun, k)
}

// feed sends what is typed to the tasks.
func (w *watching) feed() {
	buf := make([]byte, 32<<10)
	for {
		n, err := w.sys.Stdin.Read(buf)
		if n > 0 {
			w.send(buf[:n])
		}
		if err != nil {
			w.send(nil)
			return
		}
	}
}

// send passes input on to the tasks that it is for; none is its end.
func (w *watching) send(text []byte) {
	for i, n := range w.step.Nodes {
		if w.input == everyone || slices.Contains(n.Ranks, w.input) {
			_ = w.nodes[i].Input(int32(w.input), text) // a node that is gone tells by its output
		}
	}
}
