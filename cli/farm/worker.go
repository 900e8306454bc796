package farm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// WorkerOptions say what each task gets.
type WorkerOptions struct {
	CPUs   int           // of each task
	GPUs   int           // of each task
	Most   int           // tasks at once on this node; 0: as many as fit
	Limit  time.Duration // of each attempt; 0: none
	Output string        // file of each task, with %t for its number; "": the coordinator's output
}

// killAfter is how long a task has that is asked to end, as it is over its time limit.
const killAfter = 5 * time.Second

// worker runs tasks on one node.
type worker struct {
	WorkerOptions
	rank   int
	orders chan *order
	out    sync.Mutex
	to     *bufio.Writer
}

// Work runs what the coordinator orders until its input ends, and all of that is over. It is task rank of its step.
func Work(o WorkerOptions, rank int, in io.Reader, out io.Writer) error {
	slots, why := slotsOf(&o)
	w := &worker{WorkerOptions: o, rank: rank, to: bufio.NewWriterSize(out, 2*maxChunk)}
	node, _ := os.Hostname()
	if name := os.Getenv("SLURMD_NODENAME"); name != "" {
		node = name
	}
	w.say(&report{Hello: &helloMessage{Node: node, Slots: len(slots), Why: why}})
	w.orders = make(chan *order, queuedAhead*len(slots))
	var running sync.WaitGroup
	for _, s := range slots {
		running.Go(func() { w.serve(s) })
	}
	err := w.take(in)
	close(w.orders)
	running.Wait()
	return err
}

// take reads orders, and passes on those for this worker.
func (w *worker) take(in io.Reader) error {
	lines := bufio.NewReaderSize(in, maxLine)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o := &order{}
		if err := wire.Unmarshal(line, o); err != nil {
			return err
		}
		if o.To == w.rank {
			w.orders <- o
		}
	}
}

// say sends a report at once.
func (w *worker) say(r *report) {
	line, err := wire.Marshal(r)
	if err != nil {
		return
	}
	w.out.Lock()
	defer w.out.Unlock()
	_, _ = w.to.Write(append(line, '\n')) // without a coordinator the step ends
	_ = w.to.Flush()
}

// slot is what one task gets at a time.
type slot struct {
	cpus []int    // empty: any
	gpus []string // as CUDA_VISIBLE_DEVICES names them
}

// slotsOf divides what the step has on this node among tasks; if none fits, why not.
func slotsOf(o *WorkerOptions) (slots []slot, why string) {
	cpus, err := ownCPUs()
	if err != nil {
		return nil, "its CPUs are not known: " + err.Error()
	}
	gpus := strings.FieldsFunc(os.Getenv("CUDA_VISIBLE_DEVICES"), func(r rune) bool { return r == ',' })
	given, err := strconv.Atoi(os.Getenv("SLURM_CPUS_ON_NODE"))
	if err != nil || given < 1 {
		given = len(cpus)
	}
	n := given / o.CPUs
	if o.GPUs > 0 {
		n = min(n, len(gpus)/o.GPUs)
	}
	if n == 0 {
		return nil, fmt.Sprintf("a task needs %d CPUs and %d GPUs, and the step has %d and %d there",
			o.CPUs, o.GPUs, given, len(gpus))
	}
	if o.Most > 0 {
		n = min(n, o.Most)
	}
	for k := range n {
		s := slot{gpus: gpus[k*o.GPUs : (k+1)*o.GPUs]}
		if given == len(cpus) { // else the node does not confine jobs to their CPUs
			s.cpus = cpus[k*o.CPUs : (k+1)*o.CPUs]
		}
		slots = append(slots, s)
	}
	return slots, ""
}

// ownCPUs lists the CPUs that this process may use.
func ownCPUs() (list []int, err error) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return nil, err
	}
	for k := 0; len(list) < own.Count(); k++ {
		if own.IsSet(k) {
			list = append(list, k)
		}
	}
	return list, nil
}

// bind has the thread, and what it starts, use the slot's CPUs.
func (s *slot) bind() {
	if len(s.cpus) == 0 {
		return
	}
	var set unix.CPUSet
	for _, c := range s.cpus {
		set.Set(c)
	}
	_ = unix.SchedSetaffinity(0, &set) // else tasks share the CPUs
}

