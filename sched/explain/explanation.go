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

	sees Sight // what causes may name; nil: all
}

// Sight tells what whoever asks may see.
type Sight interface {
	Job(*cluster.Job) bool
	Reservation(*cluster.Reservation) bool
}

// maySee reports whether causes may name a job.
func (e *Explanation) maySee(j *cluster.Job) bool { return e.sees == nil || e.sees.Job(j) }

// reservationText names a reservation.
func (e *Explanation) reservationText(r *cluster.Reservation) string {
	if e.sees != nil && !e.sees.Reservation(r) {
		return "a reservation of others"
	}
	return "reservation " + r.Name
}

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
