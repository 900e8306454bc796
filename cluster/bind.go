package cluster

import (
	"strconv"
	"strings"
)

// Binding is what the tasks of a step are bound to on one node. Kind is "mask_cpu", "map_cpu",
// "rank" or "none"; Masks holds one set for each task, or a single one for all of them.
type Binding struct {
	Kind    string
	Text    string // the list as given, of map_cpu and mask_cpu
	Verbose bool
	Masks   []IDSet
}

// Bind works out --cpu-bind for a share of a step. Without a word, tasks are bound to cores if
// they use all CPUs of the share, to sockets if there is a task for each socket of the whole
// node, and else to all CPUs of the share, as Slurm's automatic binding does.
func Bind(s *StepSpec, sh Share, inv *Inventory) Binding {
	b := Binding{Kind: "mask_cpu"}
	mode, arg := "", ""
	for _, w := range strings.Split(s.CPUBind, ",") {
		switch name, rest, _ := strings.Cut(w, ":"); {
		case arg != "" && name != "":
			arg += "," + w // more of a list
		case name == "v" || name == "verbose":
			b.Verbose = true
		case name == "q" || name == "quiet" || name == "":
		default:
			mode, arg = name, rest
		}
	}
	per := max(s.CPUsPerTask, 1)
	switch mode {
	case "none", "no", "off": // to nothing within the step's CPUs
	case "map_cpu", "mask_cpu":
		b.Kind, b.Text = mode, arg
		for k := range sh.Tasks {
			b.Masks = append(b.Masks, listed(mode, repeatList(arg), k))
		}
	case "rank":
		b.Kind = mode
		for k := range sh.Tasks {
			b.Masks = append(b.Masks, nth(sh.CPUs, k, per))
		}
	case "sockets":
		b.Masks = bySocket(sh, inv)
	case "cores", "threads":
		b.Masks = byCore(s, sh, inv, per)
	default:
		switch {
		case sh.Tasks*per == sh.CPUs.Len():
			b.Masks = byCore(s, sh, inv, per)
		case sh.Tasks == inv.Sockets && sh.CPUs.Len() == inv.CPUs:
			b.Masks = bySocket(sh, inv)
		}
	}
	if b.Masks == nil {
		b.Masks = []IDSet{sh.CPUs}
	}
	return b
}

// CheckBind refuses a binding that the share can not give: a list that names CPUs outside of it,
// and ranks, which count over the whole node, on a part of one.
func CheckBind(s *StepSpec, sh Share, inv *Inventory) *Error {
	b := Bind(s, sh, inv)
	switch {
	case b.Kind == "rank" && sh.CPUs.Len() < inv.CPUs:
		return Errorf(Invalid, ErrStepBind, "Entire node must be allocated for %s,one_thread", strings.ToLower(s.CPUBind))
	case b.Kind != "map_cpu" && (b.Kind != "mask_cpu" || b.Text == ""):
		return nil
	}
	for _, m := range b.Masks {
		if !m.Minus(sh.CPUs).Empty() {
			return Errorf(Invalid, ErrStepBind, "CPU binding outside of job step allocation, allocated CPUs are: 0x%s.", hexMask(sh.CPUs))
		}
	}
	return nil
}

// hexMask writes a CPU set in hex: upper case, at least four digits.
func hexMask(s IDSet) string {
	digits := make([]byte, max(s.Max()/4+1, 4))
	for i := range digits {
		v := 0
		for bit := range 4 {
			if s.Has(i*4 + bit) {
				v |= 1 << bit
			}
		}
		digits[len(digits)-1-i] = "0123456789ABCDEF"[v]
	}
	return string(digits)
}

// CPUMask is hexMask with its prefix, as SLURM_CPU_BIND_LIST holds it.
func CPUMask(s IDSet) string { return "0x" + hexMask(s) }

// Of is the set of the node's task number local.
func (b Binding) Of(local int) IDSet { return b.Masks[min(local, len(b.Masks)-1)] }

func listed(mode string, list []string, local int) IDSet {
	w := strings.ToLower(list[local%len(list)])
	if mode == "map_cpu" {
		k, err := strconv.ParseUint(w, 0, 16)
		if err != nil {
			return IDSet{}
		}
		return NewIDSet(int(k))
	}
	var out IDSet
	w = strings.TrimPrefix(w, "0x")
	for i := range len(w) {
		v, err := strconv.ParseUint(w[len(w)-1-i:len(w)-i], 16, 8)
		for bit := range 4 {
			if err == nil && v>>bit&1 == 1 {
				out.put(i*4 + bit)
			}
		}
	}
	return out
}

// nth is the k-th group of per CPUs of a set.
func nth(cpus IDSet, k, per int) IDSet {
	return cpus.First((k + 1) * per).Minus(cpus.First(k * per))
}

func socketSize(inv *Inventory) int {
	return max(inv.CoresPerSocket, 1) * max(inv.ThreadsPerCore, 1)
}

// bySocket binds tasks to the sockets of the share in turn.
func bySocket(sh Share, inv *Inventory) (out []IDSet) {
	var sockets []IDSet
	size := socketSize(inv)
	for i := range max(inv.Sockets, 1) {
		if part := sh.CPUs.Intersect(RangeIDSet(i*size, (i+1)*size-1)); !part.Empty() {
			sockets = append(sockets, part)
		}
	}
	for k := range sh.Tasks {
		if len(sockets) > 0 {
			out = append(out, sockets[k%len(sockets)])
		}
	}
	return out
}

// byCore gives each task CPUs of its own: sockets in turn, or one after the other with -m *:block.
func byCore(s *StepSpec, sh Share, inv *Inventory, per int) (out []IDSet) {
	size, left := socketSize(inv), sh.CPUs
	next := 0
	for range sh.Tasks {
		var got IDSet
		for try := range max(inv.Sockets, 1) {
			i := (next + try) % max(inv.Sockets, 1)
			part := left.Intersect(RangeIDSet(i*size, (i+1)*size-1))
			if got = part.First(per); got.Len() == per {
				if next = i + 1; BlockSockets(s.Distribution) {
					next = i
				}
				break
			}
		}
		if got.Len() < per {
			got = left.First(per)
		}
		if got.Empty() {
			return nil
		}
		left = left.Minus(got)
		out = append(out, got)
	}
	return out
}

// BlockSockets reports whether a distribution fills one socket before the next (-m x:block).
func BlockSockets(distribution string) bool {
	words := strings.Split(strings.ToLower(distribution), ":")
	return len(words) > 1 && strings.HasPrefix(words[1], "block")
}
