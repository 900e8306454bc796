package explain

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/place"
)

// Texts about things that a job waits for in addition to nodes: other jobs, and licenses.

// termText tells one dependency term with the states of the jobs it waits for.
func termText(s *cluster.Snapshot, j *cluster.Job, d cluster.Depend) string {
	if d.Type == cluster.SingletonOf {
		var names []string
		for o := range s.Namesakes(j) {
			names = append(names, idText(o))
		}
		return fmt.Sprintf("singleton: %s %s of user %s, named %s too, %s not over", plural(len(names), "job", "jobs"),
			named(names, ", "), j.Spec.User, j.Spec.Name, plural(len(names), "is", "are"))
	}
	d.Task = s.Counterpart(j, d)
	id := fmt.Sprint(d.Job)
	if d.Task != cluster.TaskAny {
		id += fmt.Sprintf("_%d", d.Task)
	}
	text := fmt.Sprintf("%s:%s", d.Type, id)
	if d.Plus > 0 {
		text += fmt.Sprintf("+%d", int(d.Plus.Minutes()))
	}
	text += ": " + fatesText(s, id, d)
	if d.Failed {
		text += ", so it can never be met"
	}
	return text
}

// fatesText tells what has become of the job, or of the tasks or components, that a term speaks of.
func fatesText(s *cluster.Snapshot, id string, d cluster.Depend) string {
	switch of, away := cluster.ParentCluster(s, d); {
	case away:
		return fmt.Sprintf("job %s was submitted at cluster %s, which does not answer", id, of)
	case of != "":
		return fmt.Sprintf("job %s was submitted at cluster %s, which is asked every second", id, of)
	}
	list, ok, failed := s.Awaited(d)
	tally := map[fate]int{}
	total := 0
	add := func(f fate, n int) { tally[f], total = tally[f]+n, total+n }
	for _, o := range list {
		if d.Task != cluster.TaskAny {
			add(fateOf(o), 1)
		} else {
			add(fateOf(o), max(o.Tasks.Len(), 1))
		}
	}
	add(outcomeFate(cluster.Completed), ok.Len())
	add(outcomeFate(cluster.Failed), failed.Len())
	one := "task"
	all := "tasks"
	if len(list) > 0 && list[0].Het != nil {
		one = "component"
		all = "components"
	}
	var parts []string
	for _, f := range allFates() {
		n := tally[f]
		switch {
		case n == 0:
			continue
		case total == 1:
			return fmt.Sprintf("job %s %s%s", id, f.one, untilText(s, list))
		case parts == nil:
			parts = append(parts, place.Count(n, one, all)+" "+plural(n, f.one, f.all))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(n, f.one, f.all)))
		}
	}
	if parts == nil {
		return fmt.Sprintf("job %s is not known any more", id)
	}
	return strings.Join(parts, ", ")
}

// untilText is how long a single job that runs may do so.
func untilText(s *cluster.Snapshot, list []*cluster.Job) string {
	if len(list) == 1 && list[0].Phase == cluster.Running {
		if at := list[0].EndLimit(s.Config()); !at.IsZero() {
			return ", until " + at.Format(time.DateTime) + " at most"
		}
	}
	return ""
}

// fate is how it is said what has become of one and of several jobs.
type fate struct{ one, all string }

// stages are the fates of jobs that are not over, by phase.
var stages = [...]fate{
	{"is pending", "are pending"},
	{"is starting", "are starting"},
	{"is running", "are running"},
	{"is suspended", "are suspended"},
	{"is ending", "are ending"},
}

// allFates are those of jobs in the order in which they are told.
func allFates() []fate {
	list := stages[:]
	for _, o := range cluster.Outcomes() {
		list = append(list, outcomeFate(o))
	}
	return list
}

func outcomeFate(o cluster.Outcome) fate { return fate{o.Phrase(false), o.Phrase(true)} }

func fateOf(j *cluster.Job) fate {
	if j.Phase == cluster.Ended {
		return outcomeFate(j.Outcome)
	}
	return stages[j.Phase]
}

// licenses explains which licenses that a job asks for are not free, and when they will be.
func (e *Explanation) licenses(q *sched.Inquiry, s *cluster.Snapshot, now time.Time, j *cluster.Job) {
	for _, l := range q.LicensesShort() {
		text := fmt.Sprintf("it asks for %d of %s, the cluster has %d", l.Asks, l.Name, l.Has)
		if l.Asks > l.Has {
			words := fmt.Sprintf("licenses=%s:%d", l.Name, l.Has)
			if l.Has == 0 {
				words = "licenses="
			}
			e.addCause(cluster.WaitLicenses, updateHint([]*cluster.Job{j}, words), "%s; it never fits", text)
			continue
		}
		text += fmt.Sprintf(", %d in use", l.Used)
		if l.Kept > 0 {
			text += fmt.Sprintf(", %d kept for reservations", l.Kept)
		}
		need := shortfall{l.Holders, float64(l.Used), float64(l.Asks + l.Kept), float64(l.Has)}
		if at, last := need.overAt(s, now); last != nil {
			text += fmt.Sprintf("; there are enough at %s when %s is over", at.Format(time.DateTime), e.jobText(last))
		}
		e.addCause(cluster.WaitLicenses, "scontrol show licenses", "%s", text)
	}
}
