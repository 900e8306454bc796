package cluster

import (
	"fmt"
	"slices"
)

// admitLimits refuses a job whose submission a limit on submitted jobs forbids, or that alone goes over another one
// where its QOS denies that (DenyOnLimit).
func (t *tables) admitLimits(j *Job) error {
	if !t.config.counting() {
		return nil
	}
	m := t.Meter(t.Now)
	if err := m.submits(j, nil); err != nil {
		return err
	}
	return m.deny([]*Job{j})
}

// admitMove holds a job that its user moves to another QOS or association to the limits on submitted jobs there,
// and to those that the new QOS denies; of these to the time limit only if that is new too: as in Slurm it may be
// put right by another update. Operators may move any job; it waits for the limits then.
func (t *tx) admitMove(was, j *Job, limit bool) error {
	if t.by.Operator() || !t.config.counting() || was.Spec.QOS == j.Spec.QOS && was.Assoc == j.Assoc {
		return nil
	}
	m := t.Meter(t.Now)
	if err := m.submits(j, t.scopes(t.counts(was))); err != nil || was.Spec.QOS == j.Spec.QOS {
		return err
	}
	n := *j
	if !limit {
		n.Limit = 0
	}
	return m.deny([]*Job{&n})
}

// submits refuses a job whose submission a limit on submitted jobs forbids; in some scopes it may be counted already.
func (m *Meter) submits(j *Job, counted []scope) error {
	n := max(j.Tasks.Len(), 1)
	for _, b := range m.Gate(j, j.Spec.firstPartition()).bounds {
		if b.what == ofSubmits && !slices.Contains(counted, b.scope) && float64(m.tally(b.scope).submitted+n) > b.max {
			return refusal(&b, j)
		}
	}
	return nil
}

// refusal is the error of a submission that a limit does not allow; its hint is Slurm's word for the limit.
func refusal(b *limitBound, j *Job) *Error {
	e := Errorf(Denied, ErrPolicy, "limit %s does not allow this job of user %s, account %s, QOS %s",
		b.reason, j.Spec.User, j.Spec.Account, j.Spec.QOS)
	e.Hint = string(b.reason)
	return e
}

// deny refuses jobs that start at one instant or not at all, a job alone or the components of a heterogeneous one,
// if they go over a limit though nothing else runs, and the QOS of one for which the limit holds denies that.
// Slurm, too, holds the sum of the components to the limits for each job.
func (m *Meter) deny(jobs []*Job) error {
	if m.Off() {
		return nil
	}
	asks := make([]asking, len(jobs))
	for k, j := range jobs {
		asks[k] = m.t.askingOf(j, j.Spec.firstPartition(), nil)
	}
	for k, j := range jobs {
		g := m.Gate(j, j.Spec.firstPartition())
		if !g.deny {
			continue
		}
		for i := range g.bounds {
			b := &g.bounds[i]
			own := b.takes(j.Limit, &asks[k])
			switch b.what {
			case ofSubmits:
				continue
			case ofLeast:
				if own < b.max {
					return refusal(b, j)
				}
				continue
			case ofRunning: // no jobs at all: they wait until there may be some
				if b.max == 0 {
					continue
				}
			}
			if own > b.max {
				return refusal(b, j)
			}
			if sum := m.sum(b, jobs, asks); b.adds() && sum > b.max {
				e := refusal(b, j)
				of, _ := m.t.nameOf(b.scope, j)
				e.Hint = fmt.Sprintf("%s: %s of %s, the components together ask for %.0f", b.reason, b.text(), of, sum)
				return e
			}
		}
	}
	return nil
}

// adds reports whether jobs that start together come to the sum of what each takes.
func (b *limitBound) adds() bool {
	return b.what != ofWall && b.what != ofSpentWall && b.what != ofNode && b.what != ofLeast
}

// text is the limit as sacctmgr or slurm.conf name it, with its figure: GrpTRES=cpu=4.
func (b *limitBound) text() string { return fmt.Sprintf("%s=%.0f", b.title(), b.max) }

// title is the limit's name, with its resource: GrpTRES=cpu.
func (b *limitBound) title() string {
	if b.tres == "" || b.name == "MaxCPUsPerUser" {
		return b.name
	}
	return b.name + "=" + b.tres
}

// same reports whether both are one limit of one place.
func (b *limitBound) same(o *limitBound) bool {
	return b.name == o.name && b.tres == o.tres && b.scope == o.scope
}

// sum is what those of several jobs for which a bound holds take.
func (m *Meter) sum(b *limitBound, jobs []*Job, asks []asking) (sum float64) {
	for k, j := range jobs {
		if slices.ContainsFunc(m.Gate(j, j.Spec.firstPartition()).bounds, func(o limitBound) bool { return o.same(b) }) {
			sum += b.takes(j.Limit, &asks[k])
		}
	}
	return sum
}
