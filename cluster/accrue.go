package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// Some limits are on how many pending jobs grow older at once, the oldest first (GrpJobsAccrue and its like). Jobs
// that such limits concern begin to when priorities are computed again, as far as there is room.

// accrueTable lists these limits.
func accrueTable() []limitRow {
	return []limitRow{
		{name: "GrpJobsAccrue", whose: scopeQOS},
		{name: "MaxJobsAccrue", whose: scopeAssoc},
		{name: "MaxJobsAccruePerUser", same: "MaxJobsAccrue", whose: scopeUser},
		{name: "MaxJobsAccruePerAccount", whose: scopeAccount},
	}
}

// accrueBounds are those that concern a job.
func (t *tables) accrueBounds(j *Job) []limitBound {
	if !t.config.Enforce.Limits || t.config.Priority.AccrueAlways {
		return nil
	}
	k := gateKey{
		assoc:   j.Assoc,
		qos:     j.Spec.QOS,
		account: j.Spec.Account,
		uid:     j.Spec.UID,
	}
	if len(j.Spec.Partitions) > 0 {
		k.part = j.Spec.Partitions[0]
	}
	g := &Gate{}
	levels := t.levels(k)
	rows := accrueTable()
	if !slices.ContainsFunc(levels, func(l level) bool { return l.limits.accrue() }) {
		return nil
	}
	for i := range rows {
		g.add(&rows[i], k, levels, 1)
	}
	return g.bounds
}

// accrue reports whether one of the limits is on jobs that grow older.
func (l Limits) accrue() bool {
	return slices.ContainsFunc(l, func(x Limit) bool { return strings.Contains(x.Name, "Accrue") })
}

// accrueMore has pending jobs grow older from now on, as far as limits allow.
func (t *tx) accrueMore() {
	limited := false
	for a := range t.Assocs() {
		limited = limited || a.Limits.accrue()
	}
	for q := range t.QOSes() {
		limited = limited || q.Limits.accrue()
	}
	if !limited {
		return
	}
	type candidate struct {
		*Job
		bounds []limitBound
	}
	var list []candidate
	growing := map[scope]float64{}
	for j := range t.Queue() {
		bounds := t.accrueBounds(j)
		switch {
		case !j.Accrue.IsZero():
			for _, b := range bounds {
				growing[b.scope]++
			}
		case j.Held == NotHeld && hasCome(j.Eligible, t.at):
			list = append(list, candidate{j, bounds})
		}
	}
	slices.SortFunc(list,
		func(a, b candidate) int { return cmp.Or(a.Eligible.Compare(b.Eligible), cmp.Compare(a.ID, b.ID)) })
	for _, c := range list {
		if slices.ContainsFunc(c.bounds, func(b limitBound) bool { return growing[b.scope] >= b.max }) {
			continue
		}
		for _, b := range c.bounds {
			growing[b.scope]++
		}
		n := *c.Job
		n.Accrue = t.at
		t.putJob(&n)
	}
}
