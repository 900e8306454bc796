package cluster

import (
	"slices"
	"time"
)

// maxAhead is by how much a node's clock may be ahead.
const maxAhead = time.Hour

// NewsOf is what of a node's news is for it to tell: of attempts that it is a part of. Times are not of the future,
// which users would be charged for. It changes the news.
func (s *Snapshot) NewsOf(node NodeName, news []Update, now time.Time) []Update {
	news = slices.DeleteFunc(news, func(u Update) bool {
		j, ok := s.Job(u.Job)
		return !ok || j.Attempt != u.Attempt || !mayTell(s, j, node, &u)
	})
	latest := now.Add(maxAhead)
	for i := range news {
		news[i].At = earlier(news[i].At, latest)
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

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
