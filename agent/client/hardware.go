package client

import (
	"context"
	"reflect"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// watchGPUs tells the servers when something about this machine's GPUs changes.
func (c *Client) watchGPUs(ctx context.Context) {
	if c.cfg.GPUs == nil {
		return
	}
	c.cfg.GPUs.Run(ctx, func(f gpu.Found) {
		c.mu.Lock()
		n := c.nodes[c.order[0]]
		known := n.Inventory.GPUs
		machine.SetGPUs(&n.Inventory, f)
		n.Inventory.GPUs, n.detected = known, f.GPUs // jobs know them by the cluster's numbers
		c.mu.Unlock()
		for _, fault := range f.Faults {
			c.slog.Warn("something is wrong with the GPUs", "node", n.Name, "fault", fault.Text, "action", fault.Action)
		}
		c.registerAnew()
	})
}

// registerAnew has the nodes registered again, with what they are now.
func (c *Client) registerAnew() {
	select {
	case c.anew <- struct{}{}:
	default:
	}
}

// tellHardware registers the nodes again when they have changed, until the servers know.
func (c *Client) tellHardware(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.anew:
		}
		for wait := time.Duration(0); ; {
			err := c.register(ctx, c.order, true)
			if err == nil {
				break
			}
			c.slog.Debug("registering again failed", "err", err)
			if !pause(ctx, &wait) {
				return
			}
		}
	}
}

// countersEvery is how often counters of ports that have risen are told, if nothing else has changed.
const countersEvery = 10 * time.Minute

// watchPorts asks for the leaf switches of this machine's ports.
func (c *Client) watchPorts(ctx context.Context) {
	if c.cfg.Machine == nil {
		return
	}
	c.cfg.Machine.FindLeaves(ctx, func() []cluster.NIC {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.nodes[c.order[0]].Inventory.NICs
	})
}

// watchClock compares this machine's clock with a server's.
func (c *Client) watchClock(ctx context.Context) {
	if c.cfg.Machine == nil {
		return
	}
	c.cfg.Machine.WatchClock(ctx, func(ctx context.Context) (time.Time, error) {
		r, err := api.Call(ctx, c.cfg.Server, api.Ping, api.Empty{})
		return r.Now, err
	})
}

// watchMachine tells the servers when something about this machine's other parts changes.
func (c *Client) watchMachine(ctx context.Context) {
	m := c.cfg.Machine
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
		c.mu.Lock()
		n := c.nodes[c.order[0]]
		before, now := n.Inventory, n.Inventory
		now.GPUs = n.detected
		c.mu.Unlock()
		finds := m.Finds()
		said := ""
		if err := m.Look(&now, time.Now()); err != nil {
			if said = err.Error(); failed != said { // once
				c.slog.Warn("the machine could not be looked at", "node", n.Name, "err", err)
			}
		}
		failed = said
		c.mu.Lock()
		if m.Finds() != finds { // what this look has is old already
			c.mu.Unlock()
			continue
		}
		n.Inventory.NICs = now.NICs
		for _, kind := range []cluster.FaultKind{cluster.FaultPort, cluster.FaultSystem} {
			n.Inventory.SetFaults(kind, machine.FaultsOf(&now, kind))
		}
		c.mu.Unlock()
		for _, f := range machine.NewFaults(&before, &now) {
			c.slog.Warn("something is wrong with the machine", "node", n.Name, "fault", f.Text, "action", f.Action)
		}
		if machine.Differ(&before, &now) || time.Since(told) >= countersEvery && !reflect.DeepEqual(before.NICs, now.NICs) {
			told = time.Now()
			c.registerAnew()
		}
	}
}
