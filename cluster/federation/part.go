package federation

// Part is what a cluster knows of a job that it shares with others.
type Part struct {
	Self   ID  `json:"self"`   // this cluster
	Origin ID  `json:"origin"` // where the job was made
	Viable Set `json:"viable"` // where it may run
	// Active are the clusters that have it, as far as the origin has heard.
	Active Set `json:"active,omitempty"`
	// Holder alone may start it, by the grant of that number. Begun: it has.
	Holder ID   `json:"holder,omitempty"`
	Grant  int  `json:"grant,omitempty"`
	Begun  bool `json:"begun,omitempty"`
	// Returned is the last grant that was given back here: no grant up to it counts any more.
	Returned int `json:"returned,omitempty"`
	// Asks: it could start here.
	Asks bool `json:"asks,omitempty"`
	// Told: the origin knows how the last grant has ended.
	Told bool `json:"told,omitempty"`
	// Cancelled is who has ended it while another cluster held it; the holder is yet to hear of that.
	Cancelled *uint32 `json:"cancelled,omitempty"`
}

// IsOrigin reports whether the job was made here.
func (p *Part) IsOrigin() bool { return p.Self == p.Origin }

// Mine reports whether this cluster alone may start the job.
func (p *Part) Mine() bool { return p.Holder == p.Self && p.Grant > p.Returned }

// Away reports whether the job is not to be started here, now: another cluster holds it, or it may not run here.
func (p *Part) Away() bool {
	elsewhere := p.Holder != 0 && !p.Mine()
	return elsewhere || !p.Viable.Has(p.Self)
}

// Owes reports whether the origin is yet to hear how a job has ended that ran here. over: it has ended.
func (p *Part) Owes(over bool) bool {
	ran := p.Mine() && !p.IsOrigin()
	return over && ran && !p.Told
}

// vacant reports whether nobody holds the job and a cluster may run it.
func (p *Part) vacant(to ID) bool { return p.Holder == 0 && p.Viable.Has(to) }

// grant has a cluster alone start the job from now on.
func (p *Part) grant(to ID) {
	p.Grant++
	p.Holder = to
	p.Begun = false
}

// vacate has nobody hold the job.
func (p *Part) vacate() {
	p.Holder = 0
	p.Begun = false
}

// Take has this cluster start the job, if it holds it, or is the origin and nobody does.
func (p Part) Take() (Part, bool) {
	if p.Mine() {
		p.Begun = true
		p.Asks = false
		return p, true
	}
	if !p.IsOrigin() || !p.vacant(p.Self) {
		return p, false
	}
	p.grant(p.Self)
	p.Begun = true
	p.Active = p.Active.With(p.Self)
	return p, true
}

// Return gives the grant back, if this cluster holds one: the job waits again.
func (p Part) Return() Part {
	if p.Holder != p.Self {
		return p
	}
	p.vacate()
	p.Returned = p.Grant
	p.Asks = false
	p.Told = false
	return p
}

// Again has the job wait once more after it has begun: at its origin for anybody, elsewhere for the origin to hear.
func (p Part) Again() Part {
	if p.IsOrigin() {
		p.vacate()
		p.Cancelled = nil
		p.Active = SetOf(p.Self) & p.Viable
		return p
	}
	return p.Return()
}

// Phase is where a job stands at a cluster, for its siblings.
type Phase uint8

// The phases.
const (
	Waits   Phase = iota
	Runs          // or has run and is about to end
	Ended         // with the grant that it had
	Revoked       // another cluster runs it, or it is over
	Refused       // it cannot be here at all
)

// Report is what a cluster tells the origin of its sibling.
type Report struct {
	Phase    Phase `json:"phase,omitempty"`
	Asks     bool  `json:"asks,omitempty"`
	Grant    int   `json:"grant,omitempty"` // with which it runs or has ended
	Returned int   `json:"returned,omitempty"`
}

// Report is what there is to tell of a job in a phase.
func (p *Part) Report(at Phase) Report {
	r := Report{Phase: at, Returned: p.Returned, Asks: at == Waits && p.Asks}
	switch {
	case p.Mine():
		r.Grant = p.Grant
	case at != Waits:
		r.Phase = Revoked
	}
	return r
}

// Verdict is what becomes of a cluster's record of the job.
type Verdict uint8

// The verdicts.
const (
	Stays  Verdict = iota
	Free           // it waits in the queue again
	Over           // it has ended at the holder
	Revoke         // it leaves the queue: another cluster has it
	Revive         // it was revoked, and waits again
)

// heard are the rules of the origin: what each phase of a sibling means for the job. free: it waits, and nothing
// keeps it from being started.
var heard = [...]func(p *Part, from ID, r Report, free bool) Verdict{
	Waits:   hearWaits,
	Runs:    hearRuns,
	Ended:   hearEnded,
	Revoked: hearRevoked,
	Refused: hearRefused,
}

// Hear is what the origin makes of a report.
func (p Part) Hear(from ID, r Report, free bool) (Part, Verdict) {
	verdict := Stays
	if p.Holder == from && p.Grant <= r.Returned { // what it has given back
		p.vacate()
		verdict = Free
		free = true
	}
	if from == p.Self || int(r.Phase) >= len(heard) {
		return p, verdict
	}
	return p, max(verdict, heard[r.Phase](&p, from, r, free))
}

