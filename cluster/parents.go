package cluster

import (
	"slices"
	"strconv"
	"time"

	"dev.muster/cluster/federation"
)

// A job of a federation may wait for jobs that other clusters have made, which alone know how these end. The leader of
// its origin asks theirs; what they say of a term comes into the log once that is met, or never will be.

// FederationParents is what the origin of jobs says of terms on them.
type FederationParents struct {
	From federation.ID `json:"from"`
	Rows []ParentTerm  `json:"rows"`
}

// ParentTerm is a term that is met, or never will be.
type ParentTerm struct {
	Term  Depend `json:"term"`
	Never bool   `json:"never,omitempty"`
}

func (*FederationParents) kind() string { return "federation_parents" }

func (c *FederationParents) apply(t *tx) (any, error) {
	self := selfMember(t.tables)
	if !t.by.System || self == nil || t.federation.Record.Member(c.From) == nil || c.From == self.ID {
		return nil, Errorf(Denied, ErrAccess, "how jobs have ended their origin says, a member of the federation")
	}
	for _, row := range c.Rows {
		if federation.Of(uint32(row.Term.Job)) != c.From {
			return nil, Errorf(Denied, ErrAccess, "job %d was not made at cluster %d", row.Term.Job, c.From)
		}
		for _, id := range waitingFor(t.tables, row.Term.Job) {
			settleTerm(t, id, row)
		}
	}
	return nil, nil
}

// settleTerm has a job that waits know what has become of one of its terms.
func settleTerm(t *tx, id JobID, row ParentTerm) {
	j, ok := t.jobs.Get(id)
	if !ok || j.Phase != Pending {
		return
	}
	is := func(d Depend) bool { return askedTerm(d) == row.Term && !d.Failed }
	if !slices.ContainsFunc(j.Depends.Terms, is) {
		return
	}
	n := *j
	switch n.Depends.Terms = slices.Clone(j.Depends.Terms); {
	case row.Never:
		for i, d := range n.Depends.Terms {
			n.Depends.Terms[i].Failed = d.Failed || is(d)
		}
	case j.Depends.Any:
		n.Depends = Depends{}
	default:
		n.Depends.Terms = slices.DeleteFunc(n.Depends.Terms, is)
	}
	t.evaluate(&n)
	t.putJob(&n)
	t.tell(&n)
}

// askedTerm is a term as it is asked at another cluster.
func askedTerm(d Depend) Depend { return Depend{Type: d.Type, Job: d.Job, Task: d.Task, Plus: d.Plus} }

// ParentCluster names the other cluster that made the job of a term, "" if that was this one; away: it does not answer.
func ParentCluster(s *Snapshot, d Depend) (name string, away bool) {
	of := parentElsewhere(&s.tables, d)
	if of == 0 {
		return "", false
	}
	if m := s.federation.Record.Member(of); m != nil {
		return m.Name, s.federation.Link(of).Away
	}
	return strconv.Itoa(int(of)), true
}

// parentElsewhere is the other cluster of the federation that made the job of a term, 0 if that was this one.
func parentElsewhere(t *tables, d Depend) federation.ID {
	self := selfMember(t)
	of := federation.Of(uint32(d.Job))
	if self == nil || of == self.ID {
		return 0
	}
	return of
}

// judgeElsewhere tells where a term stands of which another cluster knows.
func judgeElsewhere(d Depend) termState {
	if d.Failed {
		return never
	}
	return unmet
}

// TermsOf are the terms on jobs that another cluster has made for which jobs of this one wait.
func TermsOf(s *Snapshot, origin federation.ID) (list []Depend) {
	first := JobID(origin.Number(0))
	seen := map[Depend]bool{}
	s.depends.Ascend(pairKey{a: first}, func(k pairKey) bool {
		if federation.Of(uint32(k.a)) != origin {
			return false
		}
		j, ok := s.jobs.Get(k.b)
		if !ok || j.Fed != nil && !j.Fed.Part.IsOrigin() {
			return true
		}
		for _, d := range j.Depends.Terms {
			if term := askedTerm(d); d.Job == k.a && !d.Failed && !seen[term] {
				seen[term] = true
				list = append(list, term)
			}
		}
		return true
	})
	return list
}

// JudgeFor tells another cluster where a term on a job of this one stands; known: the job's record is here yet.
func JudgeFor(s *Snapshot, d Depend, now time.Time) (row ParentTerm, settled, known bool) {
	at := s.tables
	at.Now = later(s.Now, now)
	v := at.judge(&Job{}, d, TaskAny)
	return ParentTerm{Term: d, Never: v == never}, v != unmet, at.isArray(d.Job) || len(at.parents(d)) > 0
}

// JudgePast tells another cluster of a term on a job that was forgotten, by the records that history has of it.
func JudgePast(d Depend, past []*Job, now time.Time) (row ParentTerm, settled bool) {
	other := func(j *Job) bool { return d.Task != TaskAny && j.Task != d.Task }
	v := judgeAll(d, slices.DeleteFunc(slices.Clone(past), other), now)
	return ParentTerm{Term: d, Never: v == never}, v != unmet
}

// CheckParents refuses to wait for jobs of other clusters of which these are not asked.
func CheckParents(s *Snapshot, terms []Depend) error {
	self := FederationSelf(s)
	if self == nil {
		return nil
	}
	for _, d := range terms {
		of := federation.Of(uint32(d.Job))
		if d.Job == 0 || of == 0 || of == self.ID {
			continue
		}
		if err := firstError(
			refuseIf(s.federation.Record.Member(of) == nil,
				Invalid, ErrDependency, "job %d was submitted at cluster %d, which is not in federation %s",
				d.Job, of, s.federation.Record.Name),
			refuseIf(d.Type == AfterCorr || d.Type == ExpandJob,
				Invalid, ErrDependency, "%s is for jobs of one cluster, and job %d was submitted at another: "+
					"submit this one there, too (-M)", d.Type, d.Job),
		); err != nil {
			return err
		}
	}
	return nil
}

// partTerms has jobs know that they wait in vain for those of clusters that have left; self is this cluster, which may
// be the one that did.
func partTerms(t *tx, self federation.ID, left federation.Set) {
	left = left.Without(self)
	gone := func(d Depend) bool { return left.Has(federation.Of(uint32(d.Job))) }
	for _, j := range slices.Collect(t.Jobs()) {
		for _, d := range j.Depends.Terms {
			if gone(d) {
				settleTerm(t, j.ID, ParentTerm{Term: askedTerm(d), Never: true})
			}
		}
	}
}
