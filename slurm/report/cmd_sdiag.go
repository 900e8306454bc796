package report

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// diagOptions is what sdiag's line asks for.
type diagOptions struct {
	reset    bool
	by       func(a, b api.CallCount) int
	clusters string
	data     data.Ask
}

// Asked is what --json and --yaml say.
func (o *diagOptions) Asked() *data.Ask {
	return &o.data
}

// SdiagOptions are the options of sdiag.
var SdiagOptions = []opt.Option[diagOptions]{
	{Long: "all", Short: 'a', On: opt.Sdiag, Help: "all counts", Set: func(*diagOptions, string) error { return nil }},
	{Long: "no-trunc", On: opt.Sdiag, Newer: true, Help: "do not cut long lines: always so",
		Set: func(*diagOptions, string) error { return nil }},
	{
		Long: "reset", Short: 'r', On: opt.Sdiag, Help: "reset the counts",
		Set: func(o *diagOptions, _ string) error { o.reset = true; return nil },
	},
	{
		Long: "sort-by-id", Short: 'i', On: opt.Sdiag, Help: "calls by name or user",
		Set: func(o *diagOptions, _ string) error { o.by = byCaller; return nil },
	},
	{
		Long: "sort-by-time", Short: 't', On: opt.Sdiag, Help: "calls by time in all",
		Set: func(o *diagOptions, _ string) error { o.by = byTime; return nil },
	},
	{
		Long: "sort-by-time2", Short: 'T', On: opt.Sdiag, Help: "calls by mean time",
		Set: func(o *diagOptions, _ string) error { o.by = byMean; return nil },
	},
	{
		Long: "cluster", Short: 'M', Arg: opt.Required, On: opt.Sdiag, Meta: "name", Help: "cluster to ask",
		Set: func(o *diagOptions, v string) error { o.clusters = v; return nil },
	},
	{Long: "clusters", Arg: opt.Required, On: opt.Sdiag, Newer: true, Alias: "cluster"},
	{Long: "json", Arg: opt.Optional, On: opt.Sdiag, Meta: "version", Newer: true,
		Help: "print JSON: v0.0.42 to v0.0.45, or list",
		Set:  func(o *diagOptions, v string) error { return o.data.JSON(v) }},
	{Long: "yaml", Arg: opt.Optional, On: opt.Sdiag, Meta: "version", Newer: true, Help: "print YAML, as --json",
		Set: func(o *diagOptions, v string) error { return o.data.Yaml(v) }},
	{Long: "version", Short: 'V', On: opt.Sdiag, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sdiag, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sdiag, Group: opt.HelpGroup, Help: "print a short help"},
}

func byCaller(a, b api.CallCount) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func byTime(a, b api.CallCount) int {
	return cmp.Compare(b.Time, a.Time)
}

func byMean(a, b api.CallCount) int {
	return cmp.Compare(mean(b.Time, b.N), mean(a.Time, a.N))
}

// mean is in microseconds.
func mean(sum time.Duration, n int) int64 {
	if n == 0 {
		return 0
	}
	return int64(sum/time.Microsecond) / int64(n)
}

