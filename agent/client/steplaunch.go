package client

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/ports"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Bounds of the live steps of one job: how many, and what their environments, programs and words take in memory.
const (
	maxStepsHere = 4096
	maxTextsHere = 256 << 20
)

// createStep places a step in its job's allocation and starts it.
func (s *steps) createStep(ctx context.Context, who api.Caller, q api.StepRequest) (api.StepResponse, error) {
	queue, leave := s.queues.enter(q.Job)
	defer leave()
	var refused cluster.IDSet // ports, by nodes of other clients
	for {
		p, err := tryPlace(s, queue, who, &q, refused)
		if p.known != nil {
			return *p.known, nil
		}
		if err == nil {
			out, err := s.startStep(ctx, p.job, p.step)
			taken := ports.Taken(err)
			if taken.Empty() {
				return out, err
			}
			refused = refused.Union(taken)
			continue
		}
		if q.NoWait || err.Kind != cluster.ErrBusy && err.Kind != cluster.ErrPortsBusy {
			return api.StepResponse{}, err
		}
		refused = cluster.IDSet{}
		select {
		case <-p.freed:
		case <-ports.Again(err):
		case <-ctx.Done():
			return api.StepResponse{}, ctx.Err()
		}
	}
}

// placed is what became of a try to place a step.
type placed struct {
	job   *jobHere
	step  *liveStep         // of the job, to be started
	known *api.StepResponse // instead: the request made the step before, or only asked where it would run
	freed <-chan struct{}   // closed when another try may be worth it
}

// tryPlace places a step of a job whose queue this is.
func tryPlace(s *steps, queue *queue, who api.Caller, q *api.StepRequest, refused cluster.IDSet) (
	p placed, err *api.Error) {
	queue.gate.Lock()
	defer queue.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.freed = s.queues.next(queue)
	if p.job, err = s.jobLedHere(q.Job, who); err != nil {
		return p, err
	}
	if made := s.madeBy(*q); made != nil {
		out := s.describe(made)
		p.known = &out
		return p, nil
	}
	if p.step, err = s.placeAny(p.job, &q.Spec); err != nil {
		return p, err
	}
	p.step.key = q.Key
	if q.Plan {
		s.unplace(p.job, p.step, q.Keep)
		out := s.describe(p.step)
		p.known = &out
		return p, nil
	}
	if !p.step.alone() {
		err = s.reserve(p.job, p.step, refused)
	}
	return p, err
}

// reserve has a placed step hold its ports on all of its nodes, as far as it is known here that they are free; else
// it takes the step back. Called with mu held.
func (s *steps) reserve(h *jobHere, ls *liveStep, refused cluster.IDSet) *api.Error {
	all, shares := s.config.StepPorts(), ls.record.Shares
	got, err := s.ports.Choose(all, ports.Wanted(all, &ls.spec, shares), shares, refused)
	if err == nil {
		ls.record.Ports = got.String()
		err = s.ports.HoldAll(&ls.record)
	}
	if err != nil {
		s.unplace(h, ls, false)
	}
	return err
}

// madeBy finds the step that the same request made before. Called with mu held.
func (s *steps) madeBy(q api.StepRequest) *liveStep {
	for _, ls := range s.live {
		if q.Key != "" && ls.key == q.Key && ls.record.ID.Job == q.Job {
			return ls
		}
	}
	return nil
}

// placeAny makes a step of either kind. Called with mu held.
func (s *steps) placeAny(h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	if err := cluster.CheckStep(spec, len(h.job.Alloc.Shares)); err != nil {
		return nil, api.AsError(err)
	}
	if err := hasRoom(s.live, h.job.ID, spec); err != nil {
		return nil, err
	}
	if spec.Cast != nil && spec.Cast.Alone {
		return s.placeCast(h, spec)
	}
	return s.place(h, spec)
}

// hasRoom refuses a step if those of its job that live have too long texts.
func hasRoom(live map[cluster.StepID]*liveStep, job cluster.JobID, spec *cluster.StepSpec) *api.Error {
	total := textOf(spec)
	for id, ls := range live {
		if id.Job == job {
			total += textOf(&ls.spec)
		}
	}
	if total <= maxTextsHere {
		return nil
	}
	return cluster.Errorf(cluster.Conflict, cluster.ErrBusy,
		"the live steps of job %d have more than %d MiB of environments and programs: wait until some have ended",
		job, maxTextsHere>>20)
}

