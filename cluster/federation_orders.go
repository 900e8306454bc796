package cluster

import (
	"time"

	"dev.muster/cluster/federation"
)

// siblingPhase is where a job stands, for its siblings.
func siblingPhase(j *Job) federation.Phase {
	switch {
	case j.Phase == Pending:
		return federation.Waits
	case j.Phase < Ended:
		return federation.Runs
	case j.Outcome == Revoked:
		return federation.Revoked
	}
	return federation.Ended
}

// FederationOrders are what the origin of jobs says of them. Result: []*Error, one an order.
type FederationOrders struct {
	From  federation.ID     `json:"from"`
	Index uint64            `json:"index"` // of the origin's log
	Rows  []FederationOrder `json:"rows"`
}

// FederationOrder is about one job.
type FederationOrder struct {
	Job   JobID            `json:"job"`
	Order federation.Order `json:"order"`
	// Spec is what is asked for, nil if that is as before; Hash tells it apart. By is the user as this cluster knows
	// it.
	Spec      *JobSpec  `json:"spec,omitempty"`
	Hash      string    `json:"hash,omitempty"`
	By        Identity  `json:"by,omitzero"`
	Held      Hold      `json:"held,omitempty"`
	Submitted time.Time `json:"submitted,omitzero"`
	Restarts  int       `json:"restarts,omitempty"`
}

func (*FederationOrders) kind() string { return "federation_orders" }

func (c *FederationOrders) apply(t *tx) (any, error) {
	self := selfMember(t.tables)
	if !t.by.System || self == nil || t.federation.Record.Member(c.From) == nil || c.From == self.ID {
		return nil, Errorf(Denied, ErrAccess, "orders come from members of a federation")
	}
	link := t.federation.Link(c.From)
	if c.Index < link.Heard {
		return nil, Errorf(Conflict, "", "cluster %d has said newer things since", c.From)
	}
	if link.Heard != c.Index {
		link.Heard = c.Index
		putLink(t, link)
	}
	out := make([]*Error, len(c.Rows))
	for i := range c.Rows {
		out[i] = alone(t, func() error { return obey(t, self.ID, c.From, &c.Rows[i]) })
	}
	return out, nil
}

// obey carries out one order.
func obey(t *tx, self, from federation.ID, o *FederationOrder) error {
	j, ok := t.jobs.Get(o.Job)
	switch {
	case !ok:
		return enterSibling(t, self, from, o)
	case j.Fed == nil || j.Fed.Part.Origin != from:
		return Errorf(Conflict, ErrJobID, "job %d is another one here", o.Job)
	}
	at := siblingPhase(j)
	part, verdict := j.Fed.Part.Obey(o.Order, at)
	n := withPart(j, part)
	if part.Mine() && !j.Fed.Part.Mine() {
		n.Fed.Granted = t.at
	}
	switch verdict {
	case federation.Revoke:
		revoke(t, n)
		return nil
	case federation.Revive:
		revive(t, n, o)
	}
	if cancelled := o.Order.Cancelled; cancelled != nil && n.Phase != Ended && part.Mine() {
		t.end(n, Cancelled, n.Wait)
		n.CancelledBy = cancelled
		n.RequeueAfter = false
		t.putJob(n)
		if n.Phase == Ended {
			t.ended(n)
		} else {
			t.tell(n)
		}
		return nil
	}
	if err := asOrdered(t, n, o); err != nil {
		return err
	}
	t.putJob(n)
	t.tell(n)
	return nil
}

// asOrdered gives a job that waits what the origin's has by now; n is a copy.
func asOrdered(t *tx, n *Job, o *FederationOrder) error {
	if n.Phase != Pending {
		return nil
	}
	if o.Spec != nil && o.Hash != n.Fed.Spec {
		spec, err := Admit(&Snapshot{*t.tables}, o.By, *o.Spec)
		if err != nil {
			return err
		}
		spec.Script = n.Spec.Script
		spec.Env = n.Spec.Env
		t.interned.share(&spec)
		n.Spec = &spec
		n.Fed.Spec = o.Hash
		n.Limit = t.TimeLimit(&spec)
		t.evaluate(n)
		t.rank(n)
	}
	if n.Held != o.Held {
		t.setHold(n, o.Held)
		n.Wait = t.waitOf(n)
	}
	return nil
}

