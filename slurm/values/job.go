package values

import (
	"slices"
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
var signalNames = []string{1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 10: "USR1", 12: "USR2",
	14: "ALRM", 15: "TERM",
	18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU"}

// SignalNumber reads a signal's number or name, with or without SIG, in any case. It
// returns 0 for what is no signal.
func SignalNumber(s string) int {
	if n, ok := Digits(s); ok {
		return int(n)
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if name == "" {
		return 0
	}
	return max(slices.Index(signalNames, name), 0)
}

// ParseSignal reads [R][B][:]SIGNAL[@SECONDS].
func ParseSignal(s string) (cluster.Signal, bool) {
	sig := cluster.Signal{Before: defaultSignalLead * time.Second}
	if flags, rest, ok := strings.Cut(s, ":"); ok {
		if strings.Trim(flags, "RrBb") != "" {
			return cluster.Signal{}, false
		}
		sig.Reservation = strings.ContainsAny(flags, "Rr")
		sig.BatchOnly = strings.ContainsAny(flags, "Bb")
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
var dependTypes = []cluster.DependType{
	cluster.After, cluster.AfterAny, cluster.AfterOK, cluster.AfterNotOK,
	cluster.AfterCorr, cluster.AfterBurst, cluster.ExpandJob,
}

// ParseDepends reads TYPE:ID[+MINUTES][:ID...][,...], with ? in place of , for "any of
// them", "singleton", and bare job numbers, which mean afterany. The state that squeue shows behind a job, such as
// (unfulfilled), is passed over.
func ParseDepends(s string) (cluster.Depends, bool) {
	d := cluster.Depends{Any: strings.Contains(s, "?")}
	if s == "" || s == "0" {
		return d, true // no dependency
	}
	// A comma next to a ? is taken for one.
	for word := range strings.SplitSeq(strings.ReplaceAll(s, "?", ","), ",") {
		if strings.EqualFold(withoutState(word), string(cluster.SingletonOf)) {
			d.Terms = append(d.Terms, cluster.Depend{Type: cluster.SingletonOf, Task: cluster.TaskAny})
			continue
		}
		terms, ok := dependTerms(word)
		if !ok {
			return cluster.Depends{}, false
		}
		d.Terms = append(d.Terms, terms...)
	}
	return d, true
}

// withoutState cuts a word in parentheses from the end of a term.
func withoutState(term string) string {
	head, state, found := strings.Cut(term, "(")
	if found && strings.HasSuffix(state, ")") {
		return head
	}
	return term
}

// dependTerms reads TYPE:ID[+MINUTES][:ID...], or a bare number.
func dependTerms(word string) (terms []cluster.Depend, ok bool) {
	name, ids, typed := strings.Cut(word, ":")
	kind, known := dependType(name)
	if !typed {
		kind = cluster.AfterAny
		ids = word
		known = !strings.Contains(word, "+")
	}
	if !known {
		return nil, false
	}
	for id := range strings.SplitSeq(ids, ":") {
		t, ok := dependTerm(kind, withoutState(id))
		if !ok {
			return nil, false
		}
		terms = append(terms, t)
	}
	return terms, true
}

func dependType(name string) (cluster.DependType, bool) {
	is := func(t cluster.DependType) bool { return strings.EqualFold(name, string(t)) }
	i := slices.IndexFunc(dependTypes, is)
	if i < 0 {
		return "", false
	}
	return dependTypes[i], true
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
	list, limit, _ := strings.Cut(s, "%")
	n, _ := Digits(strings.TrimSuffix(limit, "]")) // what is no number is no limit
	a.Limit = int(n)
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
	if !ranged {
		high = low
	}
	if !stepped {
		stepText = "1"
	}
	n, lowOK := Digits(low)
	m, highOK := Digits(high)
	step64, stepOK := Digits(stepText)
	if !lowOK || !highOK || !stepOK {
		return 0, 0, 0, false
	}
	ok = step64 > 0 && m >= n && m < cluster.MaxID
	return int(n), int(m), int(step64), ok
}

// mailTypes are the words of --mail-type in the order in which Slurm shows them.
var mailTypes = [...]string{"ARRAY_TASKS", "INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT",
	"TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT"}

// allMails are the events that ALL stands for.
var allMails = []string{"INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT"}

// ParseMailTypes reads a comma list of events. Unknown words next to known ones are
// dropped; NONE wins over all others.
func ParseMailTypes(s string) ([]string, bool) {
	words := strings.Split(strings.ToUpper(s), ",")
	if slices.Contains(words, "NONE") {
		return nil, true
	}
	if slices.Contains(words, "ALL") {
		words = append(words, allMails...)
	}
	var list []string
	for _, name := range mailTypes {
		if slices.Contains(words, name) {
			list = append(list, name)
		}
	}
	return list, len(list) > 0
}

// distributions are what tasks may be distributed by over nodes, sockets and cores.
var distributions = [...][]string{
	{"*", "block", "cyclic", "arbitrary"},
	{"*", "block", "cyclic", "fcyclic"},
	{"*", "block", "cyclic", "fcyclic"},
}

// ParseDistribution checks a --distribution and returns the size of a plane.
func ParseDistribution(s string) (plane int, err error) {
	list, pack, packed := strings.Cut(strings.ToLower(s), ",")
	if isPack(list) {
		return 0, nil
	}
	if strings.HasPrefix(list, "plane") {
		return planeSize(list, packed)
	}
	if packed && !isPack(pack) {
		return 0, opt.ErrSpec
	}
	return 0, checkLevels(strings.Split(list, ":"))
}

func isPack(word string) bool { return word == "pack" || word == "nopack" }

// planeSize reads plane=SIZE, with which nothing is said of packing.
func planeSize(list string, packed bool) (int, error) {
	name, size, _ := strings.Cut(list, "=")
	if name != "plane" || packed {
		return 0, errPlane()
	}
	n, ok := Digits(size)
	if !ok || n == 0 {
		return 0, errPlane()
	}
	return int(n), nil
}

// checkLevels checks a distribution level by level; one of several may be left empty.
func checkLevels(levels []string) error {
	if len(levels) > len(distributions) {
		return opt.ErrSpec
	}
	for i, level := range levels {
		if level == "" && len(levels) > 1 {
			continue
		}
		if !slices.Contains(distributions[i], level) {
			return opt.ErrSpec
		}
	}
	return nil
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
	end := leadingDigits(s)
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		end = 1 + leadingDigits(s[1:])
	}
	n, _ := strconv.ParseInt(s[:end], 10, 64) // 0 for what is no number, and the largest for one too large
	if n > MaxNice || n < -MaxNice {
		return 0, opt.Errorf(opt.CodeUsage, "error: Invalid --nice value, out of range (+/- %d)", MaxNice)
	}
	return int(n), nil
}
