package values

import (
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// IsBindHelp reports whether an answer is that to --cpu-bind=help.
func IsBindHelp(err error) bool {
	u, ok := err.(*opt.UsageError)
	return ok && u.Stdout && len(u.Lines) > 0 && strings.HasPrefix(cpuBindHelp, u.Lines[0])
}

// CheckCPUBind checks the syntax of --cpu-bind.
func CheckCPUBind(s string) error {
	for _, word := range cluster.BindWords(s) {
		name, list, _ := strings.Cut(word, ":")
		switch strings.ToLower(name) {
		case "help":
			return Answer(opt.CodeError, cpuBindHelp)
		case "q", "quiet", "v", "verbose", "no", "none", "rank", "rank_ldom", "socket", "sockets", "core", "cores",
			"thread", "threads", "ldom", "ldoms", "board", "boards", "one_thread", "one-thread", "no_cpu_bind", "off":
		case "map_cpu", "mask_cpu", "map_ldom", "mask_ldom":
			if err := checkBindList("cpu", name, list); err != nil {
				err.Lines = append(err.Lines, errCPUBind)
				return err
			}
		default:
			return &opt.UsageError{Code: opt.CodeError, Lines: []string{
				"error: unrecognized --cpu-bind argument \"" + word + "\"", errCPUBind}}
		}
	}
	return nil
}

const errCPUBind = "fatal: Failed to parse --cpu-bind= values."

// CheckMemBind checks the syntax of --mem-bind.
func CheckMemBind(s string) error {
	for _, word := range cluster.BindWords(s) {
		name, list, _ := strings.Cut(word, ":")
		switch strings.ToLower(name) {
		case "help":
			return Answer(opt.CodeUsage, memBindHelp)
		case "q", "quiet", "v", "verbose", "no", "none", "rank", "local", "p", "prefer", "sort", "nosort":
		case "map_mem", "mask_mem":
			if err := checkBindList("mem", name, list); err != nil {
				err.Code = opt.CodeUsage
				return err
			}
		default:
			return opt.Errorf(opt.CodeUsage, "error: unrecognized --mem-bind argument \"%s\"", word)
		}
	}
	return nil
}

// checkBindList checks the numbers of a map or mask: decimal or 0x, with *REPEAT.
func checkBindList(kind, name, list string) *opt.UsageError {
	if list == "" {
		return opt.Errorf(opt.CodeError, "error: missing list for \"--%s-bind=%s:<list>\"", kind, name)
	}
	for num := range strings.SplitSeq(list, ",") {
		if c, ok := badBindNumber(num, strings.HasPrefix(name, "mask")); !ok {
			return opt.Errorf(opt.CodeError,
				"error: Failed to validate number: %s, the offending character is %s", num, c)
		}
	}
	return nil
}

// badBindNumber returns the first character that does not belong to a number.
func badBindNumber(num string, hex bool) (string, bool) {
	value, repeat, repeated := strings.Cut(num, "*")
	value, prefixed := strings.CutPrefix(value, "0x")
	digits := decimals
	if hex || prefixed {
		digits += "abcdefABCDEF"
	}
	if bad := strings.TrimLeft(value, digits); bad != "" {
		return bad[:1], false
	}
	if _, ok := Digits(repeat); repeated && !ok {
		return "*", false
	}
	return "", value != ""
}

// CheckGPUBind checks the syntax of --gpu-bind.
func CheckGPUBind(s string) error {
	t, _ := strings.CutPrefix(s, "verbose,")
	t, _ = strings.CutPrefix(t, "gpu:")
	bad := opt.Errorf(opt.CodeUsage, "error: Invalid --gpu-bind argument: gpu:%s", s)
	name, list, listed := strings.Cut(t, ":")
	switch strings.ToLower(name) {
	case "closest", "none":
		return nil
	case "single", "per_task":
		if listed {
			return nil
		}
	case "map_gpu", "mask_gpu":
		for num := range strings.SplitSeq(list, ",") {
			if c, ok := badBindNumber(num, name == "mask_gpu"); !ok && num != "" {
				bad.Lines = append([]string{
					"error: Failed to validate " + num + ", offending character is " + c,
				}, bad.Lines...)
				return bad
			}
		}
		if list != "" {
			return nil
		}
	}
	return bad
}

// The words for frequencies, and the clocks of a GPU that have one; without a name it is that of its cores.
var (
	freqLevels    = []string{"medium", "high", "highm1"}
	gpuFreqLevels = []string{"low", "medium", "high", "highm1"}
	gpuClocks     = []string{"", "memory", "graphics"}
)

// CheckGPUFreq checks the syntax of --gpu-freq.
func CheckGPUFreq(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		clock, value, named := strings.Cut(word, "=")
		if !named {
			clock = ""
			value = word
		}
		if !slices.Contains(gpuClocks, clock) || !isGPUFreq(clock, strings.ToLower(value)) {
			return opt.Errorf(opt.CodeUsage, "error: Invalid --gpu-freq argument: gpu:%s", s)
		}
	}
	return nil
}

