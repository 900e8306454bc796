package client

import (
	"context"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

// SetGPUs puts what is known of a machine's GPUs into its inventory.
func SetGPUs(inv *cluster.Inventory, f gpu.Found) {
	inv.GPUs, inv.GPUDriver = f.GPUs, f.Driver
	inv.SetFaults(cluster.FaultGPU, f.Faults)
}

// watchGPUs tells the servers when something about this machine's GPUs changes.
func (c *Client) watchGPUs(ctx context.Context) {
	if c.cfg.GPUs == nil {
		return
	}
	c.cfg.GPUs.Run(ctx, func(f gpu.Found) {
		c.mu.Lock()
		n := c.nodes[c.order[0]]
		known := n.Inventory.GPUs
		SetGPUs(&n.Inventory, f)
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