// serve runs orders in a slot, one after the other, on a thread that has its CPUs.
func (w *worker) serve(s slot) {
	runtime.LockOSThread()
	s.bind()
	for o := range w.orders {
		w.say(&report{Task: o.Task, Done: w.run(o, s)})
	}
}

// run runs one attempt.
func (w *worker) run(o *order, s slot) *doneMessage {
	began := time.Now()
	d := &doneMessage{Began: began.UnixMilli()}
	defer func() { d.Millis = time.Since(began).Milliseconds() }()
	cmd := commandOf(o.Command)
	cmd.Env = append(os.Environ(),
		"MUSTER_FARM_TASK="+strconv.Itoa(o.Task), "MUSTER_FARM_ATTEMPT="+strconv.Itoa(o.Attempt))
	if w.GPUs > 0 {
		cmd.Env = append(cmd.Env, "CUDA_VISIBLE_DEVICES="+strings.Join(s.gpus, ","))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	finish, err := w.connect(cmd, o)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		finish(false)
		d.Code, d.Failed = 127, err.Error()
		return d
	}
	group := cmd.Process.Pid
	late := w.limit(group)
	err = cmd.Wait()
	d.Late = late()
	_ = unix.Kill(-group, unix.SIGKILL) // what it has left behind
	finish(true)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, _ := exit.Sys().(syscall.WaitStatus)
		d.Code = max(status.ExitStatus(), 0)
		if status.Signaled() {
			d.Signal = int(status.Signal())
		}
	} else if err != nil {
		d.Code, d.Failed = 1, err.Error()
	}
	return d
}

// commandOf makes the process of a command, without a shell where none is needed.
func commandOf(command string) *exec.Cmd {
	if list, plain := words(command); plain {
		if path, err := exec.LookPath(list[0]); err == nil {
			return &exec.Cmd{Path: path, Args: list}
		}
	}
	return exec.Command("/bin/sh", "-c", command)
}

// limit has a group of processes end after the time limit. The function that it returns reports whether it had to.
func (w *worker) limit(group int) func() bool {
	if w.Limit == 0 {
		return func() bool { return false }
	}
	var kill *time.Timer
	term := time.AfterFunc(w.Limit, func() { _ = unix.Kill(-group, unix.SIGTERM) })
	kill = time.AfterFunc(w.Limit+killAfter, func() { _ = unix.Kill(-group, unix.SIGKILL) })
	return func() bool {
		kill.Stop()
		return !term.Stop()
	}
}

// connect gives a command its output. finish is to be called when it is over, or did not start.
func (w *worker) connect(cmd *exec.Cmd, o *order) (finish func(ran bool), err error) {
	if w.Output != "" {
		f, err := os.Create(strings.ReplaceAll(w.Output, "%t", strconv.Itoa(o.Task)))
		if err != nil {
			return func(bool) {}, err
		}
		cmd.Stdout, cmd.Stderr = f, f
		return func(bool) { f.Close() }, nil
	}
	var copied sync.WaitGroup
	var ends []*os.File
	for _, stderr := range []bool{false, true} {
		r, to, err := os.Pipe()
		if err != nil {
			break
		}
		ends = append(ends, r, to)
		if stderr {
			cmd.Stderr = to
		} else {
			cmd.Stdout = to
		}
		copied.Go(func() { w.relay(r, o.Task, stderr) })
	}
	finish = func(ran bool) {
		for k, f := range ends {
			if k%2 == 1 {
				f.Close()
			} else if ran {
				_ = f.SetReadDeadline(time.Now().Add(lingers)) // a process may have left its group
			}
		}
		copied.Wait()
	}
	if len(ends) < 4 {
		return finish, errors.New("no pipe for its output")
	}
	return finish, nil
}

// lingers is how long output is waited for of which the task is over.
const lingers = time.Second

// relay sends what a task writes to the coordinator.
func (w *worker) relay(r *os.File, number int, stderr bool) {
	defer r.Close()
	b := make([]byte, maxChunk)
	for {
		n, err := r.Read(b)
		if n > 0 {
			part := report{Task: number, Out: slices.Clone(b[:n])}
			if stderr {
				part.Out, part.Err = nil, part.Out
			}
			w.say(&part)
		}
		if err != nil {
			return
		}
	}
}
