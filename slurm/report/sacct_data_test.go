package report

import (
	"fmt"
	"testing"

	"dev.muster/api"
	"dev.muster/slurm/show"
)

// TestTRESList: amounts in sacct's JSON are lists, with the numbers of sacctmgr show tres.
func TestTRESList(t *testing.T) {
	v := &show.View{Books: &show.Books{BooksResponse: api.BooksResponse{TRES: []string{"gres/gpu", "gres/gpu:h100"}}}}
	for text, want := range map[string]string{
		"":                                     "[]",
		"billing=3,cpu=3,mem=2000M":            "[{billing  5 3} {cpu  1 3} {mem  2 2000}]",
		"gres/gpu=2,gres/gpu:h100=2,fs/disk=7": "[{gres gpu 1001 2} {gres gpu:h100 1002 2} {fs disk 6 7}]",
		"license/matlab=1":                     "[{license matlab 0 1}]",
	} {
		if got := fmt.Sprint(show.TRESRows(v, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
