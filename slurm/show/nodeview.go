package show

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// Slurm's numbers of node states: a base and flags above it. Listings sort by them.
const (
	baseUnknown = iota
	baseDown
	baseIdle
	baseAllocated
	_
	baseMixed
	baseFuture

	flagCloud        = 0x80
	flagDrain        = 0x200
	flagCompleting   = 0x400
	flagNotRespond   = 0x800
	flagPoweredDown  = 0x1000
	flagFail         = 0x2000
	flagMaint        = 0x20
	flagReserved     = 0x10
	flagRebootAsked  = 0x10000
	flagRebootIssued = 0x20000
	flagPoweringDown = 0x40000
	flagPowerDown    = 0x80000 // asked for
	flagPoweringUp   = 0x100000
	flagExternal     = 0x200000
	flagMask         = ^0xf
	stateBaseMask    = 0xf
	unknownNodeWords = "perfctrs,planned,plnd,boot,power,power_up,blocked,err,error," +
		"inval,dynamic_future,"
)

// NodeState is a node's state as Slurm numbers it.
func NodeState(n *api.NodeInfo) int {
	out := n.Down || n.Reboot.Issued()
	absent := n.Registered.IsZero() && n.Power == nil
	switch {
	case !out && n.Expected == cluster.ExpectedFuture:
		return baseFuture
	case !out && n.Expected == cluster.ExpectedCloud && absent:
		return baseIdle | flagCloud | flagPoweredDown
	}
	s := nodeBase(n)
	for _, f := range [...]struct {
		on   bool
		flag int
	}{
		{n.Maint, flagMaint},
		{n.Reserved, flagReserved},
		{n.Drain, flagDrain},
		{n.Ending, flagCompleting},
		{silent(n), flagNotRespond},
		{n.Failing, flagFail},
		{n.Expected == cluster.ExpectedCloud, flagCloud},
		{n.Expected == cluster.ExpectedExternal, flagExternal},
		{n.Reboot.Issued(), flagRebootIssued},
		{n.Reboot != nil && !n.Reboot.Issued(), flagRebootAsked},
	} {
		if f.on {
			s |= f.flag
		}
	}
	if n.Power != nil {
		s |= powerFlag(n.Power.State)
	}
	return s
}

// nodeBase is the part of a node's state that is no flag.
func nodeBase(n *api.NodeInfo) int {
	absent := n.Registered.IsZero() && n.Power == nil
	switch used := n.Load.CPUs.Len(); {
	case n.Down, n.Reboot.Issued():
		return baseDown
	case !n.Up && absent:
		return baseUnknown
	case used > 0 && used >= n.Inventory.JobCPUCount():
		return baseAllocated
	case used > 0:
		return baseMixed
	}
	return baseIdle
}

// silent reports whether a node that is meant to be on does not answer.
func silent(n *api.NodeInfo) bool {
	if n.Up && !n.Quiet {
		return false
	}
	return n.Power == nil || n.Power.State == cluster.PowerUp || n.Power.State == cluster.PowerAsked
}

// powerFlag is the flag of a node between off and on.
func powerFlag(p cluster.PowerState) int {
	switch p {
	case cluster.PowerOff:
		return flagPoweredDown
	case cluster.PowerDown:
		return flagPoweringDown
	case cluster.PowerEmpty:
		return flagPowerDown
	}
	return flagPoweringUp
}

// Hidden reports whether lists leave a node out that is not asked for: it has not come yet, or has gone to the
// cloud, and not because it could not be had from there.
func Hidden(s int) bool {
	base := s & stateBaseMask
	return base == baseFuture || s&flagPoweredDown != 0 && s&flagCloud != 0 && base != baseDown
}

func busy(s int) bool {
	base := s & stateBaseMask
	return base == baseAllocated || base == baseMixed || s&flagCompleting != 0
}

// nodeWord is a row of the table of words for node states.
type nodeWord struct {
	short, long string
	is          func(s int) bool
}

