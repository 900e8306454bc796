package sacctmgr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// limitAliases are what sacctmgr calls limits besides their own names: blank-separated, first those of
// associations, then those of QOS.
func limitAliases() map[string]string {
	return map[string]string{
		"grpsubmit": "GrpSubmitJobs", "maxsubmit": "MaxSubmitJobs", "maxtresperjob": "MaxTRES",
		"maxtresminsperjob":     "MaxTRESMins",
		"maxwalldurationperjob": "MaxWall", "maxtresmin": "MaxTRESMins", "grptresmin": "GrpTRESMins",
		"grptresrunmin": "GrpTRESRunMins",
		"maxtrespu":     "MaxTRESPerUser", "maxtrespa": "MaxTRESPerAccount", "maxjobspu": "MaxJobsPerUser",
		"maxjobspa":   "MaxJobsPerAccount",
		"maxsubmitpu": "MaxSubmitJobsPerUser", "maxsubmitpa": "MaxSubmitJobsPerAccount",
		"maxsubmitjobspu": "MaxSubmitJobsPerUser",
		"maxsubmitjobspa": "MaxSubmitJobsPerAccount", "maxtresrunminspu": "MaxTRESRunMinsPerUser",
		"maxtresrunminspa": "MaxTRESRunMinsPerAccount",
		"maxjobsaccruepu":  "MaxJobsAccruePerUser", "maxjobsaccruepa": "MaxJobsAccruePerAccount",
		"mintresperjob": "MinTRES", "minpriothresh": "MinPrioThreshold",
		"maxnodespernode": "MaxTRESPerNode",
		"maxtrespj":       "MaxTRES", "maxtresminspj": "MaxTRESMins", "maxtrespn": "MaxTRESPerNode",
	}
}

// limitWord is a long name of a limit, which may be cut short after some letters.
type limitWord struct {
	word  string
	least int
	limit string
}

// cutLimits are the names that may be cut short: those of associations and QOS alike, then those of one of them.
func cutLimits(qos bool) []limitWord {
	both := []limitWord{
		{"grpjobs", 4, "GrpJobs"}, {"grpjobsaccrue", 8, "GrpJobsAccrue"}, {"grpsubmitjobs", 4, "GrpSubmitJobs"},
		{"grptresmins", 8, "GrpTRESMins"}, {"grptresrunmins", 8, "GrpTRESRunMins"}, {"grpwall", 4, "GrpWall"},
		{"maxtresminsperjob", 8, "MaxTRESMins"}, {"maxtrespernode", 11, "MaxTRESPerNode"},
		{"maxwalldurationperjob", 4, "MaxWall"}, {"minpriothreshold", 4, "MinPrioThreshold"},
	}
	if qos {
		return append(both,
			limitWord{"maxjobsperuser", 4, "MaxJobsPerUser"}, limitWord{"maxjobsperaccount", 11, "MaxJobsPerAccount"},
			limitWord{"maxsubmitjobsperuser", 4, "MaxSubmitJobsPerUser"},
			limitWord{"maxsubmitjobsperaccount", 17, "MaxSubmitJobsPerAccount"},
			limitWord{"maxtresperuser", 11, "MaxTRESPerUser"},
			limitWord{"maxtresperaccount", 11, "MaxTRESPerAccount"}, limitWord{"maxtresperjob", 7, "MaxTRES"},
			limitWord{"mintresperjob", 8, "MinTRES"})
	}
	return append(both, limitWord{"maxjobs", 4, "MaxJobs"}, limitWord{"maxjobsaccrue", 8, "MaxJobsAccrue"},
		limitWord{"maxsubmitjobs", 4, "MaxSubmitJobs"}, limitWord{"maxtresperjob", 7, "MaxTRES"})
}

// cutLimit returns the limit that a name cut short means, or "".
func cutLimit(qos bool, key string) string {
	isExact := func(row cluster.LimitName) bool { return strings.EqualFold(row.Name, key) }
	if slices.ContainsFunc(cluster.LimitNames(), isExact) {
		return ""
	}
	for _, w := range cutLimits(qos) {
		if front.IsKey(key, w.least, w.word) {
			return w.limit
		}
	}
	return ""
}

