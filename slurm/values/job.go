package values

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

const (
	defaultSignalLead = 60    // seconds before the end that --signal without @ means
	maxSignalLead     = 65535 // Slurm's largest
)

// signalNames are the signals that have a name in Slurm, by Linux's numbers.
var signalNames = [...]string{1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 10: "USR1", 12: "USR2",
	14: "ALRM", 15: "TERM",
	18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU"}

// SignalNumber reads a signal's number or name, with or without SIG, in any case. It
// returns 0 for what is no signal.
func SignalNumber(s string) int {
	if n, ok := Digits(s); ok {
		return int(n)
	}
	name := strings.ToUpper(s)
	name = strings.TrimPrefix(name, "SIG")
	for n, k := range signalNames {
		if k != "" && k == name {
			return n
		}
	}
	return 0
}

// ParseSignal reads [R][B][:]SIGNAL[@SECONDS].
func ParseSignal(s string) (cluster.Signal, bool) {
	sig := cluster.Signal{Before: defaultSignalLead * time.Second}
	if flags, rest, ok := strings.Cut(s, ":"); ok {
		for i := range len(flags) {
			switch flags[i] | 0x20 {
			case 'r':
				sig.Reservation = true
			case 'b':
				sig.BatchOnly = true
			default:
				return cluster.Signal{}, false
			}
		}
		s = rest
	}
	name, lead, timed := strings.Cut(s, "@")
	if timed {
		n, ok := Digits(lead)
		if !ok && lead != "" || n > maxSignalLead {
			return cluster.Signal{}, false
		}
		sig.Before = time.Duration(n) * time.Second
	}
	sig.Num = SignalNumber(name)
	if sig.Num == 0 {
		return cluster.Signal{}, false
	}
	return sig, true
}

// dependTypes are the conditions that name jobs.
var dependTypes = [...]cluster.DependType{cluster.After, cluster.AfterAny, cluster.AfterOK, cluster.AfterNotOK,
	cluster.AfterCorr, cluster.AfterBurst, cluster.ExpandJob}

// ParseDepends reads TYPE:ID[+MINUTES][:ID...][,...], with ? in place of , for "any of
// them", "singleton", and bare job numbers, which mean afterany.
func ParseDepends(s string) (cluster.Depends, bool) {
	d := cluster.Depends{Any: strings.Contains(s, "?")}
	if s == "" || s == "0" {
		return d, true // no dependency
	}
	// A comma next to a ? is taken for one.
	for word := range strings.SplitSeq(strings.ReplaceAll(s, "?", ","), ",") {
		if strings.EqualFold(word, string(cluster.SingletonOf)) {
			d.Terms = append(d.Terms, cluster.Depend{Type: cluster.SingletonOf, Task: cluster.TaskAny})
			continue
		}
		kind, ids, typed := cluster.AfterAny, word, false
		if name, rest, ok := strings.Cut(word, ":"); ok {
			if kind, typed = dependType(name); !typed {
				return cluster.Depends{}, false
			}
			ids = rest
		}
		if !typed && strings.Contains(ids, "+") {
			return cluster.Depends{}, false
		}
		for id := range strings.SplitSeq(ids, ":") {
			t, ok := dependTerm(kind, id)
			if !ok {
				return cluster.Depends{}, false
			}
			d.Terms = append(d.Terms, t)
		}
	}
	return d, true
}

func dependType(name string) (cluster.DependType, bool) {
	for _, t := range dependTypes {
		if strings.EqualFold(name, string(t)) {
			return t, true
		}
	}
	return "", false
}

// dependTerm reads ID, ID_TASK or ID_*, each with +MINUTES of one at least, which counts for after only.
func dependTerm(kind cluster.DependType, s string) (cluster.Depend, bool) {
	t := cluster.Depend{Type: kind, Task: cluster.TaskAny}
	s, plus, timed := strings.Cut(s, "+")
	if timed {
		n, ok := Digits(plus)
		if !ok || n == 0 {
			return t, false
		}
		t.Plus = time.Duration(n) * time.Minute
	}
	s, task, isTask := strings.Cut(s, "_")
	if isTask && task == "*" {
		t.Array = true
	} else if isTask {
		n, ok := Digits(task)
		if !ok {
			return t, false
		}
		t.Task = int(n)
	}
	id, err := strconv.ParseUint(s, 10, 32)
	if err != nil || id == 0 {
		return t, false
	}
	t.Job = cluster.JobID(id)
	return t, true
}

// ParseArray reads task numbers, ranges LOW-HIGH[:STEP], a comma list of them, and
// %LIMIT for how many may run at once. Square brackets around the list are allowed.
func ParseArray(s string) (*cluster.ArraySpec, bool) {
	a := &cluster.ArraySpec{Text: s}
	list, limit, limited := strings.Cut(s, "%")
	if limited {
		if n, ok := Digits(strings.TrimSuffix(limit, "]")); ok {
			a.Limit = int(n)
		}
	}
	list = strings.TrimSuffix(strings.TrimPrefix(list, "["), "]")
	var tasks []int
	for word := range strings.SplitSeq(list, ",") {
		if word == "" {
			continue
		}
		lo, hi, step, ok := arrayRange(word)
		if !ok {
			return nil, false
		}
		if a.Step == 0 {
			a.Step = step
		}
		if (hi-lo)/step+1+len(tasks) > cluster.MaxID {
			return nil, false
		}
		for i := lo; i <= hi; i += step {
			tasks = append(tasks, i)
		}
	}
	a.Tasks = cluster.NewIDSet(tasks...)
	return a, len(tasks) > 0
}

func arrayRange(word string) (lo, hi, step int, ok bool) {
	word, stepText, stepped := strings.Cut(word, ":")
	low, high, ranged := strings.Cut(word, "-")
	if stepped && !ranged {
		return 0, 0, 0, false
	}
	n, ok := Digits(low)
	m, step64 := n, int64(1)
	if ok && ranged {
		m, ok = Digits(high)
	}
	if ok && stepped {
		step64, ok = Digits(stepText)
	}
	ok = ok && step64 > 0 && m >= n && m < cluster.MaxID
	return int(n), int(m), int(step64), ok
}

// mailTypes are the words of --mail-type in the order in which Slurm shows them.
var mailTypes = [...]string{"ARRAY_TASKS", "INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT",
	"TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT"}

// ParseMailTypes reads a comma list of events. Unknown words next to known ones are
// dropped; NONE wins over all others.
func ParseMailTypes(s string) ([]string, bool) {
	var on [len(mailTypes)]bool
	known := false
	for word := range strings.SplitSeq(strings.ToUpper(s), ",") {
		if word == "NONE" {
			return nil, true
		}
		for i, name := range mailTypes {
			all := word == "ALL" && name != "ARRAY_TASKS" && !strings.HasPrefix(name, "TIME_LIMIT")
			if word == name || all {
				on[i], known = true, true
			}
		}
	}
	var list []string
	for i, name := range mailTypes {
		if on[i] {
			list = append(list, name)
		}
	}
	return list, known
}

// ParseDistribution checks a --distribution and returns the size of a plane.
func ParseDistribution(s string) (plane int, err error) {
	list, pack, packed := strings.Cut(s, ",")
	if strings.EqualFold(list, "pack") || strings.EqualFold(list, "nopack") {
		return 0, nil
	}
	name, size, sized := strings.Cut(list, "=")
	if strings.EqualFold(name, "plane") {
		n, ok := Digits(size)
		if !sized || !ok || n == 0 || packed {
			return 0, errPlane()
		}
		return int(n), nil
	}
	if strings.HasPrefix(strings.ToLower(list), "plane") {
		return 0, errPlane()
	}
	if packed && !strings.EqualFold(pack, "pack") && !strings.EqualFold(pack, "nopack") {
		return 0, opt.ErrSpec
	}
	for i, level := range strings.Split(strings.ToLower(list), ":") {
		switch {
		case i > 2:
			return 0, opt.ErrSpec
		case level == "*" || level == "block" || level == "cyclic":
		case level == "" && strings.Contains(list, ":"): // the default of this level
		case i == 0 && level == "arbitrary":
		case i > 0 && level == "fcyclic":
		default:
			return 0, opt.ErrSpec
		}
	}
	return 0, nil
}

func errPlane() error {
	return &opt.UsageError{Code: opt.CodeUsage, Lines: []string{
		"error: Invalid plane size or size not specified", "error: Invalid --distribution specification"}}
}

// ParseSwitches reads COUNT[@TIME].
func ParseSwitches(s string) (count int, wait time.Duration, err error) {
	text, limit, timed := strings.Cut(s, "@")
	n, ok := opt.Number(text)
	if !ok || n < 1 {
		return 0, 0, opt.Errorf(opt.CodeError, "error: Invalid numeric value \"%s\" for --switches.", text)
	}
	if timed {
		wait, _ = ParseTimeLimit(limit)
	}
	return n, wait, nil
}

// MaxNice bounds --nice on both sides.
const MaxNice = 2147483645

// ParseNice reads an adjustment; an empty one is 100 and what is no number is 0.
func ParseNice(s string, given bool) (int, error) {
	if !given {
		return 100, nil
	}
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && (s[0] == '-' || s[0] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if n > MaxNice || n < -MaxNice {
		return 0, opt.Errorf(opt.CodeUsage, "error: Invalid --nice value, out of range (+/- %d)", MaxNice)
	}
	if err != nil {
		return 0, nil
	}
	return int(n), nil
}
