package nodetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/burnin/bandwidth"
	"dev.muster/burnin/pairs"
	"dev.muster/cli/look"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// mostFailed is the share of the nodes that may fail for their results to be recorded, which drains them. If more fail,
// it is not their cables.
const mostFailed = 4

// Bounds of what is recorded of a node.
const (
	mostFigures = 31
	mostText    = 1000 // bytes
)

// fabricView is the results of a test as people read them.
type fabricView struct {
	*bandwidth.Report
	nodes []string
	left  map[string]string // nodes that were not tested
	took  time.Duration
	rows  []fabricRow
	paths []fabricPath
	lines []string // what to look at
	bad   int      // nodes that have failed
}

// fabricRow is a node with one of its rails.
type fabricRow struct {
	Node     string                `json:"node"`
	Rail     string                `json:"rail,omitempty"`
	Sends    float64               `json:"sends_gbits"`
	Receives float64               `json:"receives_gbits"`
	Share    float64               `json:"share"` // of the typical bandwidth of the rail, in %
	Verdict  cluster.BurninVerdict `json:"verdict"`
	What     string                `json:"what,omitempty"`
}

// fabricPath is the way from one node to another where both are fast with others.
type fabricPath struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Rail  string  `json:"rail,omitempty"`
	Gbits float64 `json:"gbits"`
	Share float64 `json:"share"`
}

// judge makes rows and lines of the report.
func (v *fabricView) judge() {
	for i, name := range v.nodes {
		failed := false
		for rail := range v.Rails {
			row := v.row(i, rail)
			v.rows = append(v.rows, row)
			at := "node " + name + onRail(row.Rail)
			switch row.Verdict {
			case cluster.BurninFailed:
				failed = true
				v.say("%s: %s; check its cable, its port and the port of its switch", at, row.What)
			case cluster.BurninUntested:
				v.say("%s was not judged: %s", at, row.What)
			}
		}
		if failed {
			v.bad++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.left)) {
		v.rows = append(v.rows, fabricRow{
			Node:    name,
			Verdict: cluster.BurninUntested,
			What:    v.left[name],
		})
		v.say("node %s was not tested: %s", name, v.left[name])
	}
	for _, p := range v.Slow {
		if !p.IsNode() {
			v.addPath(p)
		}
	}
	for _, rail := range v.Verdict.Rails {
		typical, _ := v.Test.Base(rail)
		v.say("rail %s: all nodes are slow, typically %s Gb/s; check its switches", v.Rails[rail], short(typical))
	}
}

// say adds a line.
func (v *fabricView) say(format string, args ...any) {
	v.lines = append(v.lines, fmt.Sprintf(format, args...))
}

// addPath reports a slow path.
func (v *fabricView) addPath(p pairs.Part) {
	typical, _ := v.Test.Base(p.Rail)
	all := slices.Concat(v.Test.Samples, v.Test.Confirmed)
	gbits := median(all, pairs.Way{
		From: p.From,
		To:   p.To,
		Rail: p.Rail,
	})
	path := fabricPath{
		From:  v.nodes[p.From],
		To:    v.nodes[p.To],
		Rail:  v.Rails[p.Rail],
		Gbits: gbits,
		Share: percent(gbits, typical),
	}
	v.paths = append(v.paths, path)
	v.say("path %s → %s%s: %s Gb/s, %.0f%% of the typical %s Gb/s, and both nodes are fast with others; "+
		"check the links between their switches",
		path.From, path.To, onRail(path.Rail), short(gbits), path.Share, short(typical))
}

// onRail names a rail in a sentence.
func onRail(rail string) string {
	if rail == "" {
		return ""
	}
	return ", rail " + rail
}

func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

// short prints a bandwidth with three digits.
func short(gbits float64) string { return strconv.FormatFloat(gbits, 'g', 3, 64) }

// median returns the median bandwidth of the samples of a way.
func median(samples []pairs.Sample, w pairs.Way) float64 {
	var all []float64
	for _, s := range pairs.Select(samples, w.Has) {
		all = append(all, s.Gbits)
	}
	return pairs.Median(all)
}

