package conf

import (
	"fmt"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// pair is one Key=Value of a line, its key in small letters; typed is the key as it stands there.
type pair struct{ key, value, typed string }

// reader collects one configuration.
type reader struct {
	cfg     *cluster.Config
	notes   []string
	fine    []string // what need not be told
	refused []error  // what cannot be done and changes what programs compute
	nodeDef []pair   // NodeName=DEFAULT
	partDef []pair
	tiered  bool // some partition has a PriorityTier
	// partitions are where those of cfg stand.
	partitions []partitionLineAt
	// interactive: salloc begins its shell by srun, with these options.
	interactive        bool
	interactiveOptions string
	// coreSpec, boards and perBoard are CoreSpecCount, Boards and SocketsPerBoard of the node line that is being read.
	coreSpec int
	boards   int
	perBoard int
	downs    []downLine
	placed   map[cluster.NodeName]cluster.IDSet // GPUs that a gres.conf line spoke of
}

func (r *reader) note(file string, line int, format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%s:%d: %s", file, line, fmt.Sprintf(format, args...)))
}

func (r *reader) pairs(file string, n int, words []string) (out []pair) {
	for _, w := range words {
		if last := len(out) - 1; last >= 0 && strings.HasPrefix(out[last].value, `"`) && !strings.HasSuffix(out[last].value[1:], `"`) {
			out[last].value += " " + w // between quotes
			continue
		}
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			r.note(file, n, "%q is not Key=Value; ignored", w)
			continue
		}
		out = append(out, pair{strings.ToLower(k), v, k})
	}
	for i := range out {
		out[i].value = strings.Trim(out[i].value, `"`)
	}
	return out
}

// lineMeant is the kind of line that one of several words was meant to be, whose first word is mistyped; "" if it
// is none.
func lineMeant(ps []pair) string {
	if len(ps) < 2 {
		return ""
	}
	return opt.Nearest(ps[0].key, []string{"NodeName", "PartitionName", "NodeSet", "DownNodes"})
}
