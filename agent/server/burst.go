package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// BurstCaller calls functions of the site's script for burst buffers, as a user of this machine.
type BurstCaller interface {
	Call(ctx context.Context, ask api.BurstAsk, script []byte, as string) (api.BurstReply, error)
}

// burstFile is the name of the script in the configuration.
const burstFile = "burst_buffer.lua"

// Bounds of calls for burst buffers, as in Slurm.
const (
	burstAtOnce  = 128              // calls of one stage
	burstRetry   = 10 * time.Second // before a teardown is tried again
	burstLongest = 24 * 24 * time.Hour
)

// lane is hooks that are done beside others: long ones of one kind keep nothing else from being done.
type lane struct {
	atOnce int
	calls  []cluster.BurstCall // for burst buffers; none: all other hooks
}

var lanes = [...]lane{
	{hooksAtOnce, nil},
	{burstAtOnce, []cluster.BurstCall{cluster.CallSetup, cluster.CallDataIn}},
	{burstAtOnce, []cluster.BurstCall{cluster.CallPreRun}},
	{burstAtOnce, []cluster.BurstCall{cluster.CallPostRun, cluster.CallDataOut}},
	{burstAtOnce, []cluster.BurstCall{cluster.CallTeardown}},
}

func (l *lane) takes(e *cluster.Hook) bool {
	if e.Kind != cluster.HookBurst {
		return l.calls == nil
	}
	return slices.Contains(l.calls, e.Burst)
}

// burstLimit is how long a call may take, and the key that says so.
func burstLimit(c *cluster.BurstConfig, call cluster.BurstCall) (limit time.Duration, key string) {
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
		limit = burstLongest
	}
	return limit, key
}

// callBurst calls one function within its time.
func callBurst(ctx context.Context, s *Server, cfg *cluster.Config, ask api.BurstAsk, script []byte) (
	api.BurstReply, error,
) {
	text, ok := cfg.Scripts[burstFile]
	if cfg.Burst == nil || !ok || s.cfg.Hooks.Burst == nil {
		return api.BurstReply{}, cluster.Errorf(cluster.Unavailable, "",
			"no script for burst buffers is configured (BurstBufferType=burst_buffer/lua)")
	}
	limit, key := burstLimit(cfg.Burst, ask.Call)
	late := fmt.Errorf("it took longer than %v (%s of burst_buffer.conf)", limit, key)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	ask.Script, ask.Poll = text, cfg.Burst.Poll
	return s.cfg.Hooks.Burst.Call(ctx, ask, script, cfg.ServerUser)
}

// stage calls the function of a hook. A stage-in that an earlier leader has begun is undone first, as Slurm does when
// it is started again.
func stage(ctx context.Context, s *Server, e *cluster.Hook, cfg *cluster.Config, again bool) cluster.HookEnd {
	end := cluster.HookEnd{ID: e.ID}
	if e.Job.Burst.Fails > 0 && !pause(ctx, burstRetry) {
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
		reply, err := callBurst(ctx, s, cfg, ask, scriptFor(cfg.Burst, call, script, e.Job))
		if err != nil {
			reply.Failed = err.Error()
		}
		if end.Failed, end.Env = reply.Failed, reply.Env; end.Failed != "" && call == e.Burst {
			s.slog.Warn("a function for a burst buffer failed", "job", e.Job.ID, "function", call, "err", end.Failed)
		}
	}
	return end
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
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

// withBurst puts the lines of a burst buffer into a script that lacks them.
func withBurst(script, lines string) []byte {
	if script == "" {
		return []byte(lines + "\n")
	}
	if strings.Contains("\n"+script, "\n"+strings.TrimSpace(lines)) {
		return []byte(script)
	}
	first, rest, _ := strings.Cut(script, "\n")
	return []byte(first + "\n" + strings.TrimRight(lines, "\n") + "\n" + rest)
}

// directives are the lines of a script that ask for a burst buffer, up to its first command.
func directives(script, word string) string {
	var lines []string
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\r\n")
		switch rest, ok := strings.CutPrefix(line, "#"+word); {
		case ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t'):
			lines = append(lines, line)
		case line != "" && line[0] != '#':
			return strings.Join(lines, "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// askBurst finds out whether a job that is submitted asks for a burst buffer, and has the site's script look at it.
func askBurst(ctx context.Context, s *Server, q *api.SubmitRequest, part int) error {
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
		return noBurst(cluster.ErrBurst, "a component of a heterogeneous job can not have a burst buffer: "+
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
	ask := api.BurstAsk{Call: api.BurstProcess, Job: &cluster.Job{Spec: &q.Spec}}
	reply, err := callBurst(ctx, s, cfg, ask, withBurst(string(q.Script), q.Spec.BurstBuffer))
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

// burstRoutes are those of burst buffers.
func burstRoutes(s *Server, m *api.Mux) { handle(s, m, api.ShowBurstStatus, burstStatus(s)) }

// burstStatus asks the script about its buffers.
func burstStatus(s *Server) func(context.Context, api.Caller, api.BurstStatusRequest) (api.BurstStatusResponse, error) {
	return func(ctx context.Context, _ api.Caller, q api.BurstStatusRequest) (out api.BurstStatusResponse, err error) {
		ask := api.BurstAsk{Call: api.BurstStatus, Args: q.Args}
		reply, err := callBurst(ctx, s, s.Snapshot().Config(), ask, nil)
		switch {
		case err != nil:
			return out, err
		case reply.Failed != "":
			return out, cluster.Errorf(cluster.Invalid, "", "slurm_bb_get_status: %s", reply.Failed)
		}
		out.Text = reply.Said
		return out, nil
	}
}