// row judges a node with a rail.
func (v *fabricView) row(node, rail int) fabricRow {
	typical, _ := v.Test.Base(rail)
	row := fabricRow{
		Node:     v.nodes[node],
		Rail:     v.Rails[rail],
		Sends:    median(v.Test.Samples, pairs.Way{From: node, To: pairs.Any, Rail: rail}),
		Receives: median(v.Test.Samples, pairs.Way{From: pairs.Any, To: node, Rail: rail}),
		Verdict:  cluster.BurninPassed,
	}
	row.Share = percent(min(row.Sends, row.Receives), typical)
	same := func(p pairs.Part) bool {
		return p.IsNode() && p.From == node && p.Rail == rail
	}
	slow := slices.IndexFunc(v.Slow, same)
	switch {
	case slices.Contains(v.Lacks[node], row.Rail):
		row.Verdict = cluster.BurninFailed
		row.What = "it lacks the rail, or the rail is not active"
	case v.Silent[node] != "":
		row.Verdict = cluster.BurninUntested
		row.What = "it " + v.Silent[node]
	case slow >= 0:
		row.Verdict = cluster.BurninFailed
		row.What = v.slowness(v.Slow[slow], row, typical)
	case slices.ContainsFunc(v.Unsure, same):
		row.Verdict = cluster.BurninUntested
		row.What = "slow, but it could not be measured again"
	case slices.ContainsFunc(v.Once, same):
		row.What = "slow at first, but not when it was measured again"
	case v.Test.Compared() < pairs.FewestNodes && v.Test.Min == 0:
		row.Verdict = cluster.BurninUntested
		row.What = fmt.Sprintf("only %d nodes can be compared; give --min, or 4 nodes", v.Test.Compared())
	}
	return row
}

// slowness says how a node is slow.
func (v *fabricView) slowness(p pairs.Part, row fabricRow, typical float64) string {
	why := ""
	for _, s := range v.Test.Confirmed {
		if s.Err != "" && s.Rail == p.Rail && (s.From == p.From || s.To == p.From) {
			why = ": " + cluster.PlainLine(s.Err)
		}
	}
	say := func(verb string, gbits float64) string {
		return fmt.Sprintf("%s %s Gb/s, %.0f%% of the typical %s Gb/s",
			verb, short(gbits), percent(gbits, typical), short(typical))
	}
	switch {
	case p.Sends && p.Receives:
		return say("sends and receives", min(row.Sends, row.Receives)) + why
	case p.Sends:
		return say("sends", row.Sends) + why
	}
	return say("receives", row.Receives) + why
}

// whole reports whether all nodes have passed, by good paths and rails.
func (v *fabricView) whole() bool {
	return len(v.paths)+len(v.Verdict.Rails) == 0 && !slices.ContainsFunc(v.rows, func(r fabricRow) bool {
		return r.Verdict != cluster.BurninPassed
	})
}

// print shows the results, and returns the exit code.
func (v *fabricView) print(s *front.Sys, o *fabricOptions, note string) int {
	code := 0
	if !v.whole() {
		code = 1
	}
	if o.names {
		v.printNames(s)
		return code
	}
	if o.json {
		rails := []string{}
		for _, r := range v.Verdict.Rails {
			rails = append(rails, v.Rails[r])
		}
		answer := map[string]any{
			"tool":       v.Tool,
			"job":        v.Job,
			"seconds":    v.took.Seconds(),
			"nodes":      v.rows,
			"paths":      append([]fabricPath{}, v.paths...),
			"slow_rails": rails,
			"findings":   append([]string{}, v.lines...),
			"note":       note,
		}
		return cmp.Or(s.JSON(map[string]any{"fabric": answer}), code)
	}
	t := &look.Columns{}
	t.Line("NODE", "RAIL", "SENDS", "RECEIVES", "SHARE", "VERDICT", "WHAT")
	for _, r := range v.rows {
		sends, receives, share := short(r.Sends), short(r.Receives), fmt.Sprintf("%.0f%%", r.Share)
		if r.Verdict == cluster.BurninUntested && r.Share == 0 {
			sends, receives, share = "-", "-", "-"
		}
		t.Line(r.Node, cmp.Or(r.Rail, "-"), sends, receives, share, string(r.Verdict), r.What)
	}
	t.Print(s.Stdout)
	for _, line := range append(slices.Clone(v.lines), v.summary(), note) {
		if line != "" {
			fmt.Fprintln(s.Stdout, cluster.PlainLine(line))
		}
	}
	return code
}

