package fabric

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dev.muster/cluster"
)

//go:embed ports.tsv
var portTable string

// rule is one row of ports.tsv.
type rule struct {
	cause   string
	counter string // the same, if it is a counter
	action  cluster.FaultAction
	most    uint64 // within window
	meaning string
}

// rules is the table.
var rules = sync.OnceValue(func() (out []rule) {
	for line := range strings.Lines(portTable) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 5 || strings.HasPrefix(line, "#") {
			continue // a comment; a test reads every row
		}
		r := rule{cause: f[0], action: cluster.FaultAction(f[1]), meaning: f[3]}
		if most, err := strconv.ParseUint(f[2], 10, 64); err == nil {
			r.counter, r.most = r.cause, most
		}
		out = append(out, r)
	}
	return out
})

func ruleOf(cause string) rule {
	return rules()[slices.IndexFunc(rules(), func(r rule) bool { return r.cause == cause })]
}
