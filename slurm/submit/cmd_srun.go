package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// Srun runs a step: in the job it is called in, in the one --jobid names, or in an
// allocation of its own.
func Srun(sys *front.Sys, argv []string) int {
	r, err := ParseSrun(argv, sys)
	if err != nil {
		return sys.Usage(err)
	}
	sayNotes(sys, r)
	if _, code := sys.OwnCluster(r.Job.Clusters); code != 0 {
		return code
	}
	for _, p := range r.all() {
		if p.Step.Env, err = JobEnviron(p, sys.Environ); err != nil {
			return sys.Usage(err)
		}
	}
	if r.Client.TestOnly {
		q, code := Submission(sys, r)
		if code != 0 {
			return code
		}
		return testOnly(sys, r, q)
	}
	if r.Client.JobID != 0 {
		stepLeaves(sys, r)
		return stepOf(sys, r, cluster.JobID(r.Client.JobID))
	}
	job, code := allocate(sys, r)
	if code != 0 {
		return code
	}
	rc := stepOf(sys, r, job.ID)
	exit := cluster.ExitStatus{Code: rc}
	switch {
	case r.outOfMemory:
		exit = cluster.OOMExit
	case rc > 128:
		exit = cluster.ExitStatus{Signal: rc - 128}
	}
	if _, err := front.Call(sys, api.FinishJob, cluster.Finish{Job: job.ID, Exit: exit}); err != nil && !front.IsKind(err, cluster.ErrFinished) {
		text, _ := front.ErrorText(err)
		sys.Say("error: job %d could not be ended: %s", job.ID, text)
	}
	return rc
}

// noAllocation says why a job has nothing to run a step in.
func noAllocation(s *front.Sys, id cluster.JobID) {
	why := "Invalid job id specified"
	resp, _ := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if len(resp.Jobs) == 1 {
		switch resp.Jobs[0].Phase {
		case cluster.Ended:
			s.Say("error: Slurm job %d has expired", id)
			return
		case cluster.Pending:
			why = "Job is pending execution"
		}
	}
	s.Say("error: Unable to confirm allocation for job %d: %s", id, why)
}

// stepLeaves says that what a job leaves of its nodes is not for its steps to say. Slurm says nothing of threads.
func stepLeaves(s *front.Sys, r *Request) {
	for _, p := range r.all() {
		switch {
		case p.Job.CoreSpec != nil:
			s.Say("error: Ignoring --core-spec value for a job step within an existing job. Set specialized cores at job allocation time.")
		case p.Job.ThreadSpec != nil:
			s.Say("error: Ignoring --thread-spec value for a job step within an existing job. Set specialized threads at job allocation time.")
		}
	}
}

