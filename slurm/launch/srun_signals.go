package launch

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// onInterrupt watches for a signal that means "give up", other than the ignored ones.
func onInterrupt(ignored []int) (stop func(), hit <-chan os.Signal) {
	c := make(chan os.Signal, 1)
	catch(c, ignored, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	return func() { signal.Stop(c) }, c
}

// notifySignals catches what srun treats in its own way, other than the ignored signals.
func notifySignals(ignored []int) (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 8)
	catch(c, ignored, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// catch has c receive signals, and has this process ignore those that are ignored.
func catch(c chan<- os.Signal, ignored []int, signals ...syscall.Signal) {
	for _, n := range ignored {
		signal.Ignore(syscall.Signal(n))
	}
	for _, sig := range signals {
		if !slices.Contains(ignored, int(sig)) {
			signal.Notify(c, sig)
		}
	}
}

// interrupts is what Ctrl-C has done so far: once shows the state, twice within a second sends it
// to the tasks and ends the step.
type interrupts struct {
	run  *stepRun
	last time.Time
}

// again is how close together two Ctrl-C must be.
const again = time.Second

func (c *interrupts) signal(sig os.Signal) {
	run := c.run
	switch sig {
	case syscall.SIGUSR1, syscall.SIGUSR2:
		run.send(int(sig.(syscall.Signal)))
	case syscall.SIGWINCH:
		run.io.resize(run.streams)
	case syscall.SIGCONT, syscall.SIGALRM:
		run.sys.Say("got %s", map[os.Signal]string{syscall.SIGCONT: "SIGCONT", syscall.SIGALRM: "SIGALRM"}[sig])
	case syscall.SIGINT:
		c.interrupt()
	default:
		run.sys.Say("forcing job termination")
		run.abort()
	}
}

func (c *interrupts) interrupt() {
	run, now := c.run, time.Now()
	quick := now.Sub(c.last) < again
	c.last = now
	switch {
	case quick || run.req.Client.QuitOnInt:
		c.sendOn()
		run.sys.Say("forcing job termination")
		run.interrupted = true
		run.abort()
		run.cancelJob()
	case run.req.Client.DisableStatus:
		c.sendOn()
	default:
		run.sys.Say("interrupt (one more within 1 sec to abort)")
		if !run.running.Empty() {
			run.sys.Say("StepId=%s %s: running", run.stepText(), front.TasksText(run.running))
		}
	}
}

// sendOn passes Ctrl-C on to the tasks.
func (c *interrupts) sendOn() {
	c.run.sys.Say("sending Ctrl-C to StepId=%s", c.run.stepText())
	c.run.send(int(syscall.SIGINT))
}

// cancelJob cancels the job that this srun has made for its step.
func (run *stepRun) cancelJob() {
	if run.req.Client.JobID == 0 {
		_, _ = front.Call(run.sys, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: run.resp.Step.ID.Job}})
	}
}

// abortSlack is how much longer than its tasks may take a step is waited for.
const abortSlack = 2 * time.Second

// sayAbort tells once that the step is being ended, and how long that may take.
func (run *stepRun) sayAbort() {
	run.told = true
	run.sys.Say("Job step aborted: Waiting up to %d seconds for job step to finish.",
		int((run.resp.KillWait + abortSlack).Seconds()))
}

func (run *stepRun) abort() {
	if !run.told {
		run.sayAbort()
	}
	run.kill()
}
