package replay

import (
	"math"
	"slices"
)

// Summary are the figures of one schedule. Times in seconds.
type Summary struct {
	Jobs                       int
	Mean, P50, P95, P99, Worst float64 // wait: start - submit; percentiles by nearest rank
	Slowdown                   float64 // mean of max(1, (wait+run)/max(run, 10 s)): bounded slowdown
	Utilization                float64 // share of the scarce thing between the first submission and the last
	Makespan                   int64
	// Fairness is Jain's index over the users' mean bounded slowdowns: 1 when all are treated alike, 1/n at worst.
	Fairness float64
	// Gangs are the jobs on several nodes, and Spread those of them on more leaf switches than they need; -1:
	// nobody knows.
	Gangs, Spread int
	WorstUser     float64 // the mean wait of the user who waits longest
}

// SpreadPart is how many of a hundred such jobs are on more leaves than they need.
func (s *Summary) SpreadPart() float64 { return 100 * float64(s.Spread) / float64(max(s.Gangs, 1)) }

const shortRun = 10 // seconds: runs below count as long

// Summarize works out the figures of a schedule of the trace.
func (t *Trace) Summarize(runs []Run) Summary {
	units, has := t.units()
	out := Summary{Jobs: len(runs), Spread: -1}
	if t.wired() {
		out.Gangs, out.Spread = t.spread(runs)
	}
	if len(runs) == 0 {
		return out
	}
	all := 0
	for i := range t.Nodes {
		all += has(&t.Nodes[i])
	}
	first, last, end := int64(math.MaxInt64), int64(0), int64(0)
	for _, r := range runs {
		first, last, end = min(first, r.Job.Submit), max(last, r.Job.Submit), max(end, r.End)
	}
	waits := make([]int64, 0, len(runs))
	busy := int64(0)
	type user struct{ sum, n, wait float64 }
	users := map[string]*user{}
	for _, r := range runs {
		wait := r.Start - r.Job.Submit
		waits = append(waits, wait)
		out.Mean += float64(wait)
		run := r.End - r.Start
		slow := max(1, float64(wait+run)/float64(max(run, shortRun)))
		out.Slowdown += slow
		u := users[r.Job.User]
		if u == nil {
			u = &user{}
			users[r.Job.User] = u
		}
		u.sum += slow
		u.wait += float64(wait)
		u.n++
		busy += int64(units(r.Job)*r.Job.share()) * max(0, min(r.End, last)-max(r.Start, first))
	}
	slices.Sort(waits)
	rank := func(p float64) float64 { return float64(waits[max(int(math.Ceil(p*float64(len(waits))))-1, 0)]) }
	n := float64(len(runs))
	out.Mean, out.Slowdown = out.Mean/n, out.Slowdown/n
	out.P50, out.P95, out.P99, out.Worst = rank(.5), rank(.95), rank(.99), rank(1)
	out.Makespan = end - first
	if last > first {
		out.Utilization = float64(busy) / float64(int64(all*whole)*(last-first))
	}
	names := make([]string, 0, len(users))
	for name := range users {
		names = append(names, name)
	}
	slices.Sort(names) // sums of floats depend on their order
	s, q := 0.0, 0.0
	for _, name := range names {
		u := users[name]
		out.WorstUser = max(out.WorstUser, u.wait/u.n)
		x := u.sum / u.n
		s, q = s+x, q+x*x
	}
	out.Fairness = s * s / (float64(len(users)) * q)
	return out
}
