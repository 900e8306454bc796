package front

import (
	"testing"

	"dev.muster/cluster"
)

func TestCPUCounts(t *testing.T) {
	share := func(n int) cluster.Share { return cluster.Share{CPUs: cluster.RangeIDSet(0, n-1)} }
	if got := CPUCounts([]cluster.Share{share(2), share(2), share(1)}); got != "2(x2),1(x1)" {
		t.Error(got)
	}
}
