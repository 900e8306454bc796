package replay

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// part is a cluster of its own: the nodes of one partition.
type part struct {
	machine
	name  string
	nodes []int // places in the trace's list
}

// parts splits the cluster by the nodes' partitions, in the order of their first nodes.
func (t *Trace) parts() []*part {
	_, has := t.units()
	var out []*part
	for i := range t.Nodes {
		n := &t.Nodes[i]
		k := slices.IndexFunc(out, func(p *part) bool { return p.name == n.Partition })
		if k < 0 {
			k, out = len(out), append(out, &part{name: n.Partition})
		}
		p := out[k]
		p.nodes, p.has, p.most = append(p.nodes, i), append(p.has, has(n)), max(p.most, has(n))
	}
	return out
}

// home is the part that a job belongs to: that of its partition; the only one; for want of a partition the first.
func home(parts []*part, j *Job) *part {
	for _, p := range parts {
		if p.name == j.Partition {
			return p
		}
	}
	if len(parts) == 1 || j.Partition == "" {
		return parts[0]
	}
	return nil
}

// clean does what is standard: entries without run time, limit or size, or that the empty cluster could not run,
// are left out; a run is cut at its limit.
func (t *Trace) clean() {
	want, _ := t.units()
	parts := t.parts()
	for _, flaw := range []struct {
		why string
		of  func(*Job) bool
	}{
		{"without run time", func(j *Job) bool { return j.Run <= 0 }},
		{
			"without limit (--limit=runtime replays them as if they had asked for what they took)",
			func(j *Job) bool { return j.Limit <= 0 },
		},
		{"without " + t.scarce(), func(j *Job) bool { return want(j) <= 0 }},
		{"with fewer " + t.scarce() + " than nodes", func(j *Job) bool { return want(j) < j.Nodes }},
		{"of a partition without nodes", func(j *Job) bool { return home(parts, j) == nil }},
		{"larger than the empty cluster", func(j *Job) bool {
			p := home(parts, j)
			return p.most == 0 || p.place(p.has, want(j), j.Nodes, Placements["first"]) == nil
		}},
	} {
		all := len(t.Jobs)
		t.Jobs = slices.DeleteFunc(t.Jobs, func(j Job) bool { return flaw.of(&j) })
		t.leave(all-len(t.Jobs), flaw.why)
	}
	for i := range t.Jobs {
		t.Jobs[i].Run = min(t.Jobs[i].Run, t.Jobs[i].Limit)
	}
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
}

// Spread puts submissions factor times as far apart as they were; those of one second stay together.
func (t *Trace) Spread(factor float64) {
	if len(t.Jobs) == 0 || factor == 1 {
		return
	}
	first := t.Jobs[0].Submit
	for i := range t.Jobs {
		after := float64(t.Jobs[i].Submit - first)
		t.Jobs[i].Submit = first + int64(math.Round(after*factor))
	}
}

func (t *Trace) leave(n int, why string) {
	if n > 0 {
		t.Left = append(t.Left, Left{n, why})
	}
}

// without tells what was left out: how many entries, and why.
func (t *Trace) without() string {
	var out []string
	for _, l := range t.Left {
		out = append(out, l.String())
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}