// mayBePart reports whether a job may have a step of a number that the step's first component has chosen. A number
// below 0 is a script's or a session's, whose files are opened in other ways.
func mayBePart(j *cluster.Job, w *cluster.StepWorld) bool {
	return j.Het != nil && j.Het.ID == w.Job && w.Number >= 0 && w.Number < cluster.FirstCast
}

// textOf is what the texts of a step take that have no small bound.
func textOf(spec *cluster.StepSpec) int {
	total := len(spec.Env) + len(spec.MultiProg) + len(spec.SubmitLine)
	for _, word := range spec.Argv {
		total += len(word)
	}
	return total
}

// place reserves a step's resources. Called with mu held.
func (s *steps) place(h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	used := map[cluster.NodeName]cluster.StepUse{}
	next, live := h.job.NextStep, 0
	for _, ls := range s.live {
		if !ls.competes(h.job.ID) {
			continue
		}
		if ls.record.Attempt == h.job.Attempt { // each attempt counts its own
			next = max(next, ls.record.ID.Step+1)
		}
		live++
		if ls.spec.Overlap || !ls.endedAt.IsZero() {
			continue
		}
		for _, sh := range ls.record.Shares {
			u := used[sh.Node]
			u.CPUs = u.CPUs.Union(sh.CPUs)
			if len(ls.spec.PerNode)+len(ls.spec.PerTask)+len(ls.spec.PerJob) > 0 {
				u.GPUs = u.GPUs.Union(sh.GPUs)
			}
			u.MemMB += cluster.StepMem(&ls.spec, sh)
			u.Counted = cluster.AddCounted(u.Counted, sh.Counted, 1)
			used[sh.Node] = u
		}
	}
	if live >= maxStepsHere {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "job %d has %d live steps", h.job.ID, live)
	}
	next = max(next, h.nextStep)
	for s.takenBefore(h, next) {
		next++
	}
	if w := spec.World; w != nil {
		if _, lives := s.live[cluster.StepID{Job: h.job.ID, Step: w.Number}]; lives || !mayBePart(h.job, w) {
			return nil, cluster.Errorf(cluster.Conflict, "",
				"step %d of job %d cannot be a part of a step", w.Number, h.job.ID)
		}
		next = w.Number
	}
	if most := s.config.MaxStepCount; most > 0 && next >= most && !spec.Interactive {
		return nil, cluster.Errorf(cluster.Conflict, "", "Step limit reached for this job")
	}
	if spec.Interactive {
		next = cluster.InteractiveStep
		if _, lives := s.live[cluster.StepID{Job: h.job.ID, Step: next}]; lives {
			return nil, cluster.Errorf(cluster.Conflict, "", "job %d has an interactive step already", h.job.ID)
		}
	}
	shares, err := cluster.PlaceStep(h.job, used, spec, s.parts.inventory)
	if err != nil {
		return nil, err
	}
	h.nextStep = max(h.nextStep, next+1)
	return s.newStep(h, spec, next, shares), nil
}

// newStep is a step that has its place. Called with mu held.
func (s *steps) newStep(h *jobHere, spec *cluster.StepSpec, number int, shares []cluster.Share) *liveStep {
	j := h.job
	ls := &liveStep{spec: *spec, lead: h.node, drained: map[cluster.NodeName]bool{}}
	ls.record = cluster.NewStep(j, number, spec, shares, time.Now())
	for _, sh := range shares {
		ls.ids = append(ls.ids, step.ID{Job: j.ID, Attempt: j.Attempt, Step: number, Node: sh.Node})
	}
	s.live[ls.record.ID] = ls
	for _, id := range ls.ids {
		s.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
	return ls
}

// takenBefore reports whether a step of an attempt before still has a number. One that has ended gives it up,
// though nobody came for its output. Called with mu held.
func (s *steps) takenBefore(h *jobHere, number int) bool {
	ls := s.live[cluster.StepID{Job: h.job.ID, Step: number}]
	if ls == nil || ls.endedAt.IsZero() || ls.record.Attempt == h.job.Attempt {
		return ls != nil
	}
	s.orphaned(ls)
	delete(s.live, ls.record.ID)
	return false
}

// Steps that put files on the nodes of a job for sbcast, or fetch some from there for sgather: one task on
// each node, of muster's own program and as the job's user. They take nothing from other steps, have numbers
// of their own, and the servers do not hear of them. For srun --bcast the same program runs beside the tasks,
// which begin once it says so.

// placeCast makes the step that puts files on nodes. Called with mu held.
func (s *steps) placeCast(h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	live := 0
	number := max(cluster.FirstCast, h.nextCast)
	for id := range s.live {
		if id.Job != h.job.ID {
			continue
		}
		live++
		if id.IsCast() {
			number = max(number, id.Step+1)
		}
	}
	if live >= maxStepsHere {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "job %d has %d live steps", h.job.ID, live)
	}
	shares, err := cluster.PlaceCast(h.job, spec.Cast)
	if err != nil {
		return nil, err
	}
	h.nextCast = number + 1
	return s.newStep(h, spec, number, shares), nil
}

