package page

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// TestAskedSteps: an address that names no step or task of a job is the visitor's fault, not the server's.
func TestAskedSteps(t *testing.T) {
	t.Parallel()
	j := &cluster.Job{ID: 7, Attempt: 1, Spec: &cluster.JobSpec{}}
	step := &cluster.Step{ID: cluster.StepID{Job: 7, Step: 0}, Attempt: 1}
	s := &pages{}
	s.Call = func(context.Context, api.Caller, string, string, []byte) (int, []byte, error) {
		record := api.JobHistory{Job: j, Steps: []*cluster.Step{step}}
		text, err := wire.Marshal(&api.HistoryResponse{Records: []api.JobHistory{record}})
		return 200, text, err
	}
	for query, want := range map[string]cluster.Code{
		"step=../../x":  cluster.NotFound,
		"step=5":        cluster.NotFound,
		"step=0&task=x": cluster.Invalid,
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("GET", "/jobs/7/log/file/out?"+query, nil)
			_, err := outputOf(t.Context(), s, api.Caller{}, j, r)
			if e := (*cluster.Error)(nil); !errors.As(err, &e) || e.Code != want {
				t.Errorf("%v", err)
			}
		})
	}
}
