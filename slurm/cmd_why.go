package slurm

import (
	"fmt"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// Why prints everything that keeps a job from starting, with numbers (muster why JOB). It returns the exit code.
func Why(sys *Sys, argv []string) int {
	if len(argv) != 1 {
		fmt.Fprintln(sys.Stderr, "usage: muster why JOB")
		return 2
	}
	t, ok := parseTarget(argv[0])
	if !ok {
		return sys.fail("Invalid job id %s", argv[0])
	}
	resp, err := call(sys, api.WhyJob, api.WhyRequest{Job: t.ref.One()})
	if err != nil {
		return sys.fail("%v", err)
	}
	j := resp.Job
	r := jobRow{Job: j, v: &view{sys: sys, now: sys.Now()}}
	fmt.Fprintf(sys.Stdout, "job %s (%s) of %s is %s", r.id(), j.Spec.Name, j.Spec.User, stateOf(j).long)
	switch {
	case j.Phase == cluster.Pending:
		fmt.Fprintf(sys.Stdout, ", for %s\n", format.Duration(sys.Now().Sub(j.Submitted)))
	case j.Phase == cluster.Ended:
		fmt.Fprintf(sys.Stdout, " since %s, exit code %s\n", stamp(j.Ended), exitText(j.Exit))
		if j.WaitNote != "" || j.EndReason != "" {
			fmt.Fprintf(sys.Stdout, "  %s\n", strings.TrimSpace(string(j.EndReason)+" "+j.WaitNote))
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