// allocate submits an allocation and waits until its nodes are ready.
func allocate(s *front.Sys, r *Request) (*cluster.Job, int) {
	q, code := Submission(s, r)
	if code != 0 {
		return nil, code
	}
	resp, err := SubmitAll(s, r, q)
	if err != nil {
		text, _ := front.ErrorText(err)
		beforeRefusal(s, err, r)
		defer afterRefusal(s, err)
		if isDoubt(err) {
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

func awaitAllocation(s *front.Sys, r *Request, made api.SubmitResponse) (*cluster.Job, int) {
	id := made.Job
	stop, interrupted := onInterrupt()
	defer stop()
	type answer struct {
		resp api.WaitResponse
		err  error
	}
	ask := func(hold time.Duration) <-chan answer {
		c := make(chan answer, 1)
		go func() { // ends with the call, which hold bounds
			resp, err := front.Call(s, api.WaitJob, api.WaitRequest{Job: id, Phase: cluster.Running, Timeout: hold, After: made.Index})
			c <- answer{resp, err}
		}()
		return c
	}
	w := &allocationWait{began: time.Now(), hold: quietWait}
	if im := r.Client.Immediate; im != nil {
		w.hold = max(*im, quietWait)
	}
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
				w.hold = waitHold
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

// allocationWait is what was said so far of an allocation that is waited for.
type allocationWait struct {
	began           time.Time
	told, explained bool
	hold            time.Duration // how long the next call may stay open
}

// stillWaits says what there is to say of an allocation that is not there yet. It returns the exit code where it is waited for no
// longer, else -1.
func stillWaits(s *front.Sys, r *Request, id cluster.JobID, w *allocationWait) int {
	never, preparing := false, false
	if !w.told {
		never, preparing = waitsFor(s, id)
	}
	if im := r.Client.Immediate; im != nil && (never || time.Since(w.began) >= *im) {
		_, _ = front.Call(s, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: id}})
		return refuseToWait(s, never)
	}
	w.hold = waitHold
	if preparing {
		return -1
	}
	quiet := r.Client.Quiet > 0
	if !w.told && !quiet {
		sayQueued(s, id, never)
	}
	w.told = true
	if left := whyWait - time.Since(w.began); left > 0 {
		w.hold = left
		return -1
	}
	if !w.explained && !quiet {
		explainWait(s, id)
	}
	w.explained = true
	return -1
}

// sayQueued says that an allocation waits; never: its partition has not what it wants.
func sayQueued(s *front.Sys, id cluster.JobID, never bool) {
	if never {
		s.Say(partConfig)
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
func refuseToWait(s *front.Sys, never bool) int {
	why := "Requested nodes are busy"
	if never {
		why = partConfig
	}
	if s.Prog == "salloc" {
		return s.Fail("Job submit/allocate failed: %s", why)
	}
	return s.Fail("Unable to allocate resources: %s", why)
}

// waitsFor reports whether a job waits for more than its partition has, and whether it waits for nothing but its nodes.
func waitsFor(s *front.Sys, id cluster.JobID) (never, preparing bool) {
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}, Brief: true})
	if err != nil || len(resp.Jobs) == 0 {
		return false, false
	}
	switch resp.Jobs[0].Wait {
	case cluster.WaitPartitionConfig, cluster.WaitPartitionNodes, cluster.WaitPartitionTime:
		return true, false
	}
	return false, resp.Jobs[0].Phase > cluster.Pending
}

// runStep creates a step and sees it through; the result is srun's exit code.
func runStep(s *front.Sys, r *Request, id cluster.JobID) int {
	sio, code := newStepIO(s, r)
	if code != 0 {
		return code
	}
	resp, code := createStep(s, r, id)
	if code != 0 {
		sio.close()
		return code
	}
	return followStep(s, r, []api.StepResponse{resp}, sio)
}

// followStep sees a step through that was created, in one part for each component that it runs on.
func followStep(s *front.Sys, r *Request, made []api.StepResponse, sio *stepIO) int {
	run := newStepRun(s, r, made, sio)
	if err := sio.open(&run.resp); err != nil {
		run.kill()
		sio.close()
		return s.Fail("%v", err)
	}
	return run.run()
}

// daemonAway is how long srun waits for its node's daemon to come back.
const daemonAway = 30 * time.Second

func createStep(s *front.Sys, r *Request, id cluster.JobID) (api.StepResponse, int) {
	return createStepAs(s, r, api.StepRequest{Job: id, Spec: r.Step, NoWait: true, Key: requestKey(s)})
}

// createStepAs makes a request for a step, and waits until its job has room for it.
func createStepAs(s *front.Sys, r *Request, q api.StepRequest) (api.StepResponse, int) {
	id := q.Job
	resp, err := front.Call(s, api.CreateStep, q)
	for end := time.Now().Add(daemonAway); front.IsUnreachable(err) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // the node's daemon restarts: the job runs on meanwhile
		resp, err = front.Call(s, api.CreateStep, q)
	}
	waited := false
	for front.IsKind(err, cluster.ErrBusy) || front.IsUnreachable(err) && waited {
		if r.Client.Immediate != nil {
			return resp, s.Fail("Unable to create step for job %d: Requested nodes are busy", id)
		}
		if !waited && r.Client.Quiet == 0 {
			s.Say("Job %d step creation temporarily disabled, retrying (Requested nodes are busy)", id)
		}
		waited, q.NoWait = true, false
		if front.IsUnreachable(err) {
			time.Sleep(100 * time.Millisecond)
		}
		resp, err = front.Call(s, api.CreateStep, q)
	}
	if err == nil {
		if waited && r.Client.Quiet == 0 {
			s.Say("Step created for job %d", id)
		}
		return resp, 0
	}
	text, _ := front.ErrorText(err)
	switch {
	case front.IsKind(err, cluster.ErrJobID), front.IsKind(err, cluster.ErrFinished):
		noAllocation(s, id)
		s.Say("Check SLURM_JOB_ID environment variable. Expired or invalid job %d", id)
	case front.IsKind(err, cluster.ErrStepGRES):
		var e *api.Error
		if errors.As(err, &e) && e.Hint == cluster.NoGRES {
			s.Say("error: Step requested GRES but job doesn't have GRES")
		}
		s.Say("error: Unable to create step for job %d: Invalid generic resource (gres) specification", id)
	case front.IsKind(err, cluster.ErrStepNodes) && r.Step.MinNodes > 0:
		s.Say("error: %s", err.Error())
	case front.IsKind(err, cluster.ErrMultiProg):
		sayErrors(s, err.Error())
	case front.IsKind(err, cluster.ErrStepBind):
		return resp, bindRefused(s, err)
	default:
		s.Say("error: Unable to create step for job %d: %s", id, text)
	}
	return resp, s.ErrorExit()
}

