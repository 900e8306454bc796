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

	sees func(*cluster.Job) bool // whether causes may name a job; nil: all
}

// maySee reports whether causes may name a job.
func (e *Explanation) maySee(j *cluster.Job) bool { return e.sees == nil || e.sees(j) }

// hiddenJob stands for a job that causes may not name.
const hiddenJob = "a job of another user"

// jobText names a job.
func (e *Explanation) jobText(j *cluster.Job) string {
	if !e.maySee(j) {
		return hiddenJob
	}
	return "job " + idText(j)
}

func (e *Explanation) addCause(r cluster.Reason, hint, format string, args ...any) {
	e.Causes = append(e.Causes, Cause{Reason: r, Text: fmt.Sprintf(format, args...), Hint: hint})
}
