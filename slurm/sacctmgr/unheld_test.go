package sacctmgr

import (
	"bytes"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/show"
)

// TestNoteUnheld: limits that nothing enforces are told when they are set and when they are shown; of servers that do
// not say what they enforce nothing is told.
func TestNoteUnheld(t *testing.T) {
	limits := cluster.Limits{{Name: "GrpTRES", TRES: "gres/gpu", Max: 16}}
	assoc := &cluster.Association{Account: "nlp", Limits: limits}
	for name, c := range map[string]struct {
		enforce *cluster.Enforce
		told    bool
	}{
		"nothing is enforced":    {&cluster.Enforce{}, true},
		"limits are enforced":    {&cluster.Enforce{Limits: true}, false},
		"a server that is older": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			b := &show.Books{BooksResponse: api.BooksResponse{
				Enforce: c.enforce, Assocs: []*cluster.Association{assoc},
			}}
			noteUnheld(&errs, b, limitsOf([]cluster.Change{{Assoc: assoc}})...)
			noteUnheld(&errs, b, limitsShown(b, "association")...)
			noteUnheld(&errs, b, limitsShown(b, "tres")...)
			want := 0
			if c.told {
				want = 2
			}
			if got := strings.Count(errs.String(), "sacctmgr: note: GrpTRES: no job waits for it"); got != want {
				t.Errorf("told %d times, want %d: %s", got, want, errs.String())
			}
		})
	}
}
