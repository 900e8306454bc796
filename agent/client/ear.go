package client

import "time"

// ear is a job's salloc, which asks again and again for what the job is told.
type ear struct {
	texts chan string
	at    time.Time // when it last asked, or was answered
}

const (
	hearHold  = 30 * time.Second
	hearPause = 5 * time.Second // longer ago than that there is no salloc any more
	hearKept  = 16              // lines
)

// tell keeps a line for it, and reports whether it will hear that.
func (e *ear) tell(text string, now time.Time) bool {
	if e == nil || now.Sub(e.at) > hearHold+hearPause {
		return false
	}
	select {
	case e.texts <- text:
		return true
	default:
		return false
	}
}
