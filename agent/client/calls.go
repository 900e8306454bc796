package client

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/sisters"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Calls about a live step: signal it, wait for it, take its output.

func (s *steps) signalStep(ctx context.Context, who api.Caller, q api.StepSignal) (api.Empty, error) {
	if err := s.await(ctx, s.known); err != nil {
		return api.Empty{}, err
	}
	calls, err := s.signalLive(who, q)
	if err != nil {
		return api.Empty{}, err
	}
	sisters.Told(calls) // what the caller does next is not to overtake the signal
	return api.Empty{}, nil
}

// signalLive returns the calls by which other clients are told.
func (s *steps) signalLive(who api.Caller, q api.StepSignal) ([]chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ls, err := s.liveStep(q.ID, who)
	if err != nil {
		return nil, err
	}
	if ls.alone() {
		s.signalCast(ls, q)
		return nil, nil
	}
	h := s.nodes[ls.lead].jobs[q.ID.Job]
	ending := h != nil && h.job.Phase == cluster.Ending
	switch {
	case q.Gone && !ls.endedAt.IsZero():
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "step %d.%d is over", q.ID.Job, q.ID.Step)
	case (q.Kill || q.Term || q.Gone) && ending: // its tasks have the time that the job's end gives them
	case q.Gone && h != nil && h.job.RunsScript():
		ls.goneAt = time.Now().Add(scriptTime)
		ls.endedBy = &who.UID
		s.poke()
	case q.Kill, q.Gone:
		ls.endedBy = &who.UID
		s.sayEnd(ls, cluster.Cancelled, true)
		s.signalStepNow(ls, syscall.SIGKILL)
	case q.Term:
		s.endStep(ls, cluster.Cancelled)
		s.poke()
	default:
		for _, id := range ls.ids {
			if h := s.have.Get(id); h != nil && h.State != step.Ended {
				s.parts.signalPart(id, syscall.Signal(q.Sig), step.Leaders)
			}
		}
	}
	return s.sisters.Calls(ls.ids), nil
}

// updateStep changes the time limits of live steps. An ErrJobID says that there is none.
func (s *steps) updateStep(ctx context.Context, who api.Caller, q api.StepUpdate) (api.Empty, error) {
	if err := s.await(ctx, s.known); err != nil {
		return api.Empty{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for id := range s.live {
		if id.IsCast() || id.Job != q.ID.Job || q.ID.Step != cluster.AllSteps && id.Step != q.ID.Step {
			continue
		}
		ls, err := s.liveStep(id, who)
		if err != nil {
			return api.Empty{}, err
		}
		found = true
		limit := q.Limit
		if q.Delta && ls.record.Limit > 0 {
			limit = max(ls.record.Limit+q.Limit, time.Minute)
		}
		ls.record.Limit = limit
		s.keepRecord(ls)
		s.tellStep(ls)
	}
	if !found {
		return api.Empty{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %d.%d does not run",
			q.ID.Job, q.ID.Step)
	}
	s.poke()
	return api.Empty{}, nil
}

// scriptTime is how long it may take until it is known that a script has ended: the sruns that die with it do not
// end their steps, which have the time that the job's end gives them.
const scriptTime = time.Second

// maxStepWait bounds how long one call waits for a step's end.
const maxStepWait = 10 * time.Second

// waitStep returns once other steps may have what this one had.
func (s *steps) waitStep(ctx context.Context, who api.Caller, q api.StepWait) (api.Empty, error) {
	ctx, cancel := context.WithTimeout(ctx, min(q.Timeout, maxStepWait))
	defer cancel()
	if err := s.await(ctx, s.known); err != nil {
		return api.Empty{}, err
	}
	queue, leave := s.queues.enter(q.ID.Job)
	defer leave()
	for {
		s.mu.Lock()
		freed := s.queues.next(queue)
		ls := s.live[q.ID]
		if ls == nil || !ls.endedAt.IsZero() {
			s.mu.Unlock()
			return api.Empty{}, nil
		}
		_, err := s.liveStep(q.ID, who)
		s.mu.Unlock()
		if err != nil {
			return api.Empty{}, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return api.Empty{}, nil
		}
	}
}

// checkAttach refuses what cannot be attached to.
func (s *steps) checkAttach(who api.Caller, req []byte) error {
	if err := s.await(context.Background(), s.known); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, _, err := s.attachTarget(who, req)
	return err
}

// attachTarget finds the step and the node's place in it. Called with mu held.
func (s *steps) attachTarget(who api.Caller, req []byte) (ls *liveStep, q api.AttachRequest, i int, err error) {
	if err := wire.Unmarshal(req, &q); err != nil {
		return nil, q, 0, cluster.Errorf(cluster.Invalid, "", "bad request to attach: %v", err)
	}
	ls, lerr := s.liveStep(q.ID, who)
	if lerr != nil {
		return nil, q, 0, lerr
	}
	if i = slices.IndexFunc(ls.ids, func(id step.ID) bool { return id.Node == q.Node }); i < 0 {
		return nil, q, 0, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "step %d.%d has no node %s",
			q.ID.Job, q.ID.Step, q.Node)
	}
	return ls, q, i, nil
}

// attachStep carries the stream of one node's part of a step between srun and the supervisor.
func (s *steps) attachStep(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
	s.mu.Lock()
	ls, q, i, err := s.attachTarget(who, req)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	ctx, t := ls.take(ctx, i)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		ls.leave(t)
		if !ls.endedAt.IsZero() {
			ls.drained[q.Node] = true
			s.drop(ls)
		}
		s.poke()
	}()
	far, err := s.parts.attachTo(ctx, ls.ids[i])
	if err != nil {
		return fmt.Errorf("attach to step %d.%d on %s: %w", q.ID.Job, q.ID.Step, q.Node, err)
	}
	api.Splice(ctx, conn, far)
	return nil
}

