package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// stepIO is srun's side of the tasks' standard streams.
type stepIO struct {
	sys     *front.Sys
	req     *submit.Request
	in      io.Reader // nil: the tasks get none of srun's
	inTask  int32     // which task reads it
	closers []io.Closer
	restore func()

	mu    sync.Mutex
	parts []*partIO // one a component
	tasks int       // of the step
	begun map[streamKey][]byte
}

// partIO is where the output of one component of the step goes.
type partIO struct {
	first   int    // rank of its first task
	outName string // pattern of a file that srun writes for all of its tasks
	errName string
	out     io.Writer
	err     io.Writer
}

// streamKey names one of the two output streams of a task, whose unfinished line is kept.
type streamKey struct {
	task int32
	err  bool
}

// longestLine is how many bytes of a line are kept until its end comes, as in Slurm.
const longestLine = 1024

// newStepIO decides who opens what and tells the step's spec.
func newStepIO(s *front.Sys, r *submit.Request) (*stepIO, int) {
	o := &stepIO{sys: s, req: r, inTask: stream.AllTasks, begun: map[streamKey][]byte{}}
	st := &r.Step
	if r.Client.PTY {
		if code := o.terminal(); code != 0 {
			return nil, code
		}
	}
	out, errs := st.Stdout, st.Stderr
	for _, p := range r.Components() {
		if p.Step.Stdout == "" && p.Step.Stderr == "" {
			p.Step.Stdout, p.Step.Stderr = out, errs
		}
		o.parts = append(o.parts, newPartIO(s, &p.Step))
	}
	switch {
	case st.Stdin == "none":
	case front.IsFile(st.Stdin) && front.PerTask(st.Stdin): // the nodes open them
	case front.IsFile(st.Stdin):
		f, err := os.Open(o.path(st.Stdin))
		if err != nil {
			return nil, s.Fail("Could not open stdin file: %v", front.PlainError(err))
		}
		o.in, o.closers, st.Stdin, st.StdinOpen = f, append(o.closers, f), "", true
	default:
		if k, err := strconv.Atoi(st.Stdin); err == nil {
			o.inTask = int32(k)
		}
		if !isNull(s.Stdin) {
			o.in, st.StdinOpen = s.Stdin, true
			signal.Ignore(syscall.SIGTTIN)
		}
	}
	return o, 0
}

// newPartIO decides who opens the files of a component.
func newPartIO(s *front.Sys, st *cluster.StepSpec) *partIO {
	p := &partIO{out: s.Stdout, err: s.Stderr}
	if front.IsFile(st.Stdout) && !front.PerTask(st.Stdout) {
		p.outName, st.SrunStdout, st.Stdout = st.Stdout, st.Stdout, ""
	}
	if front.IsFile(st.Stderr) && !front.PerTask(st.Stderr) {
		p.errName, st.SrunStderr, st.Stderr = st.Stderr, st.Stderr, ""
	}
	return p
}

// isNull recognizes /dev/null, so that steps of batch scripts need no input stream.
func isNull(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r == nil
	}
	fi, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(fi, null)
}

func (o *stepIO) path(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(o.req.Step.WorkDir, name)
}

// terminal prepares --pty: the real terminal becomes raw, its size travels along.
func (o *stepIO) terminal() int {
	f, ok := o.sys.Stdin.(*os.File)
	if !ok || !front.IsTerminal(f) {
		o.sys.Say("error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
		o.sys.Say("error: Not using a pseudo-terminal, disregarding --pty option")
		return 0
	}
	size, err := front.TerminalSize(f)
	if err != nil {
		size = cluster.Winsize{Rows: 24, Cols: 80}
	}
	o.req.Step.PTY = &size
	if o.restore, err = front.MakeRaw(f); err != nil {
		return o.sys.Fail("the terminal could not be made raw: %v", err)
	}
	return 0
}

// open opens the files that srun writes itself, now that the step has a number.
func (o *stepIO) open(resp *api.StepResponse) error {
	o.tasks = resp.Step.Tasks
	st := &o.req.Step
	job := &cluster.Job{
		ID: resp.Step.ID.Job, Task: cluster.TaskAny,
		Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: st.Name, User: st.User},
	}
	if v, err := strconv.Atoi(o.sys.Getenv("SLURM_ARRAY_TASK_ID")); err == nil {
		job.Task = v
		a, _ := strconv.Atoi(o.sys.Getenv("SLURM_ARRAY_JOB_ID"))
		job.ArrayID = cluster.JobID(a)
	}
	if v := o.sys.Getenv("SLURM_JOB_NAME"); v != "" {
		job.Spec.Name = v
	}
	l := &cluster.Launch{Job: job, Step: &resp.Step, Spec: st}
	opened := map[string]io.Writer{} // components may write to one file
	open := func(name string) (io.Writer, error) {
		name = o.path(env.FileName(name, l))
		if f := opened[name]; f != nil {
			return f, nil
		}
		f, err := o.create(name)
		opened[name] = f
		return f, err
	}
	for _, p := range o.parts {
		if err := p.open(open); err != nil {
			return err
		}
	}
	return nil
}

