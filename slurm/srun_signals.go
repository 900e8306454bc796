package slurm

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// onInterrupt watches for a signal that means "give up".
func onInterrupt() (stop func(), hit <-chan os.Signal) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	return func() { signal.Stop(c) }, c
}

// notifySignals catches what srun treats in its own way.
func notifySignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// interrupts is what Ctrl-C has done so far: once shows the state, twice within a second sends it
// to the tasks, once more ends the step.
type interrupts struct {
	run  *stepRun
	last time.Time
	sent bool
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
		run.sys.say("got %s", map[os.Signal]string{syscall.SIGCONT: "SIGCONT", syscall.SIGALRM: "SIGALRM"}[sig])
	case syscall.SIGINT:
		c.interrupt()
	default:
		run.sys.say("forcing job termination")
		run.abort()
	}
}

func (c *interrupts) interrupt() {
	run, now := c.run, time.Now()
	quick := now.Sub(c.last) < again
	c.last = now
	switch {
	case c.sent && quick:
		run.sys.say("forcing job termination")
		run.abort()
	case quick || run.req.Client.QuitOnInt || run.req.Client.DisableStatus:
		c.sent = true
		run.sys.say("sending Ctrl-C to StepId=%s", run.stepText())
		run.send(int(syscall.SIGINT))
	default:
		run.sys.say("interrupt (one more within 1 sec to abort)")
		if !run.running.Empty() {
			run.sys.say("StepId=%s %s: running", run.stepText(), plural(run.running))
		}
	}
}

const abortText = "Job step aborted: Waiting up to 32 seconds for job step to finish."

func (run *stepRun) abort() {
	if !run.told {
		run.told = true
		run.sys.say(abortText)
	}
	run.kill()
}
