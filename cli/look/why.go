package look

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// Why prints everything that keeps a job from starting, with numbers, or what holds a node (muster why [--json]
// JOB|NODE). It returns the exit code.
func Why(sys *front.Sys, argv []string) int {
	json := len(argv) > 0 && argv[0] == "--json"
	if json {
		argv = argv[1:]
	}
	if len(argv) != 1 || strings.HasPrefix(argv[0], "-") {
		fmt.Fprintln(sys.Stderr, "usage: muster why [--json] JOB|NODE")
		return 2
	}
	t, ok := front.ParseTarget(argv[0])
	if !ok {
		return whyNode(sys, cluster.NodeName(argv[0]), json)
	}
	resp, err := front.Call(sys, api.WhyJob, api.WhyRequest{Ref: t.Ref})
	past := front.IsKind(err, cluster.ErrJobID) || err == nil && resp.Job.Phase == cluster.Ended
	if past {
		if said := whyEnded(sys, t.Ref, json); said || err == nil {
			return 0
		}
	}
	switch {
	case err != nil:
		return sys.Failed(err)
	case json:
		return sys.JSON(resp)
	}
	printWhy(sys, t.Ref, &resp)
	return 0
}

// printWhy prints what is known of a job that is not over.
func printWhy(sys *front.Sys, ref cluster.Ref, resp *api.WhyResponse) {
	j := resp.Job
	r := show.JobRow{Job: j, View: &show.View{Sys: sys, Now: sys.Now()}}
	fmt.Fprintf(sys.Stdout, "job %s (%s) of %s is %s", r.ShownID(), cluster.PlainLine(j.Spec.Name), j.Spec.User,
		show.StateOf(j).Long)
	if j.Phase == cluster.Pending {
		fmt.Fprintf(sys.Stdout, ", for %s\n", format.Duration(sys.Now().Sub(j.Submitted)))
		if j.Restarts > 0 {
			lastAttempt(sys, ref)
		}
	} else {
		printPlace(sys, &r)
	}
	printCauses(sys, resp.Causes)
	if j.Phase == cluster.Pending && len(resp.Causes) == 0 {
		fmt.Fprintln(sys.Stdout, "  nothing: it starts in the next cycle")
	}
	for _, note := range resp.Notes {
		fmt.Fprintln(sys.Stdout, "  note: "+note)
	}
	printSurvival(sys, resp)
	printStart(sys, resp)
	printHolders(sys, resp.Holders)
	printChanges(sys, resp.Changes)
	sayOthers(sys, resp.Others, resp.More)
}

// printSurvival prints what is known of a job against faults.
func printSurvival(sys *front.Sys, resp *api.WhyResponse) {
	for _, fact := range api.Survival(resp.Job, resp.Progress, front.Stamp) {
		fmt.Fprintf(sys.Stdout, "  %-26s %s\n", fact.Name, fact.Value)
	}
}

// printStart prints when a job is expected to start, or which job without a time limit keeps that from being known.
func printStart(sys *front.Sys, resp *api.WhyResponse) {
	if i := slices.IndexFunc(resp.Holders, func(h api.Holder) bool { return h.Endless }); i >= 0 {
		fmt.Fprintf(sys.Stdout, "  expected start unknown: %s has no time limit: nothing can be planned behind it\n",
			holderName(sys, &resp.Holders[i]))
		return
	}
	if !resp.StartsAt.IsZero() {
		fmt.Fprintf(sys.Stdout, "  expected start %s on %s\n", front.Stamp(resp.StartsAt), front.NodeText(resp.Nodes))
	}
}

// holderName is which job holds something, as far as the caller may know.
func holderName(s *front.Sys, h *api.Holder) string {
	if h.Job == nil {
		return "a job of another user"
	}
	r := show.JobRow{Job: h.Job, View: &show.View{Sys: s, Now: s.Now()}}
	return fmt.Sprintf("job %s (%s) of %s", r.ShownID(), cluster.PlainLine(h.Job.Spec.Name), h.Job.Spec.User)
}

// printPlace prints where a job runs, until when, and of which nodes is to be heard yet.
func printPlace(sys *front.Sys, r *show.JobRow) {
	j := r.Job
	fmt.Fprintf(sys.Stdout, " on %s", r.Nodes())
	if at := j.EndLimit(&cluster.Config{}); !at.IsZero() && j.Phase == cluster.Running {
		fmt.Fprintf(sys.Stdout, ", until %s at most", front.Stamp(at))
	}
	fmt.Fprintln(sys.Stdout)
	if what := unconfirmed[j.Phase]; what != "" && len(j.Waiting) > 0 {
		fmt.Fprintf(sys.Stdout, "  %-26s %s: muster why %s\n", what, front.NodeText(j.Waiting), j.Waiting[0])
	}
}

