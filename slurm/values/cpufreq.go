package values

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// CPUFreq is what --cpu-freq asked for, as sacct and sstat show it.
type CPUFreq struct{ Min, Max, Governor string }

// freqWords are frequencies and governors as Slurm spells them.
var freqWords = [...]string{
	"Low", "Medium", "High", "Highm1", "Conservative", "OnDemand", "Performance", "PowerSave", "SchedUtil",
	"UserSpace",
}

// ReqFreq reads what a step asked for; those that are not srun's have nothing to ask for.
func ReqFreq(s *cluster.Step) CPUFreq {
	if s.ID.Step < 0 {
		return CPUFreq{"0", "0", "0"}
	}
	f := ParseFreq(s.CPUFreq)
	return CPUFreq{freqText(f.Min), freqText(f.Max), freqText(f.Governor)}
}

// ParseFreq takes apart what --cpu-freq asks for, P1[-P2[:P3]]; what is not asked for is empty.
func ParseFreq(asked string) CPUFreq {
	list, governor, _ := strings.Cut(strings.ToLower(asked), ":")
	if isGovernor(list) {
		list, governor = "", list
	}
	low, high, ranged := strings.Cut(list, "-")
	if !ranged {
		low, high = "", low
	}
	return CPUFreq{freqWord(low), freqWord(high), freqWord(governor)}
}

// SpellFreq is what --cpu-freq asks for, each word as Slurm spells it.
func SpellFreq(asked string) string {
	list, governor, governed := strings.Cut(asked, ":")
	low, high, ranged := strings.Cut(list, "-")
	out := freqWord(low)
	if ranged {
		out += "-" + freqWord(high)
	}
	if governed {
		out += ":" + freqWord(governor)
	}
	return out
}

// Shown is the line of scontrol; empty if nothing was asked for. Frequencies are in kHz.
func (f CPUFreq) Shown() string {
	var parts []string
	for _, p := range [...][2]string{{"CPU_min_freq=", f.Min}, {"CPU_max_freq=", f.Max}, {"Governor=", f.Governor}} {
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
