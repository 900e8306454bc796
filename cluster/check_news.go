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
	maxToldSteps = 16 << 10  // of a job in one report: each of these may begin and end
	maxToldBytes = 16 << 20  // likewise, of their records
)

// NewsOf is what of a node's news is for it to tell: of attempts that it is a part of. Times are not of the future,
// which users would be charged for, and texts not without end. It changes the news.
func (s *Snapshot) NewsOf(node NodeName, news []Update, now time.Time) []Update {
	told := map[JobID]*toldSteps{}
	news = slices.DeleteFunc(news, func(u Update) bool {
		j, ok := s.Job(u.Job)
		return !ok || j.Attempt != u.Attempt || !mayTell(s, j, node, &u) || !hasRoom(s, told, j, u.Step)
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
	// One of the job's, or one that it leaves. Of the attempt before a node tells only how its steps ended.
	isOf := func(o *Job) bool {
		_, ok := o.Share(node)
		return ok || o.leaves(node) || u.Kind == StepNow && o.Phase == Pending && slices.Contains(o.Waiting, node)
	}
	if slices.Contains(s.Load(node).Jobs, j.ID) || isOf(j) {
		return true
	}
	return slices.ContainsFunc(s.Components(j), isOf)
}

// toldSteps counts what a report tells of the steps of a job.
type toldSteps struct {
	count, bytes int
	room         int // for more live steps
}

// hasRoom reports whether the record of a step is one that servers keep; nil: there is none to keep. told has what the
// report told of steps so far.
func hasRoom(s *Snapshot, told map[JobID]*toldSteps, j *Job, step *Step) bool {
	if step == nil {
		return true
	}
	text, err := wire.Marshal(step)
	if err != nil || len(text) > maxStepBytes || step.ID.Job != j.ID {
		return false
	}
	t := told[j.ID]
	if t == nil {
		t = &toldSteps{room: maxLiveSteps}
		for range s.Steps(j.ID) {
			t.room--
		}
		told[j.ID] = t
	}
	t.count++
	t.bytes += len(text)
	if t.count > maxToldSteps || t.bytes > maxToldBytes {
		return false
	}
	if _, known := s.Step(step.ID); known || !step.Ended.IsZero() {
		return true
	}
	t.room--
	return t.room >= 0
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
