package gpu

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dev.muster/cluster"
)

//go:embed xid.tsv
var xidTable string

// xid is one row of xid.tsv.
type xid struct {
	action  cluster.FaultAction // empty: ignored
	meaning string
}

// xids is the table, read when first needed: front-ends do not pay for it.
var xids = sync.OnceValue(func() map[int]xid {
	table := map[int]xid{}
	for line := range strings.Lines(xidTable) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		code, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 4 {
			continue // a comment; a test reads every row
		}
		action := cluster.FaultAction(f[1])
		if action == "ignore" {
			action = ""
		}
		table[code] = xid{action, f[2]}
	}
	return table
})

// Clock event reasons (nvmlClocksEventReasons in nvml.h) by which a machine, not a setting, slows a GPU.
const (
	throttleHWSlowdown = 0x08
	throttleHWThermal  = 0x40
	throttlePowerBrake = 0x80
)

// fewNVLinkErrors is how many errors of its NVLinks a GPU may count between two looks unremarked: links replay.
const fewNVLinkErrors = 1000

// label names a GPU as people and tools do.
func label(g *cluster.GPU) string {
	name := strings.TrimSpace(g.UUID + " " + g.PCI)
	if g.Minor < 0 {
		return strings.TrimSpace("a GPU that is not listed " + name)
	}
	if name == "" { // it was lost before it told
		return fmt.Sprintf("GPU %d", g.Minor)
	}
	return fmt.Sprintf("GPU %d (%s)", g.Minor, name)
}

// Judge says what is wrong: from the look before (nil for the first one), the present one and what the driver has
// told since the daemon began. It is a pure function; the same state gives the same faults in the same order.
func Judge(before, now *Scan, events []Event) []cluster.Fault {
	var out []cluster.Fault
	if now.Trouble != "" {
		action := cluster.FaultNote
		if now.Unusable {
			action = cluster.FaultDrain
		}
		out = append(out, cluster.Fault{
			Part: "gpu", Cause: now.Cause, Text: now.Trouble, Action: action, Passing: true,
		})
	}
	for i := range now.Readings {
		r := &now.Readings[i]
		out = append(out, told(&r.GPU, events)...)
		if r.Lost != "" {
			out = append(out, cluster.Fault{
				Part: cmp.Or(r.GPU.UUID, "gpu"), Cause: "lost", Text: label(&r.GPU) + ": " + r.Lost,
				Action: cluster.FaultDrainNow,
			})
			continue
		}
		out = append(out, memory(r)...)
		out = append(out, links(now, earlier(before, r), r)...)
		out = append(out, clocks(r)...)
	}
	for _, e := range events {
		if !slices.ContainsFunc(now.Readings, func(r Reading) bool { return r.GPU.UUID == e.UUID }) {
			out = append(out, told(&cluster.GPU{UUID: e.UUID, Minor: -1}, []Event{e})...)
		}
	}
	return out
}

// told are the faults of the XIDs that the driver told of a GPU. Told again after a while it is another fault.
func told(g *cluster.GPU, events []Event) (out []cluster.Fault) {
	for _, e := range events {
		if e.UUID != g.UUID {
			continue
		}
		again := ""
		if e.Times > 1 {
			again = fmt.Sprintf(" (%d times)", e.Times)
		}
		row, known := xids()[e.XID]
		if !known {
			row = xid{cluster.FaultNote, "not in the table"}
		}
		if row.action != "" {
			out = append(out, cluster.Fault{Part: g.UUID, Cause: fmt.Sprintf("xid %d", e.XID) + again,
				Text: fmt.Sprintf("%s: XID %d: %s", label(g), e.XID, row.meaning) + again, Action: row.action})
		}
	}
	return out
}

// memory judges the GPU's memory: errors that were not corrected and rows or pages that wait to be replaced are mended
// by a reset; a row that cannot be replaced is a matter for repair ("GPU Memory Error Management", docs.nvidia.com).
func memory(r *Reading) (out []cluster.Fault) {
	add := func(cause string, action cluster.FaultAction, text string) {
		out = append(out, cluster.Fault{
			Part: r.GPU.UUID, Cause: cause, Text: label(&r.GPU) + ": " + text, Action: action,
		})
	}
	if r.RemapFailed {
		add("remap failed", cluster.FaultDrain, "row remapping failed")
	}
	switch {
	case r.RemapPending:
		add("remap pending", cluster.FaultDrain,
			fmt.Sprintf("row remapping is pending until a reset, %d rows remapped so far", r.RemappedBad))
	case r.RetirePending:
		add("retirement pending", cluster.FaultDrain, "page retirement is pending until a reset")
	}
	if r.ECCUncorrected > 0 {
		action := cluster.FaultDrain
		if r.RemapPending || r.RetirePending {
			action = cluster.FaultNote // told above
		}
		add(fmt.Sprintf("ecc %d", r.ECCUncorrected), action, fmt.Sprintf("%d uncorrected ECC errors", r.ECCUncorrected))
	}
	return out
}

