package cluster

import (
	"strings"
	"testing"
	"time"
)

// TestNewsOf: a node tells of the jobs that it is a part of, and of no others; nobody is charged for time that has
// not come.
func TestNewsOf(t *testing.T) {
	w := newWorld(t, 3)
	id := w.run(w.submit(nil), 0, "n0", "n1")
	pending := w.submit(nil)
	far := w.now.Add(100 * 365 * 24 * time.Hour)
	news := func(node NodeName, job JobID, attempt int, kind UpdateKind) []Update {
		u := Update{Kind: kind, Job: job, Attempt: attempt, At: far}
		if kind == StepNow {
			u.Step = &Step{ID: StepID{Job: job}, Attempt: attempt, Started: w.now, Ended: far}
		}
		return w.s.Snapshot().NewsOf(node, []Update{u}, w.now)
	}
	for _, kind := range []UpdateKind{BatchOver, JobLost, NodeDone, LaunchFailed, NodeReady, StepNow} {
		if got := news("n2", id, 1, kind); len(got) > 0 {
			t.Errorf("%s of another node's job is taken", kind)
		}
		if got := news("n1", id, 2, kind); len(got) > 0 {
			t.Errorf("%s of an attempt that there is not is taken", kind)
		}
		if got := news("n2", pending, 0, kind); len(got) > 0 {
			t.Errorf("%s of a job that has not begun is taken", kind)
		}
		got := news("n1", id, 1, kind)
		if len(got) != 1 {
			t.Errorf("%s of a node's own job is left out", kind)
			continue
		}
		if u := got[0]; u.At.Sub(w.now) > maxAhead || u.Step != nil && u.Step.Ended.Sub(w.now) > maxAhead {
			t.Errorf("%s: it was at %v", kind, u.At)
		}
	}
}

// TestNewsBounds: what a node tells of its own jobs fills no server's memory.
func TestNewsBounds(t *testing.T) {
	w := newWorld(t, 1)
	id := w.run(w.submit(nil), 0, "n0")
	begun := func(number int) Update {
		return Update{Kind: StepNow, Job: id, Attempt: 1, At: w.now, Error: strings.Repeat("e", 2*maxNewsText),
			Step: &Step{ID: StepID{Job: id, Step: number}, Attempt: 1, Name: "step", Started: w.now}}
	}
	tell := func(news ...Update) []Update { return w.s.Snapshot().NewsOf("n0", news, w.now) }
	large := begun(0)
	large.Step.Name = strings.Repeat("x", maxStepBytes)
	if len(tell(large)) > 0 {
		t.Error("a step of any size is taken")
	}
	var many []Update
	for number := range maxLiveSteps + 10 {
		many = append(many, begun(number))
	}
	taken := tell(many...)
	if len(taken) != maxLiveSteps || len(taken[0].Error) > maxNewsText {
		t.Errorf("%d live steps at once are taken, with texts of %d bytes", len(taken), len(taken[0].Error))
	}
	w.seq["n0"]++
	w.ok(sys, &Report{Node: "n0", Seq: w.seq["n0"], Updates: taken})
	if len(tell(begun(maxLiveSteps))) > 0 {
		t.Error("one more is taken")
	}
	over := begun(maxLiveSteps)
	over.Step.Ended = w.now
	if len(tell(begun(7), over)) != 2 {
		t.Error("a step that is known, or over, is not taken")
	}
}

// TestNewsOfEndedSteps: one report tells no endless history of steps, and of a job that waits for its next attempt
// only nodes of the attempt before tell.
func TestNewsOfEndedSteps(t *testing.T) {
	w := newWorld(t, 2)
	id := w.run(w.submit(func(s *JobSpec) { s.Kind = Batch }), 0, "n0")
	ended := func(number, size int) Update {
		return Update{Kind: StepNow, Job: id, Attempt: 1, At: w.now, Step: &Step{ID: StepID{Job: id, Step: number},
			Attempt: 1, Name: strings.Repeat("x", size), Started: w.now, Ended: w.now}}
	}
	list := func(count, size int) (news []Update) {
		for i := range count {
			news = append(news, ended(i, size))
		}
		return news
	}
	taken := func(node NodeName, news []Update) int { return len(w.s.Snapshot().NewsOf(node, news, w.now)) }
	for _, c := range []struct {
		name              string
		count, size, want int
	}{
		{"many", maxToldSteps + 10, 1, maxToldSteps},
		{"large", 8, maxStepBytes / 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := taken("n0", list(c.count, c.size)); got != c.want {
				t.Errorf("%d of %d steps are taken, want %d", got, c.count, c.want)
			}
		})
	}
	other := ended(1, 1)
	other.Step.ID.Job++
	if taken("n0", []Update{other}) > 0 {
		t.Error("a step of another job than the news is of is taken")
	}
	w.ok(alice, &Requeue{Ref: Ref{Job: id}})
	w.report("n0", id, NodeDone)
	w.want(id, Pending)
	if taken("n0", list(1, 1)) != 1 {
		t.Error("the end of a step of the attempt before is left out")
	}
	if taken("n1", list(1, 1)) > 0 {
		t.Error("a node tells of a job that it never had")
	}
}
