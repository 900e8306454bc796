package cluster

import "dev.muster/cluster/federation"

// Servers and nodes refuse some values of users' requests before they look any further: values that no command of ours
// sends, and that tables, loops and memory are not made for. It is no part of Apply.

// CheckAsked refuses a job with a number that stands for nothing, as its kind or how it shares nodes.
func CheckAsked(spec *JobSpec) error {
	if err := firstError(
		refuseIf(spec.Kind > External,
			Invalid, "", "%d is no kind of job: there are 0 to %d", spec.Kind, External),
		admitExternal(spec),
		checkSharing(spec.Sharing),
		spec.checkResilience(),
	); err != nil || spec.Layout == nil {
		return err
	}
	return spec.Layout.checkAsked()
}

// checkSharing refuses a number that is no way to share nodes.
func checkSharing(s Sharing) error {
	return refuseIf(s > ShareOver, Invalid, "", "%d is no way to share nodes: there are 0 to %d", s, ShareOver)
}

// check refuses what memory cannot be counted by.
func (m Mem) check() error {
	return refuseIf(m.Per > MemPerGPU,
		Invalid, "", "memory is counted by nothing that is called %d: there are 0 to %d", m.Per, MemPerGPU)
}

// checkAsked refuses numbers of a layout that nothing else looks at.
func (l *Layout) checkAsked() error {
	if err := l.Mem.check(); err != nil {
		return err
	}
	if kinds := len(l.PerNode) + len(l.PerJob) + len(l.PerSocket) + len(l.PerTask); kinds > maxKinds {
		return Errorf(Invalid, ErrGRES,
			"%d generic resources are asked for at once: %d are the most", kinds, maxKinds)
	}
	for _, n := range []int{l.PlaneSize, l.Segment, l.Switches} {
		if !isCount(n) {
			return Errorf(Invalid, "", "%d is no size of planes or segments and no number of switches", n)
		}
	}
	return nil
}

// check refuses a change to what no job can ask for.
func (p *Patch) check() error {
	if n := p.MinNodes; n != nil && !isCount(*n) {
		return Errorf(Invalid, ErrNodeCount, "%d is no number of nodes", *n)
	}
	if p.Mem != nil {
		if err := p.Mem.check(); err != nil {
			return err
		}
	}
	if p.Sharing != nil {
		return checkSharing(*p.Sharing)
	}
	return nil
}

// Check refuses an order that a member of a federation sends about a job whose number is not one of its own, or with
// numbers that stand for nothing.
func (o *FederationOrder) Check(from federation.ID) error {
	return firstError(
		refuseIf(federation.Of(uint32(o.Job)) != from || o.Job&federation.LocalMask == 0,
			Invalid, ErrJobID, "%d is no number of a job of cluster %d", o.Job, from),
		refuseIf(o.Held > HeldAdmin, Invalid, "", "%d is no hold: there are 0 to %d", o.Held, HeldAdmin),
		refuseIf(!isCount(o.Restarts), Invalid, "", "%d is no number of restarts", o.Restarts),
	)
}

// Check refuses a report of a member of a federation with numbers that stand for nothing, or a reason without end.
func (r *FederationReport) Check() error {
	return firstError(
		refuseIf(r.Held > HeldAdmin, Invalid, "", "%d is no hold: there are 0 to %d", r.Held, HeldAdmin),
		refuseIf(r.Outcome >= outcomes, Invalid, "", "%d is no outcome", r.Outcome),
		refuseIf(!isCount(r.Restarts), Invalid, "", "%d is no number of restarts", r.Restarts),
		refuseIf(len(r.Reason) > maxPeerText, Invalid, "", "a reason has %d bytes", len(r.Reason)),
	)
}
