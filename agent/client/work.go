package client

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"os/exec"
	"reflect"
	"strings"
	"syscall"

	"dev.muster/agent/outbox"
	"dev.muster/api"
	"dev.muster/cluster"
)

// describeNodes is what the nodes are registered with.
func (j *jobs) describeNodes(names []cluster.NodeName, again bool,
	asked map[cluster.NodeName][]cluster.Held) api.RegisterRequest {
	q := api.RegisterRequest{Seen: map[cluster.NodeName]*api.Seen{}}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range names {
		inv, detected := j.hardware.Of(name)
		if j.cfg.GPUs != nil {
			inv.GPUs = detected
		}
		q.Nodes = append(q.Nodes, cluster.NodeUp{
			Name: name, Inventory: inv, Seq: j.reports.Seq(name), Again: again, Scored: true,
		})
		if held, ok := asked[name]; ok || !again {
			q.Seen[name] = j.seen(name, held, ok)
		}
	}
	return q
}

// registered takes what the servers answer to that.
func (j *jobs) registered(q api.RegisterRequest, r api.RegisterResponse) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.config, j.confAt = r.Config, r.Index
	j.beginAnew(r.Anew)
	j.hardware.TellHindrances(&j.config)
	for _, sent := range q.Nodes {
		gpus, other := r.GPUs[sent.Name]
		if !other {
			gpus = sent.Inventory.GPUs
		}
		j.hardware.Number(sent.Name, gpus)
	}
}

// askWork says which work is known here.
func (j *jobs) askWork() api.WorkRequest {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := api.WorkRequest{Nodes: map[cluster.NodeName]uint64{}, Config: j.confAt}
	for _, name := range j.order {
		q.Nodes[name] = j.nodes[name].index
	}
	return q
}

// take replaces what the nodes should do by what the servers say.
func (j *jobs) take(ctx context.Context, w api.Work) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w.Config != nil {
		sameLines := reflect.DeepEqual(j.config.GRES, w.Config.GRES) &&
			reflect.DeepEqual(j.config.Declared, w.Config.Declared)
		if j.cfg.GPUs != nil && !sameLines {
			j.link.RegisterSoon() // what the machine has is compared with other lines now
		}
		j.config, j.confAt = *w.Config, w.ConfigIndex
		j.hardware.TellHindrances(&j.config)
	}
	j.nextJob = max(j.nextJob, w.NextJob)
	named := map[outbox.Attempt]bool{}
	fresh := map[cluster.NodeName]uint64{} // of which nodes something was said, as of which index of the log
	for _, nw := range w.Nodes {
		n, ok := j.nodes[nw.Node]
		if !ok {
			continue
		}
		n.index, fresh[nw.Node] = nw.Index, nw.Index
		n.jobCPUs = cmp.Or(nw.JobCPUs, j.hardware.Inventory(nw.Node).CPUs)
		reboot(j.slog, n, nw.Reboot)
		old := n.jobs
		n.jobs = wanted(nw, old, j.reports.IsOver, j.reports.Begun(), named)
		if n.confirmsAgain(nw.Unconfirmed, j.cfg.Runner.Instance() != "", old) {
			j.link.RegisterSoon()
		}
		j.tellAgain(n)
		if boards := j.freshBoards(n, old); len(boards) > 0 {
			go j.gpus.Note(ctx, boards) // ends with ctx or the answer
		}
		select {
		case j.gpusMoved <- struct{}{}:
		default:
		}
		for _, h := range n.jobs {
			h.staged = j.staged.Has(h.key())
		}
		for _, p := range nw.Peers {
			j.sisters.Learn(p)
		}
	}
	if len(fresh) > 0 {
		j.catchUp(fresh, named)
	}
	if len(w.Nodes) > 0 {
		close(j.arrived)
		j.arrived = make(chan struct{})
		j.poke()
	}
}

// catchUp forgets of nodes what the servers name no more, and looks for parts that were lost or must be told of.
// Called with mu held.
func (j *jobs) catchUp(fresh map[cluster.NodeName]uint64, named map[outbox.Attempt]bool) {
	j.staged.Forget(fresh, named)
	j.parts.settleParts(fresh, named)
	tellLost(j, fresh)
	j.reports.Forget(fresh, named)
}

// reboot runs the program that restarts a node's machine, once for each request. Should that be
// forgotten, since the daemon was restarted meanwhile, it is run again: the machine has not been.
// Called with mu held; the program outlives the daemon.
func reboot(log *slog.Logger, n *node, r *api.Reboot) {
	if r == nil || r.Issued.Equal(n.rebooted) {
		return
	}
	n.rebooted = r.Issued
	argv := strings.Fields(r.Program)
	if len(argv) == 0 {
		log.Error("the machine cannot be restarted: RebootProgram isn't defined", "node", n.name)
		return
	}
	log.Warn("the machine is restarted", "node", n.name, "program", r.Program)
	cmd := exec.Command(argv[0], argv[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	go func() { // ends with the program; usually the machine does first
		if err := cmd.Run(); err != nil {
			log.Error("the machine could not be restarted", "node", n.name, "program", r.Program, "err", err,
				"output", string(out.Bytes()[:min(out.Len(), maxRebootOutput)]))
		}
	}()
}

// maxRebootOutput bounds what is logged of what the program says.
const maxRebootOutput = 4096
