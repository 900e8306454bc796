package slurm

import (
	"slices"
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
	f := parseFreq(s.CPUFreq)
	return freq{freqText(f.min), freqText(f.max), freqText(f.governor)}
}

// parseFreq takes apart what --cpu-freq asks for, P1[-P2[:P3]]; what is not asked for is empty.
func parseFreq(asked string) freq {
	list, governor, _ := strings.Cut(strings.ToLower(asked), ":")
	if isGovernor(list) {
		list, governor = "", list
	}
	low, high, ranged := strings.Cut(list, "-")
	if !ranged {
		low, high = "", low
	}
	return freq{freqWord(low), freqWord(high), freqWord(governor)}
}

// shown is the line of scontrol; empty if nothing was asked for. Frequencies are in kHz.
func (f freq) shown() string {
	var parts []string
	for _, p := range [...][2]string{{"CPU_min_freq=", f.min}, {"CPU_max_freq=", f.max}, {"Governor=", f.governor}} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(parts, " ")
}

// freqWord spells a word as Slurm does; what is none stays.
func freqWord(word string) string {
	for _, w := range freqWords {
		if strings.EqualFold(w, word) {
			return w
		}
	}
	return word
}

// freqText writes kHz as 2.40G.
func freqText(word string) string {
	if slices.Contains(freqWords[:], word) {
		return word
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
