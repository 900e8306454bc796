package sched

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
}

// Explain says why a pending job waits.
func Explain(s *cluster.Snapshot, now time.Time, id cluster.JobID) Explanation {
	var e Explanation
	j, ok := s.Job(id)
	if !ok || j.Phase != cluster.Pending {
		return e
	}
	add := func(r cluster.Reason, format string, args ...any) {
		e.Causes = append(e.Causes, Cause{Reason: r, Text: fmt.Sprintf(format, args...)})
	}
	if _, why := s.Ready(j, now); why != cluster.NoReason {
		add(why, "%s", readyText(j, why))
	}
	ahead := 0
	for o := range s.Queue() {
		if o.ID == j.ID {
			break
		}
		if o.Held == cluster.NotHeld {
			ahead++
		}
	}
	for _, name := range j.Spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			continue
		}
		if r := closed(p, j); r != cluster.NoReason {
			add(r, "partition %s is %s, its time limit is %s, the job asks for %s", name, p.State, p.MaxTime, j.Limit)
			continue
		}
		want := newDemand(s, p, j.Spec)
		if r, note := want.possible(s); r != cluster.NoReason {
			add(r, "partition %s can not run it now: %d nodes wanted %s", name, want.minNodes, note)
			continue
		}
		free := newPool(s)
		fits := len(want.rooms(free, nil))
		if want.place(free, nil) == nil {
			add(cluster.WaitResources, "partition %s: %d nodes with %d tasks of %d CPUs wanted; %d nodes have room for a task now",
				name, want.minNodes, want.tasks, want.cpusPer, fits)
			if r := plan(s, free, want, now); !r.at.Equal(never) && (e.StartsAt.IsZero() || r.at.Before(e.StartsAt)) {
				e.StartsAt, e.Nodes = r.at, r.list
			}
		}
	}
	if ahead > 0 {
		add(cluster.WaitPriority, "%d jobs are ahead in the queue", ahead)
	}
	return e
}

func readyText(j *cluster.Job, why cluster.Reason) string {
	switch why {
	case cluster.WaitBegin:
		return "it may not start before " + j.Eligible.Format(time.DateTime)
	case cluster.WaitDependency, cluster.WaitDependencyNever:
		text := ""
		for _, d := range j.Depends.Terms {
			state := "not yet met"
			if d.Failed {
				state = "can never be met"
			}
			text += fmt.Sprintf("%s:%d is %s; ", d.Type, d.Job, state)
		}
		return text
	}
	return string(why)
}

// Test says when and where a job would start if it were submitted now (--test-only).
func Test(s *cluster.Snapshot, now time.Time, spec *cluster.JobSpec) (at time.Time, alloc *cluster.Alloc) {
	for _, name := range spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			continue
		}
		want := newDemand(s, p, spec)
		free := newPool(s)
		if a := want.place(free, nil); a != nil {
			return now, a
		}
		if r := plan(s, free, want, now); !r.at.Equal(never) && (at.IsZero() || r.at.Before(at)) {
			at, alloc = r.at, want.place(whole(s, false), nil)
		}
	}
	return at, alloc
}