// nodeWords gives each state its word: the first row that fits.
var nodeWords = [...]nodeWord{
	{"boot", "reboot", func(s int) bool { return s&flagRebootIssued != 0 || s&flagRebootAsked != 0 && !busy(s) }},
	{"drng", "draining", func(s int) bool { return s&flagDrain != 0 && busy(s) }},
	{"drain", "drained", func(s int) bool { return s&flagDrain != 0 }},
	{"fail", "fail", func(s int) bool { return s&flagFail != 0 }},
	{"down", "down", func(s int) bool { return s&stateBaseMask == baseDown }},
	{"comp", "completing", func(s int) bool { return s&flagCompleting != 0 }},
	{"maint", "maint", func(s int) bool { return s&flagMaint != 0 && s&stateBaseMask == baseIdle }},
	{"resv", "reserved", func(s int) bool { return s&flagReserved != 0 && s&stateBaseMask == baseIdle }},
	{"alloc", "allocated", func(s int) bool { return s&stateBaseMask == baseAllocated }},
	{"mix", "mixed", func(s int) bool { return s&stateBaseMask == baseMixed }},
	{"idle", "idle", func(s int) bool { return s&stateBaseMask == baseIdle }},
	{"futr", "future", func(s int) bool { return s&stateBaseMask == baseFuture }},
	{"unk", "unknown", func(int) bool { return true }},
}

// stateMarks are what stands behind the word: the first that fits.
var stateMarks = [...]struct {
	mark string
	is   func(s int) bool
}{
	{"^", func(s int) bool { return s&flagRebootIssued != 0 }},
	{"@", func(s int) bool { return s&flagRebootAsked != 0 && busy(s) }},
	{"$", func(s int) bool { return s&flagMaint != 0 && busy(s) }},
	{"!", func(s int) bool { return s&flagPowerDown != 0 }},
	{"%", func(s int) bool { return s&flagPoweringDown != 0 }},
	{"~", func(s int) bool { return s&flagPoweredDown != 0 }},
	{"#", func(s int) bool { return s&flagPoweringUp != 0 }},
	{"*", func(s int) bool { return s&flagNotRespond != 0 }},
}

// nodeFilters are the words of sinfo --states; each lists the nodes that it selects.
var nodeFilters = [...]nodeWord{
	{
		"alloc", "allocated",
		func(s int) bool { return s&stateBaseMask == baseAllocated || s&stateBaseMask == baseMixed },
	},
	{"idle", "idle", func(s int) bool { return s&stateBaseMask == baseIdle }},
	{"mix", "mixed", func(s int) bool { return s&stateBaseMask == baseMixed }},
	{"down", "down", func(s int) bool { return s&stateBaseMask == baseDown }},
	{"unk", "unknown", func(s int) bool { return s&stateBaseMask == baseUnknown }},
	{"drain", "drain", func(s int) bool { return s&flagDrain != 0 }},
	{"drained", "drained", func(s int) bool { return s&flagDrain != 0 && !busy(s) }},
	{"drng", "draining", func(s int) bool { return s&flagDrain != 0 && busy(s) }},
	{"comp", "completing", func(s int) bool { return s&flagCompleting != 0 }},
	{"fail", "failing", func(s int) bool { return s&flagFail != 0 }},
	{"maint", "maint", func(s int) bool { return s&flagMaint != 0 }},
	{"resv", "reserved", func(s int) bool { return s&flagReserved != 0 }},
	{"cloud", "cloud", func(s int) bool { return s&flagCloud != 0 }},
	{"futr", "future", func(s int) bool { return s&stateBaseMask == baseFuture }},
	{"power_down", "power_down", func(s int) bool { return s&flagPowerDown != 0 }},
	{"powering_down", "powering_down", func(s int) bool { return s&flagPoweringDown != 0 }},
	{"powering_up", "powering_up", func(s int) bool { return s&flagPoweringUp != 0 }},
	{"powered_down", "powered_down", func(s int) bool { return s&flagPoweredDown != 0 }},
	{"reboot_issued", "reboot^", func(s int) bool { return s&flagRebootIssued != 0 }},
	{"reboot_requested", "reboot", func(s int) bool { return s&flagRebootAsked != 0 }},
	{"external", "external", func(s int) bool { return s&flagExternal != 0 }},
	{"dynamic_norm", "dynamic_norm", func(s int) bool { return s&flagExternal != 0 }},
	{"no_respond", "no_resp", func(s int) bool { return s&flagNotRespond != 0 }},
}

// baseNames and flagNames make scontrol's IDLE+DRAIN.
var baseNames = [...]string{
	baseUnknown: "UNKNOWN", baseDown: "DOWN", baseIdle: "IDLE", baseAllocated: "ALLOCATED",
	baseMixed: "MIXED", baseFuture: "FUTURE",
}

