package login

import (
	"strconv"
	"testing"
	"time"
)

// TestManyUsed: whoever ends logins without end takes bounded memory, and each is refused the second time.
func TestManyUsed(t *testing.T) {
	u, now := used{}, time.Now()
	for i := range 4 * maxUsed {
		state := strconv.Itoa(i)
		if !u.first(state, now) || u.first(state, now) {
			t.Fatalf("%s is not good once", state)
		}
	}
	if n := len(u.fresh) + len(u.older); n > 2*maxUsed {
		t.Errorf("%d states are remembered", n)
	}
}

// TestUsedLong: a state is refused as long as its login would have been good.
func TestUsedLong(t *testing.T) {
	for _, begins := range []time.Duration{0, FlowLife / 2, FlowLife} {
		t.Run(begins.String(), func(t *testing.T) {
			u, now := used{}, time.Now()
			u.first("before", now)
			now = now.Add(begins)
			u.first("s", now)
			for range 10 {
				now = now.Add(FlowLife / 10)
				u.first(now.String(), now)
			}
			if u.first("s", now) {
				t.Error("it is good again")
			}
		})
	}
}
