package client

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dev.muster/agent/container"
	"dev.muster/agent/container/enroot"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// With --container-prefetch a node gets the job's image after the prolog and before it confirms the job, whose time
// begins to count once all nodes have confirmed. It is a step of the node's own, as the prolog is.
const fetchStep = -22

// prefetch says what is to be done about the image before a job goes on, and whether it may. Before it comes the
// prolog, of which before and done tell the same.
func prefetch(h *jobHere, own *step.Status, before actionKind, done bool) (next actionKind, ready bool) {
	switch {
	case !done:
		return before, false
	case h.job.Spec.Prefetch == nil || h.job.Phase != cluster.Starting || h.hasBegun():
		return nothing, true
	case own == nil:
		return startFetch, false
	case own.State != step.Ended:
		return nothing, false
	}
	return fetchFailed, own.Succeeded()
}

// startFetching has the helper that fetches images get the job's. Called with mu held.
func startFetching(c *Client, h *jobHere) {
	id := step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: fetchStep, Node: h.node}
	spec, err := fetchSpec(c, h, id)
	if err == nil {
		err = c.cfg.Runner.Start(spec)
	}
	if err != nil {
		c.have.Put(id, &step.Status{ID: id, State: step.Ended, Tasks: []step.TaskStatus{{Error: err.Error()}}})
		c.poke()
		return
	}
	if c.have.Get(id) == nil {
		c.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
}

// fetchSpec is the step that gets a job's image. Called with mu held.
func fetchSpec(c *Client, h *jobHere, id step.ID) (out step.Spec, err error) {
	s, want := h.job.Spec, h.job.Spec.Prefetch
	site := enroot.Read(enroot.Dir())
	q := container.Request{Store: c.cfg.Images, Limit: c.cfg.ImageDisk, Image: want.Image,
		UID: s.UID, GID: s.GID, Groups: s.Groups, Enroot: want.Enroot, Docker: want.Docker,
		HTTP: site.AllowHTTP, Daemon: c.cfg.Daemon}
	if c.cfg.Program.Account != nil {
		q.Home, _ = c.cfg.Program.Account(s.UID)
	}
	text, err := wire.Marshal(&q)
	if err != nil {
		return out, err
	}
	helper := (&container.Spec{Self: c.cfg.Program.Path()}).Helper()
	said := fetchSaid(c, h)
	if err := os.MkdirAll(filepath.Dir(said), 0o755); err != nil {
		return out, fmt.Errorf("make a folder for what is said of an image: %w", err)
	}
	return step.Spec{ID: id, Dir: "/", Umask: 0o077, Tasks: []step.Task{{
		Argv:   append(helper, container.Prefetch, s.WorkDir, string(text)),
		Env:    os.Environ(),
		Stdout: step.IO{Kind: step.File, Path: said}, Stderr: step.IO{Kind: step.Same},
	}}}, nil
}

// fetchSaid is the file with what is said of a job's image.
func fetchSaid(c *Client, h *jobHere) string {
	return filepath.Join(c.cfg.Spool, string(h.node), fmt.Sprintf("job%05d.image", h.job.ID))
}

// maxSaid bounds the sentence about an image that can not be had, in bytes.
const maxSaid = 1 << 10

// refuseFetch ends a job whose image can not be had, with the reason. Called with mu held.
func refuseFetch(c *Client, n *node, h *jobHere) {
	st := c.script(h, fetchStep)
	text, _ := os.ReadFile(fetchSaid(c, h)) // there may be none
	why := strings.TrimSpace(string(text[:min(len(text), maxSaid)]))
	why = "failed to import docker image: " + cmp.Or(why, fmt.Sprint(st.ScriptEnd()))
	c.slog.Warn("a job's image can not be had", "job", h.job.ID, "node", h.node, "err", why)
	h.launch.to(reported)
	u := c.update(h, cluster.BatchOver)
	u.Error, u.Exit = why, cluster.ExitStatus{Signal: launchFailedSignal}
	c.reports.put(n.name, u)
}
