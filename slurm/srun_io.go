package slurm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"dev.muster/agent/step/stream"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/env"
)

// stepIO is srun's side of the tasks' standard streams.
type stepIO struct {
	sys     *Sys
	req     *Request
	in      io.Reader // nil: the tasks get none of srun's
	inTask  int32     // which task reads it
	closers []io.Closer
	restore func()
	outName string // pattern of a file that srun writes for all tasks
	errName string

	mu    sync.Mutex
	out   io.Writer
	err   io.Writer
	width int                // of the rank in labels
	parts map[partKey][]byte // beginnings of lines, with labels
}

type partKey struct {
	task int32
	err  bool
}

// perTask reports whether a name differs from task to task, so that the nodes open the files.
func perTask(pattern string) bool {
	for _, p := range []string{"%t", "%n", "%N"} {
		if strings.Contains(pattern, p) {
			return true
		}
	}
	for i := 0; i+2 < len(pattern); i++ { // with a width: %3t
		if pattern[i] == '%' && pattern[i+1] >= '0' && pattern[i+1] <= '9' {
			rest := strings.TrimLeft(pattern[i+1:], "0123456789")
			if rest != "" && strings.IndexByte("tnN", rest[0]) >= 0 {
				return true
			}
		}
	}
	return false
}

func isFile(mode string) bool {
	_, err := strconv.Atoi(mode)
	return mode != "" && mode != "all" && mode != "none" && err != nil
}

// newStepIO decides who opens what and tells the step's spec.
func newStepIO(s *Sys, r *Request) (*stepIO, int) {
	o := &stepIO{sys: s, req: r, inTask: stream.AllTasks, out: s.Stdout, err: s.Stderr, parts: map[partKey][]byte{}}
	st := &r.Step
	if r.Client.PTY {
		if code := o.terminal(); code != 0 {
			return nil, code
		}
	}
	if isFile(st.Stdout) && !perTask(st.Stdout) {
		o.outName, st.Stdout = st.Stdout, ""
	}
	if isFile(st.Stderr) && !perTask(st.Stderr) {
		o.errName, st.Stderr = st.Stderr, ""
	}
	switch {
	case st.Stdin == "none":
	case isFile(st.Stdin) && perTask(st.Stdin): // the nodes open them
	case isFile(st.Stdin):
		f, err := os.Open(o.path(st.Stdin))
		if err != nil {
			return nil, s.fail("Could not open stdin file: %v", plainErr(err))
		}
		o.in, o.closers, st.Stdin, st.StdinOpen = f, append(o.closers, f), "", true
	default:
		if k, err := strconv.Atoi(st.Stdin); err == nil {
			o.inTask = int32(k)
		}
		if !isNull(s.Stdin) {
			o.in, st.StdinOpen = s.Stdin, true
		}
	}
	return o, 0
}

// isNull recognises /dev/null, so that steps of batch scripts need no input stream.
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
	if !ok || !isTerminal(f) {
		o.sys.say("error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
		o.sys.say("error: Not using a pseudo-terminal, disregarding --pty option")
		return 0
	}
	size, err := terminalSize(f)
	if err != nil {
		size = cluster.Winsize{Rows: 24, Cols: 80}
	}
	o.req.Step.PTY = &size
	if o.restore, err = makeRaw(f); err != nil {
		return o.sys.fail("the terminal could not be made raw: %v", err)
	}
	return 0
}

// open opens the files that srun writes itself, now that the step has a number.
func (o *stepIO) open(resp *api.StepResponse) error {
	o.width = len(strconv.Itoa(max(resp.Step.Tasks-1, 0)))
	st := &o.req.Step
	job := &cluster.Job{ID: resp.Step.ID.Job, Task: cluster.TaskAny, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: st.Name, User: st.User}}
	if v, err := strconv.Atoi(o.sys.Getenv("SLURM_ARRAY_TASK_ID")); err == nil {
		job.Task = v
		a, _ := strconv.Atoi(o.sys.Getenv("SLURM_ARRAY_JOB_ID"))
		job.ArrayID = cluster.JobID(a)
	}
	if v := o.sys.Getenv("SLURM_JOB_NAME"); v != "" {
		job.Spec.Name = v
	}
	l := &cluster.Launch{Job: job, Step: &resp.Step, Spec: st}
	if o.outName != "" {
		f, err := o.create(env.FileName(o.outName, l))
		if err != nil {
			return err
		}
		o.out = f
		if o.errName == "" {
			o.err = f
		}
	}
	if o.errName != "" {
		f, err := o.create(env.FileName(o.errName, l))
		if err != nil {
			return err
		}
		o.err = f
	}
	return nil
}

func (o *stepIO) create(name string) (io.Writer, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if o.req.Step.Append {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := os.OpenFile(o.path(name), flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("could not open stdout file: %w", err)
	}
	o.closers = append(o.closers, f)
	return f, nil
}

func (o *stepIO) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, rest := range o.parts {
		if len(rest) > 0 {
			o.line(k, append(rest, '\n'))
		}
	}
	o.parts = map[partKey][]byte{}
	if o.restore != nil {
		o.restore()
	}
	for _, c := range o.closers {
		_ = c.Close()
	}
}

// write puts a task's output where it belongs, by lines when they are labelled.
func (o *stepIO) write(f stream.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := partKey{f.Task, f.Kind == stream.Stderr}
	if !o.req.Step.Label {
		w := o.out
		if k.err {
			w = o.err
		}
		_, _ = w.Write(f.Data)
		return
	}
	rest := append(o.parts[k], f.Data...)
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		o.line(k, rest[:i+1])
		rest = rest[i+1:]
	}
	o.parts[k] = bytes.Clone(rest)
}

// line writes one labelled line. Called with mu held.
func (o *stepIO) line(k partKey, line []byte) {
	w := o.out
	if k.err {
		w = o.err
	}
	fmt.Fprintf(w, "%*d: %s", o.width, k.task, line)
}

// eof ends a task's stream: an unfinished labelled line gets its end.
func (o *stepIO) eof(f stream.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := partKey{f.Task, f.FD() == 2}
	if rest := o.parts[k]; len(rest) > 0 {
		o.line(k, append(rest, '\n'))
	}
	delete(o.parts, k)
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
			for _, s := range to {
				if n > 0 && s.Input(o.inTask, buf[:n]) != nil {
					return
				}
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
	if size, err := terminalSize(f); err == nil {
		streams[0].Resize(size.Rows, size.Cols)
	}
}
