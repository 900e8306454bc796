package look

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/report"
	"dev.muster/wire"
)

// The report for operators: what the hardware was used for, what was lost, and where to look (muster report).

// reportTime is a time that a report may be of.
type reportTime struct {
	name string
	days int
}

var reportTimes = [...]reportTime{{"day", 1}, {"week", 7}, {"month", 30}}

// lemonsShown bounds the nodes that a report names.
const lemonsShown = 20

// reporting is one report.
type reporting struct {
	sys  *front.Sys
	out  *tabwriter.Writer
	from time.Time
	err  error // the first one
}

// Report prints the report of the last day, week or month (muster report). It returns the exit code.
func Report(sys *front.Sys, word string) int {
	i := slices.IndexFunc(reportTimes[:], func(t reportTime) bool { return t.name == word })
	if i < 0 {
		fmt.Fprintf(sys.Stderr, "muster report: unknown time: %s; use day, week or month\n", word)
		return 2
	}
	days := reportTimes[i].days
	now := sys.Now().Truncate(time.Second)
	r := &reporting{sys: sys, from: now.AddDate(0, 0, -days), out: tabwriter.NewWriter(sys.Stdout, 0, 8, 2, ' ', 0)}
	r.goodput(now)
	r.faults()
	r.lemons()
	r.idle()
	if r.err != nil {
		return sys.Failed(r.err)
	}
	_ = r.out.Flush() // to where nothing can be told
	return 0
}

// line writes a line: a label, and a value.
func (r *reporting) line(label, format string, args ...any) {
	fmt.Fprintf(r.out, "  %s\t%s\n", label, fmt.Sprintf(format, args...))
}

// title begins a part.
func (r *reporting) title(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// fail keeps the first error.
func (r *reporting) fail(err error) bool {
	if r.err == nil {
		r.err = err
	}
	return r.err != nil
}

// goodput writes what the hours of GPUs went to, or those of CPUs where nothing used any GPU.
func (r *reporting) goodput(now time.Time) {
	q := api.UsageRequest{UsageQuery: cluster.UsageQuery{By: cluster.ByOutcome,
		Time: cluster.Span{From: r.from.Unix(), To: now.Unix()}}}
	resp, err := front.Call(r.sys, api.ShowUsage, q)
	if r.fail(err) {
		return
	}
	fmt.Fprintf(r.sys.Stdout, "cluster %s, %s to %s\n", resp.Cluster, front.Stamp(r.from), front.Stamp(now))
	tres, unit := "gres/gpu", "GPU hours"
	if !slices.ContainsFunc(resp.Rows, func(u cluster.UsageRow) bool { return cluster.AmountOf(u.Used, tres) > 0 }) {
		tres, unit = "cpu", "CPU hours"
	}
	all := 0.0
	for i := range resp.Rows {
		all += cluster.AmountOf(resp.Rows[i].Used, tres)
	}
	r.title("%s", unit)
	r.line("allocated", "%.1f", all/3600)
	lost, attempts := map[string]float64{}, map[string]int64{}
	kept := all
	for i := range resp.Rows {
		u := &resp.Rows[i]
		if cause := report.LostTo(u); cause != "" {
			lost[cause] += cluster.AmountOf(u.Used, tres)
			attempts[cause] += u.Jobs
			kept -= cluster.AmountOf(u.Used, tres)
		}
	}
	r.line("goodput", "%.1f (%s)", kept/3600, percent(kept, all))
	for _, cause := range sortedBy(lost) {
		r.line("lost, "+cause, "%.1f (%s), attempts: %d", lost[cause]/3600, percent(lost[cause], all), attempts[cause])
	}
	if saved := r.saved(tres); len(lost) > 0 && saved > 0 {
		r.line("of that saved by checkpoints", "%.1f (%s)", saved/3600, percent(saved, all))
	}
}

// saved is what attempts that were to no avail had done until their last checkpoints, in seconds of GPUs or CPUs.
func (r *reporting) saved(tres string) float64 {
	column := "cpus"
	if tres == "gres/gpu" {
		column = "gpus"
	}
	rows := r.ask(fmt.Sprintf(`SELECT ifnull(sum(%s *
		max(0, unixepoch(json_extract(data, '$.survival.saved.at')) - max(started, %d))), 0)
		FROM jobs WHERE ended >= %[2]d AND state IN ('REQUEUED', 'PREEMPTED', 'NODE_FAIL', 'BOOT_FAIL')
		AND json_extract(data, '$.survival.saved.attempt') = attempt`, column, r.from.Unix()))
	if len(rows) == 0 {
		return 0
	}
	sum, _ := strconv.ParseFloat(rows[0][0], 64) // it is a number
	return sum
}

// percent writes a part of a whole.
func percent(part, all float64) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*part/all)
}

