package client

import (
	"strings"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// Containers is what a node needs to run steps in images.
type Containers struct {
	Store string   // the folder of unpacked images
	Self  string   // this program
	Names []string // it answers to
	// Account is where a user lives, and with which shell.
	Account func(uid uint32) (home, shell string)
}

// inside is what a node is told of the container of a step, nil for none. Scripts that run before and after its tasks run in
// the container, too.
func (c *Client) inside(what *cluster.Container, j *cluster.JobSpec, around *step.Around) *container.Spec {
	if what == nil {
		return nil
	}
	out := &container.Spec{Container: *what, Store: c.cfg.Containers.Store, Self: c.cfg.Containers.Self, Names: strings.Join(c.cfg.Containers.Names, " "),
		Sock: c.cfg.Daemon, User: j.User, Group: j.Group}
	if c.cfg.Containers.Account != nil {
		out.Home, out.Shell = c.cfg.Containers.Account(j.UID)
	}
	for _, list := range [][]step.AroundScript{around.Prologs, around.Epilogs} {
		for _, s := range list {
			out.Scripts = append(out.Scripts, s.Path)
		}
	}
	return out
}

// aroundIn is the command that runs a task with scripts around it, where the task runs.
func (c *Client) aroundIn(in *container.Spec) []string {
	if in == nil || len(c.cfg.Around) == 0 {
		return c.cfg.Around
	}
	return append([]string{container.Program}, c.cfg.Around[1:]...)
}

// sweepContainers removes what containers have written for jobs that ended while no client was there.
func (c *Client) sweepContainers() {
	store := c.cfg.Containers.Store
	if store == "" {
		return
	}
	c.mu.Lock()
	keep := map[string]bool{}
	for _, name := range c.order {
		for _, h := range c.nodes[name].jobs {
			keep[step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Node: name}.JobName()] = true
		}
	}
	c.mu.Unlock()
	for _, dir := range container.Written(store) {
		if !keep[container.JobOf(dir)] {
			c.removeFolders(dir)
		}
	}
}