func sayErrors(s *front.Sys, lines string) {
	for line := range strings.Lines(lines) {
		s.Say("error: %s", strings.TrimSuffix(line, "\n"))
	}
}

// bindFailed is the exit code of a binding that can not be: Slurm's error 4032, modulo 256.
const bindFailed = 192

// bindRefused tells why tasks can not be bound; the hint names the step and the nodes.
func bindRefused(s *front.Sys, err error) int {
	const text = "Unable to satisfy cpu bind request"
	sayErrors(s, err.Error())
	var e *api.Error
	if errors.As(err, &e) {
		words := strings.Fields(e.Hint)
		for i := 1; i < len(words); i++ {
			s.Say("error: Task launch for StepId=%s failed on node %s: %s", words[0], words[i], text)
		}
	}
	s.Say("error: Application launch failed: %s", text)
	s.Say("Job step aborted")
	return bindFailed
}

// reattach is how long srun tries to reach a daemon that went away.
const reattach = 5 * time.Minute

// attachTo returns a function that leads to the stream of one node's part of the step, and that
// waits for a daemon that is being restarted.
func attachTo(s *front.Sys, id cluster.StepID, node cluster.NodeName) func() (io.ReadWriteCloser, error) {
	return func() (io.ReadWriteCloser, error) {
		c := s.Client()
		var wait time.Duration
		for began := time.Now(); ; {
			conn, err := api.Tunnel(context.Background(), c, api.AttachStep, "muster-io", api.AttachRequest{ID: id, Node: node})
			if err == nil || !front.IsUnreachable(err) || time.Since(began) > reattach {
				return conn, err
			}
			wait = cmp.Or(min(wait*2, time.Second), 10*time.Millisecond)
			time.Sleep(wait)
		}
	}
}

// nodeEvent is what happened on one node of the step.
type nodeEvent struct {
	node  int
	frame stream.Frame
	err   error // the node's stream ended: nil after Done
	over  bool
	// notice: the node has said that the step is being ended.
	notice bool
}

// stepRun is a step in flight.
type stepRun struct {
	sys     *front.Sys
	req     *Request
	resp    api.StepResponse // of all parts as one
	parts   []cluster.StepID // one a component
	first0  []int            // by node, the first rank of its part
	io      *stepIO
	streams []*stream.Stream
	events  chan nodeEvent
	running cluster.IDSet // ranks
	ended   cluster.IDSet
	exits   []exitGroup // not told yet
	worst   int
	killed  bool // this srun ends it
	forced  bool // a task was killed or terminated
	// interrupted: its user has ended it by Ctrl-C.
	interrupted bool
	told        bool      // the user knows that the step is being ended
	first       time.Time // when the first task ended
}

// exitGroup is several tasks of a node that ended alike.
type exitGroup struct {
	node int
	text string
	rank cluster.IDSet
}

func newStepRun(s *front.Sys, r *Request, made []api.StepResponse, sio *stepIO) *stepRun {
	first := api.StepResponse{Step: made[0].Step, Defaults: made[0].Defaults, KillWait: made[0].KillWait}
	run := &stepRun{sys: s, req: r, resp: first, io: sio, events: make(chan nodeEvent, 16)}
	run.resp.Step.Tasks = 0
	for i, part := range made {
		if i < len(sio.parts) {
			sio.parts[i].first = run.resp.Step.Tasks
		}
		for _, n := range part.Nodes {
			run.running = run.running.Union(cluster.NewIDSet(n.Ranks...))
			run.streams = append(run.streams, stream.New(attachTo(s, part.Step.ID, n.Node), 0))
			run.first0 = append(run.first0, run.resp.Step.Tasks)
		}
		run.parts, run.resp.Nodes = append(run.parts, part.Step.ID), append(run.resp.Nodes, part.Nodes...)
		run.resp.Step.Tasks += part.Step.Tasks
	}
	return run
}

