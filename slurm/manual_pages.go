package slurm

import (
	"strings"

	"dev.muster/cluster"
)

// A Topic is a manual that is of no command: its section says of what.
type Topic struct {
	Page
	Chapter int
	About   string // words for the head of the page
}

// plain takes the marks out of a text that documents have as Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// ReasonsTopic is muster-reasons(7), from the table of which docs/reasons.md is made.
func ReasonsTopic() Topic {
	waits, ended := Section{Title: "jobs that wait"}, Section{Title: "jobs that have ended"}
	for _, r := range cluster.ReasonRows() {
		to := &waits
		if r.Ended {
			to = &ended
		}
		to.Rows = append(to.Rows, Row{string(r.Word), plain(r.Means + ". What to do: " + r.Do)})
	}
	limits := Section{Title: "limits", Text: "" +
		"With AccountingStorageEnforce=limits. Such jobs do not hold back others. " +
		"sacctmgr show assoc and sacctmgr show qos list the limits."}
	for _, r := range cluster.LimitRows() {
		words := make([]string, len(r.Words))
		for i, w := range r.Words {
			words[i] = string(w)
		}
		text := plain(strings.Join(words, ", ") + ". It bounds " + r.Means + ". What to do: " + r.Do)
		limits.Rows = append(limits.Rows, Row{r.Name, text})
	}
	about := Section{Title: "description", Text: "" +
		"The words that squeue (%r, %R) and scontrol show job show as a job's reason. muster why JOB tells " +
		"all causes with numbers, who holds what the job is to get and until when, and what would start it sooner. " +
		"None stands for a job that no cycle has looked at yet."}
	return Topic{Chapter: 7, About: "Reasons of jobs", Page: Page{Name: "muster-reasons",
		Summary: "why a job waits, and how it ended", Sections: []Section{about, waits, ended, limits}}}
}
