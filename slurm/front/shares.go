package front

import (
	"fmt"
	"strings"
	"time"

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

// SpanText is a duration with all of its hours: [D-]HH:MM:SS.
func SpanText(d time.Duration) string {
	if d == cluster.Unlimited {
		return "UNLIMITED"
	}
	s := int64(d / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}
