package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// measureSteps tells what the living steps of a job led here have used so far, on all its nodes.
func (c *Client) measureSteps(ctx context.Context, who api.Caller, q api.MeasureRequest) (
	out api.MeasureResponse, err error) {
	var j *cluster.Job
	var steps []cluster.Step
	var here []cluster.NodeName
	var groups []api.PartsGroup
	err = c.lead(ctx, who, q.Job, func(h *jobHere) {
		j, steps = h.job, c.steps.livingSteps(h, q.Step)
		var all []step.ID
		for _, sh := range j.Alloc.Shares {
			all = append(all, step.ID{Node: sh.Node})
			if c.local(sh.Node) {
				here = append(here, sh.Node)
			}
		}
		groups = c.sisters.Groups(all)
	})
	if err != nil {
		return out, err
	}
	pq := api.PartsQuery{Job: j.ID, Attempt: j.Attempt, Step: q.Step, Nodes: here}
	parts, missing, told := c.askUsage(ctx, pq, groups)
	c.meter.Measure(ctx, time.Now(), true)
	c.mu.Lock()
	defer c.mu.Unlock()
	parts = append(parts, c.usedHere(pq)...)
	out.Missing = missing
	out.Progress = told.Later(lastProgress(c, j.ID, here...))
	for _, rec := range steps {
		out.Steps = append(out.Steps, joinParts(rec, parts))
	}
	return out, nil
}

// livingSteps are the records of a job's steps that run, by number: the script and those of srun. Called with mu held.
func (s *steps) livingSteps(h *jobHere, only int) (out []cluster.Step) {
	for _, rec := range h.job.OwnSteps() {
		st := s.have.Get(h.part(rec.ID.Step))
		if rec.ID.Step != cluster.BatchStep || st != nil && st.State == step.Running {
			out = append(out, *rec)
		}
	}
	for id, ls := range s.live {
		if id.Job == h.job.ID && ls.record.Attempt == h.job.Attempt && ls.endedAt.IsZero() && !ls.alone() {
			out = append(out, ls.record)
		}
	}
	out = slices.DeleteFunc(out, func(rec cluster.Step) bool { return only != cluster.AllSteps && rec.ID.Step != only })
	slices.SortFunc(out, func(a, b cluster.Step) int { return cmp.Compare(a.ID.Step, b.ID.Step) })
	return out
}

// joinParts is a step with what its parts used.
func joinParts(rec cluster.Step, parts []api.PartUsage) api.StepUsage {
	out := api.StepUsage{Step: rec, PIDs: map[cluster.NodeName][]int{}}
	var tasks []cluster.RankUsage
	for i, sh := range rec.Shares {
		for _, p := range parts {
			if p.Step != rec.ID.Step || p.Node != sh.Node {
				continue
			}
			out.PIDs[p.Node] = p.PIDs
			for _, rank := range slices.Sorted(maps.Keys(p.Tasks)) {
				tasks = append(tasks, cluster.RankUsage{Node: i, Rank: rank, TaskUsage: p.Tasks[rank]})
			}
		}
	}
	out.Step.Usage = cluster.SumUsage(tasks)
	return out
}

// askUsage asks the clients of other nodes, also for what the job has told them of its progress; those that give no
// answer are named.
func (c *Client) askUsage(ctx context.Context, q api.PartsQuery, groups []api.PartsGroup) (
	parts []api.PartUsage, missing []api.MissingNode, told *api.Progress) {
	var mu sync.Mutex
	missing = c.sisters.Ask(ctx, groups, func(ctx context.Context, to *api.Client, nodes []cluster.NodeName) error {
		sub := q
		sub.Nodes = nodes
		r, err := api.Call(ctx, to, api.MeasureParts, sub)
		mu.Lock()
		defer mu.Unlock()
		parts = append(parts, r.Parts...)
		told = told.Later(r.Progress)
		return err
	})
	return parts, missing, told
}

// measureParts tells the client that leads a job what its parts here have used so far.
func (c *Client) measureParts(ctx context.Context, who api.Caller, q api.PartsQuery) (out api.PartsUsage, err error) {
	if err := c.await(ctx, c.known, c.told); err != nil {
		return out, err
	}
	c.mu.Lock()
	err = c.each(who, q, func(step.ID, *step.Status) {}) // may it ask?
	c.mu.Unlock()
	if err != nil {
		return out, err
	}
	c.meter.Measure(ctx, time.Now(), true)
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Parts = c.usedHere(q)
	out.Progress = lastProgress(c, q.Job, q.Nodes...)
	return out, nil
}

// usedHere is what was measured of the parts here that a query names. Tasks that have ended count with all they used.
// Called with mu held.
func (c *Client) usedHere(q api.PartsQuery) (out []api.PartUsage) {
	for id, st := range c.have.All() {
		if !asksFor(&q, id) || !slices.Contains(q.Nodes, id.Node) || !c.local(id.Node) {
			continue
		}
		p := api.PartUsage{Step: id.Step, Node: id.Node}
		p.Tasks, p.PIDs = c.meter.Used(st)
		out = append(out, p)
	}
	return out
}
