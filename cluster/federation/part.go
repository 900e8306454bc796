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
func (p *Part) Away() bool { return p.Holder != 0 && !p.Mine() || !p.Viable.Has(p.Self) }

// Owes reports whether the origin is yet to hear how a job has ended that ran here. over: it has ended.
func (p *Part) Owes(over bool) bool {
	return over && !p.IsOrigin() && p.Grant > p.Returned && p.Holder == p.Self && !p.Told
}

// Take has this cluster start the job, if it holds it, or is the origin and nobody does.
func (p Part) Take() (Part, bool) {
	if p.Mine() {
		p.Begun, p.Asks = true, false
		return p, true
	}
	if p.Holder != 0 || !p.IsOrigin() || !p.Viable.Has(p.Self) {
		return p, false
	}
	p.Grant++
	p.Holder, p.Begun, p.Active = p.Self, true, p.Active.With(p.Self)
	return p, true
}

// Return gives the grant back, if this cluster holds one: the job waits again.
func (p Part) Return() Part {
	if p.Holder != p.Self {
		return p
	}
	p.Returned, p.Holder, p.Begun, p.Asks, p.Told = p.Grant, 0, false, false, false
	return p
}

// Again has the job wait once more after it has begun: at its origin for anybody, elsewhere for the origin to hear.
func (p Part) Again() Part {
	if p.IsOrigin() {
		p.Holder, p.Begun, p.Cancelled, p.Active = 0, false, nil, SetOf(p.Self)&p.Viable
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
	Refused       // it can not be here at all
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
	r := Report{Phase: at, Returned: p.Returned}
	if p.Grant > p.Returned && p.Holder == p.Self {
		r.Grant = p.Grant
	}
	if r.Grant == 0 && at != Waits {
		r.Phase = Revoked
	}
	r.Asks = at == Waits && p.Asks
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
		p.Holder, p.Begun, verdict = 0, false, Free
	}
	if int(r.Phase) < len(heard) && from != p.Self {
		verdict = max(verdict, heard[r.Phase](&p, from, r, free || verdict == Free))
	}
	return p, verdict
}

func hearWaits(p *Part, from ID, r Report, free bool) Verdict {
	p.Active = p.Active.With(from)
	if r.Asks && free && p.Holder == 0 && p.Viable.Has(from) && p.Cancelled == nil {
		p.Grant++
		p.Holder, p.Begun = from, false
	}
	return Stays
}

// hearRuns takes note of a start. One by a grant that is not known, as after the origin was restored, counts as well.
func hearRuns(p *Part, from ID, r Report, _ bool) Verdict {
	p.Active = p.Active.With(from)
	if r.Grant > p.Grant && !p.Begun {
		p.Holder, p.Grant = from, r.Grant
	}
	if p.Holder == from && p.Grant == r.Grant {
		p.Begun = true
	}
	return Stays
}

func hearEnded(p *Part, from ID, r Report, _ bool) Verdict {
	if r.Grant > p.Grant && !p.Begun {
		p.Holder, p.Grant = from, r.Grant
	}
	if p.Holder != from || p.Grant != r.Grant {
		return Stays
	}
	p.Active = p.Active.Without(from)
	return Over
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
	return o.Over || o.Begun && o.Holder != self || !o.Viable.Has(self)
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
	p.Viable, p.Cancelled = o.Viable, o.Cancelled
	if held := p.Holder == p.Self && p.Grant > p.Returned; held {
		return p.obeyHeld(o, at)
	}
	if o.Holder == p.Self && o.Grant > p.Returned && !o.Over {
		p.Holder, p.Grant, p.Asks, p.Begun, p.Told = p.Self, o.Grant, false, false, false
		return p, revived(at)
	}
	if p.Holder, p.Grant, p.Begun = o.Holder, max(o.Grant, p.Grant), o.Begun; p.Holder == p.Self {
		p.Holder, p.Begun = 0, false // it was given back, and the origin does not know yet
	}
	p.Asks = false // what it has asked was answered
	if !o.shuts(p.Self) {
		return p, revived(at)
	}
	if at == Waits {
		return p, Revoke
	}
	return p, Stays
}

// obeyHeld is what a cluster makes of an order about a job that it holds.
func (p Part) obeyHeld(o Order, at Phase) (Part, Verdict) {
	switch {
	case o.Over && o.Grant >= p.Grant && at == Ended:
		p.Told = true
	case o.Over && at == Waits:
		p = p.Return()
		return p, Revoke
	case at == Ended && o.Grant >= p.Grant && o.Holder != p.Self && !o.Over: // it was requeued at the origin
		p = p.Return()
		p.Holder, p.Begun, p.Grant = o.Holder, o.Begun, o.Grant
		if !o.shuts(p.Self) {
			return p, Revive
		}
	case at == Ended && o.Grant > p.Grant && o.Holder == p.Self:
		p.Returned = p.Grant
		p.Grant, p.Told, p.Begun, p.Asks = o.Grant, false, false, false
		return p, Revive
	}
	return p, Stays
}

func revived(at Phase) Verdict {
	if at == Revoked || at == Ended {
		return Revive
	}
	return Stays
}
