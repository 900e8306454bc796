package fabric

import (
	"fmt"
	"strconv"
	"time"

	"dev.muster/cluster"
)

// Bounds of the judgement. A look is one of those that are made every so often.
const (
	window     = time.Hour   // over which counters are judged
	sampleGap  = time.Minute // between samples that are kept
	patience   = 3           // looks for which a port is down or slow before that is a fault: a link that flaps is not drained for
	calm       = 30          // looks for which it is well before the fault ends
	fewPeers   = 3           // like ports that must agree before one is odd
	clockShape = "15:04"
)

// history is what is remembered of a port. The exported part outlives the daemon.
type history struct {
	Rate  string    `json:"rate"`            // the best at which it was active; empty: never
	Bad   string    `json:"bad,omitempty"`   // the cause for which it is not well: down, gone, degraded
	Since time.Time `json:"since,omitzero"`  // when that was first seen
	Text  string    `json:"text,omitempty"`  // what was seen
	Fault bool      `json:"fault,omitempty"` // it has lasted

	bad, well int // looks in a row
	seen      []sample
}

// sample is the counters at a time.
type sample struct {
	at       time.Time
	counters map[string]uint64
}

// sees notes a look at a port (nil: the device is gone) and the trouble that this look shows.
func (h *history) sees(r *Reading, at time.Time) {
	switch cause, text := h.trouble(r); {
	case cause != "":
		h.suffer(cause, text, at)
	case h.Bad != "":
		h.recover()
	}
	if r == nil {
		return
	}
	if r.Active() && speed(r.Rate) > speed(h.Rate) {
		h.Rate = r.Rate
	}
	h.keep(r, at)
}

// suffer notes a look that shows trouble. Trouble that lasts is a fault.
func (h *history) suffer(cause, text string, at time.Time) {
	if cause != h.Bad {
		h.Bad = cause
		h.Since = at
		h.Text = text
		h.bad = 0
	}
	h.bad++
	h.well = 0
	if h.bad >= patience {
		h.Fault = true
	}
}

// recover notes a look that shows no trouble any more. A fault ends once that has lasted.
func (h *history) recover() {
	h.bad = 0
	h.well++
	if !h.Fault || h.well >= calm {
		h.Bad = ""
		h.Fault = false
	}
}

// trouble is what is wrong with a port compared with what it was; no cause if it is well or was never active.
func (h *history) trouble(r *Reading) (cause, text string) {
	switch {
	case h.Rate == "":
		return "", ""
	case r == nil:
		return "gone", "not found any more"
	case r.Active() && speed(r.Rate) < speed(h.Rate):
		return "degraded", fmt.Sprintf("link at %s instead of %s", r.Rate, h.Rate)
	case r.Active():
		return "", ""
	case r.State == "INIT" || r.State == "ARMED":
		return "down", "link not set up by a subnet manager"
	}
	return "down", "link down"
}

// keep adds the counters to those remembered, for a window.
func (h *history) keep(r *Reading, at time.Time) {
	if k := len(h.seen); k > 0 && fallen(r.Counters, h.seen[k-1].counters) {
		h.seen = nil
	}
	for len(h.seen) > 1 && at.Sub(h.seen[1].at) >= window {
		h.seen = h.seen[1:]
	}
	s := sample{at, r.Counters}
	if k := len(h.seen); k > 1 && h.seen[k-1].at.Sub(h.seen[k-2].at) < sampleGap {
		h.seen[k-1] = s
		return
	}
	h.seen = append(h.seen, s)
}

// fallen reports whether counters were reset since, or the driver loaded again.
func fallen(now, before map[string]uint64) bool {
	for name, n := range now {
		if n < before[name] {
			return true
		}
	}
	return false
}

// rise is by how much a counter has risen within the window.
func (h *history) rise(counter string) uint64 {
	if len(h.seen) == 0 {
		return 0
	}
	return h.seen[len(h.seen)-1].counters[counter] - h.seen[0].counters[counter]
}

// faults judges a port by what is remembered of it.
func (h *history) faults(device string, port int, r *Reading, all []Reading) (out []cluster.Fault) {
	add := func(ru rule, text string) {
		out = append(out, cluster.Fault{
			Kind:    cluster.FaultPort,
			Part:    device + "/" + strconv.Itoa(port),
			Cause:   ru.cause,
			Text:    portName(device, port) + ": " + text,
			Action:  ru.action,
			Passing: true,
		})
	}
	if h.Fault {
		add(ruleOf(h.Bad), h.Text+" since "+h.Since.Format(clockShape))
	}
	if r == nil {
		return out
	}
	for _, ru := range rules() {
		if n := h.rise(ru.counter); ru.counter != "" && n > ru.most {
			add(ru, fmt.Sprintf("%s: %s rose by more than %d within an hour", ru.meaning, ru.counter, ru.most))
		}
	}
	if cause, text := odd(r, h, all); cause != "" && h.Bad == "" {
		add(ruleOf(cause), text)
	}
	return out
}

// odd compares a port with those of the machine's like adapters.
func odd(r *Reading, h *history, all []Reading) (cause, text string) {
	peers := peersOf(r, all)
	best, agree := common(peers)
	switch {
	case !agree || len(peers) < fewPeers:
		return "", ""
	case h.Rate == "":
		return "unused", fmt.Sprintf("link down, while those of %d like adapters are up", len(peers))
	case speed(r.Rate) < best:
		return "slower", fmt.Sprintf("link at %s, while those of %d like adapters are at %g Gb/sec", r.Rate,
			len(peers), best)
	}
	return "", ""
}

// peersOf are the same ports of a machine's like adapters.
func peersOf(r *Reading, all []Reading) (peers []*Reading) {
	for i := range all {
		o := &all[i]
		like := o.Make == r.Make && o.Link == r.Link && o.Port == r.Port
		if like && o.Device != r.Device {
			peers = append(peers, o)
		}
	}
	return peers
}

// common is the speed of ports that agree: all are active, and at one speed.
func common(ports []*Reading) (best float64, agree bool) {
	for _, p := range ports {
		own := speed(p.Rate)
		if !p.Active() || best != 0 && best != own {
			return 0, false
		}
		best = own
	}
	return best, true
}