// oldLimits are names of limits on one resource.
func oldLimits() map[string]cluster.Limit {
	return map[string]cluster.Limit{"grpcpus": {Name: "GrpTRES", TRES: "cpu"},
		"grpnodes": {Name: "GrpTRES", TRES: "node"}, "grpmem": {Name: "GrpTRES", TRES: "mem"},
		"maxcpus": {Name: "MaxTRES", TRES: "cpu"}, "maxnodes": {Name: "MaxTRES", TRES: "node"},
		"grpcpumins":    {Name: "GrpTRESMins", TRES: "cpu"},
		"grpcpurunmins": {Name: "GrpTRESRunMins", TRES: "cpu"}, "maxcpumins": {Name: "MaxTRESMins", TRES: "cpu"},
		"maxcpusperuser":  {Name: "MaxTRESPerUser", TRES: "cpu"},
		"maxnodesperuser": {Name: "MaxTRESPerUser", TRES: "node"}}
}

// oldLimitName is the shortest name of oldLimits that begins with a key of some letters.
func oldLimitName(key string) string {
	best := ""
	for name := range oldLimits() {
		least := leastLimitName
		if strings.HasSuffix(name, "nodes") || name == "grpmem" {
			least = 4 // "grpn", "grpm", "maxn"
		}
		if len(key) >= least && strings.HasPrefix(name, key) && (best == "" || len(name) < len(best)) {
			best = name
		}
	}
	return best
}

// leastLimitName is how many letters of a limit's name must be written.
const leastLimitName = 6

// setLimitKey sets a limit by the name that sacctmgr has for it. known says whether there is one.
func setLimitKey(l *cluster.Limits, qos bool, key, value string) (label string, known bool, err error) {
	if old, ok := oldLimits()[oldLimitName(key)]; ok {
		n, err := limitNumber(key, value)
		old.Max = n
		*l = l.With(old)
		return old.Name, true, err
	}
	name := cmp.Or(limitAliases()[key], cutLimit(qos, key))
	if qos {
		name = cmp.Or(perUserLimit(key), name)
	}
	for _, row := range cluster.LimitNames() {
		named := row.Name == name || name == "" && strings.EqualFold(row.Name, key)
		has := row.Assoc
		if qos {
			has = row.QOS
		}
		if !named || !has {
			continue
		}
		switch row.Unit {
		case cluster.UnitTRES:
			return row.Name, true, setLimitTRES(l, row.Name, key, value)
		case cluster.UnitSeconds:
			return row.Name, true, setLimitTime(l, row.Name, key, value)
		}
		n, err := limitNumber(key, value)
		*l = l.With(cluster.Limit{Name: row.Name, Max: n})
		return row.Name, true, err
	}
	return "", false, nil
}

// perUserLimit is what the name of a limit of associations means for a QOS, "" if that is the same.
func perUserLimit(key string) string {
	switch key {
	case "maxjobs":
		return "MaxJobsPerUser"
	case "maxsubmitjobs", "maxsubmit":
		return "MaxSubmitJobsPerUser"
	}
	return ""
}

// setLimitTime sets a limit of time; -1, nothing and no limit take it away.
func setLimitTime(l *cluster.Limits, name, key, value string) error {
	n := int64(-1)
	if value != "" && value != "-1" {
		d, ok := values.ParseTimeLimit(value)
		switch {
		case !ok:
			return fmt.Errorf(" Bad %s time format: %s=%s", name, key, value)
		case value == "0": // nothing at all, which as a job's time limit means no limit
			n = 0
		case d != cluster.Unlimited:
			n = int64(d / time.Second)
		}
	}
	*l = l.With(cluster.Limit{Name: name, Max: n})
	return nil
}

// limitNumber reads a count; -1 and nothing take the limit away.
func limitNumber(key, value string) (int64, error) {
	if value == "" || value == "-1" {
		return -1, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return -1, badNumber(mgrTitle(key), value)
	}
	return n, nil
}