// revive has a record wait again that was revoked, or ended before its job was requeued.
func revive(t *tx, n *Job, o *FederationOrder) {
	again := Job{
		ID:        n.ID,
		Key:       n.Key,
		Spec:      n.Spec,
		Task:      n.Task,
		Attempt:   n.Attempt,
		Restarts:  o.Restarts,
		Submitted: later(n.Submitted, submittedAs(o, t.at)),
		Limit:     t.TimeLimit(n.Spec),
		Assoc:     n.Assoc,
		Rarely:    Rarely{Fed: n.Fed},
	}
	*n = again
	t.evaluate(n)
	t.rank(n)
}

// enterSibling makes the record of a job that was made at another cluster.
func enterSibling(t *tx, self, from federation.ID, o *FederationOrder) error {
	part, verdict := federation.Part{Self: self, Origin: from}.Obey(o.Order, federation.Waits)
	begun := o.Order.Holder == self && o.Order.Begun // it was here, and is gone
	if verdict == federation.Revoke || begun || o.Order.Cancelled != nil {
		return nil
	}
	if o.Spec == nil {
		return Errorf(Conflict, "", "job %d is not known here", o.Job)
	}
	spec, err := Admit(&Snapshot{*t.tables}, o.By, *o.Spec)
	if err != nil {
		return err
	}
	fed := &SharedJob{Part: part, Spec: o.Hash}
	if part.Mine() {
		fed.Granted = t.at
	}
	j := &Job{
		ID:        o.Job,
		Submitted: submittedAs(o, t.at),
		Restarts:  o.Restarts,
		Rarely:    Rarely{Fed: fed},
	}
	if err := t.enter(j, &spec, "", nil); err != nil {
		return err
	}
	if o.Held != j.Held {
		n := *j
		t.setHold(&n, o.Held)
		t.putJob(&n)
	}
	return nil
}

// submittedAs is when a job was submitted at its origin, by this cluster's clock.
func submittedAs(o *FederationOrder, now time.Time) time.Time {
	if o.Submitted.IsZero() || o.Submitted.After(now) {
		return now
	}
	return o.Submitted
}

// FederationReports are what another member tells of jobs that were made here.
type FederationReports struct {
	From federation.ID      `json:"from"`
	Rows []FederationReport `json:"rows"`
}

// FederationReport is about one job.
type FederationReport struct {
	Job     JobID             `json:"job"`
	Report  federation.Report `json:"report"`
	Outcome Outcome           `json:"outcome,omitempty"`
	Reason  Reason            `json:"reason,omitempty"`
	Exit    ExitStatus        `json:"exit,omitzero"`
	Derived ExitStatus        `json:"derived,omitzero"`
	Held    Hold              `json:"held,omitempty"`
	// Restarts counts how often it was requeued, with what the origin has told of that.
	Restarts    int     `json:"restarts,omitempty"`
	CancelledBy *uint32 `json:"cancelled_by,omitempty"`
}

// ReportOf is what there is to tell of a sibling.
func ReportOf(j *Job) FederationReport {
	at := siblingPhase(j)
	r := FederationReport{Job: j.ID, Report: j.Fed.Part.Report(at), Restarts: j.Restarts}
	switch {
	case at == federation.Waits && j.Fed.Part.Returned > 0:
		r.Held = j.Held
	case r.Report.Phase == federation.Ended:
		r.Outcome = j.Outcome
		r.Reason = j.EndReason
		r.Exit = j.Exit
		r.Derived = j.Derived
		r.CancelledBy = j.CancelledBy
	}
	return r
}

func (*FederationReports) kind() string { return "federation_reports" }

