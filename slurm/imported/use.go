package imported

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
)

// kept returns a list of a step's use, or the one that it is as.
func kept(l *cluster.TRESList, as cluster.TRESList) cluster.TRESList {
	if l == nil {
		return as
	}
	return *l
}

// amounts writes what a step used, by the names.
func (r *Row) amounts(l cluster.TRESList) string {
	return written(l, func(name string, n uint64) string {
		switch name {
		case "cpu":
			return format.Padded(time.Duration(n) * time.Millisecond)
		case "energy":
			return strconv.FormatUint(n, 10)
		}
		if r.release() >= release2511 && n > 512 && !r.Raw && r.Unit == 0 {
			return halves(n)
		}
		return r.size(n)
	})
}

// halves writes bytes in the largest unit of which they are a whole number of halves.
func halves(n uint64) string {
	unit := 0
	for n%1024 == 0 && unit < len(units) {
		n, unit = n/1024, unit+1
	}
	if n > 512 && n%512 == 0 && unit < len(units) {
		return fmt.Sprintf("%.2f%c", float64(n)/1024, units[unit])
	}
	return decimal(n) + units[max(unit-1, 0):unit]
}

// places writes on which nodes of a step it was most, or least.
func (r *Row) places(l cluster.TRESList) string {
	return written(l, func(_ string, n uint64) string { return cmp.Or(r.node(n), "(null)") })
}

// plain writes numbers as they are.
func plain(l cluster.TRESList) string {
	return written(l, func(_ string, n uint64) string { return strconv.FormatUint(n, 10) })
}

func written(l cluster.TRESList, of func(name string, n uint64) string) string {
	var out []string
	for name, n := range l.All() {
		if n < unknown64 {
			out = append(out, name+"="+of(name, n))
		}
	}
	slices.SortFunc(out, byName)
	return strings.Join(out, ",")
}

// node is the name of a step's node by its place.
func (r *Row) node(place uint64) string {
	names, err := hostlist.Expand(r.Step.Imported.NodeList)
	if err != nil || place >= uint64(len(names)) {
		return ""
	}
	return names[place]
}

const units = "KMGTP"

// size writes bytes in the largest unit of which they are a whole number.
func (r *Row) size(n uint64) string {
	switch {
	case n == 0 || r.Raw:
		return strconv.FormatUint(n, 10)
	case r.Unit != 0:
		return inUnit(n, r.Unit)
	}
	unit := ""
	for i := 0; n%1024 == 0 && i < len(units); i++ {
		n, unit = n/1024, units[i:i+1]
	}
	return strconv.FormatUint(n, 10) + unit
}

func inUnit(n uint64, unit byte) string {
	f := float64(n)
	for range strings.IndexByte(units, unit) + 1 {
		f /= 1024
	}
	return fmt.Sprintf("%.2f%c", f, unit)
}

// disk writes bytes read or written, in M.
func (r *Row) disk(n uint64) string {
	switch {
	case r.Raw || n == 0:
		return decimal(n)
	case r.Unit != 0:
		return inUnit(n, r.Unit)
	}
	return inUnit(n, 'M')
}

// shortened writes a number, from a thousand on shortened.
func shortened(n float64) string {
	if n < 1000 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	for i := range len(units) {
		if n /= 1000; n < 1000 || i == len(units)-1 {
			return fmt.Sprintf("%.2f%c", n, units[i])
		}
	}
	return ""
}

// one writes a count of a list; empty where the list does not have it.
func one(l cluster.TRESList, name string, write func(uint64) string) string {
	n, ok := l.Count(name)
	if !ok || n >= unknown64 {
		return ""
	}
	return write(n)
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func clock(ms uint64) string { return format.Padded(time.Duration(ms) * time.Millisecond) }

func (r *Row) in() *cluster.ImportedUse  { return &r.Step.Imported.In }
func (r *Row) out() *cluster.ImportedUse { return &r.Step.Imported.Out }

// consumed writes the energy of a job or step in joules; of a job it is among what it had, and may not be known.
func (r *Row) consumed(short bool) string {
	joules, _ := r.Job.Imported.TRESAlloc.Count("energy")
	if r.Step != nil {
		joules = r.Step.Imported.Energy
	}
	switch {
	case joules >= unknown64:
		return ""
	case short:
		return shortened(float64(joules))
	}
	return decimal(joules)
}

// layoutNames are the ways to deal tasks out to nodes.
var layoutNames = [...]string{"Unknown", "Cyclic", "Block", "Arbitrary", "Plane"}

func (r *Row) layout() string {
	n := int(r.Step.Imported.Layout & 0xf)
	if n >= len(layoutNames) {
		return layoutNames[0]
	}
	return layoutNames[n]
}

// freqWords are the words of --cpu-freq by their numbers.
var freqWords = [...]struct {
	number uint32
	word   string
}{
	{0x80000001, "Low"}, {0x80000002, "Medium"}, {0x80000003, "High"}, {0x80000004, "HighM1"},
	{0x88000000, "Conservative"}, {0x84000000, "OnDemand"}, {0x82000000, "Performance"}, {0x81000000, "PowerSave"},
	{0x80800000, "UserSpace"}, {0x80400000, "SchedUtil"},
}

func freq(n uint32) string {
	if n == noValue {
		return "Unknown"
	}
	for _, w := range freqWords {
		if w.number == n {
			return w.word
		}
	}
	if n&0x80000000 != 0 {
		return "Unknown"
	}
	return shortened(float64(n) * 1000)
}
