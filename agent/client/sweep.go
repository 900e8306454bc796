package client

import (
	"path/filepath"

	"dev.muster/agent/container"
)

// sweepFolders removes the private folders of jobs that ended while no client was there.
func (c *Client) sweepFolders() {
	c.sweepContainers()
	c.mu.Lock()
	var old []string
	for _, name := range c.order {
		n := c.nodes[name]
		p := c.hardware.Secluded(&c.config, name)
		if p == nil {
			continue
		}
		keep := map[string]bool{}
		for _, h := range n.jobs {
			keep[h.part(0).JobName()] = true
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
		removeFolders(c.slog, dir)
	}
}

// sweepContainers removes what containers have written for jobs that ended while no client was
// there.
func (c *Client) sweepContainers() {
	store := c.cfg.Images
	if store == "" {
		return
	}
	c.mu.Lock()
	keep := map[string]bool{}
	for _, name := range c.order {
		for _, h := range c.nodes[name].jobs {
			keep[h.part(0).JobName()] = true
		}
	}
	c.mu.Unlock()
	for _, dir := range container.Written(store) {
		if !keep[container.JobOf(dir)] {
			removeFolders(c.slog, dir)
		}
	}
}
