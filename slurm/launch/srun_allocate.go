package launch

import (
	"errors"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// allocate submits an allocation and waits until its nodes are ready.
func allocate(s *front.Sys, r *submit.Request) (*cluster.Job, int) {
	q, code := submit.Submission(s, r)
	if code != 0 {
		return nil, code
	}
	resp, err := submit.SubmitAll(s, r, q)
	if errors.Is(err, submit.ErrFilter) {
		return nil, s.Fail("%v", err)
	}
	if err != nil {
		text, _ := front.ErrorText(err)
		submit.BeforeRefusal(s, err, r)
		defer submit.AfterRefusal(s, err)
		if submit.IsDoubt(err) {
			return nil, s.Fail("%s", text)
		}
		if s.Prog == "salloc" {
			return nil, s.Fail("Job submit/allocate failed: %s", text)
		}
		return nil, s.Fail("Unable to allocate resources: %s", text)
	}
	return awaitAllocation(s, r, resp)
}

// quietWait is how long an allocation may take before srun and salloc say that it is queued.
const quietWait = 250 * time.Millisecond

func awaitAllocation(s *front.Sys, r *submit.Request, made api.SubmitResponse) (*cluster.Job, int) {
	id := made.Job
	stop, interrupted := onInterrupt(r.Way.Ignore)
	defer stop()
	type answer struct {
		resp api.WaitResponse
		err  error
	}
	ask := func(hold time.Duration) <-chan answer {
		c := make(chan answer, 1)
		go func() { // ends with the call, which hold bounds
			resp, err := front.Call(s, api.WaitJob, api.WaitRequest{
				Job: id, Phase: cluster.Running, Timeout: hold, After: made.Index,
			})
			c <- answer{resp, err}
		}()
		return c
	}
	w := &allocationWait{began: time.Now(), hold: quietWait}
	for c := ask(w.hold); ; c = ask(w.hold) {
		select {
		case <-interrupted:
			_, _ = front.Call(s, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: id}})
			s.Say("Job allocation %d has been revoked", id)
			if s.Prog == "salloc" {
				s.Say("Job aborted due to signal")
			} else {
				s.Say("Force Terminated JobId=%d", id)
			}
			return nil, 1
		case a := <-c:
			switch {
			case front.IsUnreachable(a.err):
				time.Sleep(100 * time.Millisecond)
				w.hold = submit.WaitHold
				continue
			case a.err != nil:
				text, _ := front.ErrorText(a.err)
				_, _ = front.Call(s, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: id}})
				return nil, s.Fail("Unable to allocate resources: %s", text)
			case a.resp.Reached && a.resp.Jobs[0].Phase >= cluster.Ending:
				if j := a.resp.Jobs[0]; j.WaitNote == cluster.ServerPrologError {
					s.Say("%s, job killed", j.WaitNote)
					s.Say("error: Nodes %s are still not ready", front.NodeText(j.AllocNodes()))
					return nil, s.Fail("Something is wrong with the boot of the nodes.")
				}
				sayLaunchFailure(s, a.resp.Jobs[0])
				return nil, s.Fail("Job allocation %d has been revoked", id)
			case a.resp.Reached:
				if w.told && r.Client.Quiet == 0 {
					s.Say("job %d has been allocated resources", id)
				}
				return a.resp.Jobs[0], 0
			}
			if code := stillWaits(s, r, id, w); code >= 0 {
				return nil, code
			}
		}
	}
}

// sayLaunchFailure says why the nodes of an allocation could not begin.
func sayLaunchFailure(s *front.Sys, j *cluster.Job) {
	if j.Spec.Prefetch != nil && j.WaitNote != "" {
		s.Say("error: pyxis: %s", j.WaitNote)
	}
}

// allocationWait is what was said so far of an allocation that is waited for.
type allocationWait struct {
	began           time.Time
	told, explained bool
	hold            time.Duration // how long the next call may stay open
}

// stillWaits says what there is to say of an allocation that is not there yet. It returns the exit code where it is
// waited for no longer, else -1.
func stillWaits(s *front.Sys, r *submit.Request, id cluster.JobID, w *allocationWait) int {
	over := w.isOver(r)
	var wait cluster.Reason
	preparing := false
	if !w.told || over {
		wait, preparing = waitsFor(s, id)
	}
	if preparing {
		w.hold = submit.WaitHold
		return -1
	}
	if over || atOnce(r) && wait != "" && wait != "None" {
		_, _ = front.Call(s, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: id}})
		return refuseToWait(s, r, id, wait)
	}
	w.hold = w.next(r, submit.WaitHold)
	quiet := r.Client.Quiet > 0
	if !w.told && !quiet {
		sayQueued(s, id, wait)
	}
	w.told = true
	if left := whyWait - time.Since(w.began); left > 0 {
		w.hold = w.next(r, left)
		return -1
	}
	if !w.explained && !quiet {
		explainWait(s, id)
	}
	w.explained = true
	return -1
}

