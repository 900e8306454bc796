package cluster

// What servers and nodes refuse before they look any further at what a user asks for: values that no command of ours
// sends, and that tables, loops and memory are not made for. It is no part of Apply.

// CheckAsked refuses a job with a number that stands for nothing, as its kind or how it shares nodes.
func CheckAsked(spec *JobSpec) error {
	if err := firstError(
		refuseIf(spec.Kind > SrunJob,
			Invalid, "", "%d is no kind of job: there are 0 to %d", spec.Kind, SrunJob),
		checkSharing(spec.Sharing),
	); err != nil || spec.Layout == nil {
		return err
	}
	return spec.Layout.checkAsked()
}

// checkSharing refuses a number that is no way to share nodes.
func checkSharing(s Sharing) error {
	return refuseIf(s > ShareOver, Invalid, "", "%d is no way to share nodes: there are 0 to %d", s, ShareOver)
}

// check refuses what memory can not be counted by.
func (m Mem) check() error {
	return refuseIf(m.Per > MemPerGPU,
		Invalid, "", "memory is counted by nothing that is called %d: there are 0 to %d", m.Per, MemPerGPU)
}

// checkAsked refuses numbers of a layout that nothing else looks at.
func (l *Layout) checkAsked() error {
	if err := l.Mem.check(); err != nil {
		return err
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
