package cluster

import "time"

// A meter that goes on from pass to pass knows which gates jobs are held to, and which of these may let others pass
// than before: those that look at what runs where a job has started or ended since, and those for which time makes
// a difference.

// GoOn is the meter of a later pass, over a snapshot of the same state since which the configuration and the books
// are what they were. Jobs that passes have started in the meantime count only as far as the snapshot has them.
func (m *Meter) GoOn(s *Snapshot, now time.Time) {
	m.t = &s.tables
	m.now = now
	m.minutes = nil
	clear(m.started)
}

// watch notes what a new gate looks at.
func (m *Meter) watch(g *Gate) {
	unsteady := len(g.least) > 0
	for i := range g.bounds {
		switch b := &g.bounds[i]; b.what {
		case ofRunning, ofHeld:
			m.watched[b.scope] = append(m.watched[b.scope], g)
		case ofRunMins:
			m.watched[b.scope] = append(m.watched[b.scope], g)
			unsteady = true
		case ofSpentMins, ofSpentWall:
			unsteady = true
		}
	}
	if unsteady {
		m.unsteady = append(m.unsteady, g)
	}
}

func (m *Meter) reopen(s scope) {
	for _, g := range m.watched[s] {
		m.reopened[g] = true
	}
}

// Reopen notes that a job runs that did not, or no more, or with something else.
func (m *Meter) Reopen(j *Job, alloc *Alloc) {
	if m.Off() || alloc == nil {
		return
	}
	for _, s := range m.t.scopes(counted{
		assoc:   j.Assoc,
		uid:     j.Spec.UID,
		qos:     j.Spec.QOS,
		account: j.Spec.Account,
		part:    alloc.Partition,
	}) {
		m.reopen(s)
	}
}

// Reopened lists the gates that may let others pass than when it was last asked; unsteady ones only if they are
// asked for: time has gone by.
func (m *Meter) Reopened(unsteady bool) []*Gate {
	out := make([]*Gate, 0, len(m.reopened))
	for g := range m.reopened {
		out = append(out, g)
	}
	clear(m.reopened)
	if unsteady {
		out = append(out, m.unsteady...)
	}
	return out
}

// Fill is what counts at present against the bounds of a gate, for many verdicts.
type Fill struct {
	m    *Meter
	g    *Gate
	used []float64 // by bound
	// Timed says that time limits matter to the gate: else jobs that ask for the same have the same verdict.
	Timed bool
}

// Fill looks up what counts against a gate's bounds.
func (m *Meter) Fill(g *Gate) Fill {
	s := Fill{m: m, g: g, used: make([]float64, len(g.bounds))}
	for i := range g.bounds {
		b := &g.bounds[i]
		s.used[i] = m.used(b)
		switch b.what {
		case ofWall, ofJobMins, ofRunMins, ofSpentMins, ofSpentWall:
			s.Timed = true
		}
	}
	return s
}

// Verdict is that of the meter.
func (s *Fill) Verdict(limit time.Duration, ask *Asking) Reason {
	return s.m.verdict(s.g, limit, ask, func(i int) float64 { return s.used[i] })
}
