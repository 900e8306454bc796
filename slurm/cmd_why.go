package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// Why prints everything that keeps a job from starting, with numbers, or what holds a node (muster why JOB|NODE). It
// returns the exit code.
func Why(sys *Sys, argv []string) int {
	if len(argv) != 1 || strings.HasPrefix(argv[0], "-") {
		fmt.Fprintln(sys.Stderr, "usage: muster why JOB|NODE")
		return 2
	}
	t, ok := parseTarget(argv[0])
	if !ok {
		return whyNode(sys, cluster.NodeName(argv[0]))
	}
	resp, err := call(sys, api.WhyJob, api.WhyRequest{Job: t.ref.One()})
	past := isKind(err, cluster.ErrJobID) || err == nil && resp.Job.Phase == cluster.Ended
	if past {
		if said := whyEnded(sys, t.ref); said || err == nil {
			return 0
		}
	}
	if err != nil {
		return sys.fail("%v", err)
	}
	j := resp.Job
	r := jobRow{Job: j, v: &view{sys: sys, now: sys.Now()}}
	fmt.Fprintf(sys.Stdout, "job %s (%s) of %s is %s", r.id(), j.Spec.Name, j.Spec.User, stateOf(j).long)
	switch {
	case j.Phase == cluster.Pending:
		fmt.Fprintf(sys.Stdout, ", for %s\n", format.Duration(sys.Now().Sub(j.Submitted)))
		if j.Restarts > 0 {
			lastAttempt(sys, t.ref)
		}
	default:
		fmt.Fprintf(sys.Stdout, " on %s\n", r.nodes())
	}
	for _, c := range resp.Causes {
		fmt.Fprintf(sys.Stdout, "  %-26s %s\n", c.Reason, c.Text)
		if c.Hint != "" {
			fmt.Fprintf(sys.Stdout, "  %-26s %s\n", "", c.Hint)
		}
	}
	if j.Phase == cluster.Pending && len(resp.Causes) == 0 {
		fmt.Fprintln(sys.Stdout, "  nothing: it starts in the next cycle")
	}
	if !resp.StartsAt.IsZero() {
		fmt.Fprintf(sys.Stdout, "  expected start %s on %s\n", stamp(resp.StartsAt), nodeText(resp.Nodes))
	}
	for i, c := range resp.Changes {
		if i == 0 {
			fmt.Fprintln(sys.Stdout, "  it would start sooner")
		}
		when := stamp(c.StartsAt)
		if c.Now {
			when = "now"
		}
		fmt.Fprintf(sys.Stdout, "    %s: %s\n", c.Change, when)
		if c.Hint != "" {
			fmt.Fprintf(sys.Stdout, "      %s\n", c.Hint)
		}
	}
	return 0
}

// whyEnded prints how the jobs of the past ended that a word names, and reports whether there are any.
func whyEnded(sys *Sys, ref cluster.Ref) bool {
	resp, err := call(sys, api.ListHistory, api.HistoryQuery{Refs: []cluster.Ref{ref}, Steps: true, Duplicates: true})
	if err != nil || len(resp.Records) == 0 {
		return false
	}
	for _, rec := range resp.Records {
		j := rec.Job
		r := jobRow{Job: j, v: &view{sys: sys, now: sys.Now()}}
		state := stateOf(j).long
		if j.Phase != cluster.Ended {
			fmt.Fprintf(sys.Stdout, "job %s (%s) of %s is %s\n", r.id(), j.Spec.Name, j.Spec.User, state)
			continue
		}
		fmt.Fprintf(sys.Stdout, "job %s (%s) of %s is %s since %s, exit code %s\n", r.id(), j.Spec.Name, j.Spec.User, state, stamp(j.Ended), exitText(j.Exit))
		v := verdictOf(j, rec.Steps)
		if v.kind == "" {
			continue
		}
		fmt.Fprintf(sys.Stdout, "  %-12s %s\n", v.kind, v.text)
		if v.kind == "platform" && v.node != "" {
			fmt.Fprintf(sys.Stdout, "  %-12s muster why %s\n", "", v.node)
		}
	}
	return true
}

// lastAttempt prints why a job had to go back into the queue.
func lastAttempt(sys *Sys, ref cluster.Ref) {
	resp, err := call(sys, api.ListHistory, api.HistoryQuery{Refs: []cluster.Ref{ref}, Steps: true, Duplicates: true})
	if err != nil {
		return // what it waits for is told all the same
	}
	for _, rec := range slices.Backward(resp.Records) {
		if v := verdictOf(rec.Job, rec.Steps); v.kind != "" {
			fmt.Fprintf(sys.Stdout, "  %-26s %s\n", "last attempt", v)
			return
		}
	}
}

// whyNode prints what a node is, what is wrong with it, and what runs there until when.
func whyNode(sys *Sys, name cluster.NodeName) int {
	resp, err := call(sys, api.ListNodes, api.NodeQuery{Names: []cluster.NodeName{name}})
	if err != nil {
		return sys.fail("%v", err)
	}
	if len(resp.Nodes) == 0 {
		return sys.fail("%s is neither a job id nor a node; see squeue and sinfo", name)
	}
	n := &resp.Nodes[0]
	state := nodeState(n)
	say := func(what, format string, args ...any) {
		fmt.Fprintf(sys.Stdout, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(sys.Stdout, "node %s is %s\n", n.Name, stateWord(state, true))
	if n.Reason != "" {
		say("reason", "%s, said by %s at %s", n.Reason, cmp.Or(n.ReasonBy, "muster"), stamp(n.ReasonAt))
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
	say("in use", "%d of %d CPUs, %d of %d GPUs, %d of %d MB", n.Load.CPUs.Len(), inv.JobCPUCount(), n.Load.GPUs.Len(), len(inv.Found()), n.Load.MemMB, inv.MemMB-inv.SpecMemMB)
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
	jobs, err := call(sys, api.ListJobs, api.JobQuery{Refs: refs})
	if err != nil {
		return sys.fail("%v", err)
	}
	for _, j := range jobs.Jobs {
		r := jobRow{Job: j, v: &view{sys: sys, now: sys.Now()}}
		over := "without end"
		if at := j.EndLimit(&cluster.Config{}); !at.IsZero() {
			over = "until " + stamp(at) + " at most"
		}
		say("job", "%s (%s) of %s, %s", r.id(), j.Spec.Name, j.Spec.User, over)
	}
	return 0
}
