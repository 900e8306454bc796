package login

import (
	"sync"
	"time"
)

// FlowLife is how long a visitor may take at the provider.
const FlowLife = 10 * time.Minute

// maxUsed bounds the states of either generation. Anybody can begin logins and end them by a made-up code: whoever does
// so more often makes older ones be forgotten, whose code the provider takes once alone.
const maxUsed = 1 << 14

// used are states whose logins have ended, each for at least FlowLife after that.
type used struct {
	mu           sync.Mutex
	fresh, older map[string]bool
	since        time.Time // when fresh began
}

// first notes a state, and reports whether it was not noted before.
func (u *used) first(state string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.fresh) >= maxUsed || now.Sub(u.since) > FlowLife {
		u.older, u.fresh, u.since = u.fresh, map[string]bool{}, now
	}
	again := u.fresh[state] || u.older[state]
	u.fresh[state] = true
	return !again
}
