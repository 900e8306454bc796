package agent

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"dev.muster/agent/sparse"
	"dev.muster/api"
	"dev.muster/cluster"
)

// refusals bounds the lines about refused calls, per minute for each actor and action, and counts those that had none.
type refusals struct {
	mu    sync.Mutex
	known map[refusal]*sparse.Lines
}

// refusal is an actor and an action.
type refusal struct {
	uid    uint32
	member string
	call   string
}

// Bounds of lines about refused calls.
const (
	refusalLines = 10     // in a span of sparse, of an actor and an action
	maxRefusals  = 10_000 // actors and actions that are known
)

// count reports whether a refusal has a line now, and how many before it had none.
func (r *refusals) count(k refusal, now time.Time) (omitted int, line bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.find(k, now)
	if lines == nil {
		return 0, false
	}
	return lines.Next(now, refusalLines)
}

// find returns what is known of an actor and an action; nil if too many others are known.
func (r *refusals) find(k refusal, now time.Time) *sparse.Lines {
	if lines, ok := r.known[k]; ok {
		return lines
	}
	if len(r.known) >= maxRefusals {
		maps.DeleteFunc(r.known, func(_ refusal, lines *sparse.Lines) bool { return lines.Idle(now) })
	}
	if len(r.known) >= maxRefusals {
		return nil
	}
	if r.known == nil {
		r.known = map[refusal]*sparse.Lines{}
	}
	lines := &sparse.Lines{}
	r.known[k] = lines
	return lines
}

// logRefusal writes a line about a call that was denied.
func (c *call) logRefusal(err error) {
	e := api.AsError(err)
	if e.Code != cluster.Denied {
		return
	}
	k := refusal{c.who.UID, c.who.Member, c.name()}
	omitted, ok := c.refusals.count(k, time.Now())
	if !ok {
		return
	}
	line := []any{
		"action", c.name(), "outcome", "refused", "by", c.who.User, "uid", c.who.UID,
		"origin", cmp.Or(c.who.Origin, "host:"+c.who.Member), "err", e,
	}
	if omitted > 0 {
		line = append(line, "omitted", omitted)
	}
	c.log.Warn("audit", line...)
}
