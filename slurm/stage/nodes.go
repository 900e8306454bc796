// Package stage carries files between a front-end and the nodes of a job: sbcast, sgather, and srun --bcast.
// On each node a process of the job's user puts and takes them (package cast); here is who tells them what.
// Begin with nodes.go, then put.go.
package stage

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cast"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// Node is one of a job, and the process there.
type Node struct {
	Name cluster.NodeName
	// Path is what a path of an order is on this node; nil: the same.
	Path func(string) string
	to   *stream.Stream
	task int32
	said *io.PipeWriter // what the process says, as it comes
	ear  *io.PipeReader
	from *bufio.Reader
}

// NewNode is a node whose process is one of a step's: it reads what is sent to that task of a stream.
// The process's messages are given to Take.
func NewNode(name cluster.NodeName, to *stream.Stream, task int32) *Node {
	r, w := io.Pipe()
	return &Node{Name: name, to: to, task: task, said: w, ear: r, from: bufio.NewReaderSize(r, 64<<10)}
}

// Take gives what the process has said to who waits for it.
func (n *Node) Take(said []byte) { _, _ = n.said.Write(said) }

// Lost is that the process says nothing more.
func (n *Node) Lost(err error) {
	_ = n.said.CloseWithError(cmp.Or(err, errors.New("the process on the node has ended")))
}

// order tells the process what to do, and waits for its answer.
func (n *Node) order(o *cast.Order) (cast.Answer, error) {
	if err := n.tell(o); err != nil {
		return cast.Answer{}, err
	}
	return n.answer()
}

func (n *Node) tell(o *cast.Order) error {
	if n.Path != nil {
		own := *o
		own.Put, own.Dir = n.Path(o.Put), n.Path(o.Dir)
		o = &own
	}
	line, err := cast.Line(o)
	if err != nil {
		return err
	}
	return n.to.Input(n.task, line)
}

func (n *Node) answer() (a cast.Answer, err error) {
	if err = cast.ReadLine(n.from, &a); err == nil {
		err = a.Err()
	}
	return a, err
}

// Nodes are those that a file goes to, or comes from.
type Nodes struct {
	List    []*Node
	Block   int           // bytes that are read at once
	Timeout time.Duration // how long the nodes may take for an answer; 0: as long as they like
}

// Failure is what went wrong on a node.
type Failure struct {
	Node cluster.NodeName
	Err  error
}

// Failures are those of all nodes that have some.
type Failures []Failure

func (f Failures) Error() string {
	return fmt.Sprintf("%s: %v", f[0].Node, f[0].Err)
}

// Code is the exit code for failures: the number of the system's error.
func (f Failures) Code() int {
	code := 1
	for _, one := range f {
		var failed *cast.Failed
		if errors.As(one.Err, &failed) {
			code = max(code, int(failed.Errno))
		}
	}
	return code & 0xff
}

// Text words what went wrong on a node.
func (f *Failure) Text() string {
	var failed *cast.Failed
	if errors.As(f.Err, &failed) && failed.Errno != 0 {
		return front.PlainError(failed.Errno)
	}
	return f.Err.Error()
}

// Say tells of all failures.
func (f Failures) Say(s *front.Sys, call string) {
	for i := range f {
		s.Say("error: %s(%s): %s", call, f[i].Node, f[i].Text())
	}
}

// errLate is that a node gives no answer.
var errLate = &cast.Failed{Errno: syscall.ETIMEDOUT, Text: "no answer"}

// each does something on all nodes at once.
func (n *Nodes) each(do func(*Node) error) error {
	errs := make([]error, len(n.List))
	var wg sync.WaitGroup
	for i, one := range n.List {
		wg.Go(func() {
			if n.Timeout > 0 {
				defer time.AfterFunc(n.Timeout, func() { one.Lost(errLate); _ = one.to.Close() }).Stop()
			}
			errs[i] = do(one)
		})
	}
	wg.Wait()
	var all Failures
	for i, err := range errs {
		if err != nil {
			all = append(all, Failure{n.List[i].Name, err})
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// Do has all nodes do the same.
func (n *Nodes) Do(o *cast.Order) error {
	return n.each(func(one *Node) error {
		_, err := one.order(o)
		return err
	})
}

// End has the processes end; nobody listens to them any more.
func (n *Nodes) End() {
	for _, one := range n.List {
		_ = one.to.InputEOF(one.task)
		_ = one.ear.Close()
	}
}

// Go has the tasks of a step begin that wait for their program. The processes do not answer: who follows them
// speaks otherwise.
func (n *Nodes) Go() error {
	return n.each(func(one *Node) error { return one.tell(&cast.Order{Go: true}) })
}

// Job is a step that only carries files, on the nodes of a job.
type Job struct {
	Nodes
	sys  *front.Sys
	step cluster.StepID
	over sync.WaitGroup
}

// OpenJob makes such a step.
func OpenJob(s *front.Sys, id cluster.JobID, on []cluster.NodeName) (*Job, error) {
	host, _ := s.Hostname()
	spec := cluster.StepSpec{Name: s.Prog, SrunHost: host, Umask: s.Umask}
	spec.Cast = &cluster.Cast{Alone: true, Nodes: on}
	resp, err := front.Call(s, api.CreateCast, api.StepRequest{Job: id, Spec: spec, NoWait: true})
	if err != nil {
		return nil, api.OldClient(err)
	}
	j := &Job{sys: s, step: resp.Step.ID}
	for _, one := range resp.Nodes {
		node := NewNode(one.Node, stream.New(Attach(s, api.AttachStep, j.step, one.Node), 0), int32(one.Ranks[0]))
		j.List = append(j.List, node)
		j.over.Go(func() { j.listen(node) })
	}
	return j, nil
}

// listen takes what a node's process says, to its end.
func (j *Job) listen(n *Node) {
	var why error
	for {
		f, err := n.to.Next()
		if err != nil || f.Kind == stream.Done {
			n.Lost(cmp.Or(why, err))
			return
		}
		switch f.Kind {
		case stream.Stdout:
			n.Take(f.Data)
		case stream.Stderr:
			_, _ = j.sys.Stderr.Write(f.Data)
		case stream.Exit:
			if x, err := f.TaskExit(); err == nil && x.Error != "" {
				why = errors.New(x.Error)
			}
		}
	}
}

// endTime is how long the processes on the nodes may take to end once they are told.
const endTime = 10 * time.Second

// Close ends the step. The processes remove files that have not arrived whole.
func (j *Job) Close() {
	j.End()
	late := time.AfterFunc(endTime, func() {
		_, _ = front.Call(j.sys, api.SignalStep, api.StepSignal{ID: j.step, Kill: true})
	})
	j.over.Wait()
	late.Stop()
}

// reattach is how long a daemon that went away is waited for.
const reattach = 5 * time.Minute

// Dial leads to a stream.
type Dial = func() (io.ReadWriteCloser, error)

// Attach returns a function that leads to the stream of one node's part of a step by the given tunnel,
// and that waits for a daemon that is being restarted.
func Attach(s *front.Sys, tunnel string, id cluster.StepID, node cluster.NodeName) Dial {
	return func() (io.ReadWriteCloser, error) {
		c, q := s.Client(), api.AttachRequest{ID: id, Node: node}
		var wait time.Duration
		for began := time.Now(); ; {
			conn, err := api.Tunnel(context.Background(), c, tunnel, "muster-io", q)
			if err == nil || !front.IsUnreachable(err) || time.Since(began) > reattach {
				return conn, err
			}
			wait = cmp.Or(min(wait*2, time.Second), 10*time.Millisecond)
			time.Sleep(wait)
		}
	}
}
