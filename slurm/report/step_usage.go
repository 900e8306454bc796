package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// Usage of a step, as sstat shows it of living steps and sacct of ended ones.

// usageColumn is one field: its name, and its value of a step.
type usageColumn struct {
	name string
	of   func(*stepUse) string
}

// stepUse is a step and how its figures are written.
type stepUse struct {
	*cluster.Step
	raw  bool // numbers are not shortened
	unit byte // of all sizes; 0: the largest that loses nothing
	live bool // sstat's spelling
}

// usageColumns are the fields that sacct and sstat share.
var usageColumns = [...]usageColumn{
	{"AveCPU", func(u *stepUse) string { return seconds3(u.ave(cluster.MeasuredCPU, false)) }},
	{"AveCPUFreq", func(u *stepUse) string { return shortened(u.ave(cluster.MeasuredCPUFreq, false)) }},
	{"AveDiskRead", func(u *stepUse) string { return u.disk(u.ave(cluster.MeasuredDisk, false)) }},
	{"AveDiskWrite", func(u *stepUse) string { return u.disk(u.ave(cluster.MeasuredDisk, true)) }},
	{"AvePages", func(u *stepUse) string { return u.size(u.ave(cluster.MeasuredPages, false)) }},
	{"AveRSS", func(u *stepUse) string { return u.size(u.ave(cluster.MeasuredMem, false)) }},
	{"AveVMSize", func(u *stepUse) string { return u.size(u.ave(cluster.MeasuredVMem, false)) }},
	{"ConsumedEnergy", func(u *stepUse) string { return shortened(u.get(cluster.MeasuredEnergy, false).Tot) }},
	{"ConsumedEnergyRaw", func(u *stepUse) string { return decimal(u.get(cluster.MeasuredEnergy, false).Tot) }},
	{"MaxDiskRead", func(u *stepUse) string { return u.disk(u.get(cluster.MeasuredDisk, false).Max) }},
	{"MaxDiskReadNode", func(u *stepUse) string { return u.node(u.get(cluster.MeasuredDisk, false).MaxNode) }},
	{"MaxDiskReadTask", func(u *stepUse) string { return strconv.Itoa(u.get(cluster.MeasuredDisk, false).MaxTask) }},
	{"MaxDiskWrite", func(u *stepUse) string { return u.disk(u.get(cluster.MeasuredDisk, true).Max) }},
	{"MaxDiskWriteNode", func(u *stepUse) string { return u.node(u.get(cluster.MeasuredDisk, true).MaxNode) }},
	{"MaxDiskWriteTask", func(u *stepUse) string { return strconv.Itoa(u.get(cluster.MeasuredDisk, true).MaxTask) }},
	{"MaxPages", func(u *stepUse) string { return u.size(u.get(cluster.MeasuredPages, false).Max) }},
	{"MaxPagesNode", func(u *stepUse) string { return u.node(u.get(cluster.MeasuredPages, false).MaxNode) }},
	{"MaxPagesTask", func(u *stepUse) string { return strconv.Itoa(u.get(cluster.MeasuredPages, false).MaxTask) }},
	{"MaxRSS", func(u *stepUse) string { return u.size(u.get(cluster.MeasuredMem, false).Max) }},
	{"MaxRSSNode", func(u *stepUse) string { return u.node(u.get(cluster.MeasuredMem, false).MaxNode) }},
	{"MaxRSSTask", func(u *stepUse) string { return strconv.Itoa(u.get(cluster.MeasuredMem, false).MaxTask) }},
	{"MaxVMSize", func(u *stepUse) string { return u.size(u.get(cluster.MeasuredVMem, false).Max) }},
	{"MaxVMSizeNode", func(u *stepUse) string { return u.node(u.get(cluster.MeasuredVMem, false).MaxNode) }},
	{"MaxVMSizeTask", func(u *stepUse) string { return strconv.Itoa(u.get(cluster.MeasuredVMem, false).MaxTask) }},
	{"MinCPU", func(u *stepUse) string { return seconds3(u.get(cluster.MeasuredCPU, false).Min) }},
	{"MinCPUNode", func(u *stepUse) string { return u.node(u.get(cluster.MeasuredCPU, false).MinNode) }},
	{"MinCPUTask", func(u *stepUse) string { return strconv.Itoa(u.get(cluster.MeasuredCPU, false).MinTask) }},
	{"TRESUsageInAve", func(u *stepUse) string { return u.list(false, aveOf) }},
	{"TRESUsageInMax", func(u *stepUse) string { return u.list(false, maxOf) }},
	{"TRESUsageInMaxNode", func(u *stepUse) string { return u.list(false, maxNodeOf) }},
	{"TRESUsageInMaxTask", func(u *stepUse) string { return u.list(false, maxTaskOf) }},
	{"TRESUsageInMin", func(u *stepUse) string { return u.list(false, minOf) }},
	{"TRESUsageInMinNode", func(u *stepUse) string { return u.list(false, minNodeOf) }},
	{"TRESUsageInMinTask", func(u *stepUse) string { return u.list(false, minTaskOf) }},
	{"TRESUsageInTot", func(u *stepUse) string { return u.list(false, totOf) }},
	{"TRESUsageOutAve", func(u *stepUse) string { return u.list(true, aveOf) }},
	{"TRESUsageOutMax", func(u *stepUse) string { return u.list(true, maxOf) }},
	{"TRESUsageOutMaxNode", func(u *stepUse) string { return u.list(true, maxNodeOf) }},
	{"TRESUsageOutMaxTask", func(u *stepUse) string { return u.list(true, maxTaskOf) }},
	{"TRESUsageOutMin", func(u *stepUse) string { return u.list(true, minOf) }},
	{"TRESUsageOutMinNode", func(u *stepUse) string { return u.list(true, minNodeOf) }},
	{"TRESUsageOutMinTask", func(u *stepUse) string { return u.list(true, minTaskOf) }},
	{"TRESUsageOutTot", func(u *stepUse) string { return u.list(true, totOf) }},
}

