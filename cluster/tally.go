package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tallies are what limits are compared with: how many jobs are in the queue or run, and what those that run
// hold, for each association and all below it, QOS, user and account in a QOS, and user in a partition. They
// are derived from the jobs and kept in step with them, so that no limit needs a look at all jobs. They exist
// only where limits are enforced or a partition has one.

// scopeKind says of what a scope is.
type scopeKind uint8

const (
	scopeAssoc     scopeKind = iota // and all below it
	scopeQOS                        // all its jobs
	scopeUser                       // of one user in a QOS
	scopeAccount                    // of one account in a QOS
	scopePartition                  // of one user in a partition
)

// scope is something that has a tally.
type scope struct {
	kind scopeKind
	id   uint32 // of the association or the user
	name string // of the QOS or partition; with an account after a NUL
}

func scopeLess(a, b *tally) bool {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id), strings.Compare(a.name, b.name)) < 0
}

// tally counts one scope. It is never changed in place.
type tally struct {
	scope
	running, submitted int
	tres               []Amount // of those that run, by name; whole numbers
}

// counting reports whether there are tallies at all.
func (c *Config) counting() bool {
	return c.Enforce.Limits || slices.ContainsFunc(c.Partitions, func(p Partition) bool { return p.MaxCPUsPerUser > 0 })
}

// countsAs reports whether jobs count for the same things under both configurations.
func (c *Config) countsAs(o *Config) bool {
	if !c.counting() && !o.counting() {
		return true
	}
	same := func(a, b Partition) bool {
		bounds := a.QOS == b.QOS && a.MaxCPUsPerUser == b.MaxCPUsPerUser
		return a.Name == b.Name && bounds && slices.Equal(a.BillingWeights, b.BillingWeights)
	}
	return c.Enforce.Limits == o.Enforce.Limits && slices.EqualFunc(c.Partitions, o.Partitions, same)
}

// counted is what of a job's record its tallies depend on.
type counted struct {
	queued, runs int
	assoc        AssocID
	uid          uint32
	qos, account string
	part         string
	alloc        *Alloc
}

// counts is what a record counts for.
func (t *tables) counts(j *Job) (c counted) {
	switch {
	case j == nil || j.Phase == Ended:
		return c
	case j.holds():
		c.runs = 1
		c.alloc = j.Alloc
		c.part = j.Alloc.Partition
	default:
		c.part = j.Spec.firstPartition()
	}
	c.queued = max(j.Tasks.Len(), 1)
	c.assoc = j.Assoc
	c.uid = j.Spec.UID
	c.qos = j.Spec.QOS
	c.account = j.Spec.Account
	return c
}

// scopes lists what a job counts for in a partition.
func (t *tables) scopes(c counted) (out []scope) {
	for a := range t.Line(c.assoc) {
		out = append(out, scope{kind: scopeAssoc, id: uint32(a.ID)})
	}
	p, _ := t.Partition(c.part)
	names := []string{c.qos}
	if p != nil && p.QOS != "" && p.QOS != c.qos {
		names = append(names, p.QOS)
	}
	for _, q := range names {
		if q != "" {
			out = append(out, scope{kind: scopeQOS, name: q}, scope{scopeUser, c.uid, q}, scope{
				kind: scopeAccount, name: q + "\x00" + c.account,
			})
		}
	}
	if p != nil && p.MaxCPUsPerUser > 0 {
		out = append(out, scope{scopePartition, c.uid, p.Name})
	}
	return out
}

// recount follows a change of a record.
func (t *tables) recount(old, j *Job) {
	was := t.counts(old)
	is := t.counts(j)
	if was == is {
		return
	}
	if was.queued > 0 {
		t.count(was, t.held(old), -1)
	}
	if is.queued > 0 {
		t.count(is, t.held(j), 1)
	}
}

// held is what a job that runs holds, with what it is billed.
func (t *tables) held(j *Job) []Amount {
	if j == nil || !j.holds() {
		return nil
	}
	return t.withBilling(j.Alloc.Partition, t.AmountsOf(j))
}

// withBilling adds what amounts are billed, cut to a whole number as Slurm's limits see it.
func (t *tables) withBilling(partition string, list []Amount) []Amount {
	return append(list, Amount{"billing", float64(int64(t.BillingOf(partition, list)))})
}

func (t *tables) count(c counted, tres []Amount, sign int) {
	for _, s := range t.scopes(c) {
		t.setTally(t.tallyOf(s).plus(c, tres, sign))
	}
}

func (t *tables) tallyOf(s scope) *tally {
	if x, ok := t.tallies.Get(&tally{scope: s}); ok {
		return x
	}
	return &tally{scope: s}
}

func (t *tables) setTally(x *tally) {
	if x.submitted == 0 && x.running == 0 {
		t.tallies.Delete(x)
	} else {
		t.tallies.Set(x)
	}
}

// plus is the tally with a job more or less.
func (x *tally) plus(c counted, tres []Amount, sign int) *tally {
	n := &tally{scope: x.scope, running: x.running + sign*c.runs, submitted: x.submitted + sign*c.queued}
	n.tres = Spent{TRES: x.tres}.plus(Spent{TRES: Spent{TRES: tres}.times(float64(sign)).TRES}).TRES
	return n
}

// retally counts everything again: the configuration or the tree of accounts has changed.
func (t *tx) retally() {
	keepOld(t, &t.tallies)
	t.tally()
}

func (t *tables) tally() {
	t.tallies = newOrdered(scopeLess)
	if !t.config.counting() {
		return
	}
	for j := range t.Jobs() {
		t.recount(nil, j)
	}
}

// checkTallies compares the tallies with the jobs.
func (t *tables) checkTallies() error {
	fresh := *t
	fresh.tally()
	if fresh.tallies.Len() != t.tallies.Len() {
		return fmt.Errorf("%d tallies, the jobs make %d", t.tallies.Len(), fresh.tallies.Len())
	}
	var err error
	t.tallies.Scan(func(x *tally) bool {
		y := fresh.tallyOf(x.scope)
		drop := func(list []Amount) []Amount {
			return slices.DeleteFunc(slices.Clone(list), func(a Amount) bool { return a.N == 0 })
		}
		if x.running != y.running || x.submitted != y.submitted || !slices.Equal(drop(x.tres), drop(y.tres)) {
			err = fmt.Errorf("tally %v is %d %d %v, the jobs make %d %d %v", x.scope, x.running,
				x.submitted, x.tres, y.running, y.submitted, y.tres)
		}
		return err == nil
	})
	return err
}

// runMinutes sums for each scope what runs there times the minutes to the jobs' limits.
func (t *tables) runMinutes(now time.Time) map[scope][]Amount {
	sums := map[scope][]Amount{}
	for j := range t.Live() {
		if j.Limit == Unlimited {
			continue
		}
		more := Spent{TRES: t.held(j)}.times(max(j.Limit-j.RunTime(now), 0).Minutes())
		for _, s := range t.scopes(t.counts(j)) {
			sums[s] = Spent{TRES: sums[s]}.plus(more).TRES
		}
	}
	return sums
}
