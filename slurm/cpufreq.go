package slurm

import (
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// freq is what --cpu-freq asked for, as sacct and sstat show it.
type freq struct{ min, max, governor string }

// freqWords are frequencies and governors as Slurm spells them.
var freqWords = [...]string{"Low", "Medium", "High", "Highm1", "Conservative", "OnDemand", "Performance", "PowerSave", "SchedUtil", "UserSpace"}

// reqFreq reads what a step asked for; those that are not srun's have nothing to ask for.
func reqFreq(s *cluster.Step) freq {
	if s.ID.Step < 0 {
		return freq{"0", "0", "0"}
	}
	list, governor, _ := strings.Cut(strings.ToLower(s.CPUFreq), ":")
	if isGovernor(list) {
		list, governor = "", list
	}
	low, high, ranged := strings.Cut(list, "-")
	if !ranged {
		low, high = "", low
	}
	return freq{freqText(low), freqText(high), freqText(governor)}
}

// freqText writes a word as Slurm does, and kHz as 2.40G.
func freqText(word string) string {
	for _, w := range freqWords {
		if strings.EqualFold(w, word) {
			return w
		}
	}
	khz, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return "Unknown"
	}
	unit := 0
	for ; khz >= 1000 && unit < 2; unit++ {
		khz /= 1000
	}
	return strings.TrimSuffix(strconv.FormatFloat(khz, 'f', 2, 64), ".00") + "KMG"[unit:unit+1]
}