// usageField finds a field's function; nil if it is none of these.
func usageField(name string) func(*stepUse) string {
	for i := range usageColumns {
		if usageColumns[i].name == name {
			return usageColumns[i].of
		}
	}
	return nil
}

// listedIn and listedOut are what the lists of TRES name, in their order; of GPUs only what was measured.
var (
	listedIn = [...]string{cluster.MeasuredCPU, cluster.MeasuredEnergy, cluster.MeasuredDisk,
		cluster.MeasuredGPUMem, cluster.MeasuredGPUUtil,
		cluster.MeasuredMem, cluster.MeasuredPages, cluster.MeasuredVMem}
	listedOut = [...]string{cluster.MeasuredEnergy, cluster.MeasuredDisk}
)

// get finds what was measured. Records from before tasks were measured one by one have the sum of CPU time and the
// most memory of a task.
func (u *stepUse) get(tres string, out bool) cluster.Measure {
	m, ok := u.Usage.Measured(tres, out)
	if ok || out || u.Usage.In != nil {
		return m
	}
	switch n := int64(max(u.Tasks, 1)); tres {
	case cluster.MeasuredCPU:
		m.Tot = (u.Usage.UserCPU + u.Usage.SystemCPU).Milliseconds()
		m.Max, m.Min = m.Tot/n, m.Tot/n
	case cluster.MeasuredMem:
		m.Tot, m.Max, m.Min = u.Usage.MaxRSS*n, u.Usage.MaxRSS, u.Usage.MaxRSS
	}
	return m
}

func (u *stepUse) ave(tres string, out bool) int64 {
	return u.get(tres, out).Tot / int64(max(u.Tasks, 1))
}

func (u *stepUse) node(place int) string {
	if place >= len(u.Shares) {
		return ""
	}
	return string(u.Shares[place].Node)
}

