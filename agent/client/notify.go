package client

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// noticeRoutes registers what is asked and told about processes here.
func (c *Client) noticeRoutes(m *api.Mux) {
	api.Handle(m, api.NotifyJob, c.notifyJob)
	api.Handle(m, api.HearJob, c.hearJob)
	api.Handle(m, api.ReportProgress, handledBy(c, reportProgress))
	api.Handle(m, api.ShowStacks, handledBy(c, showStacks))
	api.Handle(m, api.ListProcesses, c.listProcesses)
}

// handledBy is a handler that is a function of the client.
func handledBy[Q, R any](c *Client, f func(context.Context, *Client, api.Caller, Q) (R, error),
) func(context.Context, api.Caller, Q) (R, error) {
	return func(ctx context.Context, who api.Caller, q Q) (R, error) { return f(ctx, c, who, q) }
}

// maxNotice bounds what a job is told at once.
const maxNotice = 3 << 10

// hearJob waits for what a job led here is told.
func (c *Client) hearJob(ctx context.Context, who api.Caller, q api.HearRequest) (out api.HearResponse, err error) {
	var own *ear
	err = c.lead(ctx, who, q.Job, func(h *jobHere) {
		if h.job.RunsScript() {
			return
		}
		if h.ear == nil {
			h.ear = &ear{texts: make(chan string, hearKept)}
		}
		own = h.ear
		own.at = time.Now()
	})
	if err != nil {
		return out, err
	}
	if own == nil {
		return out, cluster.Errorf(cluster.Conflict, cluster.ErrUnsupported,
			"job %d has a script, which hears for it", q.Job)
	}
	late := time.NewTimer(hearHold)
	defer late.Stop()
	select {
	case text := <-own.texts:
		out.Texts = append(out.Texts, text)
	case <-late.C:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	for range len(own.texts) {
		out.Texts = append(out.Texts, <-own.texts)
	}
	return out, nil
}

// notifyJob writes a line where the errors of a job led here lead: of its script, of its salloc, or of its steps, which
// an srun reads.
func (c *Client) notifyJob(ctx context.Context, who api.Caller, q api.NotifyRequest) (api.Empty, error) {
	if len(q.Text) > maxNotice {
		return api.Empty{}, cluster.Errorf(cluster.Invalid, cluster.ErrTooBig, "a message may have %d bytes", maxNotice)
	}
	heard := false
	err := c.lead(ctx, who, q.Job, func(h *jobHere) {
		if heard = h.ear.tell(strings.TrimPrefix(q.Text, "srun: "), time.Now()); heard {
			return
		}
		for _, id := range c.steps.listeners(h) {
			heard = true
			c.parts.sayPart(id, q.Text+"\n", false)
		}
	})
	if err == nil && !heard {
		err = cluster.Errorf(cluster.Conflict, cluster.ErrUnsupported, "job %d runs no step that could tell it", q.Job)
	}
	return api.Empty{}, err
}

// listeners are the steps that write what a job is told: its script alone, if it has one. Called with mu held.
func (s *steps) listeners(h *jobHere) (ids []step.ID) {
	batch := h.part(cluster.BatchStep)
	if h.job.RunsScript() {
		return []step.ID{batch}
	}
	for _, ls := range s.live {
		if ls.record.ID.Job == h.job.ID && ls.endedAt.IsZero() {
			ids = append(ids, ls.ids[0])
		}
	}
	return ids
}

// listProcesses lists the processes of steps on this client's nodes, of jobs that the caller may see into.
func (c *Client) listProcesses(ctx context.Context, who api.Caller, q api.ProcessQuery) (api.ProcessesResponse, error) {
	var out api.ProcessesResponse
	if err := c.await(ctx, c.known); err != nil {
		return out, err
	}
	c.meter.Measure(ctx, time.Now(), true)
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Nodes, out.Now = slices.Clone(c.order), time.Now()
	for id, st := range c.have.All() {
		j := c.jobOf(id)
		switch {
		case j == nil, st.State == step.Ended, q.Job != 0 && id.Job != q.Job, q.Node != "" && id.Node != q.Node:
			continue
		case who.UID != j.Spec.UID && !who.Operator():
			continue
		}
		own := c.processesOf(id, st)
		if slices.ContainsFunc(own, func(p api.StepProcess) bool { return p.PID == q.PID }) {
			out.Job = j
		}
		out.Processes = append(out.Processes, own...)
	}
	slices.SortStableFunc(out.Processes, func(a, b api.StepProcess) int {
		return cmp.Or(-cmp.Compare(a.ID.Job, b.ID.Job), cmp.Compare(stepOrder(a.ID.Step), stepOrder(b.ID.Step)),
			cmp.Compare(a.PID, b.PID))
	})
	return out, nil
}

// stepOrder puts the external step before the script, and that before the steps of srun.
func stepOrder(step int) int {
	switch step {
	case cluster.ExternStep:
		return -2
	case cluster.BatchStep:
		return -1
	}
	return step
}

// processesOf lists a part's tasks and what they have started. Called with mu held.
func (c *Client) processesOf(id step.ID, st *step.Status) (out []api.StepProcess) {
	p := api.StepProcess{ID: cluster.StepID{Job: id.Job, Step: id.Step}, Node: id.Node}
	tasks := map[int]bool{}
	for i, t := range st.Tasks {
		if t.PID > 0 && t.Ended.IsZero() {
			p.PID, p.Task, p.Rank, tasks[t.PID] = t.PID, i, t.Rank, true
			out = append(out, p)
		}
	}
	p.Task, p.Rank = -1, -1
	for _, pid := range c.meter.PIDs(id) {
		if p.PID = pid; !tasks[pid] {
			out = append(out, p)
		}
	}
	return out
}
