package cluster

import "dev.muster/wire"

// A member's description of its node is believed within the bounds of real machines. Its key may be in wrong hands,
// and what is taken in stays in the state of all servers.

// Bounds of what a node says of its hardware. Servers make sets and lists of the sizes that it names.
const (
	maxNodeCPUs  = 1 << 16 // as in Slurm; of sockets, cores and threads alike
	maxNodeCores = 1 << 20 // sockets * cores * threads
	maxNodeParts = 1 << 12 // GPUs, ports
	maxNodeMem   = 1 << 40 // MB
	maxNodeBytes = 1 << 20 // of all that it says
)

// check: the hardware is one that a machine can have.
func (c *NodeUp) check() error {
	inv := &c.Inventory
	for _, x := range []struct {
		what    string
		n, most int64
	}{
		{"CPUs", int64(inv.CPUs), maxNodeCPUs},
		{"sockets", int64(inv.Sockets), maxNodeCPUs},
		{"cores of a socket", int64(inv.CoresPerSocket), maxNodeCPUs},
		{"threads of a core", int64(inv.ThreadsPerCore), maxNodeCPUs},
		{"CPUs that it was told of", int64(inv.Said.CPUs), maxNodeCPUs},
		{"GPUs", int64(len(inv.GPUs)), maxNodeParts},
		{"GPUs that it was told of", int64(inv.Said.GPUs), maxNodeParts},
		{"network ports", int64(len(inv.NICs)), maxNodeParts},
		{"MB of memory", int64(inv.MemMB), maxNodeMem},
		{"MB of free memory", int64(inv.FreeMemMB), maxNodeMem},
		{"MB of memory for the system", int64(inv.SpecMemMB), maxNodeMem},
		{"MB of memory that it was told of", int64(inv.Said.MemMB), maxNodeMem},
		{"MB of /tmp", inv.TmpMB, maxNodeMem},
	} {
		if x.n < 0 || x.n > x.most {
			return Errorf(Invalid, ErrTooBig, "node %s says that it has %d %s: a machine has 0 to %d",
				c.Name, x.n, x.what, x.most)
		}
	}
	sockets, cores := max(inv.Sockets, 1), max(inv.CoresPerSocket, 1)
	if all := sockets * cores * max(inv.ThreadsPerCore, 1); all > maxNodeCores {
		return Errorf(Invalid, ErrTooBig, "node %s says that its sockets have %d threads together: the most are %d",
			c.Name, all, maxNodeCores)
	}
	text, err := wire.Marshal(c)
	if err != nil {
		return Errorf(Invalid, "", "node %s: what it says of itself cannot be written down: %v", c.Name, err)
	}
	if len(text) > maxNodeBytes {
		return Errorf(Invalid, ErrTooBig, "node %s says %d bytes of itself: up to %d are taken",
			c.Name, len(text), maxNodeBytes)
	}
	return nil
}