// mostLinks is how many NVLinks are up on the best connected GPU of the same make, where they lead to switches.
func mostLinks(s *Scan, model string) (n int) {
	for i := range s.Readings {
		if g := &s.Readings[i].GPU; g.Model == model && g.Switched {
			n = max(n, g.NVLinks)
		}
	}
	return n
}

// links judges NVLinks and the fabric beyond. On switches all GPUs of a make have the same number of links; others may
// be bridged in part, so for them only the change counts.
func links(now *Scan, before, r *Reading) (out []cluster.Fault) {
	add := func(cause string, action cluster.FaultAction, text string) {
		out = append(out, cluster.Fault{
			Part: r.GPU.UUID, Cause: cause, Text: label(&r.GPU) + ": " + text, Action: action,
			Passing: true,
		})
	}
	most := mostLinks(now, r.GPU.Model)
	switch {
	case r.MIG: // slices have no NVLinks
	case r.GPU.NVLinks < most:
		add("nvlink down", cluster.FaultDrain, fmt.Sprintf("%d of %d NVLinks are up", r.GPU.NVLinks, most))
	case before != nil && r.GPU.NVLinks < before.GPU.NVLinks:
		add("nvlink down", cluster.FaultNote,
			fmt.Sprintf("%d NVLinks are up, %d were", r.GPU.NVLinks, before.GPU.NVLinks))
	}
	if before != nil && r.NVLinkErrors > before.NVLinkErrors+fewNVLinkErrors {
		add("nvlink errors", cluster.FaultNote,
			fmt.Sprintf("%d NVLink errors since the last look", r.NVLinkErrors-before.NVLinkErrors))
	}
	if r.FabricState != "" {
		add("fabric", cluster.FaultDrain, "NVLink fabric: "+r.FabricState)
	}
	return out
}

// clocks judges heat and power: what slows a GPU is told; jobs go on.
func clocks(r *Reading) (out []cluster.Fault) {
	var why []string
	if r.Throttle&throttleHWThermal != 0 || r.SlowdownC > 0 && r.TempC >= r.SlowdownC {
		why = append(why, "heat")
	}
	if r.Throttle&throttlePowerBrake != 0 {
		why = append(why, "the power supply")
	}
	if r.Throttle&throttleHWSlowdown != 0 && len(why) == 0 {
		why = append(why, "hardware")
	}
	if len(why) > 0 { // no temperature in the text: it would be another one at each look
		out = append(out, cluster.Fault{Part: r.GPU.UUID, Cause: "throttle",
			Text:   label(&r.GPU) + ": slowed by " + strings.Join(why, " and "),
			Action: cluster.FaultNote, Passing: true})
	}
	return out
}

// carry completes a look by the one before: a GPU that is not listed any more is lost, one that is lost is what it
// was, and where nothing can be known the GPUs are those known before.
func carry(before, now *Scan) {
	if before == nil {
		return
	}
	if now.Trouble != "" && len(now.Readings) == 0 {
		now.Readings = before.Readings
		now.Unusable = now.Unusable || now.Cause == CauseNoDriver && len(now.Readings) > 0
		return
	}
	for i := range now.Readings {
		r := &now.Readings[i]
		if r.Lost != "" && r.GPU.UUID == "" {
			same := func(o Reading) bool {
				return r.GPU.PCI != "" && o.GPU.PCI == r.GPU.PCI || r.GPU.PCI == "" && o.GPU.Index == r.GPU.Index
			}
			if k := slices.IndexFunc(before.Readings, same); k >= 0 {
				r.GPU = before.Readings[k].GPU
			}
		}
	}
	for i := range before.Readings {
		r := before.Readings[i]
		if r.GPU.UUID != "" && earlier(now, &r) == nil {
			now.Readings = append(now.Readings, Reading{GPU: r.GPU, Lost: "not found any more"})
		}
	}
}

// earlier finds the reading of the same GPU in another look.
func earlier(s *Scan, r *Reading) *Reading {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.Readings, func(o Reading) bool { return o.GPU.UUID == r.GPU.UUID }); i >= 0 {
		return &s.Readings[i]
	}
	return nil
}
