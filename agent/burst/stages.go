package burst

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Script is the site's script for burst buffers: a Caller, which calls its functions as a user of this machine.
type Script interface {
	Call(ctx context.Context, ask api.BurstAsk, script []byte, as string) (api.BurstReply, error)
}

// Stages has the script called for jobs, with what each function is to be given and within its time.
type Stages struct {
	Script Script // nil: there is none, and all calls fail
	// Turn waits until the script may be called since a user submits or asks: each call is a process on the server.
	Turn     func(ctx context.Context, uid uint32) (leave func(), err error)
	Snapshot func() *cluster.Snapshot // the state now
	Log      *slog.Logger
}

// burstFile is the name of the script in the configuration.
const burstFile = "burst_buffer.lua"

// Bounds of calls for burst buffers, as in Slurm.
const (
	retryAfter = 10 * time.Second // before a teardown is tried again
	longest    = 24 * 24 * time.Hour
)

// limitOf is how long a call may take, and the key that says so.
func limitOf(c *cluster.BurstConfig, call cluster.BurstCall) (limit time.Duration, key string) {
	limit, key = c.Other, "OtherTimeout"
	switch call {
	case cluster.CallDataIn:
		limit, key = c.StageIn, "StageInTimeout"
	case cluster.CallDataOut:
		limit, key = c.StageOut, "StageOutTimeout"
	case api.BurstProcess:
		limit, key = c.Validate, "ValidateTimeout"
	}
	if limit <= 0 {
		limit = longest
	}
	return limit, key
}

// call calls one function within its time.
func (s *Stages) call(ctx context.Context, cfg *cluster.Config, ask api.BurstAsk, script []byte) (
	api.BurstReply, error,
) {
	text, ok := cfg.Scripts[burstFile]
	if cfg.Burst == nil || !ok || s.Script == nil {
		return api.BurstReply{}, cluster.Errorf(cluster.Unavailable, "",
			"no script for burst buffers is configured (BurstBufferType=burst_buffer/lua)")
	}
	limit, key := limitOf(cfg.Burst, ask.Call)
	late := fmt.Errorf("it took longer than %v (%s of burst_buffer.conf)", limit, key)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	ask.Script, ask.Poll = text, cfg.Burst.Poll
	return s.Script.Call(ctx, ask, script, cfg.ServerUser)
}

// Do calls the function of a hook, and says what came of it. A stage-in that an earlier leader has begun (again) is
// undone first, as Slurm does when it is started again.
func (s *Stages) Do(ctx context.Context, e *cluster.Hook, cfg *cluster.Config, again bool) cluster.HookEnd {
	end := cluster.HookEnd{ID: e.ID}
	if e.Job.Burst.Fails > 0 && !backoff.Sleep(ctx, retryAfter) {
		return end
	}
	calls := []cluster.BurstCall{e.Burst}
	switch {
	case again && e.Burst == cluster.CallSetup:
		calls = []cluster.BurstCall{cluster.CallTeardown, e.Burst}
	case again && e.Burst == cluster.CallDataIn:
		calls = []cluster.BurstCall{cluster.CallTeardown, cluster.CallSetup, e.Burst}
	}
	script := scriptOf(s.Snapshot(), e.Job.Spec)
	for _, call := range calls {
		ask := api.BurstAsk{Call: call, Job: e.Job, Hurry: e.Job.Burst.Hurry}
		var reply api.BurstReply
		text, err := scriptFor(cfg.Burst, call, script, e.Job)
		if err == nil {
			reply, err = s.call(ctx, cfg, ask, text)
		}
		if err != nil {
			reply.Failed = err.Error()
		}
		if end.Failed, end.Env = reply.Failed, reply.Env; end.Failed != "" && call == e.Burst {
			s.Log.Warn("a function for a burst buffer failed", "job", e.Job.ID, "function", call, "err", end.Failed)
		}
	}
	return end
}

// scriptOf is what the script is given as a job's: the text of --bb comes behind the first line, and stands alone for a
// job that has no script.
func scriptOf(snap *cluster.Snapshot, spec *cluster.JobSpec) []byte {
	b, ok := snap.Blob(spec.Script)
	if !ok {
		return []byte(spec.BurstBuffer + "\n")
	}
	return withBurst(string(b.Text), spec.BurstBuffer)
}

