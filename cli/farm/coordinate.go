package farm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"dev.muster/wire"
)

// Options say how tasks are run.
type Options struct {
	Workers   int
	Template  string // command for each line; "": the line is the command
	Retries   int    // further attempts of a task that fails
	KeepOrder bool   // output in the order of the list
	Journal   *Journal
}

// queuedAhead is how many tasks a worker has for each of its slots, those that run among them. One that is over is
// followed by the next without a message to and fro.
const queuedAhead = 2

// orderWindow is how far tasks may be ahead of the one whose output comes next, where output is in order.
const orderWindow = 10_000

// mostTold bounds the failures that are told one by one.
const mostTold = 20

// farm is the coordinator's work.
type farm struct {
	Options
	list    *tasks
	ended   bool    // the list is
	again   []*task // to be tried again
	workers []*gang
	under   map[int]*running
	outputs outputs
	orders  *bufio.Writer
	log     io.Writer

	Summary
}

// Summary is how a run ended.
type Summary struct {
	Done, Failed, Retried, Skipped int
	// Unfinished is how many tasks workers still had, where an error ended the run.
	Unfinished int
}

// gang is a worker as the coordinator knows it.
type gang struct {
	rank  int
	hello *helloMessage
	has   int // tasks that it has been given
}

// running is a task that a worker has.
type running struct {
	*task
	worker *gang
}

// Streams are where the coordinator reads and writes.
type Streams struct {
	Tasks    io.Reader
	Reports  io.Reader      // what the workers say: lines that begin with the rank and a colon
	Orders   io.WriteCloser // to all workers
	Out, Err io.Writer
}

// Coordinate has workers run the tasks of a list, and returns when all are over. The error says why some could not
// be run; tasks that failed are counted.
func Coordinate(o Options, s Streams) (Summary, error) {
	f := newFarm(o, s)
	defer s.Orders.Close()
	defer f.outputs.close()
	err := f.work(bufio.NewReaderSize(s.Reports, 4*maxChunk))
	f.Unfinished = len(f.under)
	return f.Summary, err
}

func newFarm(o Options, s Streams) *farm {
	return &farm{
		Options: o, list: readTasks(s.Tasks, o.Template), under: map[int]*running{},
		outputs: outputs{out: s.Out, err: s.Err, inOrder: o.KeepOrder},
		orders:  bufio.NewWriterSize(s.Orders, maxLine), log: s.Err,
	}
}

// work goes on until all tasks are over.
func (f *farm) work(in *bufio.Reader) error {
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return errors.New("the workers ended before all tasks were done")
		}
		if err != nil {
			return err
		}
		if err := f.takeLine(line); err != nil {
			return err
		}
		if in.Buffered() > 0 {
			continue
		}
		if over, err := f.giveOut(); over || err != nil {
			return err
		}
	}
}

// takeLine takes in what one worker says.
func (f *farm) takeLine(line []byte) error {
	head, text, _ := bytes.Cut(line, []byte(": "))
	rank, err := strconv.Atoi(string(bytes.TrimSpace(head)))
	if err != nil {
		return fmt.Errorf("%.80q is no report of a worker", line)
	}
	var r report
	if err := wire.Unmarshal(bytes.TrimSuffix(text, []byte("\n")), &r); err != nil {
		return fmt.Errorf("worker %d says %.80q: %w", rank, text, err)
	}
	if r.Hello != nil {
		return f.greet(rank, r.Hello)
	}
	return f.takeReport(&r)
}

// greet takes in what a worker can do.
func (f *farm) greet(rank int, h *helloMessage) error {
	if h.Slots == 0 {
		return fmt.Errorf("no task fits on node %s: %s", h.Node, h.Why)
	}
	f.workers = append(f.workers, &gang{rank: rank, hello: h})
	return nil
}

// takeReport takes in output of a task, or its end.
func (f *farm) takeReport(r *report) error {
	run := f.under[r.Task]
	if run == nil {
		return nil
	}
	if r.Done == nil {
		return f.outputs.add(run.number, r.Out, r.Err)
	}
	delete(f.under, r.Task)
	run.worker.has--
	if err := f.Journal.add(run.task, r.Done, run.worker.hello.Node); err != nil {
		return err
	}
	if !r.Done.succeeded() && run.attempt <= f.Retries {
		f.Retried++
		again := *run.task
		again.attempt++
		f.again = append(f.again, &again)
		return f.outputs.drop(run.number)
	}
	if r.Done.succeeded() {
		f.Done++
	} else {
		f.Failed++
		f.tellFailure(run, r.Done)
	}
	return f.outputs.end(run.number)
}

// tellFailure says which task failed, and how.
func (f *farm) tellFailure(run *running, d *doneMessage) {
	if f.Failed > mostTold {
		return
	}
	how := fmt.Sprintf("exit code %d", d.Code)
	switch {
	case d.Failed != "":
		how = d.Failed
	case d.Late:
		how = "its time limit"
	case d.Signal != 0:
		how = fmt.Sprintf("signal %d", d.Signal)
	}
	took := time.Duration(d.Millis) * time.Millisecond
	fmt.Fprintf(f.log, "muster farm: task %d (%.80s) failed on node %s after %v: %s\n",
		run.number, run.command, run.worker.hello.Node, took, how)
	if f.Failed == mostTold {
		fmt.Fprintln(f.log, "muster farm: further failures are only counted")
	}
}

// giveOut gives workers tasks as long as there are both; over once all are done.
func (f *farm) giveOut() (over bool, err error) {
	if len(f.workers) < f.Workers {
		return false, nil
	}
	for {
		w := slices.MinFunc(f.workers, func(a, b *gang) int { return a.has*b.hello.Slots - b.has*a.hello.Slots })
		if w.has >= f.mostOf(w) {
			break
		}
		t, err := f.next()
		if err != nil {
			return false, err
		}
		if t == nil {
			break
		}
		if err := f.send(w, t); err != nil {
			return false, err
		}
	}
	if err := f.orders.Flush(); err != nil {
		return false, fmt.Errorf("the workers have ended: %w", err)
	}
	return f.ended && len(f.again) == 0 && len(f.under) == 0, nil
}

// mostOf is how many tasks a worker may have. At the end of the list it has no more than run at once, lest one wait
// behind another while a node is idle.
func (f *farm) mostOf(w *gang) int {
	if f.ended {
		return w.hello.Slots
	}
	return queuedAhead * w.hello.Slots
}

// next is the next task to run; nil if there is none now.
func (f *farm) next() (*task, error) {
	if len(f.again) > 0 {
		t := f.again[0]
		f.again = f.again[1:]
		return t, nil
	}
	for !f.ended && !f.outputs.farAhead() {
		t, err := f.list.next()
		if errors.Is(err, io.EOF) {
			f.ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		done, err := f.Journal.has(t)
		if err != nil {
			return nil, err
		}
		if !done {
			f.outputs.begin(t.number)
			return t, nil
		}
		f.Skipped++
	}
	return nil, nil
}

// send gives a task to a worker.
func (f *farm) send(w *gang, t *task) error {
	line, err := wire.Marshal(&order{To: w.rank, Task: t.number, Attempt: t.attempt, Command: t.command})
	if err != nil {
		return err
	}
	w.has++
	f.under[t.number] = &running{task: t, worker: w}
	if _, err := f.orders.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the workers have ended: %w", err)
	}
	return nil
}
