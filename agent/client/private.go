package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/agent/sweep"
	"dev.muster/cluster"
)

// hindrance is why jobs can not have folders of their own on a node; "" if they can.
func (cfg *Config) hindrance(p *cluster.PrivateDirs) string {
	if os.Geteuid() != 0 {
		return "the client does not run as root"
	}
	if cfg.Sampler == nil {
		return "nothing is executed here"
	}
	for _, dir := range p.Dirs {
		for _, own := range []string{cfg.Spool, cfg.Daemon} {
			if strings.HasPrefix(own, dir+"/") {
				return own + ", which jobs need, lies in " + dir
			}
		}
	}
	return ""
}

// secluded are the folders that jobs have for themselves on a node, nil for none.
func (w *hardware) secluded(cfg *cluster.Config, n cluster.NodeName) *cluster.PrivateDirs {
	p := cfg.PrivateOn(n, w.inventory(n).Host)
	if p == nil || w.cfg.hindrance(p) != "" {
		return nil
	}
	return p
}

// private is what a step is told of folders that its job has for itself.
func (c *Client) private(n cluster.NodeName, id step.ID, l *cluster.Launch) *step.Private {
	p := c.hardware.secluded(l.Config, n)
	if p == nil {
		return nil
	}
	out := &step.Private{Base: p.Base, Make: p.Make, Dirs: p.Dirs, Shared: p.Shared, Init: p.Init}
	if p.Init != "" {
		out.Env = append(c.cfg.ScriptEnv(l, false), c.cfg.MountEnv+"="+filepath.Join(p.Base, id.JobName()))
	}
	return out
}

// tellHindrances makes it known where jobs do not have the folders of their own that they should have.
func (w *hardware) tellHindrances(site *cluster.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []cluster.Fault
	for _, name := range w.order {
		inv := &w.nodes[name].Inventory
		p := site.PrivateOn(name, inv.Host)
		if p == nil || inv.Hollow && w.cfg.Sampler == nil {
			continue
		}
		if why := w.cfg.hindrance(p); why != "" {
			text := fmt.Sprintf("job_container/tmpfs: jobs share %s: %s", strings.Join(p.Dirs, " and "), why)
			faults = append(faults, cluster.Fault{
				Kind: cluster.FaultSystem, Part: "private folders", Cause: "shared", Text: text,
				Action: cluster.FaultNote, Passing: true,
			})
			if !w.hindered {
				w.slog.Warn("jobs have no folders of their own", "node", name, "err", why)
			}
		}
	}
	w.hindered = len(faults) > 0 // it is logged once
	if w.cfg.Machine != nil {
		w.cfg.Machine.Found("folders", faults)
	}
}

// leave takes away what the steps of a job that is over had in common on its node. Called with mu held.
func (c *Client) leave(h *jobHere) {
	h.display.Close()
	id := step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Node: h.node}
	if p := c.hardware.secluded(&c.config, h.node); p != nil {
		c.try("release", id, c.cfg.Runner.Release(id))
		go c.removeFolders(filepath.Join(p.Base, id.JobName())) // may take long; what is left when the daemon ends is removed by the next
	}
	if store := c.cfg.Images; store != "" && c.cfg.Sampler != nil {
		go c.removeFolders(container.JobDir(store, id.JobName())) // most jobs have none
	}
	if c.config.RemoveIPC && !c.hardware.inventory(h.node).Hollow && !c.worksHere(h) {
		go sweep.IPC(h.job.Spec.UID, c.slog)
	}
}

// worksHere reports whether a job's user has another one on its node.
func (c *Client) worksHere(but *jobHere) bool {
	for _, o := range c.nodes[but.node].jobs {
		if o != but && !o.isOver() && o.job.Spec.UID == but.job.Spec.UID {
			return true
		}
	}
	return false
}

func (c *Client) removeFolders(top string) {
	if err := os.RemoveAll(top); err != nil {
		c.slog.Error("a job's private folders could not be removed", "path", top, "err", err)
	}
}

// sweepFolders removes the private folders of jobs that ended while no client was there.
func (c *Client) sweepFolders() {
	sweepContainers(c)
	c.mu.Lock()
	var old []string
	for _, name := range c.order {
		n := c.nodes[name]
		p := c.hardware.secluded(&c.config, name)
		if p == nil {
			continue
		}
		keep := map[string]bool{}
		for _, h := range n.jobs {
			keep[step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Node: name}.JobName()] = true
		}
		list, _ := filepath.Glob(filepath.Join(p.Base, "job_*@"+string(name)))
		for _, dir := range list {
			if !keep[filepath.Base(dir)] {
				old = append(old, dir)
			}
		}
	}
	c.mu.Unlock()
	for _, dir := range old {
		c.removeFolders(dir)
	}
}