// isOver reports whether --immediate lets it wait no longer.
func (w *allocationWait) isOver(r *submit.Request) bool {
	im := r.Client.Immediate
	return im != nil && time.Since(w.began) >= *im
}

// next is how long the next call may stay open: that long, or until --immediate is over.
func (w *allocationWait) next(r *submit.Request, hold time.Duration) time.Duration {
	im := r.Client.Immediate
	if im == nil {
		return hold
	}
	return max(min(hold, *im-time.Since(w.began)), time.Millisecond)
}

// atOnce reports whether an allocation must not wait at all: --immediate without a number means one second.
func atOnce(r *submit.Request) bool {
	return r.Client.Immediate != nil && *r.Client.Immediate <= time.Second
}

// sayQueued says that an allocation waits, and the reason if it is its own.
func sayQueued(s *front.Sys, id cluster.JobID, wait cluster.Reason) {
	switch {
	case isBeyondPartition(wait):
		s.Say(partConfig)
	case wait == cluster.WaitHeldUser, wait == cluster.WaitHeldAdmin:
		s.Say("Job is in held state, pending scheduler release")
	}
	if s.Prog == "salloc" {
		s.Say("Pending job allocation %d", id)
	}
	s.Say("job %d queued and waiting for resources", id)
}

// whyWait is how long an allocation may take before srun and salloc say what it waits for.
const whyWait = 5 * time.Second

// explainWait says what a job waits for, and when it may begin, as far as that is known.
func explainWait(s *front.Sys, id cluster.JobID) {
	resp, err := front.Call(s, api.WhyJob, api.WhyRequest{Ref: cluster.Ref{Job: id}})
	if err != nil || len(resp.Causes) == 0 {
		return
	}
	text := resp.Causes[0].Text
	if !resp.StartsAt.IsZero() {
		text += "; it may begin " + front.Stamp(resp.StartsAt)
	}
	s.Say("why: %s; muster why %d says more", text, id)
}

// partConfig is what a request is told that no partition as configured can meet.
const partConfig = "Requested partition configuration not available now"

// refuseToWait words the end of --immediate.
func refuseToWait(s *front.Sys, r *submit.Request, id cluster.JobID, wait cluster.Reason) int {
	what := "Unable to allocate resources"
	why := "Requested nodes are busy"
	salloc := s.Prog == "salloc"
	switch own := ownReason(wait); {
	case atOnce(r) && own != "":
		why = own
		what = front.Choose(salloc, "Job submit/allocate failed", what)
	case !atOnce(r):
		why = front.Choose(salloc, "Connection timed out", why)
	}
	code := s.Fail("%s: %s", what, why)
	if salloc && r.Client.Quiet == 0 {
		s.Say("Job allocation %d has been revoked.", id)
	}
	return code
}

// ownReason is what is said at once of a job that waits for more than nodes that are free; "": it waits for those.
func ownReason(wait cluster.Reason) string {
	if isBeyondPartition(wait) {
		return partConfig
	}
	return front.Choose(waitsForItself(wait), "Job dependency problem", "")
}

// isBeyondPartition reports whether a job waits for more than its partition has.
func isBeyondPartition(wait cluster.Reason) bool {
	return slices.Contains([]cluster.Reason{
		cluster.WaitPartitionConfig, cluster.WaitPartitionNodes, cluster.WaitPartitionTime,
	}, wait)
}

// waitsForItself reports whether a job waits for what it has asked for: a time, a release, other jobs.
func waitsForItself(wait cluster.Reason) bool {
	return slices.Contains([]cluster.Reason{
		cluster.WaitHeldUser, cluster.WaitHeldAdmin, cluster.WaitBegin, cluster.WaitDependency,
		cluster.WaitDependencyNever,
	}, wait)
}

// waitsFor is what a job waits for, "" if it is not known, and reports whether it waits for nothing but its nodes.
func waitsFor(s *front.Sys, id cluster.JobID) (wait cluster.Reason, preparing bool) {
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}, Brief: true})
	if err != nil || len(resp.Jobs) == 0 {
		return "", false
	}
	return resp.Jobs[0].Wait, resp.Jobs[0].Phase > cluster.Pending
}
