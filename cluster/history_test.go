package cluster

import (
	"testing"
	"time"
)

func TestHistoryFilter(t *testing.T) {
	j := &Job{Spec: &JobSpec{GID: 5, WCKey: "k", Layout: &Layout{Constraint: "[rack1*2&h100]"}},
		Phase: Ended, EndReason: EndTimeLimit,
		Started: time.Unix(1, 0), Backfilled: true, Limit: 10 * time.Minute,
		Alloc: &Alloc{Shares: []Share{{Node: "a", CPUs: RangeIDSet(0, 2)}, {Node: "b", CPUs: RangeIDSet(0, 0)}}}}
	for name, c := range map[string]struct {
		f    HistoryFilter
		want bool
	}{
		"empty":              {HistoryFilter{}, true},
		"group":              {HistoryFilter{Groups: []uint32{4, 5}}, true},
		"other group":        {HistoryFilter{Groups: []uint32{4}}, false},
		"wckey":              {HistoryFilter{WCKeys: []string{"k"}}, true},
		"other wckey":        {HistoryFilter{WCKeys: []string{"x"}}, false},
		"both constraints":   {HistoryFilter{Constraints: []string{"h100", "rack1"}}, true},
		"one of two":         {HistoryFilter{Constraints: []string{"h100", "rack2"}}, false},
		"part of a name":     {HistoryFilter{Constraints: []string{"h1"}}, false},
		"reason":             {HistoryFilter{Reasons: []Reason{"timelimit"}}, true},
		"other reason":       {HistoryFilter{Reasons: []Reason{EndNonZeroExit}}, false},
		"backfill":           {HistoryFilter{Starters: []Starter{StartedBehind}}, true},
		"main":               {HistoryFilter{Starters: []Starter{StartedInOrder}}, false},
		"four CPUs":          {HistoryFilter{CPUCount: Range{Min: 4}}, true},
		"one CPU":            {HistoryFilter{CPUCount: Range{Min: 1}}, false},
		"one to three nodes": {HistoryFilter{NodeCount: Range{1, 3}}, true},
		"three nodes":        {HistoryFilter{NodeCount: Range{Min: 3}}, false},
		"limit":              {HistoryFilter{Minutes: Range{5, 10}}, true},
		"other limit":        {HistoryFilter{Minutes: Range{Min: 5}}, false},
	} {
		if got := c.f.Matches(j); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOwnSteps(t *testing.T) {
	at := time.Unix(100, 0)
	base := Job{ID: 7, Attempt: 2, Spec: &JobSpec{Layout: &Layout{}, UID: 3}, Started: at, Contain: true,
		Phase: Running,
		Alloc: &Alloc{Shares: []Share{{Node: "a"}, {Node: "b"}}}}
	for name, c := range map[string]struct {
		change func(*Job)
		want   map[int]Outcome // by step number
	}{
		"running": {func(*Job) {}, map[int]Outcome{ExternStep: 0, BatchStep: 0}},
		"an allocation": {
			func(j *Job) { j.Spec = &JobSpec{Layout: &Layout{}, Kind: Allocation} },
			map[int]Outcome{ExternStep: 0},
		},
		"a cluster without Contain": {func(j *Job) { j.Contain = false }, map[int]Outcome{BatchStep: 0}},
		"ended": {func(j *Job) {
			j.Phase = Ended
			j.Outcome = Failed
			j.Ended = at.Add(1)
		}, map[int]Outcome{ExternStep: Completed}},
		"its node was lost": {func(j *Job) {
			j.Phase = Ended
			j.Outcome = NodeFailed
			j.Ended = at.Add(1)
		}, map[int]Outcome{ExternStep: NodeFailed, BatchStep: Cancelled}},
		"pending": {func(j *Job) { j.Phase, j.Alloc = Pending, nil }, map[int]Outcome{}},
	} {
		j := base
		c.change(&j)
		got := map[int]Outcome{}
		for _, s := range j.OwnSteps() {
			got[s.ID.Step] = s.Outcome
			if s.Attempt != 2 || !s.Started.Equal(at) || s.Tasks != len(s.Shares) || s.Ended.IsZero() != (j.Phase != Ended) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: steps %v, want %v", name, got, c.want)
		}
		for n, o := range c.want {
			if got[n] != o {
				t.Errorf("%s: step %d ended %v, want %v", name, n, got[n], o)
			}
		}
	}
}
