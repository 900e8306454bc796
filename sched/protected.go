package sched

import "dev.muster/cluster"

// maxProtected is the part of the cluster that jobs hold for which nodes were kept free, from which on nodes are kept
// free for no other.
const maxProtected = 0.5

// protectedPart is the part of the cluster that jobs hold for which nodes were kept free.
type protectedPart struct {
	share float64
	known bool
}

// isFull reports whether it is so large that others do without.
func (p *protectedPart) isFull(s *cluster.Snapshot, scale *cluster.Scale) bool {
	if !p.known {
		p.known = true
		for j := range s.Live() {
			if j.Alloc != nil && j.Alloc.Protected {
				p.share += scale.Share(j)
			}
		}
	}
	return p.share >= maxProtected
}

// add counts a start of this cycle. isFull has been asked before, since otherwise the job would not be protected.
func (p *protectedPart) add(scale *cluster.Scale, j *cluster.Job) { p.share += scale.Share(j) }

// mayShrink reports whether the part may be smaller than the last cycle took it to be: by a change of a job that is
// counted, or by a start of the last cycle, which may have been refused, or be over already.
func (p *protectedPart) mayShrink(was *cluster.Job, said *cluster.Decision) bool {
	started := said != nil && said.Start != nil && said.Start.Protected
	return started || was != nil && was.Alloc != nil && was.Alloc.Protected
}
