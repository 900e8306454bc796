package client

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/tail"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Limits on concurrent readers of output, and on those that wait for more. A reader of a pipe keeps its place for as
// long as a read may take, so each user has a share of the places.
const (
	tailers     = 8
	tailersEach = 2
	holders     = 100
	holdersEach = 16
)

// tailing holds a place for each reader, holding one for each that waits for more.
var tailing, holding = newSeats(tailers, tailersEach), newSeats(holders, holdersEach)

// seats are places for readers of output, by the user whose job it is.
type seats struct {
	all, each int

	mu    sync.Mutex
	taken int
	of    map[uint32]int
}

func newSeats(all, each int) *seats { return &seats{all: all, each: each, of: map[uint32]int{}} }

// take takes a place, if there is one for the user; leave gives it back.
func (s *seats) take(uid uint32) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.all || s.of[uid] >= s.each {
		return nil, false
	}
	s.taken++
	s.of[uid]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken--
		if s.of[uid]--; s.of[uid] == 0 {
			delete(s.of, uid)
		}
	}, true
}

// written is the file that a job's script or a task writes, or has written, and on which node.
type written struct {
	tail.File
	node cluster.NodeName
}

// writtenBy finds what a job writes that is led here, or was: the output of its script, or of a task of a step.
func (c *Client) writtenBy(ctx context.Context, who api.Caller, q api.TailRequest) (w written, err error) {
	if err := c.await(ctx, c.known, c.told); err != nil {
		return w, err
	}
	led, here, err := c.partOf(ctx, who, q)
	if err != nil {
		return w, err
	}
	if q.Step != nil {
		return w, w.byStep(c, led, q, here)
	}
	return w, w.byScript(c, led.Job, q, here)
}

// partOf finds a job, and its step, that a node here takes part in, or took; here: it has not ended.
func (c *Client) partOf(ctx context.Context, who api.Caller, q api.TailRequest) (led api.LedResponse, here bool,
	err error) {
	c.mu.Lock()
	h, refused := c.jobOnNode(who, q)
	c.mu.Unlock()
	switch {
	case refused == nil && q.Step == nil:
		return api.LedResponse{Job: h.job}, !h.isOver(), nil
	case refused != nil && (refused.Code != cluster.NotFound || who.Role == cluster.RoleNode):
		return led, false, refused // no node speaks for users whose jobs have ended
	}
	led, err = api.Call(ctx, c.cfg.Server, api.LedJob, api.LedQuery{Job: q.Job, Node: q.Node, Step: q.Step})
	switch {
	case err != nil:
		return led, false, err
	case who.UID != led.Job.Spec.UID && !who.Operator():
		return led, false, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d belongs to user %s", q.Job,
			led.Job.Spec.User)
	}
	return led, refused == nil && !h.isOver(), nil
}

// jobOnNode finds a job on the node that is asked, or on its first. Called with mu held.
func (c *Client) jobOnNode(who api.Caller, q api.TailRequest) (*jobHere, *api.Error) {
	if q.Node == "" {
		return c.jobKeptHere(q.Job, who)
	}
	if n := c.nodes[q.Node]; n != nil && n.jobs[q.Job] != nil {
		return c.jobFor(n.jobs[q.Job], who)
	}
	return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run on %s", q.Job, q.Node)
}

// byScript is what the script of a job writes.
func (w *written) byScript(c *Client, j *cluster.Job, q api.TailRequest, here bool) error {
	if j.Spec.Kind != cluster.Batch || j.Spec.Stdout == "" {
		return cluster.Errorf(cluster.Invalid, cluster.ErrBatchOnly,
			"job %d has no script, so it writes no file of its own; its steps may (--step)", j.ID)
	}
	name := j.Spec.Stdout
	if q.Errors && j.Spec.Stderr != "" {
		name = j.Spec.Stderr
	}
	l := &cluster.Launch{Job: j, Node: j.Alloc.Shares[0].Node}
	return w.on(c, l, j.Spec.WorkDir, name, here, cluster.BatchStep)
}

// byStep is what a task of a step writes.
func (w *written) byStep(c *Client, led api.LedResponse, q api.TailRequest, here bool) error {
	j, st := led.Job, led.Step
	if st == nil {
		return cluster.Errorf(cluster.NotFound, "",
			"job %d has no step %d, or the servers are of an earlier version", j.ID, *q.Step)
	}
	name, all := st.Files.Name(q.Errors)
	if name == "" {
		return cluster.Errorf(cluster.Conflict, "", "%s", st.Goes(j))
	}
	node, local, ok := st.Task(q.Task)
	if !ok {
		return cluster.Errorf(cluster.NotFound, "", "step %d.%d has no task %d", j.ID, *q.Step, q.Task)
	}
	l := &cluster.Launch{Job: j, Node: st.Shares[node].Node, NodeID: node, Step: st, Rank: q.Task, LocalRank: local,
		Ranks: st.Ranks()}
	if all {
		l = &cluster.Launch{Job: j, Node: cmp.Or(q.Node, j.Alloc.Shares[0].Node), Step: st}
	}
	return w.on(c, l, st.Files.WorkDir, name, here, *q.Step)
}