// Values of a measure in lists of TRES.
func aveOf(u *stepUse, m *cluster.Measure) string {
	return u.amount(m.TRES, m.Tot/int64(max(u.Tasks, 1)))
}

func maxOf(u *stepUse, m *cluster.Measure) string {
	return u.amount(m.TRES, m.Max)
}

func minOf(u *stepUse, m *cluster.Measure) string {
	return u.amount(m.TRES, m.Min)
}

func totOf(u *stepUse, m *cluster.Measure) string {
	return u.amount(m.TRES, m.Tot)
}

func maxNodeOf(u *stepUse, m *cluster.Measure) string {
	return u.node(m.MaxNode)
}

func minNodeOf(u *stepUse, m *cluster.Measure) string {
	return u.node(m.MinNode)
}

func maxTaskOf(_ *stepUse, m *cluster.Measure) string {
	return taskOf(m, m.MaxTask)
}

func minTaskOf(_ *stepUse, m *cluster.Measure) string {
	return taskOf(m, m.MinTask)
}

// taskOf names a task; energy is a node's.
func taskOf(m *cluster.Measure, task int) string {
	if m.TRES == cluster.MeasuredEnergy {
		return ""
	}
	return strconv.Itoa(task)
}

// list writes NAME=VALUE of each TRES, without those that have no value.
func (u *stepUse) list(out bool, of func(*stepUse, *cluster.Measure) string) string {
	names := listedIn[:]
	if out {
		names = listedOut[:]
	}
	var parts []string
	for _, name := range names {
		m := u.get(name, out)
		if _, measured := u.Usage.Measured(name, out); !measured && strings.HasPrefix(name, "gres/") {
			continue
		}
		if text := of(u, &m); text != "" {
			parts = append(parts, name+"="+text)
		}
	}
	return strings.Join(parts, ",")
}

func (u *stepUse) amount(tres string, n int64) string {
	switch tres {
	case cluster.MeasuredCPU:
		return seconds3(n)
	case cluster.MeasuredEnergy:
		return decimal(n)
	case cluster.MeasuredGPUUtil:
		return decimal((n + 50) / 100)
	}
	return u.size(n)
}

func decimal(n int64) string {
	return strconv.FormatInt(n, 10)
}

// seconds3 writes milliseconds as a time.
func seconds3(ms int64) string {
	return format.Padded(time.Duration(ms) * time.Millisecond)
}

// sizes are the units of sizes, each 1024 of the one before.
const sizes = "KMGTP"

// size writes a number as Slurm does where nothing may be lost: in the largest unit of which it is a whole number.
func (u *stepUse) size(n int64) string {
	switch {
	case n == 0 || u.raw:
		return decimal(n)
	case u.unit != 0:
		return inUnit(n, u.unit)
	}
	unit := ""
	for i := 0; n%1024 == 0 && i < len(sizes); i++ {
		n, unit = n/1024, sizes[i:i+1]
	}
	return decimal(n) + unit
}

// disk writes bytes read or written: sacct has them in M.
func (u *stepUse) disk(n int64) string {
	switch {
	case u.live || n == 0:
		return u.size(n)
	case u.unit != 0:
		return inUnit(n, u.unit)
	}
	return inUnit(n, 'M')
}

func inUnit(n int64, unit byte) string {
	f := float64(n)
	for range strings.IndexByte(sizes, unit) + 1 {
		f /= 1024
	}
	return fmt.Sprintf("%.2f%c", f, unit)
}

// shortened writes a number of joules or kHz, shortened from a thousand on.
func shortened(n int64) string {
	if n < 1000 {
		return decimal(n)
	}
	f := float64(n)
	for i := range len(sizes) {
		if f /= 1000; f < 1000 || i == len(sizes)-1 {
			return fmt.Sprintf("%.2f%c", f, sizes[i])
		}
	}
	return ""
}
