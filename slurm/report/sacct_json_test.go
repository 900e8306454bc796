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
		"": "[]",
		"billing=3,cpu=3,mem=2000M": "[map[count:3 id:5 name: type:billing] " +
			"map[count:3 id:1 name: type:cpu] map[count:2000 id:2 name: type:mem]]",
		"gres/gpu=2,gres/gpu:h100=2,fs/disk=7": "[map[count:2 id:1001 name:gpu type:gres] map[count:2 id:1002 name:gpu:h100 type:gres] " +
			"map[count:7 id:6 name:disk type:fs]]",
		"license/matlab=1": "[map[count:1 id:0 name:matlab type:license]]",
	} {
		if got := fmt.Sprint(tresList(v, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
