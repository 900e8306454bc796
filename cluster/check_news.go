package cluster

import (
	"slices"
	"strings"
	"time"

	"dev.muster/wire"
)

// Bounds of what a node tells. Its key may be in wrong hands, and servers keep what it tells of live steps.
const (
	maxAhead     = time.Hour // by which its clock may be ahead
	maxNewsText  = 8 << 10   // of an error
	maxStepBytes = 8 << 20   // of a step's record, with a share of each node
	maxLiveSteps = 8 << 10   // of a job: twice as many as a node lets it have
)

// NewsOf is what of a node's news is for it to tell: of attempts that it is a part of. Times are not of the future,
// which users would be charged for, and texts not without end. It changes the news.
func (s *Snapshot) NewsOf(node NodeName, news []Update, now time.Time) []Update {
	room := map[JobID]int{}
	news = slices.DeleteFunc(news, func(u Update) bool {
		j, ok := s.Job(u.Job)
		return !ok || j.Attempt != u.Attempt || !mayTell(s, j, node, &u) || !hasRoom(s, room, u.Step)
	})
	latest := now.Add(maxAhead)
	for i := range news {
		news[i].At = earlier(news[i].At, latest)
		if text := news[i].Error; len(text) > maxNewsText {
			news[i].Error = strings.ToValidUTF8(text[:maxNewsText], "")
		}
		if step := news[i].Step; step != nil {
			step.Started, step.Ended = earlier(step.Started, latest), earlier(step.Ended, latest)
		}
	}
	return news
}

// mayTell reports whether a node may tell of a job.
func mayTell(s *Snapshot, j *Job, node NodeName, u *Update) bool {
	// One of the job's, or one that it leaves.
	isOf := func(o *Job) bool { _, ok := o.Share(node); return ok || o.leaves(node) }
	if slices.Contains(s.Load(node).Jobs, j.ID) || isOf(j) {
		return true
	}
	if u.Kind == StepNow && j.Phase == Pending && j.Attempt > 0 {
		return true // of the attempt before, whose nodes are not known any more
	}
	return slices.ContainsFunc(s.Components(j), isOf)
}

// hasRoom reports whether the record of a step is one that servers keep; nil: there is none to keep. room is for how
// many more live steps of each job there is room, as far as that was counted.
func hasRoom(s *Snapshot, room map[JobID]int, step *Step) bool {
	if step == nil {
		return true
	}
	if text, err := wire.Marshal(step); err != nil || len(text) > maxStepBytes {
		return false
	}
	if _, known := s.Step(step.ID); known || !step.Ended.IsZero() {
		return true
	}
	job := step.ID.Job
	if _, counted := room[job]; !counted {
		room[job] = maxLiveSteps
		for range s.Steps(job) {
			room[job]--
		}
	}
	room[job]--
	return room[job] >= 0
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
