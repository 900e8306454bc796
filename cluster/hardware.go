package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Hardware is how much a node should have: the most that was found or declared.
type Hardware struct {
	CPUs  int   `json:"cpus,omitempty"`
	MemMB MemMB `json:"mem_mb,omitempty"`
	GPUs  int   `json:"gpus,omitempty"`
}

// memSlack is which part of its memory a node may lose unremarked: kernels keep different amounts.
const memSlack = 16

// lessThanHeld is the reason of a node that is drained because its jobs hold more than it has now.
const lessThanHeld = "It has less than its jobs hold"

// Devices is the set of GPUs that are there.
func (inv *Inventory) Devices() IDSet {
	set := RangeIDSet(0, len(inv.GPUs)-1)
	for i := range inv.GPUs {
		if inv.GPUs[i].Missing {
			set = set.Minus(NewIDSet(i))
		}
	}
	return set
}

// LinksTo is how many NVLinks lead straight from a GPU to others.
func (inv *Inventory) LinksTo(gpu int, others []int) (n int) {
	links := inv.GPUs[gpu].Links
	for _, o := range others {
		at := o
		if number := inv.GPUs[o].Number; number > 0 {
			at = number - 1
		}
		if at < len(links) {
			n += max(links[at], 0)
		}
	}
	return n
}

// Found lists the GPUs that are there.
func (inv *Inventory) Found() []GPU {
	return slices.DeleteFunc(slices.Clone(inv.GPUs), func(g GPU) bool { return g.Missing })
}

// Renumbered reports whether jobs know the GPUs by other numbers than the driver has for them now:
// some are missing or not for jobs, are slices, or are in another place than before.
func (inv *Inventory) Renumbered() bool {
	if slices.ContainsFunc(inv.GPUs, GPU.moved) {
		return true
	}
	if len(inv.GPUs) > 0 && inv.GPUs[0].Number != 0 {
		return slices.ContainsFunc(inv.GPUs, func(g GPU) bool {
			return g.Missing && g.MIG == nil
		})
	}
	if slices.ContainsFunc(inv.GPUs, func(g GPU) bool { return g.Missing }) {
		return true
	}
	return !slices.IsSortedFunc(inv.GPUs, func(a, b GPU) int { return a.Minor - b.Minor })
}

// moved reports whether a GPU that is there is a slice, or in another place than its number says.
func (g GPU) moved() bool {
	if g.Missing {
		return false
	}
	return g.MIG != nil || g.Number != 0 && g.Number != g.Index+1
}

// found puts what a node has found in the place of what was known of it. A GPU keeps its number for
// ever, since jobs hold it by that; one that was not found stays, marked as missing. A node that has
// fewer devices than it should says so in its reason, and serves with the rest.
func (n *Node) found(now Inventory, said declared) {
	old := n.Inventory
	gpus := now.Found()
	spare := 0 // not for jobs
	now.Shared = said.shared
	if !now.Hollow {
		var notes []string
		all := len(gpus)
		gpus, notes = said.compare(&Inventory{GPUs: gpus, ThreadsPerCore: now.ThreadsPerCore})
		spare = all - len(gpus)
		now.Faults = slices.Clone(now.Faults)
		for _, text := range notes {
			now.Faults = append(now.Faults, Fault{
				Part:    "gpu",
				Cause:   "gres.conf",
				Text:    text,
				Action:  FaultNote,
				Passing: true,
			})
		}
	}
	said.limits.limit(&now)
	full := Hardware{
		max(n.Full.CPUs, now.CPUs, now.Said.CPUs), max(n.Full.MemMB, now.MemMB, now.Said.MemMB),
		max(n.Full.GPUs, len(gpus)),
	}
	if n.Full == (Hardware{}) { // it is the first time
		full = Hardware{max(full.CPUs, old.CPUs), max(full.MemMB, old.MemMB), max(full.GPUs, len(old.GPUs))}
	}
	if spare > 0 || n.Full != (Hardware{}) && slices.ContainsFunc(slices.Concat(old.Found(), gpus), func(g GPU) bool { return g.MIG != nil }) {
		full.GPUs = len(gpus) // how many there should be is the configuration's, or the slicing's, to say
	}
	full.GPUs = max(full.GPUs, now.Said.GPUs)
	if said.limits.CPUs > 0 {
		full.CPUs = max(said.limits.CPUs, now.Said.CPUs)
	}
	if said.limits.MemMB > 0 {
		full.MemMB = max(said.limits.MemMB, now.Said.MemMB)
	}
	now.GPUs = number(old.GPUs, gpus)
	now.keep(&old)
	n.Inventory = now
	n.Full = full
	n.lacking()
}