// isGPUFreq reports whether a clock takes a value.
func isGPUFreq(clock, value string) bool {
	if value == "verbose" {
		return clock == ""
	}
	_, number := Digits(value)
	return number || slices.Contains(gpuFreqLevels, value)
}

// CheckCPUFreq checks the syntax of --cpu-freq: P1[-P2[:P3]].
func CheckCPUFreq(s string) error {
	bad := func(format, word string) error {
		return &opt.UsageError{Code: opt.CodeUsage, Lines: []string{
			"error: " + strings.Replace(format, "%s", word, 1), "error: Invalid --cpu-freq argument"}}
	}
	list, governor, governed := strings.Cut(strings.ToLower(s), ":")
	lo, hi, ranged := strings.Cut(list, "-")
	lowest := lo == "low" || isCPUFreq(lo)
	alone := !ranged && isGovernor(lo)
	if !lowest && !alone {
		return bad("unrecognized --cpu-freq argument \"%s\"", lo)
	}
	if ranged && !isCPUFreq(hi) {
		return bad("unrecognized --cpu-freq argument \"%s\"", hi)
	}
	if governed && !isGovernor(governor) {
		return bad("illegal governor: %s on --cpu-freq", governor)
	}
	a, ok := Digits(lo)
	b, ok2 := Digits(hi)
	if ok && ok2 && b < a {
		return bad("min cpu-frec (%s) must be < max cpu-freq ("+hi+")", lo)
	}
	return nil
}

// isCPUFreq reports whether a word is a frequency, in kHz or by name.
func isCPUFreq(word string) bool {
	_, number := Digits(word)
	return number || slices.Contains(freqLevels, word)
}

var governors = []string{"conservative", "ondemand", "performance", "powersave", "schedutil", "userspace"}

func isGovernor(s string) bool { return slices.Contains(governors, s) }

// CheckHint checks --hint.
func CheckHint(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		switch strings.ToLower(word) {
		case "compute_bound", "memory_bound", "multithread", "nomultithread":
		case "help":
			return Answer(opt.CodeError, hintHelp)
		default:
			return opt.Errorf(opt.CodeError, "error: unrecognized --hint argument \"%s\", see --hint=help", word)
		}
	}
	return nil
}

// CheckProfile checks --profile. Unknown words next to known ones are dropped.
func CheckProfile(s string) error {
	for word := range strings.SplitSeq(strings.ToLower(s), ",") {
		switch word {
		case "all", "none", "energy", "lustre", "network", "task":
			return nil
		}
	}
	return opt.Errorf(opt.CodeUsage, "error: invalid --profile=%s option", s)
}

// profiles are what can be profiled, in Slurm's order.
var profiles = [...]string{"Energy", "Lustre", "Network", "Task"}

// SpellProfile is what a valid --profile asks for, as Slurm spells it.
func SpellProfile(s string) string {
	words := strings.Split(strings.ToLower(s), ",")
	var out []string
	for _, p := range profiles {
		if slices.Contains(words, "all") || slices.Contains(words, strings.ToLower(p)) {
			out = append(out, p)
		}
	}
	if len(out) == 0 || slices.Contains(words, "none") {
		return "None"
	}
	return strings.Join(out, ",")
}

// CheckAcctgFreq checks --acctg-freq: a number, or KIND=NUMBER[,...].
func CheckAcctgFreq(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		if word == "" {
			continue
		}
		kind, value, ok := strings.Cut(word, "=")
		if !ok {
			kind, value = "task", word
		}
		_, number := Digits(value)
		switch strings.ToLower(kind) {
		case "task", "energy", "network", "filesystem":
		default:
			number = false
		}
		if !number {
			return opt.Errorf(opt.CodeUsage, "error: Invalid --acctg-freq specification: %s", word)
		}
	}
	return nil
}

// CheckPropagate checks --propagate: ALL, NONE or names of limits.
func CheckPropagate(s string) error {
	switch s {
	case "", "ALL", "NONE":
		return nil
	}
	for name := range strings.SplitSeq(s, ",") {
		if !front.RlimitKnown(name) {
			return &opt.UsageError{Code: opt.CodeError, Lines: []string{
				"error: Bad rlimit name: " + name, "error: --propagate=" + s + " is not valid."}}
		}
	}
	return nil
}

// Answer makes of a help text the error that ends the program with it.
func Answer(code int, text string) error {
	return &opt.UsageError{Code: code, Stdout: true, Lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
}
