package cluster

import (
	"slices"
)

// UpdateJob changes pending jobs, and of running ones what may still change.
type UpdateJob struct {
	_ struct{} `retired:"resize"`

	Ref   Ref   `json:"ref"`
	Patch Patch `json:"patch"`
	// Runs: jobs that run give nodes back if they are to have fewer, and get other licenses; no job is to have more
	// nodes at least than at most. Logs of before have neither.
	Runs bool `json:"runs,omitempty"`
	// Memory: jobs that run get other memory. Logs of before do not have it.
	Memory bool `json:"memory,omitempty"`
}

func (*UpdateJob) kind() string { return "update" }

func (c *UpdateJob) apply(t *tx) (any, error) {
	jobs, err := t.living(c.Ref)
	if err != nil {
		return nil, err
	}
	waiting := slices.ContainsFunc(jobs, func(j *Job) bool { return j.Phase == Pending })
	for _, j := range jobs {
		if err := c.change(t, j, waiting); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// change changes one job; waiting: some of the jobs wait.
func (c *UpdateJob) change(t *tx, j *Job, waiting bool) error {
	n := *j
	spec := *j.Spec
	n.Spec = &spec
	spec.Layout = spec.Layout.Clone()
	p, err := c.whileRunning(t, j, &n, waiting)
	if err != nil {
		return err
	}
	if what := p.early(j.Spec); what != "" && j.Phase != Pending {
		if waiting {
			return nil // the tasks of an array that wait are meant
		}
		return Errorf(Conflict, ErrNotPending, "%s of job %d can only change while it is pending", what, j.ID)
	}
	if err := p.apply(t, &n); err != nil {
		return err
	}
	if err := p.admit(t, j, &n); err != nil {
		return err
	}
	p.requeue(t, &n)
	t.interned.share(&spec)
	t.putJob(&n)
	t.tell(&n)
	t.partNever(n.ID)
	return nil
}

// whileRunning changes what can change of a job that runs; n is a copy. It returns what is left of the patch. waiting:
// some of the jobs wait.
func (c *UpdateJob) whileRunning(t *tx, j, n *Job, waiting bool) (p Patch, err error) {
	p = c.Patch
	if c.resizesMemory(j, waiting) {
		if p, err = resizeMemory(t, j, n, p); err != nil {
			return p, err
		}
	}
	if !c.Runs {
		return p, nil
	}
	if p.resizes(j) {
		if p, err = t.resize(n, p); err != nil {
			return p, err
		}
	}
	if p.Licenses != nil && j.holds() && j.Phase != Ending {
		if p, err = t.license(n, p); err != nil {
			return p, err
		}
	}
	if p.misranged(n.Spec) {
		return p, Errorf(Invalid, ErrNodeCount,
			"job %d would need %d nodes at least and have fewer at most: name both, as 2-4", n.ID,
			*p.MinNodes)
	}
	return p, nil
}

// requeue gives a changed job its place among the others.
func (p *Patch) requeue(t *tx, n *Job) {
	if n.Phase != Pending {
		if p.Nice != nil || p.Site != nil || p.Priority != nil {
			t.rank(n)
		}
		return
	}
	n.Limit = t.TimeLimit(n.Spec)
	t.evaluate(n)
	if p.ResetAccrue && !n.Accrue.IsZero() {
		n.Accrue = later(n.Accrue, t.at)
	}
	if n.Held == NotHeld {
		t.rank(n)
	}
}

// license gives a job that runs other licenses; n is a copy. It returns what is left of the patch.
func (t *tx) license(n *Job, p Patch) (Patch, error) {
	want := *p.Licenses
	if p.Licenses = nil; want == n.Spec.Licenses {
		return p, nil
	}
	if err := t.config.admitLicenses(want); err != nil {
		return p, err
	}
	if !t.by.Operator() {
		return p, Errorf(Denied, ErrAccess, "only operators may change the licenses of job %d while it runs", n.ID)
	}
	n.Spec.Licenses = want
	return p, nil
}

// misranged reports whether a job would need more nodes at least than it may have at most.
func (p *Patch) misranged(s *JobSpec) bool {
	most := s.MaxNodes
	if p.MaxNodes != nil {
		most = *p.MaxNodes
	}
	return p.MinNodes != nil && most > 0 && *p.MinNodes > most
}

// pendingOrder is the order in which early looks for what only a pending job can have changed.
var pendingOrder = [...]string{
	"the age", "the account", "the QOS", "the wckey", "the dependency", "the begin time", "the files",
	"the working directory", "the size", "the clusters",
}

// early names what the patch changes that only a pending job can have changed, "" if nothing.
func (p *Patch) early(s *JobSpec) string {
	q := *p
	if slices.Equal(q.Partitions, s.Partitions) {
		q.Partitions = nil
	}
	if q.Reservation != nil && *q.Reservation == s.Reservation {
		q.Reservation = nil
	}
	asked := map[string]bool{}
	for f := range q.asked() {
		asked[f.Tag.Get("pending")] = true
	}
	for _, what := range pendingOrder {
		if asked[what] {
			return what
		}
	}
	return ""
}

// admit holds what became of a job to what is asked of a submission, and finds its association.
func (p *Patch) admit(t *tx, was, n *Job) error {
	spec := n.Spec
	asked := *spec
	if n.Phase != Pending && spec.Expands() != 0 {
		asked.Depends = Depends{} // met: the job that it was to expand may be over, or have its nodes
	}
	admitted, err := Admit(&Snapshot{*t.tables}, Identity{System: true, UID: spec.UID}, asked)
	if err != nil {
		return err
	}
	if err := p.checkMove(t, n); err != nil {
		return err
	}
	if p.WCKey != nil {
		spec.WCKey = admitted.WCKey
	}
	if p.QOS != nil { // none: the default one
		spec.QOS = admitted.QOS
	}
	if a, ok := t.assocFor(spec); ok {
		n.Assoc = a.ID
	} else if p.Account != nil || p.Partitions != nil {
		n.Assoc = 0
	}
	return t.admitMove(was, n, p.Limit != nil || p.LimitDelta != 0)
}

// checkMove refuses a job its new account or partitions, where the way there is closed.
func (p *Patch) checkMove(t *tx, n *Job) error {
	if p.Account != nil && *p.Account == "" && t.Accounting() {
		return Errorf(Invalid, ErrAccount, "job %d cannot be without an account: name one", n.ID)
	}
	if p.Partitions == nil || n.Phase != Pending {
		return nil
	}
	return t.closed(n.Spec.Partitions)
}