// keep takes over what a configuration or an operator has said of a node and its client does not find out.
func (inv *Inventory) keep(old *Inventory) {
	inv.Weight = cmp.Or(inv.Weight, old.Weight)
	inv.Topology = cmp.Or(inv.Topology, old.Topology)
	if inv.Features == nil {
		inv.Features = old.Features
		inv.Inactive = old.Inactive
	}
	if inv.SpecCPUs.Empty() {
		inv.SpecCPUs = old.SpecCPUs
	}
	inv.SpecMemMB = cmp.Or(inv.SpecMemMB, old.SpecMemMB)
	for i := range min(len(inv.GPUs), len(old.GPUs)) {
		if inv.GPUs[i].Cores.Empty() {
			inv.GPUs[i].Cores = old.GPUs[i].Cores
		}
	}
}

// lacking notes what a node has less than it should. An operator's reason is left as it is.
func (n *Node) lacking() {
	var lacks []string
	inv := &n.Inventory
	full := n.Full
	if have := len(inv.Found()); have < full.GPUs {
		lacks = append(lacks, fmt.Sprintf("gpu: %d of %d found", have, full.GPUs))
	}
	if inv.CPUs < full.CPUs {
		lacks = append(lacks, fmt.Sprintf("cpu: %d of %d found", inv.CPUs, full.CPUs))
	}
	if inv.MemMB < full.MemMB-full.MemMB/memSlack {
		lacks = append(lacks, fmt.Sprintf("memory: %d of %d MB found", inv.MemMB, full.MemMB))
	}
	for _, f := range inv.Faults {
		if !f.drains() {
			lacks = append(lacks, f.Text)
		}
	}
	if n.Reason == n.Lacks {
		n.Reason = ""
		n.ReasonBy = ""
	}
	if n.Lacks = strings.Join(lacks, ", "); n.Reason == "" {
		n.Reason = n.Lacks
	}
}

// number gives the GPUs that were found the numbers of those known: the same device by its UUID, or
// what is in its slot; any other takes the place of one that is gone, or a new number.
func number(known, found []GPU) []GPU {
	out := slices.Clone(known)
	for i := range out {
		out[i].Missing = true
	}
	place := func(g GPU, same func(known GPU) bool) bool {
		i := slices.IndexFunc(out, func(k GPU) bool {
			return k.Missing && same(k)
		})
		if i >= 0 {
			g.Index = i
			out[i] = g
		}
		return i >= 0
	}
	var rest []GPU
	for _, same := range []func(k, g GPU) bool{
		func(k, g GPU) bool {
			return g.UUID != "" && k.UUID == g.UUID
		},
		func(k, g GPU) bool {
			return g.PCI != "" && k.PCI == g.PCI && k.MIG == nil && g.MIG == nil
		},
		func(k, g GPU) bool {
			return k.UUID == "" && k.Index == g.Index
		},
		func(k, g GPU) bool { return true },
	} {
		rest = nil
		for _, g := range found {
			if !place(g, func(k GPU) bool { return same(k, g) }) {
				rest = append(rest, g)
			}
		}
		found = rest
	}
	for _, g := range rest {
		g.Index = len(out)
		out = append(out, g)
	}
	return out
}
