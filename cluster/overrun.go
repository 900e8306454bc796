package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Overrun is a limit that keeps a job from starting, with its figures: numbers of jobs or of a resource (of memory
// MB); where Minutes says so, minutes of it; where Seconds does, a time.
type Overrun struct {
	Reason  Reason
	Limit   string  // as sacctmgr or slurm.conf name it, as in GrpTRES=cpu
	TRES    string  // the resource, if it is of one
	Of      string  // whose it is
	Show    string  // the command that shows it
	Max     float64 // not more than so much, or with Least not less
	Used    float64 // of that already
	Asks    float64 // what the job would add
	Minutes bool
	Seconds bool
	Least   bool
	One     bool     // each job by itself is held to it
	Spent   bool     // what has been used up counts, and not what runs
	Holders []Holder // of that in use, where it is given back when a job is over
	Jobs    []*Job   // those of a heterogeneous job's components for which it holds: what they ask for together
}

// Holder is a live job that counts against a limit, with how much.
type Holder struct {
	Job *Job
	N   float64
}

// Overruns tells of all limits that keep a job from starting in a partition, with what it asks for or with an
// allocation, in the order in which they are looked at; of a component of a heterogeneous job those that it is held
// to by itself.
func (m *Meter) Overruns(j *Job, part string, alloc *Alloc) (out []Overrun) {
	if m.Off() {
		return nil
	}
	g := m.Gate(j, part)
	if why := m.always(g); why != NoReason {
		out = append(out, m.t.unfair(why, j, part))
	}
	ask := m.t.askingOf(j, part, alloc)
	for i := range g.bounds {
		b := &g.bounds[i]
		if b.what == ofSubmits || j.Het != nil && !b.single() || !m.over(b, j.Limit, &ask) {
			continue
		}
		o := m.overrun(b, j)
		o.Used = m.used(b)
		o.Asks = m.adds(b, j.Limit, &ask)
		out = append(out, o)
	}
	return out
}

// Claim is what a component of a heterogeneous job would get where, or with nil what it asks for.
type Claim struct {
	Job   *Job
	Part  string
	Alloc *Alloc
}

// Jointly tells of all limits on what runs or was used up that keep the components of a heterogeneous job from
// starting together.
func (m *Meter) Jointly(claims []Claim) (out []Overrun) {
	if m.Off() {
		return nil
	}
	var seen []*limitBound
	for k, first := range claims {
		g := m.Gate(first.Job, first.Part)
		for i := range g.bounds {
			b := &g.bounds[i]
			if b.what == ofSubmits || b.single() || slices.ContainsFunc(seen, b.same) {
				continue
			}
			seen = append(seen, b)
			o := m.overrun(b, first.Job)
			over := false
			for _, c := range claims[k:] {
				if !slices.ContainsFunc(m.Gate(c.Job, c.Part).bounds, func(x limitBound) bool { return x.same(b) }) {
					continue
				}
				ask := m.t.askingOf(c.Job, c.Part, c.Alloc)
				used := m.used(b)
				asks := m.adds(b, c.Job.Limit, &ask)
				over = over || m.over(b, c.Job.Limit, &ask)
				if o.Used, o.Asks = used, o.Asks+asks; asks > 0 {
					o.Jobs = append(o.Jobs, c.Job)
				}
			}
			if over || o.Used+o.Asks > o.Max {
				out = append(out, o)
			}
		}
	}
	return out
}

// single reports whether a bound holds each job by itself, whatever else runs.
func (b *limitBound) single() bool {
	switch b.what {
	case ofWall, ofJob, ofNode, ofLeast, ofJobMins:
		return true
	}
	return false
}

// overrun tells of a bound for a job, without what it is about.
func (m *Meter) overrun(b *limitBound, j *Job) Overrun {
	o := Overrun{
		Reason: b.reason,
		Limit:  b.title(),
		TRES:   b.tres,
		Max:    b.max,
		One:    b.single(),
	}
	switch b.what {
	case ofJobMins, ofRunMins:
		o.Minutes = true
	case ofSpentMins:
		o.Minutes = true
		o.Spent = true
	case ofWall:
		o.Seconds = true
	case ofSpentWall:
		o.Seconds = true
		o.Spent = true
	case ofLeast:
		o.Least = true
	}
	if b.what == ofHeld || b.what == ofRunning {
		o.Holders = m.holders(b)
	}
	o.Of, o.Show = m.t.nameOf(b.scope, j)
	return o
}

// unfair is a threshold of a QOS that the fair share of the job's association does not reach.
func (t *tables) unfair(why Reason, j *Job, part string) Overrun {
	o := Overrun{
		Reason: why,
		Limit:  "UsageThreshold",
		Least:  true,
		One:    true,
	}
	if a, ok := t.Assoc(j.Assoc); ok {
		o.Asks = a.FairShare
	}
	for _, l := range t.levels(gateKey{j.Assoc, j.Spec.QOS, j.Spec.Account, j.Spec.UID, part}) {
		if q := l.qos; q != nil && q.UsageThreshold != nil && q.Flag("EnforceUsageThreshold") && o.Asks < *q.UsageThreshold {
			o.Of = "QOS " + q.Name
			o.Show = "sshare -l, sacctmgr show qos " + q.Name
			o.Max = *q.UsageThreshold
		}
	}
	return o
}

// holders lists the jobs that count against a bound because they run.
func (m *Meter) holders(b *limitBound) (out []Holder) {
	for j := range m.t.Live() {
		c := m.t.counts(j)
		if c.runs == 0 || !slices.Contains(m.t.scopes(c), b.scope) {
			continue
		}
		n := 1.0
		if b.what == ofHeld {
			n = amountOf(m.t.held(j), b.tres)
		}
		if n > 0 {
			out = append(out, Holder{j, n})
		}
	}
	return out
}

// nameOf tells whose limit a scope's is, for a job that it holds for, and the command that shows it.
func (t *tables) nameOf(s scope, j *Job) (name, show string) {
	qos, _, _ := strings.Cut(s.name, "\x00")
	switch s.kind {
	case scopeAssoc:
		a, ok := t.Assoc(AssocID(s.id))
		if !ok {
			break
		}
		show = "sacctmgr show assoc where account=" + a.Account
		if a.User == "" {
			return "account " + a.Account, show
		}
		name = fmt.Sprintf("user %s in account %s", a.User, a.Account)
		show = show + " user=" + a.User
		if a.Partition != "" {
			name += ", partition " + a.Partition
		}
		return name, show
	case scopeUser:
		return fmt.Sprintf("QOS %s for user %s", qos, j.Spec.User), "sacctmgr show qos " + qos
	case scopeAccount:
		return fmt.Sprintf("QOS %s for account %s", qos, j.Spec.Account), "sacctmgr show qos " + qos
	case scopePartition:
		return fmt.Sprintf("partition %s for user %s", s.name, j.Spec.User), "scontrol show partition " + s.name
	}
	return "QOS " + qos, "sacctmgr show qos " + qos
}
