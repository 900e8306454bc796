// Package machine finds out what a machine is and what is wrong with it, but for its GPUs: CPUs, memory, file systems,
// clock, InfiniBand and RoCE ports; and it makes up hollow ones. It knows nothing of jobs and servers. Start with
// Machine.
package machine

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/fabric"
)

// leavesEvery is how often the leaf switches of ports are asked for if no link changes: cables are moved.
const leavesEvery = time.Hour

// lookGap is the least time between looks at the machine.
const lookGap = 50 * time.Millisecond

// Machine looks at the parts of this machine other than its GPUs: its InfiniBand and RoCE ports, file systems and
// clock.
type Machine struct {
	Sysfs fs.FS // the kernel's /sys
	Ports *fabric.Watch
	Every time.Duration // between looks
	Tool  fabric.Run    // calls smpquery and lldpcli

	system *system // guarded by its user: one looks at a time

	mu     sync.Mutex
	ahead  time.Duration              // of a server's clock
	others map[string][]cluster.Fault // that the client has found, by what it has looked at
	leaves map[string]fabric.Leaf     // by port, as last heard: a port that is down keeps its own
	finds  int                        // how often others was changed
	linked []string                   // ports that are active
	relink chan struct{}              // others are now
}

// New prepares to look at the machine below a /sys tree, of which a folder is the client's own; what its
// ports were is remembered in a file.
func New(sysfs fs.FS, own, file string, every time.Duration) (*Machine, error) {
	ports, err := fabric.NewWatch(sysfs, file)
	if err != nil {
		return nil, err
	}
	return &Machine{
		Sysfs: sysfs, Ports: ports, Every: max(every, lookGap), Tool: fabric.Tool, system: newSystem(own),
		leaves: map[string]fabric.Leaf{}, others: map[string][]cluster.Fault{},
		relink: make(chan struct{}, 1),
	}, nil
}

// Look puts what is found at a time into the inventory, in which the GPUs are; with an error what is known
// nevertheless: a disk may be full.
func (m *Machine) Look(inv *cluster.Inventory, at time.Time) error {
	found, err := m.Ports.Look(at)
	if err != nil {
		err = fmt.Errorf("look at the InfiniBand ports: %w", err)
	}
	fabric.Near(m.Sysfs, found.NICs, inv.GPUs)
	m.connect(found.NICs)
	inv.NICs = found.NICs
	inv.SetFaults(cluster.FaultPort, found.Faults)
	m.mu.Lock()
	ahead, others := m.ahead, []cluster.Fault(nil)
	for _, what := range slices.Sorted(maps.Keys(m.others)) {
		others = append(others, m.others[what]...)
	}
	m.mu.Unlock()
	inv.SetFaults(cluster.FaultSystem, append(m.system.judge(m.system.disks(), ahead), others...))
	return err
}

// Found has the next look tell of faults of the machine that the client has found otherwise, in place of those of
// the same look before.
func (m *Machine) Found(what string, faults []cluster.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others[what] = faults
	m.finds++
}

// Finds counts the calls of Found.
func (m *Machine) Finds() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finds
}

// connect adds what is known of the ports' leaf switches, and has them asked for when others are active than before.
func (m *Machine) connect(nics []cluster.NIC) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var linked []string
	for i := range nics {
		n := &nics[i]
		key := fabric.PortKey(n)
		n.Leaf, n.LeafGUID = m.leaves[key].Name, m.leaves[key].GUID
		if n.State == cluster.PortActive {
			linked = append(linked, key)
		}
	}
	if !slices.Equal(linked, m.linked) {
		m.linked = linked
		select {
		case m.relink <- struct{}{}:
		default:
		}
	}
}

// FindLeaves asks for the leaf switches of this machine's ports, when links come up and now and then, until ctx ends.
func (m *Machine) FindLeaves(ctx context.Context, ports func() []cluster.NIC) {
	t := time.NewTicker(leavesEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.relink:
		case <-t.C:
		}
		found := fabric.Leaves(ctx, m.Tool, ports())
		m.mu.Lock()
		maps.Copy(m.leaves, found)
		m.mu.Unlock() // the next look tells
	}
}

// FaultsOf are the faults of one kind of part.
func FaultsOf(inv *cluster.Inventory, kind cluster.FaultKind) []cluster.Fault {
	return slices.DeleteFunc(slices.Clone(inv.Faults), func(f cluster.Fault) bool { return f.Kind != kind })
}

// NewFaults are those that were not there before, of parts other than GPUs.
func NewFaults(before, now *cluster.Inventory) []cluster.Fault {
	return slices.DeleteFunc(slices.Clone(now.Faults), func(f cluster.Fault) bool {
		return f.Kind == cluster.FaultGPU || slices.Contains(before.Faults, f)
	})
}

// Differ reports whether more than counters has changed.
func Differ(before, now *cluster.Inventory) bool {
	uncounted := func(list []cluster.NIC) []cluster.NIC {
		list = slices.Clone(list)
		for i := range list {
			list[i].Errors = nil
		}
		return list
	}
	other := func(inv *cluster.Inventory) []cluster.Fault {
		return slices.DeleteFunc(slices.Clone(inv.Faults),
			func(f cluster.Fault) bool { return f.Kind == cluster.FaultGPU })
	}
	return !reflect.DeepEqual(uncounted(before.NICs), uncounted(now.NICs)) || !slices.Equal(other(before), other(now))
}

// WatchClock compares the machine's clock with a server's now and then, until ctx ends.
func (m *Machine) WatchClock(ctx context.Context, server func(context.Context) (time.Time, error)) {
	t := time.NewTicker(clockEvery)
	defer t.Stop()
	for {
		asked := time.Now()
		is, err := server(ctx)
		if took := time.Since(asked); err == nil && took < clockNote/2 {
			m.mu.Lock()
			m.ahead = asked.Add(took / 2).Sub(is)
			m.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
