// Package hardware has what the nodes of a client are now, and what is wrong with them: it watches this machine, keeps
// their inventories, and has the servers told when these have changed. It knows neither jobs nor how the servers are
// told: that is asked of Servers. Start with Nodes.
package hardware

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Config says which nodes there are, and what looks at them.
type Config struct {
	Nodes   []machine.Node
	GPUs    *gpu.Watcher     // of this machine, which is the only node then; nil for hollow nodes
	Machine *machine.Machine // looks at its other parts; nil for hollow nodes
	Runs    bool             // steps are processes here
	Needed  []string         // files and folders of the machine's own that jobs need
	Servers Servers
	Log     *slog.Logger
}

// Servers are who is told what the nodes are. None of its methods is called with a lock of this package held.
type Servers interface {
	// Register tells what the nodes are now; an error is that it did not arrive.
	Register(context.Context) error
	// RegisterSoon has that done beside, again and again until it has arrived.
	RegisterSoon()
	// Now is the time at a server.
	Now(context.Context) (time.Time, error)
}

// Nodes are those of a client, with what they have and what is wrong with them. A caller that asks for a node that
// is not one of them has a defect, and panics.
type Nodes struct {
	cfg   Config
	first cluster.NodeName   // this machine, where it is one node
	order []cluster.NodeName // the nodes

	mu       sync.Mutex // nothing of who calls is locked under it
	nodes    map[cluster.NodeName]*machineHere
	hindered bool // jobs lack the folders of their own that they should have
}

// machineHere is the hardware of one node.
type machineHere struct {
	machine.Node
	detected []cluster.GPU // what the machine has, as the driver numbers it; Inventory has the cluster's numbers
}

// New takes the nodes as they were found.
func New(cfg Config) *Nodes {
	w := &Nodes{cfg: cfg, nodes: map[cluster.NodeName]*machineHere{}}
	for _, n := range cfg.Nodes {
		w.nodes[n.Name] = &machineHere{Node: n, detected: n.Inventory.GPUs}
		w.order = append(w.order, n.Name)
	}
	if len(w.order) > 0 {
		w.first = w.order[0]
	}
	return w
}

// Run watches this machine until ctx ends.
func (w *Nodes) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { w.watchGPUs(ctx) })
	wg.Go(func() { w.watchMachine(ctx) })
	wg.Go(func() { w.watchPorts(ctx) })
	wg.Go(func() { w.watchClock(ctx) })
	wg.Wait()
}

// First is this machine where it is one node, else the first of the nodes that are played here; "": there is none.
func (w *Nodes) First() cluster.NodeName { return w.first }

// Of is what a node has, and its GPUs as the driver numbers them.
func (w *Nodes) Of(name cluster.NodeName) (inv cluster.Inventory, detected []cluster.GPU) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[name]
	return n.Inventory, n.detected
}

// Inventory is what a node has.
func (w *Nodes) Inventory(name cluster.NodeName) *cluster.Inventory {
	inv, _ := w.Of(name)
	return &inv
}

// All are the nodes with what they have.
func (w *Nodes) All() (out []machine.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.order {
		out = append(out, w.nodes[name].Node)
	}
	return out
}

// Number takes the numbers that the cluster has for a node's GPUs.
func (w *Nodes) Number(name cluster.NodeName, gpus []cluster.GPU) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[name].Inventory.GPUs = gpus
}

// found keeps what was found wrong with a node.
func (w *Nodes) found(name cluster.NodeName, cause string, faults []cluster.Fault) {
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

// Tell puts what the client itself has found on a node into its record, in place of what it had found of the same
// cause, before anything else of the node is told.
func (w *Nodes) Tell(ctx context.Context, name cluster.NodeName, cause string, faults []cluster.Fault) {
	w.found(name, cause, faults)
	if err := w.cfg.Servers.Register(ctx); err != nil {
		w.cfg.Servers.RegisterSoon()
	}
}

// HostName is what a hollow node calls itself inside of jobs; "": by the machine's own name.
func (w *Nodes) HostName(name cluster.NodeName) string {
	if w.nodes[name].SetHostName {
		return string(name)
	}
	return ""
}

// Hosts are the names that must resolve inside a hollow node's jobs.
func (w *Nodes) Hosts(name cluster.NodeName) []cluster.NodeName {
	if w.nodes[name].SetHostName {
		return w.order
	}
	return nil
}

// watchGPUs tells the servers when something about this machine's GPUs changes.
func (w *Nodes) watchGPUs(ctx context.Context) {
	if w.cfg.GPUs == nil {
		return
	}
	w.cfg.GPUs.Run(ctx, func(f gpu.Found) {
		w.detect(f)
		for _, fault := range f.Faults {
			w.cfg.Log.Warn("something is wrong with the GPUs", "node", w.first, "fault", fault.Text,
				"action", fault.Action)
		}
		w.cfg.Servers.RegisterSoon()
	})
}

// detect takes what a look at this machine's GPUs has found. Jobs know them by the cluster's numbers.
func (w *Nodes) detect(f gpu.Found) {
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
func (w *Nodes) watchPorts(ctx context.Context) {
	if w.cfg.Machine == nil {
		return
	}
	w.cfg.Machine.FindLeaves(ctx, func() []cluster.NIC {
		return w.Inventory(w.first).NICs
	})
}

// watchClock compares this machine's clock with a server's.
func (w *Nodes) watchClock(ctx context.Context) {
	if w.cfg.Machine == nil {
		return
	}
	w.cfg.Machine.WatchClock(ctx, w.cfg.Servers.Now)
}

// watchMachine tells the servers when something about this machine's other parts changes.
func (w *Nodes) watchMachine(ctx context.Context) {
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
		before, detected := w.Of(w.first)
		now := before
		now.GPUs = detected
		finds := m.Finds()
		said := ""
		if err := m.Look(&now, time.Now()); err != nil {
			if said = err.Error(); failed != said { // once
				w.cfg.Log.Warn("the machine could not be looked at", "node", w.first, "err", err)
			}
		}
		failed = said
		if !w.looked(&now, finds) {
			continue
		}
		for _, f := range machine.NewFaults(&before, &now) {
			w.cfg.Log.Warn("something is wrong with the machine", "node", w.first, "fault", f.Text, "action", f.Action)
		}
		counted := time.Since(told) >= countersEvery && !reflect.DeepEqual(before.NICs, now.NICs)
		if counted || machine.Differ(&before, &now) {
			told = time.Now()
			w.cfg.Servers.RegisterSoon()
		}
	}
}

// looked takes what a look at this machine's other parts has found, unless that is old already: something was found
// since it began.
func (w *Nodes) looked(now *cluster.Inventory, finds int) bool {
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
