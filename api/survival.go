package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// Fact is a line about a job: a name of a few words, and its value.
type Fact struct{ Name, Value string }

// Survival lists what is known of a job against faults: how far it has come, its last checkpoint and hang, its spares,
// and the nodes that it has lost. stamp writes times; p is nil where the job reports no progress.
func Survival(j *cluster.Job, p *Progress, stamp func(time.Time) string) (out []Fact) {
	add := func(name, value string) {
		if value != "" {
			out = append(out, Fact{Name: name, Value: value})
		}
	}
	if p != nil {
		add("progress", p.Text()+", reported "+stamp(time.Unix(p.At, 0)))
	}
	known := cluster.Survived(j)
	if saved := known.Saved; saved != nil {
		add("last checkpoint", strings.TrimSpace(stamp(saved.At)+" "+cluster.PlainLine(saved.Path)))
	}
	if hung := known.Hung; hung != nil {
		add("hang", stamp(hung.At)+": "+hung.Note())
	}
	if slow := known.Slow; slow != nil {
		add("slow GPU", stamp(slow.At)+": "+slow.Note())
	}
	asked := j.Spec.Survives()
	if asked.Spares > 0 && j.Alloc != nil {
		add("spare nodes", sparesText(j, asked.Spares))
	}
	add("lost nodes", lostText(j))
	return out
}

// sparesText names the spares that a job has left.
func sparesText(j *cluster.Job, asked int) string {
	names := cluster.SpareNodes(j)
	switch {
	case j.Spec.Survives().Restart == cluster.RestartRank:
		return fmt.Sprintf("%d among its nodes, for its launcher", asked)
	case len(names) == 0:
		return fmt.Sprintf("none left of %d", asked)
	}
	return fmt.Sprintf("%s, %d left of %d", hostlist.CompressNames(names), len(names), asked)
}

// lostText names the nodes that a job has lost, and the spares that have taken their places.
func lostText(j *cluster.Job) string {
	lost, spares := cluster.LostNodes(j), cluster.ReplacedNodes(j)
	if len(lost) == 0 {
		return ""
	}
	if len(lost) != len(spares) { // it went on without some
		text := hostlist.CompressNames(lost)
		if len(spares) > 0 {
			text += "; spares in use: " + hostlist.CompressNames(spares)
		}
		return text
	}
	parts := make([]string, len(lost))
	for i := range lost {
		parts[i] = fmt.Sprintf("%s, replaced by %s", lost[i], spares[i])
	}
	return strings.Join(parts, "; ")
}

// Text writes a report of progress on one line.
func (p *Progress) Text() string {
	text := "step " + strconv.FormatInt(p.Step, 10)
	if p.Of > 0 {
		text += fmt.Sprintf(" of %d (%.0f%%)", p.Of, 100*float64(p.Step)/float64(p.Of))
	}
	if p.Loss != nil {
		text += ", loss " + strconv.FormatFloat(*p.Loss, 'g', 6, 64)
	}
	if p.Pace > 0 {
		text += fmt.Sprintf(", one every %v", time.Duration(p.Pace*float64(time.Second)).Round(time.Millisecond))
	}
	return text
}