var flagNames = [...]struct {
	flag int
	name string
}{{flagCloud, "CLOUD"}, {flagCompleting, "COMPLETING"}, {flagDrain, "DRAIN"}, {flagFail, "FAIL"},
	{flagMaint, "MAINTENANCE"}, {flagReserved, "RESERVED"}, {flagNotRespond, "NOT_RESPONDING"},
	{flagPowerDown, "POWER_DOWN"}, {flagPoweringDown, "POWERING_DOWN"}, {flagPoweredDown, "POWERED_DOWN"},
	{flagPoweringUp, "POWERING_UP"}, {flagExternal, "DYNAMIC_NORM"}, {flagExternal, "EXTERNAL"},
	{flagRebootIssued, "REBOOT_ISSUED"},
	{flagRebootAsked, "REBOOT_REQUESTED"}}

// StateWord is the short or long word with its suffix.
func StateWord(s int, long bool) string {
	for _, w := range nodeWords {
		if !w.is(s) {
			continue
		}
		text := w.short
		if long {
			text = w.long
		}
		for _, m := range stateMarks {
			if m.is(s) {
				return text + m.mark
			}
		}
		return text
	}
	return ""
}

// StateFlags is the base and all flags, joined by +.
func StateFlags(s int) string {
	text := baseNames[s&stateBaseMask]
	for _, f := range flagNames {
		if s&f.flag != 0 {
			text += "+" + f.name
		}
	}
	return text
}

// InfoRow is one line of sinfo: nodes of one partition that show the same.
type InfoRow struct {
	v     *View
	Part  *cluster.Partition
	index int // of the partition, for sorting
	Nodes []*api.NodeInfo
}

// first is the node whose values stand for all; nil in the line of a partition that shows none.
func (r *InfoRow) first() *api.NodeInfo {
	if len(r.Nodes) == 0 {
		return nil
	}
	return r.Nodes[0]
}

// text is what f says of the first node, or none.
func (r *InfoRow) text(none string, f func(*api.NodeInfo) string) string {
	if n := r.first(); n != nil {
		return f(n)
	}
	return none
}

// least is the smallest of the nodes' numbers, with + behind if there are larger ones.
func (r *InfoRow) least(f func(*api.NodeInfo) int) string {
	if len(r.Nodes) == 0 {
		return "0"
	}
	lo, hi := f(r.Nodes[0]), f(r.Nodes[0])
	for _, n := range r.Nodes[1:] {
		lo, hi = min(lo, f(n)), max(hi, f(n))
	}
	if hi > lo {
		return strconv.Itoa(lo) + "+"
	}
	return strconv.Itoa(lo)
}

// span is the smallest and the largest of the nodes' numbers; N/A if none is known.
func (r *InfoRow) span(f func(*api.NodeInfo) int) string {
	lo, hi := 0, 0
	for _, n := range r.Nodes {
		if k := f(n); k > 0 {
			if lo == 0 || k < lo {
				lo = k
			}
			hi = max(hi, k)
		}
	}
	switch {
	case hi == 0:
		return "N/A"
	case lo == hi:
		return strconv.Itoa(lo)
	}
	return strconv.Itoa(lo) + "-" + strconv.Itoa(hi)
}

// nodeCounts counts nodes that are allocated, idle and neither.
func (r *InfoRow) nodeCounts() (alloc, idle, other int) {
	for _, n := range r.Nodes {
		switch s := NodeState(n); {
		case s&stateBaseMask == baseDown:
			other++
		case busy(s):
			alloc++
		case s&(flagDrain|flagFail|flagNotRespond) != 0 || s&stateBaseMask == baseUnknown:
			other++
		default:
			idle++
		}
	}
	return alloc, idle, other
}

// CPUCounts counts CPUs likewise: the idle ones of a node that takes no work are other.
func (r *InfoRow) CPUCounts() (alloc, idle, other, total int) {
	for _, n := range r.Nodes {
		used, all := n.Load.CPUs.Len(), n.Inventory.CPUs
		total += all
		if n.Down {
			other += all
			continue
		}
		alloc += used
		if n.Usable() {
			idle += all - used
		} else {
			other += all - used
		}
	}
	return alloc, idle, other, total
}

func slashed(n ...int) string {
	b := make([]byte, 0, 24)
	for i, x := range n {
		if i > 0 {
			b = append(b, '/')
		}
		b = strconv.AppendInt(b, int64(x), 10)
	}
	return string(b)
}