func printCauses(sys *front.Sys, causes []api.Cause) {
	for _, c := range causes {
		label := string(c.Reason)
		if len(label) > 26 { // of several words
			fmt.Fprintf(sys.Stdout, "  %s\n", label)
			label = ""
		}
		fmt.Fprintf(sys.Stdout, "  %-26s %s\n", label, c.Text)
		if c.Hint != "" {
			fmt.Fprintf(sys.Stdout, "  %-26s %s\n", "", c.Hint)
		}
	}
}

// printChanges prints what would have a job start sooner.
func printChanges(sys *front.Sys, changes []api.Change) {
	for i, c := range changes {
		if i == 0 {
			fmt.Fprintln(sys.Stdout, "  it would start sooner")
		}
		when := front.Stamp(c.StartsAt)
		if c.Now {
			when = "now"
		}
		fmt.Fprintf(sys.Stdout, "    %s: %s\n", c.Change, when)
		if c.Hint != "" {
			fmt.Fprintf(sys.Stdout, "      %s\n", c.Hint)
		}
	}
}

// unconfirmed is what nodes have not told of a job, by its phase.
var unconfirmed = [...]string{cluster.Starting: "not begun on", cluster.Ending: "not over on", cluster.Ended: ""}

// sayOthers names the records beside the one that was explained that wait as well.
func sayOthers(s *front.Sys, list []*cluster.Job, more int) {
	for _, j := range list {
		r := show.JobRow{Job: j, View: &show.View{Sys: s, Now: s.Now()}}
		own := front.UintText(uint32(j.ID))
		if j.Task >= 0 {
			own = r.ShownID()
		}
		fmt.Fprintf(s.Stdout, "  job %s waits for reasons of its own: muster why %s\n", r.ShownID(), own)
	}
	if more > 0 {
		too := front.Plural(more, "more does so", "more do so")
		fmt.Fprintf(s.Stdout, "  and %s: squeue -r -t PENDING -j %d\n", too, list[0].ArrayID)
	}
}

// maxHolders is how many of the jobs that hold something are told, those that are over last.
const maxHolders = 5

// printHolders prints which jobs hold what another one is to get.
func printHolders(s *front.Sys, list []api.Holder) {
	if n := len(list) - maxHolders; n > 0 {
		fmt.Fprintf(s.Stdout, "    %s to be over there before then\n", front.Plural(n, "more job is", "more jobs are"))
		list = list[n:]
	}
	for _, h := range list {
		verb := "holds"
		if !h.From.IsZero() {
			verb = "is to have"
		}
		until := "until " + front.Stamp(h.Until) + " at most"
		if h.Endless {
			until = "without a time limit"
		}
		fmt.Fprintf(s.Stdout, "    %s %s %s %s\n", holderName(s, &h), verb, front.NodeText(h.Nodes), until)
	}
}

// death is how a job ended.
type death struct {
	Job      string           `json:"job"`
	Name     string           `json:"name"`
	User     string           `json:"user"`
	State    string           `json:"state"`
	Ended    time.Time        `json:"ended,omitzero"`
	ExitCode string           `json:"exit_code"`
	Verdict  string           `json:"verdict,omitempty"` // whose doing it was
	Text     string           `json:"text,omitempty"`
	Node     cluster.NodeName `json:"node,omitempty"`
}