// open opens the files that srun writes for a component.
func (p *partIO) open(open func(string) (io.Writer, error)) (err error) {
	if p.outName != "" {
		if p.out, err = open(p.outName); err != nil {
			return err
		}
		p.err = p.out
	}
	if p.errName != "" {
		p.err, err = open(p.errName)
	}
	return err
}

func (o *stepIO) create(name string) (io.Writer, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if o.req.Step.Append {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := os.OpenFile(name, flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("could not open stdout file: %w", err)
	}
	o.closers = append(o.closers, f)
	return f, nil
}

func (o *stepIO) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.begun {
		o.endLine(k)
	}
	if o.restore != nil {
		o.restore()
	}
	for _, c := range o.closers {
		_ = c.Close()
	}
}

// write puts a task's output where it belongs, in whole lines unless -u asks for what there is.
func (o *stepIO) write(f stream.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := streamKey{f.Task, f.Kind == stream.Stderr}
	if o.req.Step.Unbuffered && !o.req.Step.Label {
		_, _ = o.to(k).Write(f.Data)
		return
	}
	rest := append(o.begun[k], f.Data...)
	if o.req.Step.Label {
		rest = o.labelled(k, rest)
	} else {
		rest = o.whole(k, rest)
	}
	o.begun[k] = bytes.Clone(rest)
}

// to is where a stream of a task goes. Called with mu held.
func (o *stepIO) to(k streamKey) io.Writer {
	p := o.parts[0]
	for _, next := range o.parts[1:] {
		if int(k.task) >= next.first {
			p = next
		}
	}
	if k.err {
		return p.err
	}
	return p.out
}

// whole writes all whole lines at once, and of a line that is too long its beginning; it returns what is left.
func (o *stepIO) whole(k streamKey, text []byte) []byte {
	n := bytes.LastIndexByte(text, '\n') + 1
	n += (len(text) - n) / longestLine * longestLine
	if n > 0 {
		_, _ = o.to(k).Write(text[:n])
	}
	return text[n:]
}

// labelled writes whole lines with the rank before each; it returns what is left.
func (o *stepIO) labelled(k streamKey, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return text
		}
		fmt.Fprintf(o.to(k), "%s%s", o.label(k), text[:i+1])
		text = text[i+1:]
	}
}

func (o *stepIO) label(k streamKey) string { return cluster.RankLabel(int(k.task), o.tasks) }

// endLine writes what a task began and did not end; a labelled line gets its end.
func (o *stepIO) endLine(k streamKey) {
	rest := o.begun[k]
	delete(o.begun, k)
	switch {
	case len(rest) == 0:
	case o.req.Step.Label:
		fmt.Fprintf(o.to(k), "%s%s\n", o.label(k), rest)
	default:
		_, _ = o.to(k).Write(rest)
	}
}

// eof ends a task's stream.
func (o *stepIO) eof(f stream.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endLine(streamKey{f.Task, f.FD() == 2})
}

// feed sends srun's input to the tasks.
func (o *stepIO) feed(streams []*stream.Stream, resp api.StepResponse) {
	if o.in == nil {
		return
	}
	var to []*stream.Stream
	for i, n := range resp.Nodes {
		if o.inTask == stream.AllTasks && (o.req.Step.PTY == nil || i == 0) || contains(n.Ranks, int(o.inTask)) {
			to = append(to, streams[i])
		}
	}
	go func() { // ends with the input, or with srun
		buf := make([]byte, 32<<10)
		for {
			n, err := o.in.Read(buf)
			if o.inBackground(err) {
				time.Sleep(backgroundPause)
				continue
			}
			if n > 0 { // a node that is lost, or whose tasks have ended, takes no more; the others do
				to = slices.DeleteFunc(to, func(s *stream.Stream) bool { return s.Input(o.inTask, buf[:n]) != nil })
			}
			if len(to) == 0 {
				return
			}
			if err != nil {
				for _, s := range to {
					_ = s.InputEOF(o.inTask)
				}
				return
			}
		}
	}()
}

// backgroundPause is how often an srun in the background looks whether it is in the foreground again.
const backgroundPause = 200 * time.Millisecond

// inBackground reports whether a read failed because srun runs in the background of its terminal: there is no input
// then, until it is brought to the foreground. SIGTTIN, which would stop it, is ignored.
func (o *stepIO) inBackground(err error) bool {
	f, ok := o.in.(*os.File)
	return ok && errors.Is(err, syscall.EIO) && front.IsTerminal(f) && !front.InForeground(f)
}

func contains(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// resize tells the tasks' terminal the size of srun's.
func (o *stepIO) resize(streams []*stream.Stream) {
	f, ok := o.sys.Stdin.(*os.File)
	if o.req.Step.PTY == nil || !ok {
		return
	}
	if size, err := front.TerminalSize(f); err == nil {
		streams[0].Resize(size.Rows, size.Cols)
	}
}
