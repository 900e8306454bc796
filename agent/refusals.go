package agent

import (
	"cmp"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// refusals bounds the lines about refused calls, per minute for each actor and action, and counts those that had none.
type refusals struct {
	mu    sync.Mutex
	known map[refusal]*refused
}

// refusal is an actor and an action.
type refusal struct {
	uid    uint32
	member string
	call   string
}

type refused struct {
	since   time.Time
	lines   int
	omitted int
}

// Bounds of lines about refused calls.
const (
	refusalSpan  = time.Minute
	refusalLines = 10     // in a span, of an actor and an action
	maxRefusals  = 10_000 // actors and actions that are known
)

// count reports whether a refusal has a line now, and how many before it had none.
func (r *refusals) count(k refusal, now time.Time) (omitted int, line bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.find(k, now)
	if x == nil {
		return 0, false
	}
	if now.Sub(x.since) >= refusalSpan {
		x.since, x.lines = now, 0
	}
	if x.lines >= refusalLines {
		x.omitted++
		return 0, false
	}
	x.lines++
	omitted, x.omitted = x.omitted, 0
	return omitted, true
}

// find returns what is known of an actor and an action; nil if too many others are known.
func (r *refusals) find(k refusal, now time.Time) *refused {
	if x, ok := r.known[k]; ok {
		return x
	}
	if len(r.known) >= maxRefusals {
		for old, x := range r.known {
			if now.Sub(x.since) >= refusalSpan {
				delete(r.known, old)
			}
		}
	}
	if len(r.known) >= maxRefusals {
		return nil
	}
	if r.known == nil {
		r.known = map[refusal]*refused{}
	}
	x := &refused{since: now}
	r.known[k] = x
	return x
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