// Sdiag shows what the leader has done.
func Sdiag(sys *front.Sys, argv []string) int {
	var o diagOptions
	rest, code := front.ParseQuery(sys, opt.Sdiag, SdiagOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if len(rest) > 0 {
		return sys.Fail("%q is not understood", rest[0])
	}
	if _, code := sys.OwnCluster(o.clusters); code >= 0 {
		return code
	}
	resp, err := front.Call(sys, api.ShowStats, api.StatsRequest{Reset: o.reset})
	if err != nil {
		text, _ := front.ErrorText(err)
		sys.Say("slurm_get_statistics: %s", text)
		return 1
	}
	if o.reset {
		fmt.Fprintln(sys.Stdout, "Reset scheduling statistics")
		return 0
	}
	if o.by != nil {
		slices.SortStableFunc(resp.Calls, o.by)
		slices.SortStableFunc(resp.Users, o.by)
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	if o.data.On {
		v := &show.View{Sys: sys, Now: resp.Now}
		return sys.Answer(&o.data, out, clusterName(v), data.One("statistics", "stats_msg", data.Record(&diagTable,
			&resp)))
	}
	printDiag(out, &resp)
	return 0
}

// StatTime is a moment as the statistics have it.
func StatTime(t time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return fmt.Sprintf("%s (%d)", t.Local().Format("Mon Jan 02 15:04:05 2006"), t.Unix())
}

// PrintCalls writes who called what how often, and how long it took, in microseconds; widths are those of users'
// names and numbers.
func PrintCalls(out *bufio.Writer, r *api.StatsResponse, name, id int) {
	counts := func(x *api.CallCount) string {
		return fmt.Sprintf("count:%-6d ave_time:%-6d total_time:%d\n", x.N, mean(x.Time, x.N),
			int64(x.Time/time.Microsecond))
	}
	fmt.Fprintln(out, "Remote Procedure Call statistics by message type")
	for _, x := range r.Calls {
		fmt.Fprintf(out, "\t%-40s %s", x.Name, counts(&x))
	}
	fmt.Fprintln(out, "\nRemote Procedure Call statistics by user")
	for _, x := range r.Users {
		user := "unknown"
		if u, ok := front.UserByID(x.UID); ok {
			user = u.Name
		}
		fmt.Fprintf(out, "\t%-*s(%*d) %s", name, user, id, x.UID, counts(&x))
	}
}

// printDiag writes the counts in the layout of Slurm. Queues that muster does not have are zero: agents, the
// database's.
func printDiag(out *bufio.Writer, r *api.StatsResponse) {
	line := func(form string, args ...any) { fmt.Fprintf(out, form+"\n", args...) }
	us := func(d time.Duration) int64 { return int64(d / time.Microsecond) }
	rule := strings.Repeat("*", 55)
	c := &r.Cycles
	line("%s\nsdiag output at %s\nData since      %s\n%s", rule, StatTime(r.Now), StatTime(r.Since), rule)
	line("Server thread count:  %d\nAgent queue size:     0\nAgent count:          0\nAgent thread count:   0\nDBD Agent queue size: 0\n",
		r.Threads)
	line("Jobs submitted: %d\nJobs started:   %d\nJobs completed: %d\nJobs canceled:  %d\nJobs failed:    %d\n",
		r.Jobs.Submitted, r.Jobs.Started, r.Jobs.Completed, r.Jobs.Canceled, r.Jobs.Failed)
	line("Job states ts:  %s\nJobs pending:   %d\nJobs running:   %d\n", StatTime(r.Now), r.Pending, r.Running)
	line("Main schedule statistics (microseconds):\n\tLast cycle:   %d\n\tMax cycle:    %d\n\tTotal cycles: %d",
		us(c.Last), us(c.Max), c.Count)
	if c.Count > 0 {
		line("\tMean cycle:   %d\n\tMean depth cycle:  %d", mean(c.Sum, c.Count), c.Depth/c.Count)
	}
	if minutes := int(r.Now.Sub(r.Since) / time.Minute); minutes > 0 {
		line("\tCycles per minute: %d", c.Count/minutes)
	}
	line("\tLast queue length: %d\n", c.Queue)
	line("Backfilling stats\n\tTotal backfilled jobs (since last slurm start): %d\n\tTotal backfilled jobs (since last stats cycle start): %d",
		r.Jobs.Backfilled, r.Jobs.Backfilled)
	line("\tTotal backfilled heterogeneous job components: 0\n\tTotal cycles: %d\n\tLast cycle when: %s\n\tLast cycle: %d\n\tMax cycle:  %d\n\tLast depth cycle: %d\n\tLast queue length: %d\n",
		c.Count, StatTime(c.At), us(c.Last), us(c.Max), c.Queue, c.Queue)
	PrintCalls(out, r, 16, 8)
	line("\nPending RPC statistics\n\tNo pending RPCs")
}