func badNumber(title, value string) error {
	return fmt.Errorf("sacctmgr: error: Invalid value for %s (%s)", title, value)
}

// mgrTitle is a key as Slurm writes it where it complains of its value.
func mgrTitle(key string) string {
	for _, row := range cluster.LimitNames() {
		if strings.EqualFold(row.Name, key) {
			return row.Name
		}
	}
	return strings.ToUpper(key[:1]) + key[1:]
}

// isTRES reports whether something is counted by that name: Slurm's own resources, and devices and licences by theirs.
func isTRES(name string) bool {
	kind, _, named := strings.Cut(name, "/")
	return slices.Contains(show.SlurmTRES(), name) || named && slices.Contains([]string{
		"gres", "license", "bb", "fs", "ic",
	},
		kind)
}

// unknownTRES refuses a name that nothing is counted by: a limit on it would hold nothing.
func unknownTRES(name string) error {
	text := "sacctmgr: error: slurmdb_format_tres_str: no TRES known by type " + name
	if name == "gpu" || name == "gpus" {
		text += "\n GPUs are gres/gpu: write gres/gpu=NUMBER"
	}
	return errors.New(text)
}

// setLimitTRES reads cpu=4,gres/gpu=2; memory may have a unit.
func setLimitTRES(l *cluster.Limits, name, key, value string) error {
	if value == "" || value == "-1" {
		for x := range slices.Clone(*l).Named(name) {
			*l = l.With(cluster.Limit{Name: name, TRES: x.TRES, Max: -1})
		}
		return nil
	}
	for _, w := range front.SplitList(value) {
		tres, text, ok := strings.Cut(w, "=")
		tres = strings.ToLower(tres)
		if !ok {
			return errors.New("sacctmgr: error: slurmdb_format_tres_str: no TRES id found for " + tres)
		}
		if !isTRES(tres) {
			return unknownTRES(tres)
		}
		n, err := limitNumber(tres, text)
		if m, isMem := values.ParseMem(text); tres == "mem" && err != nil && isMem {
			n, err = int64(m), nil
		}
		if err != nil {
			return fmt.Errorf(" Invalid value for %s (%s): it is a list such as cpu=4,gres/gpu=2", key, value)
		}
		*l = l.With(cluster.Limit{Name: name, TRES: tres, Max: n})
	}
	return nil
}

// setAssocKey sets one key of an association; the label is what sacctmgr calls it when it tells of it.
func setAssocKey(a *cluster.Association, have []string, s front.Setting) (label string, known bool, err error) {
	switch {
	case front.IsKey(s.Key, 1, "fairshare", "shares", "rawshares"):
		if strings.EqualFold(s.Value, "parent") {
			a.Shares = cluster.ShareParent
			return "Fairshare", true, nil
		}
		n, err := strconv.Atoi(cmp.Or(s.Value, "-1"))
		if err != nil || n < -1 {
			return "", true, badNumber("FairShare", s.Value)
		}
		if a.Shares = n; n == -1 {
			a.Shares = 1
		}
		return "Fairshare", true, nil
	case front.IsKey(s.Key, 3, "priority"):
		n, err := limitNumber(s.Key, s.Value)
		a.Priority = int(max(n, 0))
		return "Priority", true, err
	case front.IsKey(s.Key, 1, "qoslevel", "qos"):
		a.QOS = changeList(a.QOS, have, s)
		return "QOS", true, nil
	case front.IsKey(s.Key, 8, "defaultqos"):
		if a.DefaultQOS = strings.ToLower(s.Value); s.Value == "-1" {
			a.DefaultQOS = ""
		}
		return "DefQOS", true, nil
	}
	return setLimitKey(&a.Limits, false, s.Key, s.Value)
}

