package api

import (
	"testing"

	"dev.muster/cluster"
)

// TestAllHistory: pages are joined, steps of one job on two of them too; another server's begin again.
func TestAllHistory(t *testing.T) {
	t.Parallel()
	record := func(id cluster.JobID, rest bool, steps ...int) JobHistory {
		h := JobHistory{Job: &cluster.Job{ID: id}, Rest: rest}
		for _, n := range steps {
			h.Steps = append(h.Steps, &cluster.Step{ID: cluster.StepID{Job: id, Step: n}})
		}
		return h
	}
	lag := &Lag{Missing: 3}
	next := &HistoryCursor{Server: "s1", Seq: 1}
	first := func() HistoryResponse {
		return HistoryResponse{First: true, Next: next, Lag: lag, Records: []JobHistory{record(1, false), record(2, false, 0, 1)}}
	}
	for _, c := range []struct {
		name        string
		pages       []HistoryResponse
		jobs, steps int
	}{
		{"one", []HistoryResponse{{First: true, Records: []JobHistory{record(1, false, 0)}}}, 1, 1},
		{"two", []HistoryResponse{first(), {Records: []JobHistory{record(3, false, 0)}}}, 3, 3},
		{"a job on two", []HistoryResponse{first(), {Records: []JobHistory{record(2, true, 2, 3), record(3, false)}}}, 3, 4},
		{"none is left", []HistoryResponse{first(), {}}, 2, 2},
		{"another server", []HistoryResponse{first(), {First: true, Records: []JobHistory{record(1, false)}}}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			wantLag := len(c.pages) > 1 && !c.pages[1].First
			got, err := AllHistory(HistoryQuery{}, func(q HistoryQuery) (HistoryResponse, error) {
				if q.Page == nil || asked > 0 && *q.Page != *next {
					t.Errorf("page %d is asked for by %+v", asked, q.Page)
				}
				asked++
				return c.pages[asked-1], nil
			})
			if err != nil || len(got.Records) != c.jobs || got.Size() != c.jobs+c.steps || asked != len(c.pages) {
				t.Errorf("%d pages of %d, %d jobs, %d with steps, %v", asked, len(c.pages), len(got.Records), got.Size(), err)
			}
			if (got.Lag == lag) != wantLag {
				t.Errorf("records that the first page lacked: %v", got.Lag)
			}
		})
	}
}
