package client

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dev.muster/agent/fence"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// runsScripts is the program that runs its arguments one after the other, until one fails.
var runsScripts = []string{"/bin/sh", "-c", `for f; do "$f" || exit $?; done`, "sh"}

// performScript does an action about what the node itself runs for a job. Called with mu held.
func (j *jobs) performScript(n *node, a action) {
	h := a.job
	switch a.kind {
	case startProlog:
		j.startScripts(h, prologStep)
	case startEpilog:
		j.startScripts(h, epilogStep)
	case prologFailed:
		j.takeBackProlog(n, h)
	case startFetch:
		j.startFetching(h)
	case fetchFailed:
		j.refuseFetch(n, h)
	case killScript:
		for _, which := range []int{prologStep, fetchStep, epilogStep} {
			if st := j.script(h, which); st != nil && st.State != step.Ended {
				j.try("kill", st.ID, j.cfg.Runner.Signal(st.ID, syscall.SIGKILL, step.All))
			}
		}
	}
}

// startScripts runs the prolog or epilog. Called with mu held.
func (j *jobs) startScripts(h *jobHere, which int) {
	pattern := j.config.Prolog
	if which == epilogStep {
		pattern = j.config.Epilog
	}
	paths, _ := filepath.Glob(pattern) // one that is not there is tried, and fails
	if len(paths) == 0 {
		paths = []string{pattern}
	}
	cfg, inv := j.config, j.hardware.Inventory(h.node)
	l := &cluster.Launch{
		Job: h.job, Config: &cfg, Inventory: inv, Node: h.node, Daemon: j.cfg.Daemon,
		Fenced: fence.Fenced(&cfg, inv),
	}
	id := h.part(which)
	err := j.cfg.Runner.Start(step.Spec{ID: id, Dir: "/", Umask: 0o022,
		HostName: j.hardware.HostName(h.node), Hosts: j.hardware.Hosts(h.node),
		Tasks: []step.Task{{Argv: slices.Concat(runsScripts, paths), Env: j.cfg.ScriptEnv(l, which == epilogStep)}}})
	if err != nil {
		j.have.Put(id, &step.Status{
			ID: id, State: step.Ended, Tasks: []step.TaskStatus{{Error: err.Error()}},
		}) // as if it had failed
		j.poke()
		return
	}
	if j.have.Get(id) == nil {
		j.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
}

// takeBackProlog tells that a job cannot run here: the prolog failed. Called with mu held.
func (j *jobs) takeBackProlog(n *node, h *jobHere) {
	st := j.script(h, prologStep)
	j.slog.Error("the prolog failed", "job", h.job.ID, "node", h.node, "err", st.ScriptEnd())
	h.launch.to(reported)
	u := update(h, cluster.LaunchFailed)
	u.Error, u.Fault = cluster.PrologError, true
	j.reports.Put(n.name, u)
}

// startFetching has the helper that fetches images get the job's. Called with mu held.
func (j *jobs) startFetching(h *jobHere) {
	id := h.part(fetchStep)
	spec, err := j.build.fetchSpec(h, id)
	if err == nil {
		err = j.cfg.Runner.Start(spec)
	}
	if err != nil {
		j.have.Put(id, &step.Status{ID: id, State: step.Ended, Tasks: []step.TaskStatus{{Error: err.Error()}}})
		j.poke()
		return
	}
	if j.have.Get(id) == nil {
		j.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
}

// maxSaid bounds the sentence about an image that cannot be had, in bytes.
const maxSaid = 1 << 10

// refuseFetch ends a job whose image cannot be had, with the reason. Called with mu held.
func (j *jobs) refuseFetch(n *node, h *jobHere) {
	st := j.script(h, fetchStep)
	text, _ := os.ReadFile(j.build.fetchSaid(h)) // there may be none
	why := strings.TrimSpace(string(text[:min(len(text), maxSaid)]))
	why = "failed to import docker image: " + cmp.Or(why, fmt.Sprint(st.ScriptEnd()))
	j.slog.Warn("a job's image cannot be had", "job", h.job.ID, "node", h.node, "err", why)
	h.launch.to(reported)
	u := update(h, cluster.BatchOver)
	u.Error, u.Exit = why, cluster.ExitStatus{Signal: launchFailedSignal}
	j.reports.Put(n.name, u)
}
