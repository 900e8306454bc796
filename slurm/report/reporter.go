package report

import (
	"bufio"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// reporter is one run of sreport.
type reporter struct {
	sys         *front.Sys
	parse       int
	noHeader    bool
	unit        reportUnit
	tresText    string // of --tres; empty: CPUs
	allClusters bool
	fed         front.FedAsk
	cluster     string
	last        []string // the last command, for !!

	books *api.BooksResponse
	tres  []string
	total map[string]float64 // what the cluster had of each resource, TRES-seconds
}

// reportUnit is how times are written: so many seconds each, with the share of the whole, or that alone.
type reportUnit struct {
	name    string
	secs    float64 // 0: only the share
	percent bool
}

func reportUnits() []reportUnit {
	return []reportUnit{{"SecPer", 1, true}, {"MinPer", 60, true}, {"HourPer", 3600, true},
		{"Seconds", 1, false}, {"Minutes", 60, false},
		{"Hours", 3600, false}, {"Percent", 0, true}}
}

// leastPer is how many letters of SecPer, MinPer and HourPer stand for the whole; of the other units one does.
const leastPer = 6

// setUnit takes -t; of what is no unit Slurm says so and goes on.
func (r *reporter) setUnit(v string) {
	word := strings.ToLower(v)
	for _, u := range reportUnits() {
		least := 1
		if u.percent && u.secs > 0 {
			least = leastPer
		}
		if front.IsKey(word, least, strings.ToLower(u.name)) {
			r.unit = u
			return
		}
	}
	r.unit.name = "?" + v
}

// text is the unit in the head of a report.
func (u *reportUnit) text(tres string) string {
	names := map[float64]string{1: " Seconds", 60: " Minutes", 3600: " Hours"}
	switch {
	case u.secs == 0:
		return "Percentage of Total"
	case u.percent:
		return tres + names[u.secs] + "/Percentage of Total"
	}
	return tres + names[u.secs]
}

// write writes TRES-seconds, of so many in all.
func (u *reportUnit) write(secs, all float64) string {
	share := 0.0
	if all > 0 {
		share = secs / all * 100
	}
	part := strconv.FormatFloat(share, 'f', 2, 64) + "%"
	if u.secs == 0 {
		return part
	}
	text := strconv.FormatFloat(secs/u.secs, 'f', 0, 64)
	if u.percent {
		text += "(" + part + ")"
	}
	return text
}

// width is that of a column of times of which the largest is so many seconds.
func (u *reportUnit) width(least int, largest float64) int {
	w := max(least, len(strconv.FormatFloat(math.Ceil(largest), 'f', 0, 64)))
	if u.percent && u.secs > 0 {
		w += len("(100.00%)")
	}
	return w
}

// reportAsk is what a report's line asks for besides.
type reportAsk struct {
	api.UsageRequest
	start, end        string // as they are asked for
	from, to          time.Time
	format            string
	tree, group, flat bool
	asParent, counts  bool
	top               int
	grouping          string
	names             []string // of reservations
	elsewhere         bool     // only other clusters than this one
	tops              []string // the accounts that a report of sizes is about
	code              int      // of what was wrong, though the report is made
}

// fetch asks for the sums, and what the cluster had in all.
func (r *reporter) fetch(a *reportAsk) (*api.UsageResponse, int) {
	a.Utilization = true
	resp, err := front.Call(r.sys, api.ShowUsage, a.UsageRequest)
	if err != nil {
		text, _ := front.ErrorText(err)
		return nil, r.sys.Fail("%s", text)
	}
	if a.from.Unix() < resp.KeptSince {
		fmt.Fprintf(r.sys.Stderr,
			"sreport: warning: records of use before %s are gone (PurgeUsageAfter): the report has nothing of that time\n",
			front.Stamp(time.Unix(resp.KeptSince, 0)))
	}
	if a.elsewhere {
		resp.Rows, resp.Utilization, resp.Reservations = nil, nil, nil
	}
	resp.Rows = slices.DeleteFunc(resp.Rows, func(u cluster.UsageRow) bool { return isUnused(u.Used) })
	r.total = map[string]float64{}
	for _, u := range resp.Utilization {
		r.total[u.TRES] = u.Reported
	}
	return &resp, 0
}

// isUnused reports whether runs used nothing, as those of less than a second: reports do not have them.
func isUnused(used []cluster.Amount) bool {
	return !slices.ContainsFunc(used, func(a cluster.Amount) bool { return a.N > 0 })
}

// reportRule is the line of dashes around the titles.
const reportRule = "--------------------------------------------------------------------------------"

// title writes the head of a report.
func (r *reporter) title(a *reportAsk, name string, secs bool, lines ...string) {
	if r.noHeader {
		return
	}
	text := name + " " + front.Stamp(a.from) + " - " + front.Stamp(a.to.Add(-time.Second))
	if secs {
		text += fmt.Sprintf(" (%d secs)", int64(a.to.Sub(a.from)/time.Second))
	}
	fmt.Fprintln(r.sys.Stdout, reportRule)
	fmt.Fprintln(r.sys.Stdout, text)
	for _, l := range lines {
		fmt.Fprintln(r.sys.Stdout, l)
	}
	fmt.Fprintln(r.sys.Stdout, reportRule)
}

// usageTitle is the line that names the unit.
func (r *reporter) usageTitle() string {
	return "Usage reported in " + r.unit.text(front.Choose(r.tresText == "", "CPU", "TRES"))
}

// printReport writes rows in the fields that are asked for.
func printReport[T any](r *reporter, a *reportAsk, cols []front.Column[T], format string, rows []T) int {
	if a.format != "" {
		format = a.format
	}
	t := front.Table[T]{NoHeader: r.noHeader, Parse: r.parse}
	if bad := t.Pick(cols, format); bad != "" {
		return sayWrong(r.sys, " Unknown field '"+bad+"'")
	}
	out := bufio.NewWriter(r.sys.Stdout)
	defer out.Flush()
	t.Print(out, rows)
	return 0
}

// PlainNumber writes a whole number.
func PlainNumber(x float64) string {
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// fatal says why there is no report.
func (r *reporter) fatal(text string) int {
	r.sys.Say("fatal: %s", text)
	return 1
}

// sayWrong prints lines as they are and fails.
func sayWrong(s *front.Sys, lines ...string) int {
	for _, l := range lines {
		fmt.Fprintln(s.Stderr, l)
	}
	return 1
}
