package slurm

import (
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/wrap"
)

// A Topic is a manual that is of no command: its section says of what.
type Topic struct {
	Page
	Chapter int
	About   string // words for the head of the page
}

// plain takes the marks out of a text that documents have as Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// WrappersTopic is muster-wrappers(7), from the tables by which the wrappers read their options.
func WrappersTopic() Topic {
	about := Section{Title: "description", Text: "" +
		"Commands of PBS and LSF, and Slurm's contributed ones, for scripts that call them: muster qsub JOB.pbs. " +
		"Other programs may have these names, so nothing links them; who wants one links its name to muster, beside " +
		"the program: ln -s muster /usr/local/bin/qsub. Shells complete them then. " +
		"qsub reads #PBS lines, bsub reads #BSUB lines; the " +
		"command's own options win. An option that cannot be done is refused, with what does it here."}
	all := Section{Title: "commands"}
	list := []Section{about, all}
	for _, w := range wrap.Commands() {
		list[1].Rows = append(list[1].Rows, Row{w.Name, w.Summary})
		options := Section{Title: "options of " + w.Name}
		for _, o := range wrap.OptionTexts(w.Name) {
			options.Rows = append(options.Rows, Row{o.Word, o.Means})
		}
		if len(options.Rows) > 0 {
			list = append(list, options)
		}
	}
	return Topic{Chapter: 7, About: "Miscellanea", Page: Page{Name: "muster-wrappers",
		Summary: "commands of PBS and LSF in a muster cluster", Sections: list}}
}

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
