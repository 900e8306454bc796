package queue

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Mark is what a job was before it was held for the move. It stands in the operators' comment of the job in Slurm, so
// that an interrupted run can go on: Slurm forgets the times when the job is held.
type Mark struct {
	Held             cluster.Hold
	Eligible, Accrue time.Time
	Job              cluster.JobID // in muster; 0: it was not submitted yet, as far as is known
}

const markWord = "muster-move:"

// Text is the comment of a job that has one already.
func (m *Mark) Text(comment string) string {
	return fmt.Sprintf("%s%d,%d,%d,%d|%s", markWord, m.Held, seconds(m.Eligible), seconds(m.Accrue), m.Job, comment)
}

func seconds(t time.Time) int64 { return max(t.Unix(), 0) }

// readMark reads a comment that Text made.
func readMark(text string) (m Mark, comment string, ok bool) {
	head, comment, _ := strings.Cut(text, "|")
	var held uint8
	var eligible, accrue int64
	var job uint32
	n, err := fmt.Sscanf(head, markWord+"%d,%d,%d,%d", &held, &eligible, &accrue, &job)
	if n != 4 || err != nil || held > uint8(cluster.HeldAdmin) {
		return Mark{}, text, false
	}
	at := func(n int64) time.Time {
		if n <= 0 {
			return time.Time{}
		}
		return time.Unix(n, 0).UTC()
	}
	return Mark{cluster.Hold(held), at(eligible), at(accrue), cluster.JobID(job)}, comment, true
}
