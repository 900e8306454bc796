package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"dev.muster/sched/replay"
)

// compare prints the figures side by side.
func compare(names []string, sums []replay.Summary) error {
	return table(func(w *tabwriter.Writer) {
		row := func(label, format string, value func(replay.Summary) any) {
			fmt.Fprint(w, label)
			for _, s := range sums {
				fmt.Fprintf(w, "\t"+format, value(s))
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "\t%s\n", strings.Join(names, "\t"))
		for _, r := range []struct {
			label, format string
			value         func(replay.Summary) any
		}{
			{"jobs", "%d", func(s replay.Summary) any { return s.Jobs }},
			{"wait, mean (s)", "%.1f", func(s replay.Summary) any { return s.Mean }},
			{"wait, p50", "%.0f", func(s replay.Summary) any { return s.P50 }},
			{"wait, p95", "%.0f", func(s replay.Summary) any { return s.P95 }},
			{"wait, p99", "%.0f", func(s replay.Summary) any { return s.P99 }},
			{"wait, worst", "%.0f", func(s replay.Summary) any { return s.Worst }},
			{"bounded slowdown, mean", "%.2f", func(s replay.Summary) any { return s.Slowdown }},
			{"utilization", "%.4f", func(s replay.Summary) any { return s.Utilization }},
			{"fairness to users (Jain's index)", "%.4f", func(s replay.Summary) any { return s.Fairness }},
			{"makespan (s)", "%d", func(s replay.Summary) any { return s.Makespan }},
		} {
			row(r.label, r.format, r.value)
		}
		if sums[0].Spread >= 0 {
			row("gangs on more leaves than they need", "%.1f %%", func(s replay.Summary) any { return s.SpreadPart() })
		}
	})
}

// toCompare are the policies of --compare, muster's own first.
var toCompare = []string{replay.Real, replay.Strict, "easy", "sjbf", "conservative"}

// usualPicture is where --compare draws.
const usualPicture = "muster-sim.svg"

// titles are what policies are called before people who do not know them.
func titles(names []string) (out []string) {
	for _, n := range names {
		out = append(out, cmp.Or(map[string]string{
			replay.Real: "default", replay.Strict: "strict order", "easy": "EASY", "sjbf": "SJBF",
		}[n], n))
	}
	return out
}

// meanings say what policies do.
var meanings = map[string]string{
	replay.Real: "what muster does if nobody says otherwise: whoever has waited longest for the time it asks goes first, the sooner the larger its share of the cluster; " +
		"nodes are kept free for the oldest",
	replay.Strict:  "muster with SchedulerParameters=strict_order: in order of submission, others pass if they do not delay the first",
	"easy":         "the textbook's backfill: in order of submission, others pass if they do not delay the first",
	"sjbf":         "EASY, and of those that may pass the shortest goes first",
	"conservative": "nobody may pass who would delay anybody that came before",
}

// tell says in words what the policies make of the workload.
func (s *simulation) tell(w io.Writer) error {
	jobs, users := len(s.trace.Jobs), map[string]bool{}
	for i := range s.trace.Jobs {
		users[s.trace.Jobs[i].User] = true
	}
	fmt.Fprintf(w, "%s: %s, %s, %s.\n\n", s.title, count(jobs, "job"), count(len(users), "user"),
		count(len(s.trace.Nodes), "node"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\t%s\n", strings.Join(titles(s.names), "\t"))
	for _, r := range s.rows() {
		cells := make([]string, len(s.sums))
		for k := range s.sums {
			cells[k] = r.cell(&s.sums[k])
		}
		fmt.Fprintf(t, "%s\t%s\n", r.label, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for k, name := range s.names {
		if meaning := meanings[name]; meaning != "" {
			fmt.Fprintf(w, "%s: %s.\n", titles(s.names)[k], meaning)
		}
	}
	return s.verdict(w)
}

// row is a line of the table: what it says of each schedule.
type row struct {
	label string
	cell  func(*replay.Summary) string
}

func (s *simulation) rows() []row {
	rows := []row{
		{"jobs wait, on average", func(f *replay.Summary) string { return span(f.Mean) }},
		{"half of them wait less than", func(f *replay.Summary) string { return span(f.P50) }},
		{"one in a hundred waits longer than", func(f *replay.Summary) string { return span(f.P99) }},
		{"nobody waits longer than", func(f *replay.Summary) string { return span(f.Worst) }},
		{
			"from submission to end, in multiples of the run",
			func(f *replay.Summary) string { return fmt.Sprintf("%.1f", f.Slowdown) },
		},
		{"jobs of the user who waits most, on average", func(f *replay.Summary) string { return span(f.WorstUser) }},
		{"the cluster is in use", func(f *replay.Summary) string { return fmt.Sprintf("%.1f %%", 100*f.Utilization) }},
	}
	if s.sums[0].Spread >= 0 {
		rows = append(rows, row{"jobs on more leaf switches than they need", func(f *replay.Summary) string {
			return fmt.Sprintf("%.1f %%", f.SpreadPart())
		}})
	}
	return rows
}

// verdict compares the first policy with EASY, which is what most clusters have.
func (s *simulation) verdict(w io.Writer) error {
	base := -1
	for k, name := range s.names {
		if name == "easy" {
			base = k
		}
	}
	if base < 1 {
		return nil
	}
	own, easy := &s.sums[0], &s.sums[base]
	fmt.Fprintf(w, "\nBeside EASY, with the %s:\n", titles(s.names)[0])
	for _, line := range []struct {
		what    string
		is, was float64
	}{
		{"the average wait", own.Mean, easy.Mean},
		{"the wait that one in a hundred exceeds", own.P99, easy.P99},
		{"the time from submission to end, in multiples of the run,", own.Slowdown, easy.Slowdown},
		{"the average wait of the user who waits most", own.WorstUser, easy.WorstUser},
	} {
		fmt.Fprintf(w, "  %s is %s\n", line.what, change(line.is, line.was))
	}
	_, err := fmt.Fprintf(w, "  %s\n", inUse(own.Utilization, easy.Utilization))
	return err
}

// inUse says what part of the cluster is in use, and was.
func inUse(is, was float64) string {
	now, before := fmt.Sprintf("%.1f %%", 100*is), fmt.Sprintf("%.1f %%", 100*was)
	if now == before {
		return now + " of the cluster are in use, as with EASY"
	}
	return now + " of the cluster are in use instead of " + before
}

// count writes how many there are of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// change says how much more or less a figure is than another one.
func change(is, was float64) string {
	percent := math.Round(100 * (is/max(was, 1) - 1))
	switch {
	case is == was:
		return "the same"
	case percent < 0:
		return fmt.Sprintf("%.0f %% shorter", -percent)
	case percent > 0:
		return fmt.Sprintf("%.0f %% longer", percent)
	}
	return "the same"
}

// span writes a number of seconds with its two largest units.
func span(seconds float64) string {
	n := int64(math.Round(seconds))
	switch d := time.Duration(n) * time.Second; {
	case d < time.Minute:
		return fmt.Sprintf("%d s", n)
	case d < time.Hour:
		return fmt.Sprintf("%d min", (n+30)/60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", n/3600, n%3600/60)
	}
	return fmt.Sprintf("%d d %02d h", n/86400, n%86400/3600)
}
