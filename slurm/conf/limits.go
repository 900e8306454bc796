package conf

import (
	"slices"
	"strings"
)

// limitNames are those of resource limits, without RLIMIT_.
var limitNames = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"}

// propagate reads which of users' resource limits their tasks get.
func (r *reader) propagate(file string, n int, p pair) {
	c, text := r.cfg, strings.ToUpper(p.value)
	except := p.key == "propagateresourcelimitsexcept"
	switch text {
	case "ALL", "NONE":
		c.PropagateLimits, c.LimitsOnly, c.LimitsExcept = (text == "ALL") != except, nil, nil
		return
	}
	names := []string{}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), "RLIMIT_")
		if !slices.Contains(limitNames, name) {
			r.note(file, n, "%s=%s: %s is none of the limits %s; ignored", p.key, p.value, name,
				strings.Join(limitNames, ", "))
			continue
		}
		names = append(names, name)
	}
	if c.PropagateLimits = true; except {
		c.LimitsExcept = names
	} else {
		c.LimitsOnly = names
	}
}