// signalCast ends a step that puts files on nodes: it takes away what is not complete. Called with mu held.
func (s *steps) signalCast(ls *liveStep, q api.StepSignal) {
	if !q.Kill && !q.Gone && !q.Term {
		s.signalStepNow(ls, syscall.Signal(q.Sig))
		return
	}
	s.signalStepNow(ls, syscall.SIGTERM)
	ls.killAt = time.Now().Add(s.config.KillWait)
	s.poke()
}

// watchRoutes registers what is asked by those who look on beside a step's srun.
func (s *steps) watchRoutes(m *api.Mux) {
	watch := func(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
		return s.watchStep(ctx, who, req, conn)
	}
	describe := func(ctx context.Context, who api.Caller, q api.StepWait) (api.StepResponse, error) {
		return s.describeStep(ctx, who, q)
	}
	api.HandleTunnel(m, api.WatchStep, api.User, s.checkAttach, watch)
	api.Handle(m, api.DescribeStep, describe)
}

// describeStep tells of a step that runs.
func (s *steps) describeStep(ctx context.Context, who api.Caller, q api.StepWait) (api.StepResponse, error) {
	if err := s.await(ctx, s.known); err != nil {
		return api.StepResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ls, err := s.liveStep(q.ID, who)
	if err != nil {
		return api.StepResponse{}, err
	}
	if !ls.endedAt.IsZero() {
		err = cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %s has ended", stepName(q.ID))
		return api.StepResponse{}, err
	}
	return s.describe(ls), nil
}

// watchStep carries the stream of one node's part of a step to who looks on. The step is not forgotten
// before that one has its end.
func (s *steps) watchStep(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
	s.mu.Lock()
	ls, _, i, err := s.attachTarget(who, req)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	ctx, t := ls.take(ctx, i)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		ls.leave(t)
		s.drop(ls)
		s.poke()
	}()
	far, err := s.parts.attachTo(ctx, ls.ids[i])
	if err != nil {
		return err
	}
	api.Splice(ctx, conn, far)
	return nil
}