// unplace takes a step back that was placed to see where it would run. The leader of a heterogeneous job may
// keep its number for the components. Called with mu held.
func (s *steps) unplace(h *jobHere, ls *liveStep, keep bool) {
	if !keep {
		h.nextStep = ls.record.ID.Step
	}
	delete(s.live, ls.record.ID)
	for _, id := range ls.ids {
		s.have.Drop(id)
	}
}

// startStep starts a placed step on all its nodes.
func (s *steps) startStep(ctx context.Context, h *jobHere, ls *liveStep) (api.StepResponse, error) {
	ranks := ls.ranks()
	programs, err := step.ParseMultiProg(&ls.spec, ls.tasks())
	if err == nil {
		err = s.checkBinds(ls)
	}
	if err == nil {
		s.mu.Lock()
		cfg := s.config
		s.mu.Unlock()
		err = checkManager(&cfg, &ls.spec)
	}
	if err != nil {
		s.dropStep(ls)
		return api.StepResponse{}, err
	}
	memo, err := ls.memo()
	if err != nil {
		s.dropStep(ls)
		return api.StepResponse{}, err
	}
	var specs []step.Spec
	for i, id := range ls.ids {
		if s.local(id.Node) {
			sp, err := s.build.stepSpec(h, ls, ranks, i, programs)
			if err != nil {
				s.dropStep(ls)
				return api.StepResponse{}, err
			}
			if i == 0 || specs == nil {
				sp.Note = memo
			}
			specs = append(specs, sp)
		}
	}
	if err := s.launchStep(ctx, ls, specs); err != nil {
		s.mu.Lock()
		s.signalStepNow(ls, syscall.SIGKILL)
		s.mu.Unlock()
		s.dropStep(ls)
		return api.StepResponse{}, fmt.Errorf("start step %d of job %d: %w", ls.record.ID.Step, ls.record.ID.Job, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ls.endedAt.IsZero() {
		s.tellStep(ls)
	}
	return s.describe(ls), nil
}

// launchStep starts a step's parts, here and through the other clients theirs, once all are ready.
func (s *steps) launchStep(ctx context.Context, ls *liveStep, specs []step.Spec) error {
	s.mu.Lock()
	groups := s.sisters.Groups(ls.ids)
	s.mu.Unlock()
	rec := &ls.record
	get := api.PartsRequest{Step: *rec, Spec: ls.spec, Key: ls.key, Lead: ls.lead, Hold: true}
	if err := s.parts.ready(ctx, get, groups); err != nil {
		return err
	}
	q := api.PartsQuery{Job: rec.ID.Job, Attempt: rec.Attempt, Step: rec.ID.Step}
	return both(func() error {
		if len(specs) == 0 {
			return nil
		}
		s.slog.Debug("parts of a step begin", "job", rec.ID.Job, "step", rec.ID.Step, "node", specs[0].ID.Node)
		return s.cfg.Runner.Start(specs...)
	}, func() error {
		err := s.parts.begin(ctx, q, groups)
		s.mu.Lock()
		killed := ls.killed
		s.mu.Unlock()
		if err == nil || killed {
			return err
		}
		get.Hold = false // a daemon that was restarted holds nothing: whoever has not begun begins now
		return s.parts.ready(ctx, get, groups)
	})
}

// checkBinds refuses a step whose tasks cannot be bound as it asks: one line for each node in the
// message; the hint names the step and those nodes.
func (s *steps) checkBinds(ls *liveStep) error {
	var lines []string
	hint := fmt.Sprintf("%d.%d", ls.record.ID.Job, ls.record.ID.Step)
	for i, id := range ls.ids {
		if err := cluster.CheckBind(&ls.spec, ls.record.Shares[i], s.parts.inventory(id.Node)); err != nil {
			lines, hint = append(lines, err.Message), hint+" "+string(id.Node)
		}
	}
	if lines == nil {
		return nil
	}
	e := cluster.Errorf(cluster.Invalid, cluster.ErrStepBind, "%s", strings.Join(lines, "\n"))
	e.Hint = hint
	return e
}
