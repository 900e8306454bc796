package client

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// hardware is what this client's nodes are, and what is wrong with them.
type hardware struct {
	cfg   *Config
	slog  *slog.Logger
	link  *link              // by which the nodes are registered again, with what they are now
	first cluster.NodeName   // this machine, where it is one node
	order []cluster.NodeName // the nodes

	mu       sync.Mutex // nothing of the client is locked under it
	nodes    map[cluster.NodeName]*machineHere
	hindered bool // jobs lack the folders of their own that they should have
}

// machineHere is the hardware of one node.
type machineHere struct {
	machine.Node
	detected []cluster.GPU // what the machine has, as the driver numbers it; Inventory has the cluster's numbers
}

func newHardware(cfg *Config, log *slog.Logger, link *link) *hardware {
	w := &hardware{cfg: cfg, slog: log, link: link, nodes: map[cluster.NodeName]*machineHere{}}
	for _, n := range cfg.Nodes {
		w.nodes[n.Name] = &machineHere{Node: n, detected: n.Inventory.GPUs}
		w.order = append(w.order, n.Name)
	}
	if len(w.order) > 0 {
		w.first = w.order[0]
	}
	return w
}

// of is what a node has, and its GPUs as the driver numbers them.
func (w *hardware) of(name cluster.NodeName) (inv cluster.Inventory, detected []cluster.GPU) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[name]
	return n.Inventory, n.detected
}

// inventory is what a node has.
func (w *hardware) inventory(name cluster.NodeName) *cluster.Inventory {
	inv, _ := w.of(name)
	return &inv
}

// all are the nodes with what they have.
func (w *hardware) all() (out []machine.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.order {
		out = append(out, w.nodes[name].Node)
	}
	return out
}

// numbered takes the numbers that the cluster has for a node's GPUs.
func (w *hardware) numbered(name cluster.NodeName, gpus []cluster.GPU) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[name].Inventory.GPUs = gpus
}

// found keeps what was found wrong with a node.
func (w *hardware) found(name cluster.NodeName, cause string, faults []cluster.Fault) {
	if w.cfg.Machine != nil {
		w.cfg.Machine.Found(cause, faults)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	inv := &w.nodes[name].Inventory
	others := slices.DeleteFunc(machine.FaultsOf(inv, cluster.FaultSystem),
		func(f cluster.Fault) bool { return f.Cause == cause })
	inv.SetFaults(cluster.FaultSystem, append(others, faults...))
}

// tell puts what the client itself has found on a node into its record, in place of what it had found of the same
// cause, before anything else of the node is told.
func (w *hardware) tell(ctx context.Context, name cluster.NodeName, cause string, faults []cluster.Fault) {
	w.found(name, cause, faults)
	if err := w.link.register(ctx, w.order, true); err != nil {
		w.link.again()
	}
}

// hostName is what a hollow node calls itself inside of jobs; "": by the machine's own name.
func (w *hardware) hostName(name cluster.NodeName) string {
	if w.nodes[name].SetHostName {
		return string(name)
	}
	return ""
}

// hosts are the names that must resolve inside a hollow node's jobs.
func (w *hardware) hosts(name cluster.NodeName) []cluster.NodeName {
	if w.nodes[name].SetHostName {
		return w.order
	}
	return nil
}

// watchGPUs tells the servers when something about this machine's GPUs changes.
func (w *hardware) watchGPUs(ctx context.Context) {
	if w.cfg.GPUs == nil {
		return
	}
	w.cfg.GPUs.Run(ctx, func(f gpu.Found) {
		w.detect(f)
		for _, fault := range f.Faults {
			w.slog.Warn("something is wrong with the GPUs", "node", w.first, "fault", fault.Text,
				"action", fault.Action)
		}
		w.link.again()
	})
}

// detect takes what a look at this machine's GPUs has found. Jobs know them by the cluster's numbers.
func (w *hardware) detect(f gpu.Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[w.first]
	known := n.Inventory.GPUs
	machine.SetGPUs(&n.Inventory, f)
	n.Inventory.GPUs = known
	n.detected = f.GPUs
}

// countersEvery is how often counters of ports that have risen are told, if nothing else has changed.
const countersEvery = 10 * time.Minute

// watchPorts asks for the leaf switches of this machine's ports.
func (w *hardware) watchPorts(ctx context.Context) {
	if w.cfg.Machine == nil {
		return
	}
	w.cfg.Machine.FindLeaves(ctx, func() []cluster.NIC {
		return w.inventory(w.first).NICs
	})
}

// watchClock compares this machine's clock with a server's.
func (w *hardware) watchClock(ctx context.Context) {
	if w.cfg.Machine == nil {
		return
	}
	w.cfg.Machine.WatchClock(ctx, func(ctx context.Context) (time.Time, error) {
		r, err := api.Call(ctx, w.cfg.Server, api.Ping, api.Empty{})
		return r.Now, err
	})
}

// watchMachine tells the servers when something about this machine's other parts changes.
func (w *hardware) watchMachine(ctx context.Context) {
	m := w.cfg.Machine
	if m == nil {
		return
	}
	t := time.NewTicker(m.Every)
	defer t.Stop()
	told := time.Now()
	for failed := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		before, detected := w.of(w.first)
		now := before
		now.GPUs = detected
		finds := m.Finds()
		said := ""
		if err := m.Look(&now, time.Now()); err != nil {
			if said = err.Error(); failed != said { // once
				w.slog.Warn("the machine could not be looked at", "node", w.first, "err", err)
			}
		}
		failed = said
		if !w.looked(&now, finds) {
			continue
		}
		for _, f := range machine.NewFaults(&before, &now) {
			w.slog.Warn("something is wrong with the machine", "node", w.first, "fault", f.Text, "action", f.Action)
		}
		counted := time.Since(told) >= countersEvery && !reflect.DeepEqual(before.NICs, now.NICs)
		if counted || machine.Differ(&before, &now) {
			told = time.Now()
			w.link.again()
		}
	}
}

// looked takes what a look at this machine's other parts has found, unless that is old already: something was found
// since it began.
func (w *hardware) looked(now *cluster.Inventory, finds int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cfg.Machine.Finds() != finds {
		return false
	}
	inv := &w.nodes[w.first].Inventory
	inv.NICs = now.NICs
	for _, kind := range []cluster.FaultKind{cluster.FaultPort, cluster.FaultSystem} {
		inv.SetFaults(kind, machine.FaultsOf(now, kind))
	}
	return true
}
