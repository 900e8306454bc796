package sacctmgr

import (
	"testing"

	"dev.muster/cluster"
)

// TestReservedTRES: what Slurm 26.05 says of a reservation of whole nodes is its CPUs, of one of GPUs these, too.
func TestReservedTRES(t *testing.T) {
	for _, c := range []struct {
		name string
		tres []cluster.Amount
		want string
	}{
		{"nodes", []cluster.Amount{{TRES: "cpu", N: 16}, {TRES: "mem", N: 64000}, {TRES: "gres/gpu", N: 8}}, "cpu=16"},
		{"cores", []cluster.Amount{{TRES: "cpu", N: 4}}, "cpu=4"},
		{"GPUs", []cluster.Amount{{TRES: "cpu", N: 4}, {TRES: "gres/gpu", N: 6}, {TRES: "gres/gpu:h100", N: 6}},
			"cpu=4,gres/gpu:h100=6,gres/gpu=6"},
		{"nothing", nil, "cpu=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := reservedTRES(&cluster.ResvSpan{TRES: c.tres}); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
