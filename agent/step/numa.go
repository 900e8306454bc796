package step

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Memory is where a task's memory comes from; the empty one is the kernel's own rule: near the CPU that asks, else
// anywhere.
type Memory struct {
	Nodes  cluster.IDSet `json:"nodes"`            // NUMA nodes
	Prefer bool          `json:"prefer,omitempty"` // others serve when they are full
}

// Modes of set_mempolicy(2).
const (
	mpolDefault   = 0
	mpolPreferred = 1
	mpolBind      = 2
)

// Take gives the calling thread, and what it starts from now on, the policy.
func (m *Memory) Take() error {
	mode, bits := uintptr(mpolBind), make([]uint64, m.Nodes.Max()/64+2)
	switch {
	case m.Nodes.Empty():
		mode = mpolDefault
	case m.Prefer:
		mode = mpolPreferred
	}
	for n := range m.Nodes.All() {
		bits[n/64] |= 1 << (n % 64)
	}
	if mode == mpolDefault {
		bits = []uint64{0}
	}
	_, _, no := unix.RawSyscall(unix.SYS_SET_MEMPOLICY, mode, uintptr(unsafe.Pointer(&bits[0])), uintptr(len(bits)*64))
	if no != 0 {
		return no
	}
	return nil
}

// NUMANodes are the machine's NUMA nodes that have memory; {0} where the kernel does not say.
func NUMANodes() cluster.IDSet {
	for _, name := range []string{"has_memory", "online"} {
		text, err := os.ReadFile("/sys/devices/system/node/" + name)
		if err != nil {
			continue
		}
		if ids, err := cluster.ParseIDSet(strings.TrimSpace(string(text))); err == nil && !ids.Empty() {
			return ids
		}
	}
	return cluster.NewIDSet(0)
}

// BindMemory is what --mem-bind means for a node's task number local: nil for the kernel's rule; or why it cannot
// be met.
func BindMemory(b cluster.MemBinding, local int) (m *Memory, refused string) {
	nodes, whole := b.Of(local)
	if whole {
		return nil, ""
	}
	for n := range nodes.Minus(NUMANodes()).All() {
		how := b.Mode
		if how == "mask_mem" {
			how += "; 0x" + strings.ToLower(cluster.ShortMask(nodes))
		}
		return nil, fmt.Sprintf("NUMA node %d does not exist; cannot bind local task %d to it (--mem-bind=%s)",
			n, local, how)
	}
	return &Memory{Nodes: nodes, Prefer: b.Prefer}, ""
}
