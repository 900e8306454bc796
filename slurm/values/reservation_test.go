package values

import (
	"fmt"
	"testing"
)

// TestReservedTRES reads what a reservation asks for, in the forms that Slurm 26.05 takes.
func TestReservedTRES(t *testing.T) {
	for _, c := range []struct {
		text    string
		perNode bool
		want    string
	}{
		{"", false, "{0 []  []}"},
		{"cpu=2,3,1,node=3", false, "{3 [2 3 1]  []}"},
		{"license/a=3,license/b=1", false, "{0 [] a:3,b:1 []}"},
		{"gres/gpu=4", false, "{0 []  [{gpu  4 false}]}"},
		{"gres/gpu:4", false, "{0 []  [{gpu  4 false}]}"},
		{"gres/gpu", false, "{0 []  [{gpu  1 false}]}"},
		{"gres/gpu:h100=4", true, "{0 []  [{gpu h100 4 false}]}"},
		{"gres/gpu:h100:4,gres/gpu:a100=1", true, "{0 []  [{gpu h100 4 false} {gpu a100 1 false}]}"},
		{"gres/gpu=2,gres/gpu:h100=2", true, "{0 []  [{gpu h100 2 false}]}"},
		{"cpu=4,gres/gpu=2", true, "{0 [4]  [{gpu  2 false}]}"},
		{"gres/gpu=2,gres/gpu:h100=4", false, "invalid TRES 'gres/gpu=2': it is not the sum of the GPUs that are " +
			"asked for by type; leave it out"},
		{"gres/gpu=2,gres/gpu=2", false, "invalid TRES 'gres/gpu=2': its type is named twice"},
		{"gres/gpu=x", false, "invalid TRES 'gres/gpu=x': \"x\" is not a number of GPUs"},
		{"gres/gpu=", false, "invalid TRES 'gres/gpu=': \"\" is not a number of GPUs"},
		{"gres/gpu=-1", false, "TRES type 'gres/gpu=-1' not supported with reservations"},
		{"gres/gpu=0", false, "invalid TRES 'gres/gpu=0': reserve 1 GPU or more"},
		{"gres/gpus=1", false, "TRES type 'gres/gpus=1' not supported with reservations"},
		{"gres/foo=1", false, "TRES type 'gres/foo' not supported with reservations"},
		{"mem=4G", true, "TRES type 'mem' not supported with reservations"},
		{"license/a=1", true, "TRES type 'license/a' not supported with reservations"},
		{"3", true, "invalid TRES '3'"},
		{"cpu", false, "invalid TRES 'cpu'"},
		{"node=x", false, "Invalid TRES node count x"},
	} {
		t.Run(c.text, func(t *testing.T) {
			r, bad := ParseReservedTRES(c.text, c.perNode)
			got := fmt.Sprint(r)
			if bad != "" {
				got = bad
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