// printNames prints the nodes that have failed, for scripts.
func (v *fabricView) printNames(s *front.Sys) {
	last := ""
	for _, r := range v.rows {
		if r.Verdict == cluster.BurninFailed && r.Node != last {
			fmt.Fprintln(s.Stdout, r.Node)
			last = r.Node
		}
	}
}

// summary counts what was measured.
func (v *fabricView) summary() string {
	passed := 0
	for _, r := range v.rows {
		if r.Verdict == cluster.BurninPassed {
			passed++
		}
	}
	what := "nodes"
	if len(v.Rails) > 1 {
		what = "rails of nodes"
	}
	var typical []string
	for rail := range v.Rails {
		t, _ := v.Test.Base(rail)
		typical = append(typical, short(t))
	}
	measured := len(v.Test.Samples) + len(v.Test.Confirmed)
	return fmt.Sprintf("%d of %d %s passed; typically %s Gb/s, by %s, job %d, %d measurements in %.1f s",
		passed, len(v.rows), what, strings.Join(typical, ", "), v.Tool, v.Job, measured, v.took.Seconds())
}

// recordFabric tells the servers what was found of each node, which drains those that have failed. It returns what to
// say if it did not.
func recordFabric(s *front.Sys, v *fabricView) string {
	if v.bad > max(1, len(v.nodes)/mostFailed) {
		return fmt.Sprintf("%d of %d nodes have failed: that is hardly their own cables, "+
			"so nothing was recorded and no node was drained; check the switches", v.bad, len(v.nodes))
	}
	for i, name := range v.nodes {
		part := v.part(i, name)
		done := cluster.BurninDone{Node: cluster.NodeName(name), Parts: []cluster.TestedPart{part}}
		if _, err := front.Call(s, api.RecordBurnin, done); err != nil {
			text, _ := front.ErrorText(err)
			return fmt.Sprintf("the result of node %s could not be recorded: %s", name, text)
		}
	}
	return ""
}

// part is the result of a node as muster burnin --show has it.
func (v *fabricView) part(node int, name string) cluster.TestedPart {
	test := cluster.PartTest{
		Job:     cluster.JobID(v.Job),
		Verdict: cluster.BurninUntested,
	}
	var what []string
	for rail := range v.Rails {
		r := v.row(node, rail)
		worse := r.Verdict == cluster.BurninFailed || test.Verdict == cluster.BurninUntested
		if worse {
			test.Verdict = r.Verdict
		}
		label := ""
		if r.Rail != "" {
			label = "rail " + r.Rail + ": "
		}
		if r.What != "" {
			what = append(what, label+r.What)
		}
		if len(test.Figures) >= mostFigures {
			continue
		}
		test.Figures = append(test.Figures,
			cluster.Figure{Name: strings.TrimSpace(r.Rail + " sends"), Value: r.Sends, Unit: "Gb/s"},
			cluster.Figure{Name: strings.TrimSpace(r.Rail + " receives"), Value: r.Receives, Unit: "Gb/s"})
	}
	if len(what) > 0 {
		test.Text = "network: " + strings.Join(what, "; ")
	}
	test.Text = test.Text[:min(len(test.Text), mostText)]
	return cluster.TestedPart{
		ID:    name + "/fabric",
		Kind:  "fabric",
		Model: v.Tool,
		Tests: []cluster.PartTest{test},
	}
}