// signedList reads qos=+a,+b as qos+=a,b, and - likewise.
func signedList(s front.Setting) front.Setting {
	if s.Sign != 0 || s.Value == "" || s.Value == "-1" || !front.IsKey(s.Key, 1, "qoslevel", "qos") {
		return s
	}
	if c := s.Value[0]; c == '+' || c == '-' {
		s.Sign = c
		s.Value = strings.ReplaceAll(s.Value[1:], ","+string(c), ",")
	}
	return s
}

// changeList is a list after =, += or -=; have is what counts where there is no list of its own.
func changeList(own, have []string, s front.Setting) []string {
	words := mgrNameList(s.Value)
	if s.Value == "" || s.Value == "-1" {
		return nil
	}
	switch s.Sign {
	case '+':
		if own == nil {
			own = have
		}
		words = append(slices.Clone(own), words...)
	case '-':
		if own == nil {
			own = have
		}
		words = slices.DeleteFunc(slices.Clone(own), func(w string) bool { return slices.Contains(words, w) })
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// setQOSKey sets one key of a QOS.
func setQOSKey(q *cluster.QOS, s front.Setting) (label string, known bool, err error) {
	number := func(to *float64) error {
		n, err := strconv.ParseFloat(s.Value, 64)
		if err != nil {
			return fmt.Errorf(" Invalid value for %s (%s): it is a number", s.Key, s.Value)
		}
		*to = n
		return nil
	}
	switch {
	case front.IsKey(s.Key, 3, "priority"):
		n, err := limitNumber(s.Key, s.Value)
		q.Priority = int(max(n, 0))
		return "Priority", true, err
	case front.IsKey(s.Key, 3, "description"):
		q.Description = strings.ToLower(s.Value)
		return "Description", true, nil
	case front.IsKey(s.Key, 2, "flags"):
		return "Flags", true, setFlags(q, s)
	case front.IsKey(s.Key, 3, "gracetime"):
		n, err := limitNumber(s.Key, s.Value)
		q.GraceTime = time.Duration(max(n, 0)) * time.Second
		return "GraceTime", true, err
	case s.Key == "preempt":
		q.Preempt = changeList(q.Preempt, nil, s)
		return "Preempt", true, nil
	case s.Key == "preemptmode":
		if q.PreemptMode = strings.ToUpper(s.Value); q.PreemptMode == "CLUSTER" || s.Value == "-1" {
			q.PreemptMode = ""
		} else if _, _, err := cluster.ParsePreemptMode(s.Value); err != nil {
			return "", true, fmt.Errorf(" %w", err)
		}
		return "PreemptMode", true, nil
	case s.Key == "preemptexempttime":
		d, ok := values.ParseTimeLimit(s.Value)
		if !ok {
			return "", true, fmt.Errorf(" Invalid value for %s (%s): it is a time", s.Key, s.Value)
		}
		q.PreemptExempt = d
		return "PreemptExemptTime", true, nil
	case s.Key == "usageresetperiod":
		return "UsageResetPeriod", true, setPeriod(&q.UsageReset, s)
	case front.IsKey(s.Key, 6, "usagefactor"):
		return "UsageFactor", true, number(&q.UsageFactor)
	case front.IsKey(s.Key, 6, "usagethreshold"):
		q.UsageThreshold = new(float64)
		return "UsageThreshold", true, number(q.UsageThreshold)
	case s.Key == "limitfactor":
		q.LimitFactor = new(float64)
		return "LimitFactor", true, number(q.LimitFactor)
	}
	return setLimitKey(&q.Limits, true, s.Key, s.Value)
}

// setPeriod reads how often usage is set to zero; NONE is as the cluster's PriorityUsageResetPeriod says.
func setPeriod(to *cluster.Period, s front.Setting) error {
	p := cluster.Period(strings.ToUpper(s.Value))
	if p == "NONE" || p == "-1" {
		p = cluster.ResetNever
	} else if !slices.Contains(cluster.Periods(), p) {
		return fmt.Errorf(" Invalid value for %s (%s): it is NONE, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY; RawUsage=0 sets usage to zero now",
			s.Key, s.Value)
	}
	*to = p
	return nil
}