// NodeList are the nodes of a line.
func (r *InfoRow) NodeList() string {
	names := make([]cluster.NodeName, len(r.Nodes))
	for i, n := range r.Nodes {
		names[i] = n.Name
	}
	return front.NodeText(names)
}

// MaxTime is a partition's limit; the zero value is none.
func MaxTime(d time.Duration) time.Duration { return cmp.Or(d, cluster.Unlimited) }

func infoTime(d time.Duration) string {
	if d == cluster.Unlimited {
		return "infinite"
	}
	return format.Duration(d)
}

// YesNo is yes or no.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// jobSize is how many nodes a job in the partition may have.
func jobSize(p *cluster.Partition) string {
	lo := max(p.MinNodes, 1)
	switch {
	case p.MaxNodes == 0:
		return strconv.Itoa(lo) + "-infinite"
	case p.MaxNodes == lo:
		return strconv.Itoa(lo)
	}
	return strconv.Itoa(lo) + "-" + strconv.Itoa(p.MaxNodes)
}

// UnlimitedCount is a limit; 0 is none.
func UnlimitedCount(n int) string {
	if n == 0 {
		return "UNLIMITED"
	}
	return strconv.Itoa(n)
}

// GRESText is a node's GPUs by type, with the sockets they are near: gpu:h100:8(S:0-1).
func GRESText(inv *cluster.Inventory) string {
	text := ""
	for _, kind := range gpuKinds(inv) {
		n, sockets := 0, cluster.IDSet{}
		for _, g := range inv.Found() {
			if g.Type == kind {
				n++
				for c := range g.Cores.All() {
					sockets = sockets.Union(cluster.NewIDSet(c / max(inv.CoresPerSocket*inv.ThreadsPerCore, 1)))
				}
			}
		}
		if text != "" {
			text += ","
		}
		text += gpuLabel(kind) + strconv.Itoa(n)
		if !sockets.Empty() {
			text += "(S:" + sockets.String() + ")"
		}
	}
	for _, g := range inv.Shared {
		if text != "" {
			text += ","
		}
		text += g.Declaration()
	}
	return format.Null(text)
}

func gpuLabel(kind string) string {
	if kind == "" {
		return "gpu:"
	}
	return "gpu:" + kind + ":"
}

func gpuKinds(inv *cluster.Inventory) (kinds []string) {
	for _, g := range inv.Found() {
		if !slices.Contains(kinds, g.Type) {
			kinds = append(kinds, g.Type)
		}
	}
	return kinds
}

// usedGPUs counts the GPUs of one type in use and names their indexes.
func usedGPUs(n *api.NodeInfo, kind string) cluster.IDSet {
	var ids []int
	for _, g := range n.Inventory.GPUs {
		if g.Type == kind && n.Load.GPUs.Has(g.Index) {
			ids = append(ids, g.Index)
		}
	}
	return cluster.NewIDSet(ids...)
}

// GRESUsed is what of a node's GPUs is in use: gpu:h100:2(IDX:0-1).
func GRESUsed(n *api.NodeInfo) string {
	text := ""
	for _, kind := range gpuKinds(&n.Inventory) {
		used := usedGPUs(n, kind)
		text += "," + gpuLabel(kind) + strconv.Itoa(used.Len()) + "(IDX:" + OrNA(used.String()) + ")"
	}
	for _, g := range cluster.CountedIn(n.Inventory.Shared) {
		g.Count = cluster.CountOf(n.Load.Counted, g)
		text += "," + g.String()
	}
	return cmp.Or(strings.TrimPrefix(text, ","), "gpu:0")
}

// NodeTRES is all that a node has, or what of it is in use.
func NodeTRES(n *api.NodeInfo, used bool) string {
	t := format.TRES{Holding: true, Billed: !used, Types: map[string]int64{}}
	if used {
		t.CPUs, t.Mem, t.GPUs = n.Load.CPUs.Len(), n.Load.MemMB, n.Load.GPUs.Len()
	} else {
		t.CPUs, t.Mem, t.GPUs = n.Inventory.JobCPUCount(), n.Inventory.MemMB, len(n.Inventory.Found())
	}
	for _, g := range n.Inventory.GPUs {
		if used && n.Load.GPUs.Has(g.Index) || !used && !g.Missing {
			t.Types[g.Type]++
		}
	}
	return t.String()
}

// Joined is a list with commas, or none.
func Joined(list []string, none string) string {
	return cmp.Or(strings.Join(list, ","), none)
}