// signal tells all parts of the step something.
func (run *stepRun) signal(what api.StepSignal) {
	for _, what.ID = range run.parts {
		_, _ = front.Call(run.sys, api.SignalStep, what)
	}
}

// freeTime is how long srun waits at its end for the step's resources to be free.
const freeTime = 2 * time.Second

// mergeTime is how long exits of tasks are gathered before they are told in one line.
const mergeTime = 30 * time.Millisecond

func (run *stepRun) run() int {
	for i := range run.streams {
		go run.listen(i) // ends with its stream, which run reads to the end or closes
	}
	run.io.feed(run.streams, run.resp)
	if !run.script("prolog", cmp.Or(run.req.Client.Prolog, run.resp.Defaults.Prolog)) {
		run.kill()
	}
	sigs, stop := notifySignals()
	defer stop()
	ctl := &interrupts{run: run}
	open := len(run.streams)
	var tell, limit <-chan time.Time
	for open > 0 {
		select {
		case e := <-run.events:
			if e.over {
				open--
				if e.err != nil {
					run.lost(e)
				}
				continue
			}
			if run.event(e) {
				if run.req.Step.PTY == nil { // else when the terminal is itself again
					tell = time.After(mergeTime)
				}
				if w := run.waitAfter(); w > 0 && limit == nil {
					limit = time.After(w)
				}
			}
		case <-tell:
			run.tellExits()
		case <-limit:
			run.waitOver()
		case sig := <-sigs:
			ctl.signal(sig)
		}
	}
	run.io.close()
	run.tellExits()
	for _, st := range run.streams {
		_ = st.Close()
	}
	if run.forced && !run.told && run.req.Client.Quiet == 0 {
		run.sys.Say("Force Terminated StepId=%s", run.stepText())
	}
	if run.req.Client.JobID != 0 { // the next step of the job finds free what this one had
		for _, id := range run.parts {
			_, _ = front.Call(run.sys, api.WaitStep, api.StepWait{ID: id, Timeout: freeTime})
		}
	}
	run.script("epilog", cmp.Or(run.req.Client.Epilog, run.resp.Defaults.Epilog))
	return run.worst
}

func (run *stepRun) listen(i int) {
	for {
		f, err := run.streams[i].Next()
		if err != nil || f.Kind == stream.Done {
			run.events <- nodeEvent{node: i, over: true, err: err}
			return
		}
		if f.Kind == stream.Stderr && f.Task < 0 { // of the node itself
			ends := f.Task == stream.AllTasks
			f.Task = int32(run.resp.Nodes[i].Ranks[0])
			run.io.write(f)
			if ends {
				run.events <- nodeEvent{node: i, notice: true}
			}
			continue
		}
		if f.Kind == stream.Stdout || f.Kind == stream.Stderr {
			run.io.write(f)
			continue
		}
		run.events <- nodeEvent{node: i, frame: f}
	}
}

// lost deals with a node whose stream broke for good.
func (run *stepRun) lost(e nodeEvent) {
	node := run.resp.Nodes[e.node]
	left := run.running.Intersect(cluster.NewIDSet(node.Ranks...))
	if left.Empty() {
		return
	}
	run.sys.Say("error: %s: %s: lost contact: %v", node.Node, front.TasksText(left), e.err)
	run.worst = max(run.worst, 1)
	run.running = run.running.Minus(left)
}

// event takes a frame that is not output; it reports whether a task ended.
func (run *stepRun) event(e nodeEvent) bool {
	if e.notice {
		run.noticed()
		return false
	}
	switch e.frame.Kind {
	case stream.EOF:
		run.io.eof(e.frame)
	case stream.Exit:
		run.exit(e)
		return true
	}
	return false
}

