package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// An srun that has all it wants says goodbye at the end of each stream. One whose connection ends without that has died: its
// step is killed then, and the job that it had made for the step is cancelled, as Slurm does. Only the daemon that srun itself calls
// can tell, since the kernel closes its end for it; a connection that a restarted daemon has lost is made again.

// listener reads what a caller sends on a tunnel, and knows at the end whether the caller said goodbye.
type listener struct {
	io.Reader
	tail  []byte // the last bytes
	ended bool   // by the caller
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	l.tail = append(l.tail, b[:n]...)
	l.tail = l.tail[max(len(l.tail)-len(step.Bye), 0):]
	l.ended = err != nil && !errors.Is(err, net.ErrClosed)
	return n, err
}

func (l *listener) died() bool { return l.ended && !bytes.Equal(l.tail, step.Bye) }

// srunEnded looks, after a tunnel has ended, whether the srun at its end has died, and ends what that has left.
func (c *call) srunEnded(l *listener) {
	if c.r.URL.Path != api.AttachStep || c.from.Member != "" || c.ctx.Err() != nil || !l.died() {
		return
	}
	var q api.AttachRequest
	if wire.Unmarshal(c.body, &q) != nil {
		return
	}
	if !callAgain(c, api.SignalStep, api.StepSignal{ID: q.ID, Gone: true}, nil) {
		return // it is over
	}
	c.log.Info("an srun has died", "job", q.ID.Job, "step", q.ID.Step, "uid", c.from.UID)
	var jobs api.JobsResponse
	ref := cluster.Ref{Job: q.ID.Job}
	callAgain(c, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}}, &jobs)
	if len(jobs.Jobs) == 1 && jobs.Jobs[0].Spec.Kind == cluster.SrunJob {
		callAgain(c, api.CancelJob, cluster.Cancel{Ref: ref}, nil)
	}
}

// callAgain makes another call as the same caller; false: it was refused.
func callAgain[Q, R any](c *call, e api.Endpoint[Q, R], q Q, out *R) bool {
	body, err := wire.Marshal(q)
	if err != nil {
		return false
	}
	ctx := context.WithValue(c.ctx, callerKey{}, c.from)
	r, err := http.NewRequestWithContext(ctx, e.Method, "http://local"+e.Path, bytes.NewReader(body))
	if err != nil {
		return false
	}
	w := &answer{header: http.Header{}, status: http.StatusOK}
	c.handler.ServeHTTP(w, r)
	return w.status == http.StatusOK && (out == nil || wire.Unmarshal(w.body.Bytes(), out) == nil)
}

// answer is a reply kept in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
