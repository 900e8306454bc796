package front

import (
	"fmt"
	"strings"

	"dev.muster/cluster"
)

// CPUCounts are the CPUs of each node, runs of alike ones together: 2(x3),1(x1).
func CPUCounts(shares []cluster.Share) string {
	var parts []string
	for i := 0; i < len(shares); {
		n, k := shares[i].CPUs.Len(), i
		for k < len(shares) && shares[k].CPUs.Len() == n {
			k++
		}
		parts = append(parts, fmt.Sprintf("%d(x%d)", n, k-i))
		i = k
	}
	return strings.Join(parts, ",")
}
