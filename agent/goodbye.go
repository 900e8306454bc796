package agent

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// An srun that has all it wants says goodbye at the end of each stream. One whose connection ends without that has
// died: its step is killed then, and the job that it had made for the step is cancelled, as Slurm does. Only the
// daemon that srun itself calls can tell, since the kernel closes its end for it; a connection that a restarted
// daemon has lost is made again.

// byeReader reads what a caller sends on a tunnel, and knows at the end whether the caller said goodbye.
type byeReader struct {
	io.Reader
	tail  []byte // the last bytes
	ended bool   // by the caller
}

func (b *byeReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.tail = append(b.tail, p[:n]...)
	b.tail = b.tail[max(len(b.tail)-len(step.Bye), 0):]
	b.ended = err != nil && !errors.Is(err, net.ErrClosed)
	return n, err
}

func (b *byeReader) died() bool { return b.ended && !bytes.Equal(b.tail, step.Bye) }

// srunEnded looks, after a tunnel has ended, whether the srun at its end has died, and ends what that has left.
func (c *call) srunEnded(b *byeReader) {
	attached := c.r.URL.Path == api.AttachStep && c.from.Member == ""
	if !attached || c.ctx.Err() != nil || !b.died() {
		return
	}
	var q api.AttachRequest
	if wire.Unmarshal(c.body, &q) != nil {
		return
	}
	if _, there := callAgain(c, api.SignalStep, api.StepSignal{ID: q.ID, Gone: true}); !there {
		return // it is over
	}
	if q.ID.IsCast() { // it is of no srun, and the job not its own
		return
	}
	c.log.Info("an srun has died", "job", q.ID.Job, "step", q.ID.Step, "uid", c.from.UID)
	ref := cluster.Ref{Job: q.ID.Job}
	found, _ := callAgain(c, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	if len(found.Jobs) == 1 && found.Jobs[0].Spec.Kind == cluster.SrunJob {
		callAgain(c, api.CancelJob, cluster.Cancel{Ref: ref})
	}
}

// callAgain makes another call as the same caller, and reads its answer; false: it was refused.
func callAgain[Q, R any](c *call, e api.Endpoint[Q, R], q Q) (out R, ok bool) {
	body, err := wire.Marshal(q)
	if err != nil {
		return out, false
	}
	status, text, err := c.callAs(c.ctx, c.from.Caller, e.Method, e.Path, body)
	if err != nil || status != http.StatusOK {
		return out, false
	}
	return out, wire.Unmarshal(text, &out) == nil
}
