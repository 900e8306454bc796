package format

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Duration is a time span as squeue and sinfo write it: M:SS, H:MM:SS or D-HH:MM:SS.
func Duration(d time.Duration) string {
	if d == cluster.Unlimited {
		return "UNLIMITED"
	}
	if d < 0 {
		return "INVALID"
	}
	s := int64(d / time.Second)
	b := make([]byte, 0, 16)
	days, hours, mins := s/86400, s/3600%24, s/60%60
	switch {
	case days > 0:
		b = append(strconv.AppendInt(b, days, 10), '-')
		b = append(two(b, hours), ':')
		b = two(b, mins)
	case hours > 0:
		b = append(strconv.AppendInt(b, hours, 10), ':')
		b = two(b, mins)
	default:
		b = strconv.AppendInt(b, mins, 10)
	}
	return string(two(append(b, ':'), s%60))
}

// Padded is a time span as scontrol and sacct write it: HH:MM:SS or D-HH:MM:SS.
func Padded(d time.Duration) string {
	if d == cluster.Unlimited {
		return "UNLIMITED"
	}
	if d < 0 {
		return "INVALID"
	}
	s := int64(d / time.Second)
	b := make([]byte, 0, 16)
	if days := s / 86400; days > 0 {
		b = append(strconv.AppendInt(b, days, 10), '-')
	}
	b = append(two(b, s/3600%24), ':')
	b = append(two(b, s/60%60), ':')
	return string(two(b, s%60))
}

func two(b []byte, n int64) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// Mem is memory as Slurm writes it: a number of mebibytes goes up a unit only while it is a
// multiple of 512 of the lower one, and then has two decimals unless it is whole.
func Mem(m cluster.MemMB) string {
	if m == 0 {
		return "0"
	}
	const units = "MGTPE"
	whole, unit := m, 0
	for whole%1024 == 0 && unit < len(units)-1 {
		whole /= 1024
		unit++
	}
	if whole > 512 && whole%512 == 0 && unit < len(units)-1 {
		return strconv.FormatFloat(float64(whole)/1024, 'f', 2, 64) + units[unit+1:unit+2]
	}
	return strconv.FormatInt(int64(whole), 10) + units[unit:unit+1]
}

// MemIn is memory in the unit asked for: K and M whole, larger ones with two decimals unless whole.
func MemIn(m cluster.MemMB, unit byte) string {
	n, name := float64(m), string(unit)
	switch unit {
	case 'K':
		n *= 1024
	case 'G', 'T', 'P':
		for range strings.IndexByte("MGTP", unit) {
			n /= 1024
		}
	}
	if n == float64(int64(n)) {
		return strconv.FormatInt(int64(n), 10) + name
	}
	return strconv.FormatFloat(n, 'f', 2, 64) + name
}

// MemRaw is memory without a change of units (--noconvert).
func MemRaw(m cluster.MemMB) string {
	if m == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(m), 10) + "M"
}

// Stamp is a time of day, YYYY-MM-DDTHH:MM:SS in local time, or none where there is no time.
func Stamp(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	t = t.Local()
	return string(t.AppendFormat(make([]byte, 0, 19), "2006-01-02T15:04:05"))
}

// Null is s, or what Slurm prints for a text that was never set.
func Null(s string) string {
	if s == "" {
		return "(null)"
	}
	return s
}

// TRES is a list of what was asked for or given, in scontrol's order. The number of CPUs is also
// what is billed. types has GPUs by type; it may be nil.
type TRES struct {
	CPUs, Nodes, GPUs int
	Mem               cluster.MemMB
	Types             map[string]int64
	// Holding leaves nodes and billing out, as in the lists of nodes.
	Holding bool
	// Billed keeps billing where Holding is set.
	Billed bool
	// Raw keeps memory in mebibytes.
	Raw bool
}

// String is cpu=1,mem=2000M,node=1,billing=1,gres/gpu=2,gres/gpu:h100=2; empty parts are left out.
func (t TRES) String() string {
	b := make([]byte, 0, 96)
	add := func(name string, n int) {
		if n > 0 {
			if len(b) > 0 {
				b = append(b, ',')
			}
			b = append(append(b, name...), '=')
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	add("cpu", t.CPUs)
	if t.Mem > 0 {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, "mem="...)
		if t.Raw {
			b = append(b, MemRaw(t.Mem)...)
		} else {
			b = append(b, Mem(t.Mem)...)
		}
	}
	if !t.Holding {
		add("node", t.Nodes)
	}
	if !t.Holding || t.Billed {
		add("billing", t.CPUs)
	}
	add("gres/gpu", t.GPUs)
	for _, kind := range sortedKeys(t.Types) {
		if kind != "" {
			add("gres/gpu:"+kind, int(t.Types[kind]))
		}
	}
	return string(b)
}

func sortedKeys(m map[string]int64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		i := len(keys)
		for i > 0 && keys[i-1] > k {
			i--
		}
		keys = append(keys, "")
		copy(keys[i+1:], keys[i:])
		keys[i] = k
	}
	return keys
}

