package cluster

import (
	"strconv"
	"strings"
)

// PortRange are ports of every node, both ends included, of which steps get some for themselves. The zero value has
// none.
type PortRange struct{ First, Last int }

// Len is how many there are.
func (r PortRange) Len() int {
	if r.First == 0 {
		return 0
	}
	return r.Last - r.First + 1
}

// maxPort is the highest number of a port.
const maxPort = 1<<16 - 1

// ParsePortRange reads what MpiParams says, words joined by commas: ports=FIRST-LAST is the one that means something.
// It is not ok if that word is wrong, or there is another one.
func ParsePortRange(params string) (r PortRange, ok bool) {
	ok = true
	for word := range strings.SplitSeq(params, ",") {
		text, ours := strings.CutPrefix(strings.ToLower(strings.TrimSpace(word)), "ports=")
		from, to, both := strings.Cut(text, "-")
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if !ours || !both || err != nil || err2 != nil {
			ok = false
			continue
		}
		if first < 1 || last < first || last > maxPort {
			ok = false
			continue
		}
		r = PortRange{First: first, Last: last}
	}
	return r, ok
}

// AsksPorts reports whether a step asks for ports of its nodes.
func (s *StepSpec) AsksPorts() bool { return s.Ports != nil && *s.Ports > 0 }

// StepPorts are the ports of which steps get some.
func (c *Config) StepPorts() PortRange {
	r, _ := ParsePortRange(c.Keys["mpiparams"])
	return r
}