// whyEnded prints how the jobs of the past ended that a word names, and reports whether there are any.
func whyEnded(sys *front.Sys, ref cluster.Ref, json bool) bool {
	resp, err := front.History(sys, api.HistoryQuery{Refs: []cluster.Ref{ref}, Steps: true,
		Duplicates: true})
	if err != nil || len(resp.Records) == 0 {
		return false
	}
	list := make([]death, len(resp.Records))
	for i, rec := range resp.Records {
		r := show.JobRow{Job: rec.Job, View: &show.View{Sys: sys, Now: sys.Now()}}
		list[i] = death{Job: r.ShownID(), Name: rec.Job.Spec.Name, User: rec.Job.Spec.User,
			State: show.StateOf(rec.Job).Long, Ended: rec.Job.Ended, ExitCode: show.ExitText(rec.Job.Exit)}
		if v := show.VerdictOf(rec.Job, rec.Steps); rec.Job.Phase == cluster.Ended {
			list[i].Verdict, list[i].Text, list[i].Node = v.Kind, v.Text, v.Node
		}
	}
	if json {
		sys.JSON(map[string]any{"ended": list})
		return true
	}
	for i := range list {
		d := &list[i]
		fmt.Fprintf(sys.Stdout, "job %s (%s) of %s is %s", d.Job, cluster.PlainLine(d.Name), d.User, d.State)
		if resp.Records[i].Job.Phase != cluster.Ended {
			fmt.Fprintln(sys.Stdout)
			continue
		}
		fmt.Fprintf(sys.Stdout, " since %s, exit code %s\n", front.Stamp(d.Ended), d.ExitCode)
		if d.Verdict == "" {
			continue
		}
		fmt.Fprintf(sys.Stdout, "  %-12s %s\n", d.Verdict, d.Text)
		if d.Verdict == "platform" && d.Node != "" {
			fmt.Fprintf(sys.Stdout, "  %-12s muster why %s\n", "", d.Node)
		}
	}
	return true
}

// lastAttempt prints why a job had to go back into the queue.
func lastAttempt(sys *front.Sys, ref cluster.Ref) {
	resp, err := front.History(sys, api.HistoryQuery{Refs: []cluster.Ref{ref}, Steps: true,
		Duplicates: true})
	if err != nil {
		return // what it waits for is told all the same
	}
	for _, rec := range slices.Backward(resp.Records) {
		if v := show.VerdictOf(rec.Job, rec.Steps); v.Kind != "" {
			fmt.Fprintf(sys.Stdout, "  %-26s %s\n", "last attempt", v)
			return
		}
	}
}

// whyNode prints what a node is, what is wrong with it, and what runs there until when.
func whyNode(sys *front.Sys, name cluster.NodeName, json bool) int {
	resp, err := front.Call(sys, api.ListNodes, api.NodeQuery{Names: []cluster.NodeName{name}})
	if err != nil {
		return sys.Failed(err)
	}
	if len(resp.Nodes) == 0 {
		return sys.Fail("%s is neither a job id nor a node; see squeue and sinfo", name)
	}
	n := &resp.Nodes[0]
	if json {
		return sys.JSON(n)
	}
	state := show.NodeState(n)
	say := func(what, format string, args ...any) {
		fmt.Fprintf(sys.Stdout, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(sys.Stdout, "node %s is %s\n", n.Name, show.StateWord(state, true))
	if n.Reason != "" {
		say("reason", "%s, said by %s at %s", n.Reason, cmp.Or(n.ReasonBy, "muster"), front.Stamp(n.ReasonAt))
	}
	if n.Lacks != "" {
		say("lacks", "%s", n.Lacks)
	}
	if n.Misplaced != "" {
		say("topology", "%s", n.Misplaced)
	}
	switch {
	case n.Down || n.Drain:
		say("way out", "scontrol update nodename=%s state=resume, once it is well", n.Name)
	case n.Registered.IsZero():
		say("way out", "its client has never come: start muster client there")
	case !n.Up:
		say("way out", "its client does not answer: look at the machine, and at the log of muster client there")
	}
	inv := &n.Inventory
	say("in use", "%d of %d CPUs, %d of %d GPUs, %d of %d MB", n.Load.CPUs.Len(), inv.JobCPUCount(),
		n.Load.GPUs.Len(), len(inv.Found()), n.Load.MemMB, inv.MemMB-inv.SpecMemMB)
	if inv.Isolation != "" {
		say("jobs held by", "%s", inv.Isolation)
	}
	if len(n.Load.Jobs) == 0 {
		return 0
	}
	var refs []cluster.Ref
	for _, id := range n.Load.Jobs {
		refs = append(refs, cluster.Ref{Job: id})
	}
	jobs, err := front.Call(sys, api.ListJobs, api.JobQuery{Refs: refs})
	if err != nil {
		return sys.Failed(err)
	}
	for _, j := range jobs.Jobs {
		r := show.JobRow{Job: j, View: &show.View{Sys: sys, Now: sys.Now()}}
		over := "without end"
		if at := j.EndLimit(&cluster.Config{}); !at.IsZero() {
			over = "until " + front.Stamp(at) + " at most"
		}
		say("job", "%s (%s) of %s, %s", r.ShownID(), cluster.PlainLine(j.Spec.Name), j.Spec.User, over)
	}
	return 0
}