func hearWaits(p *Part, from ID, r Report, free bool) Verdict {
	p.Active = p.Active.With(from)
	if !r.Asks || !free || p.Cancelled != nil {
		return Stays
	}
	if p.vacant(from) {
		p.grant(from)
	}
	return Stays
}

func hearRuns(p *Part, from ID, r Report, _ bool) Verdict {
	p.Active = p.Active.With(from)
	if p.counts(from, r.Grant) {
		p.Begun = true
	}
	return Stays
}

func hearEnded(p *Part, from ID, r Report, _ bool) Verdict {
	if !p.counts(from, r.Grant) {
		return Stays
	}
	p.Active = p.Active.Without(from)
	return Over
}

// counts reports whether a cluster has the job by the last grant. One that is not known, as after the origin was
// restored, is the last one from now on, unless the job has begun.
func (p *Part) counts(from ID, grant int) bool {
	if grant > p.Grant && !p.Begun {
		p.Holder = from
		p.Grant = grant
	}
	return p.Holder == from && p.Grant == grant
}

func hearRevoked(p *Part, from ID, _ Report, _ bool) Verdict {
	p.Active = p.Active.Without(from)
	return Stays
}

func hearRefused(p *Part, from ID, _ Report, _ bool) Verdict {
	p.Active, p.Viable = p.Active.Without(from), p.Viable.Without(from)
	return Stays
}

// Order is what the origin tells of a job.
type Order struct {
	Viable    Set     `json:"viable,omitempty"`
	Active    Set     `json:"active,omitempty"`
	Holder    ID      `json:"holder,omitempty"`
	Grant     int     `json:"grant,omitempty"`
	Begun     bool    `json:"begun,omitempty"`
	Over      bool    `json:"over,omitempty"`
	Cancelled *uint32 `json:"cancelled,omitempty"`
}

// Order is what there is to tell of a job. over: it has ended.
func (p *Part) Order(over bool) Order {
	return Order{p.Viable, p.Active, p.Holder, p.Grant, p.Begun, over, p.Cancelled}
}

// shuts reports whether nothing is left to do for a cluster that does not hold the job.
func (o *Order) shuts(self ID) bool {
	elsewhere := o.Begun && o.Holder != self
	return o.Over || elsewhere || !o.Viable.Has(self)
}

// Obey is what a sibling makes of an order. at is where the job stands here. An order that is older than what this
// cluster knows changes nothing: its own grant goes by nothing but its own return, or the end.
func (p Part) Obey(o Order, at Phase) (Part, Verdict) {
	if p.IsOrigin() {
		return p, Stays
	}
	if o.Grant >= p.Grant {
		p.Active = o.Active
	}
	p.Viable = o.Viable
	p.Cancelled = o.Cancelled
	if p.Mine() {
		return p.obeyHeld(o, at)
	}
	if o.grants(&p) {
		return p.accept(o.Grant), revived(at)
	}
	p.Holder = o.Holder
	p.Grant = max(o.Grant, p.Grant)
	p.Begun = o.Begun
	p.Asks = false // what it has asked was answered
	if p.Holder == p.Self {
		p.vacate() // it was given back, and the origin does not know yet
	}
	if !o.shuts(p.Self) {
		return p, revived(at)
	}
	if at == Waits {
		return p, Revoke
	}
	return p, Stays
}

// grants reports whether an order has a cluster start the job by a grant that still counts there.
func (o *Order) grants(p *Part) bool {
	return o.Holder == p.Self && o.Grant > p.Returned && !o.Over
}

// accept takes a grant, of which nothing is done yet.
func (p Part) accept(grant int) Part {
	p.Holder = p.Self
	p.Grant = grant
	p.Asks = false
	p.Begun = false
	p.Told = false
	return p
}

// obeyHeld is what a cluster makes of an order about a job that it holds.
func (p Part) obeyHeld(o Order, at Phase) (Part, Verdict) {
	switch {
	case at == Waits && o.Over:
		return p.Return(), Revoke
	case at == Ended && o.Grant >= p.Grant:
		return p.obeyEnded(o)
	}
	return p, Stays
}

// obeyEnded is what a cluster makes of an order, not an old one, about a job that it held to its end.
func (p Part) obeyEnded(o Order) (Part, Verdict) {
	switch {
	case o.Over:
		p.Told = true
	case o.Holder != p.Self:
		return p.obeyRequeue(o)
	case o.Grant > p.Grant:
		p.Returned = p.Grant
		return p.accept(o.Grant), Revive
	}
	return p, Stays
}

// obeyRequeue is what a cluster makes of it that the job it has ended was requeued at the origin.
func (p Part) obeyRequeue(o Order) (Part, Verdict) {
	p = p.Return()
	p.Holder = o.Holder
	p.Begun = o.Begun
	p.Grant = o.Grant
	if o.shuts(p.Self) {
		return p, Stays
	}
	return p, Revive
}

func revived(at Phase) Verdict {
	if at == Revoked || at == Ended {
		return Revive
	}
	return Stays
}