func (c *FederationReports) apply(t *tx) (any, error) {
	self := selfMember(t.tables)
	if !t.by.System || self == nil || t.federation.Record.Member(c.From) == nil || c.From == self.ID {
		return nil, Errorf(Denied, ErrAccess, "reports come from members of a federation")
	}
	for i := range c.Rows {
		hear(t, c.From, &c.Rows[i])
	}
	return nil, nil
}

// Hears is what a report would make of a job's part; false: nothing.
func Hears(s *Snapshot, from federation.ID, r *FederationReport, now time.Time) bool {
	j, part, verdict := heardOf(&s.tables, from, r, now)
	return j != nil && (part != j.Fed.Part || verdict != federation.Stays)
}

// heardOf is what a report makes of a job, nil if it is none that waits here.
func heardOf(t *tables, from federation.ID, r *FederationReport, now time.Time) (
	*Job, federation.Part, federation.Verdict,
) {
	j, ok := t.jobs.Get(r.Job)
	if !ok || j.Fed == nil || !j.Fed.Part.IsOrigin() || j.Phase != Pending {
		return nil, federation.Part{}, federation.Stays
	}
	free := j.Held == NotHeld && len(j.Depends.Terms) == 0 && !j.Eligible.After(now)
	part, verdict := j.Fed.Part.Hear(from, r.Report, free)
	return j, part, verdict
}

// hear takes note of one report.
func hear(t *tx, from federation.ID, r *FederationReport) {
	j, part, verdict := heardOf(t.tables, from, r, t.at)
	if j == nil || part == j.Fed.Part && verdict == federation.Stays {
		return
	}
	n := withPart(j, part)
	switch {
	case verdict == federation.Over:
		t.end(n, Revoked, r.Reason)
		n.Fed.Ran = r.Outcome
		n.Exit = r.Exit
		n.Derived = r.Derived
		n.CancelledBy = r.CancelledBy
		t.putJob(n)
		t.ended(n)
		return
	case verdict == federation.Free && part.Cancelled != nil:
		t.end(n, Cancelled, n.Wait)
		n.CancelledBy = part.Cancelled
		t.putJob(n)
		t.ended(n)
		return
	case verdict == federation.Free:
		n.Restarts = max(n.Restarts, r.Restarts)
		if r.Held != NotHeld {
			t.setHold(n, r.Held)
		}
		n.Wait = t.waitOf(n)
		t.rank(n)
	}
	t.putJob(n)
	t.tell(n)
	if part.Begun && !j.Fed.Part.Begun {
		t.wakeDependents(n)
	}
}

// FederationReturn gives back grants by which nothing was started.
type FederationReturn struct {
	Jobs []JobID `json:"jobs"`
}

func (*FederationReturn) kind() string { return "federation_return" }

func (c *FederationReturn) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrAccess, "the leader gives grants back")
	}
	for _, id := range c.Jobs {
		j, ok := t.jobs.Get(id)
		if !ok || j.Fed == nil || j.Phase != Pending || j.Fed.Part.IsOrigin() || !j.Fed.Part.Mine() {
			continue
		}
		n := withPart(j, j.Fed.Part.Return())
		t.putJob(n)
		t.tell(n)
	}
	return nil, nil
}

// FederationAway says that a member does not answer, or does again.
type FederationAway struct {
	ID   federation.ID `json:"id"`
	Away bool          `json:"away,omitempty"`
}

func (*FederationAway) kind() string { return "federation_away" }

func (c *FederationAway) apply(t *tx) (any, error) {
	if !t.by.System || t.federation == nil || t.federation.Record.Member(c.ID) == nil {
		return nil, Errorf(Denied, ErrAccess, "the leader says which members answer")
	}
	link := t.federation.Link(c.ID)
	if link.Away == c.Away {
		return nil, nil
	}
	link.Away = c.Away
	putLink(t, link)
	for j := range t.Queue() { // it is looked at again whether they can start
		if j.Fed != nil && j.Fed.Part.Origin == c.ID {
			t.changes.add(StateChange{Job: j.ID})
		}
	}
	return nil, nil
}