// Submit finds out whether a job that is submitted asks for a burst buffer, and has the script look at it; an error
// refuses the job. part is the number of a component of a heterogeneous job, below 0 in any other.
func (s *Stages) Submit(ctx context.Context, q *api.SubmitRequest, part int) error {
	cfg := s.Snapshot().Config()
	if cfg.Burst == nil {
		return nil
	}
	q.Spec.Layout = q.Spec.Layout.Clone()
	word := cfg.Burst.Directive
	lines := directives(string(q.Script), word)
	if q.Spec.BurstBuffer != "" {
		lines = directives(q.Spec.BurstBuffer, word)
	}
	switch {
	case lines == "" && q.Spec.BurstBuffer == "":
		return nil
	case lines == "":
		return noBurst(cluster.ErrBurst, "--bb=%q asks for no burst buffer: it needs a line that begins with #%s",
			q.Spec.BurstBuffer, word)
	case part >= 0:
		return noBurst(cluster.ErrBurst, "a component of a heterogeneous job cannot have a burst buffer: "+
			"submit it as a job of its own")
	}
	if err := mayBurst(cfg.Burst, &q.Spec); err != nil {
		return err
	}
	if err := withoutPool(lines); err != nil {
		return err
	}
	if q.Spec.BurstBuffer == "" {
		q.Spec.BurstBuffer = lines
	}
	if _, err := fillSymbols(lines, &cluster.Job{Spec: &q.Spec}); err != nil {
		return noBurst(cluster.ErrBurst, "the lines that begin with #%s: %v", word, err)
	}
	leave, err := s.Turn(ctx, q.Spec.UID)
	if err != nil {
		return err
	}
	defer leave()
	ask := api.BurstAsk{Call: api.BurstProcess, Job: &cluster.Job{Spec: &q.Spec}}
	reply, err := s.call(ctx, cfg, ask, withBurst(string(q.Script), q.Spec.BurstBuffer))
	if err != nil {
		reply.Failed = "slurm_bb_job_process: " + err.Error()
	}
	if reply.Failed != "" {
		return noBurst(cluster.ErrBurst, "burst_buffer/lua: %s", reply.Failed)
	}
	return nil
}

// mayBurst refuses users who may not have burst buffers.
func mayBurst(c *cluster.BurstConfig, spec *cluster.JobSpec) error {
	named := func(list []string) bool {
		return slices.Contains(list, spec.User) || slices.Contains(list, fmt.Sprint(spec.UID))
	}
	switch {
	case named(c.Deny):
		return noBurst(cluster.ErrBurstDenied, "User found in DenyUsers")
	case len(c.Allow) > 0 && !named(c.Allow):
		return noBurst(cluster.ErrBurstDenied, "User not found in AllowUsers")
	}
	return nil
}

// noBurst refuses a burst buffer, and says why besides the words that Slurm has for it.
func noBurst(kind cluster.ErrKind, format string, args ...any) error {
	code := cluster.Invalid
	if kind == cluster.ErrBurstDenied {
		code = cluster.Denied
	}
	e := cluster.Errorf(code, kind, format, args...)
	e.Said = []string{e.Message}
	return e
}

// withoutPool refuses what muster does not count.
func withoutPool(lines string) error {
	for _, word := range strings.Fields(lines) {
		name, _, ok := strings.Cut(word, "=")
		if ok && (name == "pool" || name == "capacity") {
			return noBurst(cluster.ErrBurst, "%s: pools of burst buffers are not counted here; "+
				"have burst_buffer.lua read another word, or use licenses (-L)", word)
		}
	}
	return nil
}

// Status asks the script about its buffers for a user, with the user's arguments, and returns what it says.
func (s *Stages) Status(ctx context.Context, uid uint32, args []string) (string, error) {
	leave, err := s.Turn(ctx, uid)
	if err != nil {
		return "", err
	}
	defer leave()
	ask := api.BurstAsk{Call: api.BurstStatus, Args: args}
	reply, err := s.call(ctx, s.Snapshot().Config(), ask, nil)
	switch {
	case err != nil:
		return "", err
	case reply.Failed != "":
		return "", cluster.Errorf(cluster.Invalid, "", "slurm_bb_get_status: %s", reply.Failed)
	}
	return reply.Said, nil
}