func (run *stepRun) exit(e nodeEvent) {
	x, err := e.frame.TaskExit()
	if err != nil {
		x.Code = 1
	}
	rank, node := int(e.frame.Task), run.resp.Nodes[e.node].Node
	run.running = run.running.Minus(cluster.NewIDSet(rank))
	run.ended = run.ended.Union(cluster.NewIDSet(rank))
	if run.first.IsZero() {
		run.first = time.Now()
	}
	code, text := x.Code, ""
	switch {
	case x.Error != "":
		code = max(x.Errno, 1)
		fmt.Fprintf(run.sys.Stderr, "slurmstepd-%s: error: %s\n", node, x.Error)
		text = fmt.Sprintf("Exited with exit code %d", code)
	case x.OOM:
		code, text = 1, "Out Of Memory"
		run.req.outOfMemory = true
	case x.Signal != 0:
		code, text = 128+x.Signal, signalText(x.Signal, x.Core)
		run.forced = run.forced || x.Signal == 9 || x.Signal == 15
	case x.Code != 0:
		text = fmt.Sprintf("Exited with exit code %d", x.Code)
	}
	run.worst = max(run.worst, code)
	if text == "" {
		return
	}
	run.group(e.node, text, rank)
	if run.killOnBadExit() && !run.killed {
		run.killed = true
		run.tellExits()
		run.sys.Say("launch/slurm: _step_signal: Terminating StepId=%s", run.stepText())
		run.signal(api.StepSignal{Term: true})
	}
}

func (run *stepRun) group(node int, text string, rank int) {
	one := cluster.NewIDSet(rank - run.first0[node]) // each component counts its own, as Slurm does
	for i := range run.exits {
		if g := &run.exits[i]; g.node == node && g.text == text {
			g.rank = g.rank.Union(one)
			return
		}
	}
	run.exits = append(run.exits, exitGroup{node, text, one})
}

func (run *stepRun) tellExits() {
	for _, g := range run.exits {
		if run.interrupted && g.text == signalText(9, false) {
			continue // the user has asked for it
		}
		if run.req.Client.Quiet == 0 {
			run.sys.Say("error: %s: %s: %s", run.resp.Nodes[g.node].Node, front.TasksText(g.rank), g.text)
		}
	}
	run.exits = nil
}

func (run *stepRun) killOnBadExit() bool {
	if k := run.req.Step.KillOnBadExit; k != nil {
		return *k
	}
	return run.resp.Defaults.KillOnBadExit
}

// waitAfter is how long the other tasks may go on after the first has ended, 0 for ever.
func (run *stepRun) waitAfter() time.Duration {
	if run.req.Client.WaitSeconds == nil {
		return run.resp.Defaults.Wait
	}
	return run.req.Step.WaitAfterFirst
}

func (run *stepRun) waitOver() {
	if run.running.Empty() {
		return
	}
	run.sys.Say("First task exited %ds ago", int(time.Since(run.first).Seconds()))
	run.sys.Say("StepId=%s %s: running", run.stepText(), front.TasksText(run.running))
	if !run.ended.Empty() {
		run.sys.Say("StepId=%s %s: exited", run.stepText(), front.TasksText(run.ended))
	}
	run.sys.Say("launch/slurm: _step_signal: Terminating StepId=%s", run.stepText())
	run.abort()
}

// noticed is told by a node that the step is being ended; if it was not srun that asked for it,
// its user is told too.
func (run *stepRun) noticed() {
	if !run.told && !run.killed {
		run.sayAbort()
	}
}

func (run *stepRun) stepText() string {
	return fmt.Sprintf("%d.%d", run.resp.Step.ID.Job, run.resp.Step.ID.Step)
}

func (run *stepRun) kill() {
	run.signal(api.StepSignal{Kill: true})
}

func (run *stepRun) send(sig int) {
	run.signal(api.StepSignal{Sig: sig})
}

// signalText is how a shell names a death by signal.
func signalText(sig int, core bool) string {
	text := ""
	switch sig {
	case 9:
		text = "Killed"
	case 15:
		text = "Terminated"
	case 11:
		text = "Segmentation fault"
	case 6:
		text = "Aborted"
	case 2:
		text = "Interrupt"
	case 10:
		text = "User defined signal 1"
	case 12:
		text = "User defined signal 2"
	case 1:
		text = "Hangup"
	case 3:
		text = "Quit"
	case 4:
		text = "Illegal instruction"
	case 8:
		text = "Floating point exception"
	case 7:
		text = "Bus error"
	case 13:
		text = "Broken pipe"
	case 14:
		text = "Alarm clock"
	default:
		text = fmt.Sprintf("Unknown signal %d", sig)
	}
	if core {
		text += " (core dumped)"
	}
	return text
}
