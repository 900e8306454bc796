package measure

import (
	"strconv"
	"strings"
)

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