// on finds the file of a name on the node of a launch, which is to be one of this client's.
func (w *written) on(c *Client, l *cluster.Launch, dir, name string, here bool, number int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := l.Job
	w.Spec = j.Spec
	w.node = l.Node
	if !c.local(w.node) {
		return cluster.Errorf(cluster.NotFound, "", "node %s, which had a part of job %d, is no more here", w.node,
			j.ID)
	}
	inv := c.hardware.Inventory(w.node)
	if inv.Hollow && c.cfg.Sampler == nil {
		return cluster.Errorf(cluster.Unavailable, "", "node %s is hollow and runs nothing", w.node)
	}
	l.Config, l.Inventory = &c.config, inv
	w.Path = filepath.Clean(absolute(dir, c.cfg.FileName(name, l)))
	id := step.ID{Job: j.ID, Attempt: j.Attempt, Node: w.node}
	if number >= 0 {
		id.Step = number
	}
	return w.locate(c.build.private(w.node, id, l), here, id)
}

// locate finds a file that lies in one of the folders which the job has, or had, for itself.
func (w *written) locate(p *step.Private, here bool, id step.ID) error {
	if p == nil {
		return nil
	}
	dir, at := p.Holder(id, w.Path)
	switch {
	case dir == "":
		return nil
	case !here:
		return cluster.Errorf(cluster.NotFound, "", "%s lay in the job's own %s, which went with the job", w.Path, dir)
	case at == "":
		return cluster.Errorf(cluster.Unavailable, "",
			"%s lies in memory that only the job sees; srun --jobid %d --overlap tail %[1]s shows it",
			w.Path, id.Job)
	}
	w.Own = at
	w.Rest = strings.TrimPrefix(w.Path, dir+"/")
	return nil
}

// tailOutput reads the end of what the script of a job led here writes, or has written, or a part of it, with the
// rights of the job's user: the file is opened by a process of theirs.
func (c *Client) tailOutput(ctx context.Context, who api.Caller, q api.TailRequest) (out api.TailResponse, err error) {
	w, err := c.writtenBy(ctx, who, q)
	if out.File = w.Path; err != nil {
		return out, err
	}
	places := tailing
	if q.Hold {
		places = holding
	}
	leave, ok := places.take(w.Spec.UID)
	if !ok {
		return out, cluster.Errorf(cluster.Unavailable, "",
			"%d readers of output, or %d of user %s, are at work on node %s; try again", places.all, places.each,
			w.Spec.User, w.node)
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if q.Hold {
		w.Over = c.untilOver(ctx, w.node, q)
	}
	text, start, err := w.Read(ctx, q.From, q.Hold)
	if err != nil {
		return out, err
	}
	out.Start = start
	out.Cut, out.End = start > 0, start+int64(len(text))
	if q.Raw {
		out.Bytes = text
		return out, nil
	}
	out.Text = strings.ToValidUTF8(string(text), "�")
	return out, nil
}

// untilOver is closed once what is read is not written any more on a node, which cuts short how long more is waited
// for. Of what was over before, the servers may know in a moment.
func (c *Client) untilOver(ctx context.Context, name cluster.NodeName, q api.TailRequest) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		queue, leave := c.queues.enter(q.Job)
		defer leave()
		for first := true; ; first = false {
			c.mu.Lock()
			freed, goesOn := c.queues.next(queue), c.writes(name, q)
			c.mu.Unlock()
			var pause <-chan time.Time
			switch {
			case !goesOn && !first:
				return
			case !goesOn:
				freed, pause = nil, time.After(tail.Pause)
			}
			select {
			case <-freed:
			case <-pause:
			case <-ctx.Done():
				return
			}
		}
	}()
	return over
}

// writes reports whether a job, or its step, may still write on a node. Called with mu held.
func (c *Client) writes(name cluster.NodeName, q api.TailRequest) bool {
	n := c.nodes[name]
	if n == nil || n.jobs[q.Job] == nil || n.jobs[q.Job].isOver() {
		return false
	}
	if q.Step == nil {
		return true
	}
	if ls := c.live[cluster.StepID{Job: q.Job, Step: *q.Step}]; ls != nil {
		return ls.endedAt.IsZero()
	}
	for id, st := range c.allOf(n.jobs[q.Job]) {
		if id.Step == *q.Step && st.State != step.Ended {
			return true
		}
	}
	return false
}
