package launch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/stage"
	"dev.muster/slurm/submit"
)

// completed is what -v says of tasks that ended well.
const completed = "Completed"

func newStepRun(s *front.Sys, r *submit.Request, made []api.StepResponse, sio *stepIO) *stepRun {
	first := api.StepResponse{Step: made[0].Step, Defaults: made[0].Defaults, KillWait: made[0].KillWait,
		Again: made[0].Again}
	bare := *s
	run := &stepRun{sys: s, bare: &bare, req: r, resp: first, io: sio, events: make(chan nodeEvent, 16)}
	run.resp.Step.Tasks = 0
	for i, part := range made {
		if i < len(sio.parts) {
			sio.parts[i].first = run.resp.Step.Tasks
		}
		for _, n := range part.Nodes {
			run.running = run.running.Union(cluster.NewIDSet(n.Ranks...))
			run.streams = append(run.streams, stream.New(stage.Attach(s, api.AttachStep, part.Step.ID, n.Node), 0))
			run.first0 = append(run.first0, run.resp.Step.Tasks)
		}
		run.parts, run.resp.Nodes = append(run.parts, part.Step.ID), append(run.resp.Nodes, part.Nodes...)
		run.resp.Step.Tasks += part.Step.Tasks
	}
	run.recipients(made)
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
	run.begin()
	if !run.script("prolog", cmp.Or(run.req.Client.Prolog, run.resp.Defaults.Prolog)) {
		run.kill()
	}
	sigs, stop := notifySignals(run.req.Way.Ignore)
	defer stop()
	ctl := &interrupts{run: run}
	open := len(run.streams)
	var tell, limit <-chan time.Time
	go run.closeSilent()
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
	run.children.await()
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
			run.unserved(i)
			run.events <- nodeEvent{node: i, over: true, err: err}
			return
		}
		if f.Task == stream.StepServer {
			run.served(i, f)
			continue
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

// Where a machine is silent nothing ends the streams from it.
const (
	lookAfter = 5 * time.Second // most steps are over before the servers are asked
	lostAfter = 5 * time.Second // after the end of its job at most a node that lives has told the step's
)

// closeSilent closes the streams when the job is over and all of its nodes must have said how the step has ended. It
// ends with the job, or with the program.
func (run *stepRun) closeSilent() {
	time.Sleep(lookAfter)
	<-watchJob(run.sys, run.parts[0].Job, cluster.Ended)
	time.Sleep(lostAfter)
	for _, st := range run.streams {
		_ = st.Close()
	}
}

// lost deals with a node whose stream broke for good.
func (run *stepRun) lost(e nodeEvent) {
	node := run.resp.Nodes[e.node]
	left := run.running.Intersect(cluster.NewIDSet(node.Ranks...))
	if left.Empty() {
		return
	}
	if run.hasLost(node.Node) {
		run.sys.Say("error: Node failure on %s", node.Node)
		killed := stream.AppendExit(nil, stream.TaskExit{Signal: int(syscall.SIGKILL), Lost: true})
		for rank := range left.All() {
			run.exit(nodeEvent{node: e.node, frame: stream.Frame{Kind: stream.Exit, Task: int32(rank), Data: killed}})
		}
		return
	}
	if errors.Is(e.err, stream.ErrClosed) { // by closeSilent
		e.err = errors.New("the job is over")
	}
	run.lostContact = true
	run.sys.Say("error: %s: %s: lost contact: %v", node.Node, front.TasksText(left), e.err)
	run.worst = max(run.worst, 1)
	run.running = run.running.Minus(left)
}

// hasLost reports whether the job goes on without a node that has failed.
func (run *stepRun) hasLost(node cluster.NodeName) bool {
	resp, err := front.Call(run.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: run.parts[0].Job}}})
	return err == nil && len(resp.Jobs) > 0 && slices.Contains(cluster.LostNodes(resp.Jobs[0]), node)
}

// event takes a frame that is not output; it reports whether a task ended.
func (run *stepRun) event(e nodeEvent) bool {
	if e.aborted != nil {
		run.mpiAborted(e.aborted)
		return false
	}
	if e.notice {
		run.noticed()
		return false
	}
	if e.unsent != nil {
		run.notSent(e.unsent)
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
	case run.unsent:
		code = 1
	case x.Error != "":
		code = max(x.Errno, 1)
		fmt.Fprintf(run.sys.Stderr, "slurmstepd-%s: error: %s\n", node, x.Error)
		text = fmt.Sprintf("Exited with exit code %d", code)
	case x.OOM:
		code, text = 1, "Out Of Memory"
		run.req.OutOfMemory = true
	case x.Signal != 0:
		code, text = 128+x.Signal, front.SignalText(x.Signal, x.Core)
		run.forced = run.forced || x.Signal == 9 || x.Signal == 15
	case x.Code != 0:
		text = fmt.Sprintf("Exited with exit code %d", x.Code)
	}
	run.worst = max(run.worst, code)
	run.sys.Tell(front.Debug, "task %d done", rank)
	run.endUnspawned()
	if run.running.Empty() {
		run.children.orphan()
	}
	good := text == ""
	if good && !run.sys.Tells(front.Told) {
		return
	}
	run.group(e.node, cmp.Or(text, completed), rank, x.Code<<8|x.Signal)
	if good {
		return
	}
	if (run.killOnBadExit() || x.OOM && run.req.Way.OOMKillStep) && !run.killed {
		run.killed = true
		run.tellExits()
		run.sys.Say("launch/slurm: _step_signal: Terminating StepId=%s", run.stepText())
		run.signal(api.StepSignal{Term: true})
	}
}

func (run *stepRun) group(node int, text string, rank, status int) {
	one := cluster.NewIDSet(rank - run.first0[node]) // each component counts its own, as Slurm does
	for i := range run.exits {
		if g := &run.exits[i]; g.node == node && g.text == text {
			g.rank = g.rank.Union(one)
			return
		}
	}
	run.exits = append(run.exits, exitGroup{node, text, one, status})
}

func (run *stepRun) tellExits() {
	for _, g := range run.exits {
		run.tellExit(&g)
		if g.text == completed {
			run.sys.Tell(front.Told, "launch/slurm: _task_finish: %s: %s: %s",
				run.resp.Nodes[g.node].Node, front.TasksText(g.rank), g.text)
			continue
		}
		if run.interrupted && g.text == front.SignalText(9, false) {
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

// waitAfter is how long the other tasks may go on after the first has ended, 0 indefinitely.
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