// GRES writes requests as squeue and scontrol show them: gres:gpu:h100:2, joined by commas.
func GRES(list []cluster.GRES) string {
	var b strings.Builder
	for _, g := range list {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString("gres:")
		b.WriteString(g.Name)
		if g.Type != "" {
			b.WriteByte(':')
			b.WriteString(g.Type)
		}
		b.WriteByte(':')
		b.WriteString(g.CountText())
	}
	return b.String()
}

// foldFrom is how many task numbers with one step between them are written as FIRST-LAST:STEP.
const foldFrom = 6

// Tasks writes task numbers as Slurm writes an array's: ranges, or FIRST-LAST:STEP for what is
// regular, with %LIMIT behind if there is one.
func Tasks(set cluster.IDSet, limit int) string {
	text := ""
	if n := set.Len(); n >= foldFrom {
		lo, hi := set.Min(), set.Max()
		if step := (hi - lo) / (n - 1); step > 1 && step*(n-1) == hi-lo && regular(set, step) {
			text = strconv.Itoa(lo) + "-" + strconv.Itoa(hi) + ":" + strconv.Itoa(step)
		}
	}
	if text == "" {
		text = set.String()
	}
	if limit > 0 {
		text += "%" + strconv.Itoa(limit)
	}
	return text
}

func regular(set cluster.IDSet, step int) bool {
	last := -1
	for i := range set.All() {
		if last >= 0 && i-last != step {
			return false
		}
		last = i
	}
	return true
}

// maxArrayID is how much of the id of an array's remainder is shown, and maxTasks how much of its
// list of tasks alone.
const (
	maxArrayID = 31
	maxTasks   = 64
)

// ArrayID is the id of an array's remainder, 367_[3-5%2]. A long one is cut without a mark.
func ArrayID(id cluster.JobID, set cluster.IDSet, limit int) string {
	text := strconv.FormatUint(uint64(id), 10) + "_[" + Tasks(set, limit) + "]"
	if len(text) > maxArrayID {
		text = text[:maxArrayID]
	}
	return text
}

// ShortTasks is the list of tasks in a field of its own, where three dots mark what was cut.
func ShortTasks(set cluster.IDSet, limit int) string {
	text := Tasks(set, limit)
	if len(text) < maxTasks {
		return text
	}
	cut := strings.LastIndexByte(text[:maxTasks-3], ',')
	return text[:max(cut, 1)] + "..."
}

// ShareGRES is what a share has of GPUs of a type and of what is counted: gpu:2(IDX:0-1), lscratch(CNT:10).
func ShareGRES(sh *cluster.Share, kind string) (out []string) {
	if !sh.GPUs.Empty() {
		out = append(out, "gpu:"+kind+strconv.Itoa(sh.GPUs.Len())+"(IDX:"+sh.GPUs.String()+")")
	}
	for _, g := range sh.Counted {
		name := g.Name
		if g.Type != "" {
			name += ":" + g.Type
		}
		out = append(out, name+"(CNT:"+g.CountText()+")")
	}
	return out
}

// JobGRES is what a job has on all of its nodes together: so many GPUs of a type, and of what is counted.
func JobGRES(a *cluster.Alloc, kind string, gpus int) string {
	var out []string
	if gpus > 0 {
		out = append(out, "gpu:"+kind+strconv.Itoa(gpus))
	}
	if a == nil {
		return Null(strings.Join(out, ","))
	}
	var all []cluster.GRES
	for i := range a.Shares {
		all = cluster.AddCounted(all, a.Shares[i].Counted, 1)
	}
	for i := range all {
		out = append(out, all[i].String())
	}
	return Null(strings.Join(out, ","))
}

// Signed is a list of names that are allowed, or of those that are not.
func Signed(list []string, not bool) string {
	if not {
		return "-" + strings.Join(list, ",-")
	}
	return Null(strings.Join(list, ","))
}

// ReservationTRES is what a reservation has of the CPUs that are given, and its GPUs; "" for nothing.
func ReservationTRES(r *cluster.Reservation, cpus int) string {
	var words []string
	if cpus > 0 {
		words = append(words, "cpu="+strconv.Itoa(cpus))
	}
	for _, a := range r.GPUAmounts() {
		words = append(words, a.TRES+"="+strconv.Itoa(int(a.N)))
	}
	return strings.Join(words, ",")
}
