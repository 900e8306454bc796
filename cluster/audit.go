package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The audit trail: who changed what, and from where. An entry whose identity has an origin came from a caller; the
// leader's own proposals and the reports of nodes have none. Each kind of command either describes what it changes
// (audited) or is listed in unaudited with the reason.

// Audit is one accepted change.
type Audit struct {
	N      uint64    `json:"n"`     // of its class, from 1 on
	Index  uint64    `json:"index"` // of the log
	At     time.Time `json:"at"`
	Action string    `json:"action"` // such as "job hold"
	Object string    `json:"object"`
	By     string    `json:"by"` // the user's name, or "uid N"
	UID    uint32    `json:"uid"`
	Origin string    `json:"origin"`
	Old    string    `json:"old,omitempty"`
	New    string    `json:"new,omitempty"`
	// Ordinary marks a change by a user without rights over others. These have a bound of their own: users cannot
	// push the changes of operators out of the record.
	Ordinary bool `json:"ordinary,omitempty"`
}

// Bounds of the record. With those of the texts it takes less than 10 MiB.
const (
	maxAudits     = 7500 // of operators
	maxUserAudits = 2500 // of ordinary users
	maxAuditWord  = 128  // bytes of an action, an actor, an origin
	maxAuditText  = 256  // bytes of an object, of old and new values
)

// audited is a command that the audit trail shows. It is asked before the command is applied; without an action this
// one is not shown.
type audited interface {
	audit(t *tx) Audit
}

// unaudited are the kinds of commands that the audit trail leaves out.
var unaudited = [...]struct{ kind, why string }{
	{"put_blob", "stores the text of a submission"},
	{"submit_het", "the jobs themselves show who submitted them"},
	{"take_turns", "a decision of the scheduler"},
	{"finish", "a user's own salloc has ended"},
	{"decide", "a decision of the scheduler"},
	{"report", "a report of a node"},
	{"expire", "a decision of the leader"},
	{"purge", "a decision of the leader"},
	{"node_tell", "a report of a node"},
	{"node_up", "a report of a node"},
	{"node_down", "a decision of the leader"},
	{"node_quiet", "a decision of the leader"},
	{"node_reboot_due", "a decision of the leader"},
	{"reservation_nodes", "a decision of the leader"},
	{"reservations_due", "a decision of the leader"},
	{"decay", "a decision of the leader"},
	{"trust_init", "the first server makes the cluster"},
	{"member_move", "a member reports its address"},
	{"gossip_rotate", "a decision of the leader"},
	{"remind", "a decision of the leader"},
	{"checkpoint", "a report of a job about itself"},
	{"hang", "a decision of the leader"},
	{"straggler", "a decision of the leader"},
	{"errands_done", "a report of the leader"},
	{"node_power", "a decision of the leader"},
	{"cron_next", "a decision of the leader"},
	{"trigger_server", "a report of the leader"},
	{"triggers_due", "a decision of the leader"},
	{"federation_orders", "a decision of another cluster's leader"},
	{"federation_reports", "a report of another cluster"},
	{"federation_return", "a decision of the leader"},
	{"federation_away", "a decision of the leader"},
	{"federation_parents", "a decision of the leader"},
	{"node_resume_due", "a decision of the leader"},
	{"raise_level", "a decision of the leader"},
}

// describeChange returns what the audit trail shows of a command that is about to be applied, nil if nothing.
func describeChange(t *tx, c Command) *Audit {
	says, ok := c.(audited)
	if !ok || t.by.Origin == "" {
		return nil
	}
	a := says.audit(t)
	if a.Action == "" {
		return nil
	}
	a.Index = t.Index
	a.At = t.at
	a.UID = t.by.UID
	a.Ordinary = !t.by.Operator() && !t.by.Deputy
	a.Action = cutText(a.Action, maxAuditWord)
	a.By = cutText(cmp.Or(a.By, t.by.auditName()), maxAuditWord)
	a.Origin = cutText(cmp.Or(a.Origin, t.by.Origin), maxAuditWord)
	a.Object = cutText(a.Object, maxAuditText)
	a.Old = cutText(a.Old, maxAuditText)
	a.New = cutText(a.New, maxAuditText)
	return &a
}

// Describe returns what the audit trail shows of a command, nil if nothing.
func Describe(s *Snapshot, by Identity, c Command) *Audit {
	return describeChange(&tx{tables: &s.tables, at: s.Now, by: by}, c)
}

// auditName returns the name of the actor.
func (id Identity) auditName() string {
	switch name := cmp.Or(id.User, id.Login); {
	case id.NodeRoot:
		return "root of node " + string(id.Node)
	case name != "":
		return name
	case id.System:
		return "muster"
	}
	return fmt.Sprintf("uid %d", id.UID)
}

// cutText returns at most n bytes of a text, on one line and in UTF-8.
func cutText(text string, n int) string {
	if len(text) > n {
		text = text[:n-3] + "..."
	}
	text = strings.ToValidUTF8(text, "")
	if strings.ContainsAny(text, "\r\n\t") {
		text = strings.Join(strings.Fields(text), " ")
	}
	return text
}

// recordAudit stores a change, tells history of it, and forgets the oldest one beyond the bound.
func recordAudit(t *tx, a *Audit) {
	if a == nil {
		return
	}
	first, last := auditEnds(t.tables, a.Ordinary)
	a.N = 1
	if last != nil {
		a.N = last.N + 1
	}
	most := uint64(maxAudits)
	if a.Ordinary {
		most = maxUserAudits
	}
	putItem(t, t.audits, a)
	if first != nil && a.N-first.N >= most {
		dropItem(t, t.audits, first)
	}
	t.events = append(t.events, Event{Audit: a})
}

// auditEnds returns the oldest and the newest change of a class.
func auditEnds(t *tables, ordinary bool) (first, last *Audit) {
	if ordinary { // they are behind all others
		t.audits.Ascend(&Audit{Ordinary: true}, func(a *Audit) bool {
			first = a
			return false
		})
		if first != nil {
			last, _ = t.audits.Max()
		}
		return first, last
	}
	if a, ok := t.audits.Min(); ok && !a.Ordinary {
		first = a
	}
	t.audits.Descend(&Audit{Ordinary: true}, func(a *Audit) bool {
		last = a
		return false
	})
	return first, last
}

// auditLess orders changes by their class, and in that by their numbers.
func auditLess(x, y *Audit) bool {
	if x.Ordinary != y.Ordinary {
		return y.Ordinary
	}
	return x.N < y.N
}

// Audits lists the latest changes, oldest first.
func (t *tables) Audits() []*Audit {
	out := t.audits.Items()
	slices.SortStableFunc(out, func(x, y *Audit) int { return cmp.Compare(x.Index, y.Index) })
	return out
}

// AuditNote records a change that is not a command of the log: a login, a log level.
type AuditNote struct {
	Action string `json:"action"`
	Object string `json:"object"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

func (*AuditNote) kind() string { return "audit_note" }

func (c *AuditNote) apply(t *tx) (any, error) {
	return nil, refuseIf(c.Action == "" || t.by.Origin == "",
		Invalid, "", "an entry of the audit trail needs an action and an origin")
}

func (c *AuditNote) audit(*tx) Audit {
	return Audit{Action: c.Action, Object: c.Object, Old: c.Old, New: c.New}
}

// OfHistory reports whether an event is of history's records alone.
func (e *Event) OfHistory() bool {
	return e.Forget != nil || e.Load != nil || e.Change != nil || e.Amend != nil || e.Audit != nil
}
