package env

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// ncclHint is what NCCL would be told by a variable, and by muster's own one of which the name is MUSTER_ and that.
type ncclHint struct {
	name, value string
	own         bool // NCCL itself is not told: it decides well
}

// rasVariable says where NCCL's RAS listens. Without it all jobs of a node would share one port.
const rasVariable = "NCCL_RAS_ADDR"

// rasAddr gives the processes of a job with GPUs an address of their own for NCCL's RAS, unless the user has chosen
// one. An address of another job, from whose script this one was submitted, is no choice.
func (e *list) rasAddr(l *cluster.Launch) {
	theirs := variable(l.Own, rasVariable)
	if !l.GPUs.GPUs.Empty() && (theirs == "" || cluster.IsRASAddr(theirs)) {
		e.set(rasVariable, cluster.RASAddr(l.Job))
	}
}

// nccl tells which ports are near the GPUs of a task. NCCL itself is only told if that was asked for (--nccl-env, or
// LaunchParameters=nccl_env) and the user has not said otherwise.
func (e *list) nccl(l *cluster.Launch) {
	if l.GPUs.GPUs.Empty() || l.Inventory == nil {
		return
	}
	asked := l.Config.NCCLEnv || l.Job.Spec.NCCLEnv || l.Spec != nil && l.Spec.NCCLEnv
	for _, h := range ncclHints(l.GPUs.GPUs, l.Inventory) {
		e.set("MUSTER_"+h.name, h.value)
		theirs := variable(l.Own, h.name)
		if asked && !h.own && (theirs == "" || theirs == variable(l.Own, "MUSTER_"+h.name)) { // the same: it is ours, of the job's script
			e.set(h.name, h.value)
		}
	}
}

// ncclHints are those for some GPUs, as far as they are known.
func ncclHints(gpus cluster.IDSet, inv *cluster.Inventory) (out []ncclHint) {
	if ports, distance := nearestPorts(gpus, inv); len(ports) > 0 {
		out = append(out, ncclHint{
			name: "NCCL_IB_HCA", value: "=" + strings.Join(ports, ","),
		}, ncclHint{"NCCL_NET_GDR_LEVEL", distance, true})
	}
	if inv.Interface != "" {
		out = append(out, ncclHint{name: "NCCL_SOCKET_IFNAME", value: "=" + inv.Interface})
	}
	return out
}

// nearestPorts lists the active ports of the fastest kind that are nearest to some GPUs, as DEVICE:PORT, and the
// greatest of the distances. Where places on the PCI buses are not known there are none.
func nearestPorts(gpus cluster.IDSet, inv *cluster.Inventory) (ports []string, distance string) {
	usable := fastest(inv.NICs)
	if !slices.ContainsFunc(usable, func(n *cluster.NIC) bool { return len(n.Near) > 0 }) {
		return nil, ""
	}
	near, worst := map[*cluster.NIC]bool{}, 0
	for i := range gpus.All() {
		if i >= len(inv.GPUs) {
			continue
		}
		step := func(n *cluster.NIC) int { return slices.Index(cluster.Distances, n.DistanceTo(&inv.GPUs[i])) }
		best := step(slices.MinFunc(usable, func(a, b *cluster.NIC) int { return cmp.Compare(step(a), step(b)) }))
		for _, n := range usable {
			near[n] = near[n] || step(n) == best
		}
		worst = max(worst, best)
	}
	for _, n := range usable {
		if near[n] {
			ports = append(ports, n.Device+":"+strconv.Itoa(n.Port))
		}
	}
	return ports, cluster.Distances[worst]
}

// fastest are the active ports for traffic between GPUs: InfiniBand before Ethernet, and of these the fastest.
func fastest(nics []cluster.NIC) (out []*cluster.NIC) {
	type class struct {
		infiniband int
		rate       float64
	}
	of := func(n *cluster.NIC) (c class) {
		if n.Link == "InfiniBand" {
			c.infiniband = 1
		}
		c.rate = n.Gbits()
		return c
	}
	var best class
	for i := range nics {
		n := &nics[i]
		if n.State != cluster.PortActive {
			continue
		}
		c := of(n)
		switch d := cmp.Or(cmp.Compare(c.infiniband, best.infiniband), cmp.Compare(c.rate, best.rate)); {
		case len(out) == 0 || d > 0:
			best, out = c, []*cluster.NIC{n}
		case d == 0:
			out = append(out, n)
		}
	}
	return out
}
