package client

import (
	"strings"

	"dev.muster/agent/container"
	"dev.muster/agent/container/enroot"
	"dev.muster/agent/container/exchange"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// Program is this program, as tasks meet it.
type Program struct {
	// Around is the command that runs a task with scripts around it (step.TaskMain).
	Around []string
	// Cast is the command that puts files on a node (package cast/node).
	Cast []string
	// Managers are the commands that become the process managers of MPI.
	Managers map[cluster.Manager][]string
	Names    []string // it answers to
	// Account is where a user lives, and with which shell.
	Account func(uid uint32) (home, shell string)
}

// Path is where the program is.
func (p *Program) Path() string {
	if len(p.Around) == 0 {
		return ""
	}
	return p.Around[0]
}

// inside is what a node is told of the container of a step, nil for none. Scripts that run before
// and after its tasks run in the container, too.
func (cfg *Config) inside(
	what *cluster.Container, site cluster.ContainerDefaults, j *cluster.JobSpec, around *step.Around,
) *container.Spec {
	if what == nil {
		return nil
	}
	out := &container.Spec{Container: *what, Store: cfg.Images, Limit: cfg.ImageDisk, Self: cfg.Program.Path(),
		Names: strings.Join(cfg.Program.Names, " "), Sock: cfg.Daemon, User: j.User, Group: j.Group}
	out.Defaults(enroot.Read(enroot.Dir()), site)
	if cfg.Program.Account != nil {
		out.Home, out.Shell = cfg.Program.Account(j.UID)
	}
	for _, list := range [][]step.AroundScript{around.Prologs, around.Epilogs} {
		for _, s := range list {
			out.Scripts = append(out.Scripts, s.Path)
		}
	}
	return out
}

// aroundIn is the command that runs a task with scripts around it, where the task runs.
func (p *Program) aroundIn(in *container.Spec) []string {
	if in == nil || len(p.Around) == 0 {
		return p.Around
	}
	return append([]string{container.Program}, p.Around[1:]...)
}

// sweepContainers removes what containers have written for jobs that ended while no client was
// there.
func sweepContainers(c *Client) {
	store := c.cfg.Images
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

// layersOf is this machine's part in carrying layers of images from node to node.
func layersOf(c *Client) *exchange.Exchange {
	e := &exchange.Exchange{Images: c.cfg.Images, Server: c.cfg.Server, Peer: c.cfg.Peer, Log: c.slog}
	if len(c.order) > 0 {
		e.Addr = c.hardware.inventory(c.order[0]).Addr
	}
	return e
}