// sortedBy lists the keys of sums, the largest sum first.
func sortedBy(sums map[string]float64) []string {
	keys := slices.Collect(maps.Keys(sums))
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	return keys
}

// ask asks history, and returns the rows as texts.
func (r *reporting) ask(question string) (out [][]string) {
	resp, err := front.Call(r.sys, api.AskHistory, api.SQLRequest{Query: question})
	if r.fail(err) {
		return nil
	}
	for _, row := range resp.Rows {
		cells := make([]string, len(row))
		for i := range row {
			if wire.Unmarshal(row[i], &cells[i]) != nil { // a number
				cells[i] = string(row[i])
			}
		}
		out = append(out, cells)
	}
	return out
}

// found counts what was found of jobs in a part of their records: the last of each attempt.
func (r *reporting) found(part, kind string) [][]string {
	return r.ask(fmt.Sprintf(`SELECT %[2]s, ifnull(json_extract(data, '$.survival.%[1]s.action'), ''),
		count(DISTINCT id || ' ' || json_extract(data, '$.survival.%[1]s.at'))
		FROM jobs WHERE unixepoch(json_extract(data, '$.survival.%[1]s.at')) >= %[3]d GROUP BY 1, 2 ORDER BY 1, 2`,
		part, kind, r.from.Unix()))
}

// faults writes the hangs, the slow GPUs and the spares of jobs.
func (r *reporting) faults() {
	r.title("faults of jobs")
	for _, row := range r.found("hung", "json_extract(data, '$.survival.hung.kind')") {
		r.line("hangs, sign "+row[0], "%s, action: %s", row[2], cmp.Or(row[1], "report"))
	}
	for _, row := range r.found("slow", "''") {
		r.line("slow GPUs", "%s, action: %s", row[2], cmp.Or(row[1], "none"))
	}
	for _, row := range r.ask(fmt.Sprintf(`SELECT count(*), count(DISTINCT id) FROM jobs WHERE state = 'RESIZING'
		AND ended >= %d AND json_extract(data, '$.spec.resilience.spares') > 0`, r.from.Unix())) {
		r.line("nodes left by jobs with spares", "%s, jobs: %s", row[0], row[1])
	}
}

// lemons writes the nodes on which something has gone wrong, by their failure scores.
func (r *reporting) lemons() {
	resp, err := front.Call(r.sys, api.ListNodes, api.NodeQuery{})
	if r.fail(err) {
		return
	}
	nodes := slices.DeleteFunc(resp.Nodes, func(n api.NodeInfo) bool { return n.Score(resp.Now) < 1 })
	slices.SortStableFunc(nodes, func(a, b api.NodeInfo) int {
		return cmp.Compare(b.Score(resp.Now), a.Score(resp.Now))
	})
	r.title("nodes with failures (muster health NODE)")
	for i := range nodes {
		if i == lemonsShown {
			r.line("more nodes", "%d", len(nodes)-i)
			break
		}
		n := &nodes[i]
		r.line(string(n.Name), "score %.1f%s", n.Score(resp.Now), note(n.Reason))
	}
	if len(nodes) == 0 {
		r.line("none", "")
	}
}

// note writes why a node is out of service, if it is.
func note(reason string) string {
	if reason == "" {
		return ""
	}
	return ", " + cluster.PlainLine(reason)
}

// idle writes who has GPUs that do nothing now, by user.
func (r *reporting) idle() {
	resp, err := front.Call(r.sys, api.ListIdle, api.IdleQuery{})
	if r.fail(err) {
		return
	}
	gpus := map[string]float64{}
	jobs := map[string]int{}
	for i := range resp.Jobs {
		one := &resp.Jobs[i]
		gpus[one.Job.Spec.User] += float64(one.Idle)
		jobs[one.Job.Spec.User]++
	}
	r.title("idle GPUs now (muster idle)")
	for _, user := range sortedBy(gpus) {
		r.line(user, "%.0f GPUs, jobs: %d", gpus[user], jobs[user])
	}
	if len(gpus) == 0 {
		r.line("none", "")
	}
}
