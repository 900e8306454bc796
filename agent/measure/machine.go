package measure

import (
	"io/fs"
	"strconv"
	"strings"

	"dev.muster/fabric"
	"dev.muster/telemetry"
)

// machine reads what the kernel tells of the machine.
func (t *telemeter) machine(own *telemetry.Sample, before *counts, sysfs fs.FS, seconds float64) {
	read := func(name string) string {
		b, _ := fs.ReadFile(t.root, name)
		return string(b)
	}
	t.last.busy, t.last.all = cpuTicks(read("proc/stat"))
	if all := t.last.all - before.all; before.all > 0 && t.last.all > before.all {
		busy := 100 * float64(t.last.busy-min(before.busy, t.last.busy)) / float64(all)
		own.Own[telemetry.NodeCPU], own.Own[telemetry.NodeCPUMax] = busy, busy
	}
	if f := strings.Fields(read("proc/loadavg")); len(f) > 0 {
		if load, err := strconv.ParseFloat(f[0], 64); err == nil {
			own.Own[telemetry.NodeLoad] = load
		}
	}
	if mem := usedMem(read("proc/meminfo")); mem >= 0 {
		own.Own[telemetry.NodeMem], own.Own[telemetry.NodeMemMax] = mem, mem
	}
	in, out, ok := fabric.Moved(sysfs)
	t.last.in, t.last.out = in, out
	if ok && before.in+before.out > 0 && in >= before.in && out >= before.out {
		own.Own[telemetry.NodePortIn] = float64(in-before.in) / seconds / 1000
		own.Own[telemetry.NodePortOut] = float64(out-before.out) / seconds / 1000
	}
}

// cpuTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal;
// guests are in user.
func cpuTicks(stat string) (busy, all uint64) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil || i > 8 {
			continue // the word cpu
		}
		if all += n; i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, all
}

// usedMem is the memory that could not be had, MB; -1: not known.
func usedMem(meminfo string) float64 {
	kb := map[string]float64{}
	for line := range strings.Lines(meminfo) {
		if f := strings.Fields(line); len(f) > 1 {
			kb[f[0]], _ = strconv.ParseFloat(f[1], 64)
		}
	}
	if kb["MemTotal:"] == 0 || kb["MemAvailable:"] == 0 {
		return -1
	}
	return (kb["MemTotal:"] - kb["MemAvailable:"]) / 1024
}
