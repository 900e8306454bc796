package explain

import (
	"fmt"
	"time"

	"dev.muster/cluster"
)

// Cause is one cause of waiting, with numbers for people.
type Cause struct {
	Reason cluster.Reason
	Text   string
	Hint   string
}

// Explanation is everything that keeps a job from starting, most decisive first, and when and
// where it is expected to start.
type Explanation struct {
	Causes   []Cause
	StartsAt time.Time
	Nodes    []cluster.NodeName
	Holders  []Holder // of what it is to get there
	Notes    []string // limits of its account and QOS that hold nothing back
}

func (e *Explanation) addCause(r cluster.Reason, hint, format string, args ...any) {
	e.Causes = append(e.Causes, Cause{Reason: r, Text: fmt.Sprintf(format, args...), Hint: hint})
}
