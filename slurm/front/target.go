package front

import (
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// Target is one word of the line: a job, some tasks of an array, or a step.
type Target struct {
	Ref  cluster.Ref
	Step *int
}

// ParseTarget reads 42, 42_3, 42_[1-3], 42+1, 42.1.
func ParseTarget(w string) (t Target, ok bool) {
	job, step, hasStep := strings.Cut(w, ".")
	base, tasks, hasTasks := strings.Cut(job, "_")
	if lead, part, ok := strings.Cut(base, "+"); ok {
		k, err := strconv.ParseUint(part, 10, 16)
		if err != nil || hasTasks {
			return t, false
		}
		base, t.Ref.Part = lead, int(k)+1
	}
	id, err := strconv.ParseUint(base, 10, 32)
	if err != nil || id == 0 {
		return t, false
	}
	t.Ref.Job = cluster.JobID(id)
	if hasTasks && tasks != "*" {
		set, err := cluster.ParseIDSet(strings.TrimSuffix(strings.TrimPrefix(tasks, "["), "]"))
		if err != nil || set.Empty() {
			return t, false
		}
		t.Ref.Tasks = set
	}
	if hasStep {
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 {
			return t, false
		}
		t.Step = &n
	}
	return t, true
}

// SplitOutside splits at commas that are not in brackets.
func SplitOutside(w string) (out []string) {
	depth, start := 0, 0
	for i := range len(w) {
		switch w[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, w[start:i])
				start = i + 1
			}
		}
	}
	return append(out, w[start:])
}

// SplitParts cuts a list of some components, 42+[0-2,4], into one word for each; other words stay.
func SplitParts(w string) (out []string) {
	lead, list, ok := strings.Cut(w, "+[")
	list, ends := strings.CutSuffix(list, "]")
	if set, err := cluster.ParseIDSet(list); ok && ends && err == nil && set.Max() < cluster.MaxHetSize {
		for k := range set.All() {
			out = append(out, lead+"+"+strconv.Itoa(k))
		}
		return out
	}
	return []string{w}
}
