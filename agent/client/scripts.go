package client

import (
	"path/filepath"
	"slices"
	"time"

	"dev.muster/agent/fence"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// A node runs the cluster's prolog before anything of a job begins there, and its epilog when nothing of the job is
// left: each as a step of root, with a number that no user's step has, so that the supervisor keeps it over the
// death of the daemon. A job is confirmed only once its prolog has succeeded, so that a gang begins when all nodes
// are prepared.
const (
	prologStep = -20
	epilogStep = -21
)

// runsScripts is the program that runs its arguments one after the other, until one fails.
var runsScripts = []string{"/bin/sh", "-c", `for f; do "$f" || exit $?; done`, "sh"}

// ours reports whether a step is not the job's but the node's own.
func ours(id step.ID) bool { return id.Step <= prologStep && id.Step >= fetchStep }

// prolog says what is to be done about the prolog before a job goes on, and whether it may.
func prolog(h *jobHere, own *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (next actionKind, ready bool) {
	switch {
	case cfg.Prolog == "" || h.job.Phase != cluster.Starting || h.hasBegun():
		return 0, true
	case own == nil:
		return startProlog, false
	case own.State != step.Ended:
		return overdue(own, cfg, now, sooner), false
	}
	return prologFailed, own.Succeeded()
}

// epilog says what is to be done about the epilog before a job's node is clean, and whether it is.
func epilog(h *jobHere, own *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (next actionKind, ready bool) {
	switch {
	case cfg.Epilog == "":
		return 0, true
	case own == nil:
		return startEpilog, false
	case own.State != step.Ended:
		return overdue(own, cfg, now, sooner), false
	}
	return 0, true
}

// overdue kills a script that runs longer than it may.
func overdue(own *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) actionKind {
	if cfg.PrologTimeout == 0 || len(own.Tasks) == 0 || own.Tasks[0].Started.IsZero() {
		return nothing
	}
	if at := own.Tasks[0].Started.Add(cfg.PrologTimeout); at.After(now) {
		sooner(at)
		return nothing
	}
	return killScript
}

// startScripts runs the prolog or epilog. Called with mu held.
func (c *Client) startScripts(h *jobHere, which int) {
	pattern := c.config.Prolog
	if which == epilogStep {
		pattern = c.config.Epilog
	}
	paths, _ := filepath.Glob(pattern) // one that is not there is tried, and fails
	if len(paths) == 0 {
		paths = []string{pattern}
	}
	cfg, inv := c.config, c.hardware.inventory(h.node)
	l := &cluster.Launch{
		Job: h.job, Config: &cfg, Inventory: inv, Node: h.node, Daemon: c.cfg.Daemon,
		Fenced: fence.Fenced(&cfg, inv),
	}
	id := step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: which, Node: h.node}
	err := c.cfg.Runner.Start(step.Spec{ID: id, Dir: "/", Umask: 0o022, HostName: c.hardware.hostName(h.node), Hosts: c.hardware.hosts(h.node),
		Tasks: []step.Task{{Argv: slices.Concat(runsScripts, paths), Env: c.cfg.ScriptEnv(l, which == epilogStep)}}})
	if err != nil {
		c.have.Put(id, &step.Status{
			ID: id, State: step.Ended, Tasks: []step.TaskStatus{{Error: err.Error()}},
		}) // as if it had failed
		c.poke()
		return
	}
	if c.have.Get(id) == nil {
		c.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
}

// script is the status of a job's prolog or epilog here. Called with mu held.
func (c *Client) script(h *jobHere, which int) *step.Status {
	return c.have.Get(step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: which, Node: h.node})
}

// takeBackProlog tells that a job can not run here: the prolog failed. Called with mu held.
func (c *Client) takeBackProlog(n *node, h *jobHere) {
	st := c.script(h, prologStep)
	c.slog.Error("the prolog failed", "job", h.job.ID, "node", h.node, "err", st.ScriptEnd())
	h.launch.to(reported)
	u := c.update(h, cluster.LaunchFailed)
	u.Error, u.Fault = cluster.PrologError, true
	c.reports.put(n.name, u)
}
