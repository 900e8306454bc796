package cluster

import (
	"strconv"
	"strings"
)

// Binding is what the tasks of a step are bound to on one node. Kind is "mask_cpu", "map_cpu", "rank", or one of
// "rank_ldom", "map_ldom" and "mask_ldom"; Masks holds one set for each task, or a single one for all of them.
type Binding struct {
	Kind    string
	Text    string // the list, of maps and masks, with what is to be repeated written out
	Verbose bool
	Masks   []IDSet
}

// Bind works out --cpu-bind for a share of a step. Without a word, tasks are bound to sockets if several are meant
// for each, to cores if they use all CPUs of the share, to sockets if there is a task for each socket of the whole
// node, and else to all CPUs of the share, as Slurm's automatic binding does. A locality domain (ldom) is a socket.
func Bind(s *StepSpec, sh Share, inv *Inventory) Binding {
	b := Binding{Kind: "mask_cpu"}
	mode, list, verbose := bindMode(s.CPUBind)
	b.Verbose = verbose
	per := max(s.CPUsPerTask, 1)
	switch mode {
	case "none", "no", "off": // to nothing within the step's CPUs
	case "map_cpu", "mask_cpu", "map_ldom", "mask_ldom":
		b.Kind = mode
		b.Text = strings.Join(list, ",")
		for k := range sh.Tasks {
			set := listed(mode, list, k)
			if strings.HasSuffix(mode, "ldom") {
				set = sh.CPUs.Intersect(domains(set, inv))
			}
			b.Masks = append(b.Masks, set)
		}
	case "rank":
		b.Kind = mode
		for k := range sh.Tasks {
			b.Masks = append(b.Masks, nth(sh.CPUs, k, per))
		}
	case "rank_ldom":
		b.Kind = mode
		b.Masks = bySocket(sh, inv)
	case "sockets", "socket", "ldoms", "ldom":
		b.Masks = bySocket(sh, inv)
	case "cores", "core", "threads", "thread", "one_thread", "one-thread":
		b.Masks = byCore(s, sh, inv, per)
	default:
		switch {
		case s.TasksPerSocket > 1:
			b.Masks = bySocket(sh, inv)
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

// CheckBind refuses a binding that the share cannot give: a list that names CPUs outside of it,
// and ranks, which count over the whole node, on a part of one. That goes for a list which a task hands on to a step
// of its own by SLURM_CPU_BIND, too: as in Slurm, srun --cpu-bind=none is the way out there.
func CheckBind(s *StepSpec, sh Share, inv *Inventory) *Error {
	b := Bind(s, sh, inv)
	switch {
	case (b.Kind == "rank" || strings.HasSuffix(b.Kind, "ldom")) && sh.CPUs.Len() < inv.CPUs:
		kind := b.Kind
		if b.Verbose {
			kind = "verbose," + kind
		}
		return Errorf(Invalid, ErrStepBind, "Entire node must be allocated for %s,one_thread", kind)
	case b.Kind != "map_cpu" && (b.Kind != "mask_cpu" || b.Text == ""):
		return nil
	}
	mode, list, _ := bindMode(s.CPUBind)
	for k := range list { // all of it, also what no task comes to
		if !listed(mode, list, k).Minus(sh.CPUs).Empty() {
			return Errorf(Invalid, ErrStepBind,
				"CPU binding outside of job step allocation, allocated CPUs are: 0x%s.", hexMask(sh.CPUs))
		}
	}
	return nil
}

// BindWords cuts a --cpu-bind or --mem-bind at the commas that do not belong to a map or mask, whose numbers may be
// hexadecimal without a sign of it.
func BindWords(text string) (words []string) {
	for part := range strings.SplitSeq(text, ",") {
		n := len(words)
		if n > 0 && strings.Contains(words[n-1], ":") && part != "" && strings.Trim(part, "0123456789abcdefABCDEFx*") == "" {
			words[n-1] += "," + part
			continue
		}
		words = append(words, part)
	}
	return words
}

// bindMode reads a --cpu-bind or --mem-bind: its last mode, the list behind that, and whether to tell about it.
func bindMode(text string) (mode string, list []string, verbose bool) {
	for _, w := range BindWords(strings.ToLower(text)) {
		switch name, rest, _ := strings.Cut(w, ":"); name {
		case "v", "verbose":
			verbose = true
		case "", "q", "quiet", "sort", "nosort", "p", "prefer":
		default:
			mode = name
			list = repeatList(rest)
		}
	}
	for k := range list {
		if strings.HasPrefix(mode, "mask_") { // hexadecimal anyway, and so Slurm writes them
			list[k] = strings.TrimPrefix(list[k], "0x")
		}
	}
	return mode, list, verbose
}

// domains are the CPUs of locality domains.
func domains(ids IDSet, inv *Inventory) (out IDSet) {
	size := socketSize(inv)
	for i := range ids.All() {
		out = out.Union(RangeIDSet(i*size, (i+1)*size-1))
	}
	return out
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

// ShortMask is hexMask without leading zeros: at least one digit.
func ShortMask(s IDSet) string {
	if short := strings.TrimLeft(hexMask(s), "0"); short != "" {
		return short
	}
	return "0"
}

// CPUMask is hexMask with its prefix, as SLURM_CPU_BIND_LIST holds it.
func CPUMask(s IDSet) string { return "0x" + hexMask(s) }

// Of is the set of the node's task number local.
func (b Binding) Of(local int) IDSet { return b.Masks[min(local, len(b.Masks)-1)] }

func listed(mode string, list []string, local int) IDSet {
	w := strings.ToLower(list[local%len(list)])
	if strings.HasPrefix(mode, "map_") {
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

// byCore gives each task CPUs of its own, as the second word of -m says: those of the sockets in turn, one after
// the other (block), or each CPU of a task from the next socket (fcyclic). With -m plane=N so many tasks at a time
// share a socket.
func byCore(s *StepSpec, sh Share, inv *Inventory, per int) []IDSet {
	switch {
	case BlockSockets(s.Distribution):
		return inARow(sh, per)
	case socketWord(s.Distribution) == "fcyclic":
		return scattered(sh, inv, per)
	}
	return socketsInTurn(s, sh, inv, per)
}

// inARow gives each task the next CPUs, whatever sockets these are of.
func inARow(sh Share, per int) (out []IDSet) {
	left := sh.CPUs
	for range sh.Tasks {
		got := left.First(per)
		if got.Empty() {
			return nil
		}
		left = left.Minus(got)
		out = append(out, got)
	}
	return out
}

// scattered takes each CPU of a task from the next socket that has one left.
func scattered(sh Share, inv *Inventory, per int) (out []IDSet) {
	left := socketParts(sh.CPUs, inv)
	sockets := max(inv.Sockets, 1)
	next := 0
	for range sh.Tasks {
		var got IDSet
		for got.Len() < per {
			i := nextWithCPU(left, next)
			if i < 0 {
				break
			}
			cpu := left[i].First(1)
			left[i] = left[i].Minus(cpu)
			got = got.Union(cpu)
			next = (i + 1) % sockets
		}
		if got.Empty() {
			return nil
		}
		out = append(out, got)
	}
	return out
}

// nextWithCPU is the first socket from number next on, in a circle, that has a CPU; -1 if none has.
func nextWithCPU(sockets []IDSet, next int) int {
	for k := range sockets {
		if i := (next + k) % len(sockets); !sockets[i].Empty() {
			return i
		}
	}
	return -1
}

// socketParts are a set's CPUs of each socket.
func socketParts(cpus IDSet, inv *Inventory) []IDSet {
	size := socketSize(inv)
	out := make([]IDSet, max(inv.Sockets, 1))
	for i := range out {
		out[i] = cpus.Intersect(RangeIDSet(i*size, (i+1)*size-1))
	}
	return out
}

// socketsInTurn gives each task CPUs of one socket, of the next one for the next task.
func socketsInTurn(s *StepSpec, sh Share, inv *Inventory, per int) (out []IDSet) {
	size := socketSize(inv)
	left := sh.CPUs
	next := 0
	plane := 0
	if dist(s) == "plane" {
		plane = s.PlaneSize
	}
	for k := range sh.Tasks {
		var got IDSet
		for try := range max(inv.Sockets, 1) {
			i := (next + try) % max(inv.Sockets, 1)
			part := left.Intersect(RangeIDSet(i*size, (i+1)*size-1))
			if got = part.First(per); got.Len() == per {
				if next = i + 1; plane > 0 && (k+1)%plane != 0 {
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
	return strings.HasPrefix(socketWord(distribution), "block")
}

// socketWord is the second word of a distribution: that over sockets.
func socketWord(distribution string) string {
	words := strings.Split(strings.ToLower(distribution), ":")
	if len(words) < 2 {
		return ""
	}
	word, _, _ := strings.Cut(words[1], ",")
	return word
}

// MemBinding is what the memory of a step's tasks is bound to on one node, as --mem-bind says.
type MemBinding struct {
	Mode    string // none, local, rank, map_mem, mask_mem; empty: nothing was said
	Text    string // the list, of maps and masks, with what is to be repeated written out
	Verbose bool
	Prefer  bool // other NUMA nodes serve when the task's own are full
	Sort    bool // move free pages to the nodes before it starts
}

// BindMem reads a --mem-bind.
func BindMem(text string) MemBinding {
	mode, list, verbose := bindMode(text)
	b := MemBinding{Mode: mode, Verbose: verbose, Text: strings.Join(list, ",")}
	for _, w := range strings.Split(strings.ToLower(text), ",") {
		b.Prefer = b.Prefer || w == "p" || w == "prefer"
		b.Sort = b.Sort || w == "sort"
	}
	return b
}

// Of is the set of NUMA nodes of the node's task number local; whole says that it has no set of its own: it takes
// memory where it runs, or anywhere.
func (b MemBinding) Of(local int) (nodes IDSet, whole bool) {
	switch b.Mode {
	case "rank":
		return NewIDSet(local), false
	case "map_mem", "mask_mem":
		return listed(b.Mode, strings.Split(b.Text, ","), local), false
	}
	return IDSet{}, true
}
