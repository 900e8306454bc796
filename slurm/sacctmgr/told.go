package sacctmgr

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// mgrLabel is what sacctmgr calls a limit when it tells what it sets, in the order in which it tells.
type mgrLabel struct {
	limit, label string
	width        int // other than the width of the rest
}

func assocLabels() []mgrLabel {
	return []mgrLabel{{"GrpJobs", "GrpJobs", 0}, {"GrpJobsAccrue", "GrpJobsAccrue", 25},
		{"GrpSubmitJobs", "GrpSubmitJobs", 0}, {"GrpTRES", "GrpTRES", 0},
		{"GrpTRESMins", "GrpTRESMins", 0}, {"GrpTRESRunMins", "GrpTRESRunMins", 0},
		{"GrpWall", "GrpWall", 0}, {"MaxJobs", "MaxJobs", 0},
		{"MaxJobsAccrue", "MaxJobsPrioAcc", 0}, {"MaxSubmitJobs", "MaxSubmitJobs", 0},
		{"MaxTRES", "MaxTRES", 0}, {"MaxTRESPerNode", "MaxTRESPerNode", 0},
		{"MaxTRESMins", "MaxTRESMins", 0}, {"MaxWall", "MaxWall", 0}, {"MinPrioThreshold", "MinPrioThresh", 0}}
}

func qosLabels() []mgrLabel {
	return []mgrLabel{{"GrpJobs", "GrpJobs", 0}, {"GrpJobsAccrue", "GrpJobsAccrue", 0},
		{"GrpSubmitJobs", "GrpSubmitJobs", 0}, {"GrpTRES", "GrpTRES", 0},
		{"GrpTRESMins", "GrpTRESMins", 0}, {"GrpTRESRunMins", "GrpTRESRunMins", 0},
		{"GrpWall", "GrpWall", 0}, {"MaxJobsAccruePerAccount", "MaxJobsAccruePerAccount", 0},
		{"MaxJobsAccruePerUser", "MaxJobsAccruePerUser", 0}, {"MaxJobsPerAccount", "MaxJobsPerAccount", 0},
		{"MaxJobsPerUser", "MaxJobsPerUser", 15},
		{"MaxSubmitJobsPerAccount", "MaxSubmitJobsPerAccount", 0},
		{"MaxSubmitJobsPerUser", "MaxSubmitJobsPerUser", 0}, {"MaxTRESPerAccount", "MaxTRESPerAccount", 0},
		{"MaxTRES", "MaxTRESPerJob", 0}, {"MaxTRESPerNode", "MaxTRESPerNode", 0},
		{"MaxTRESPerUser", "MaxTRESPerUser", 0}, {"MinPrioThreshold", "MinPrioThresh", 0},
		{"MinTRES", "MinTRESPerJob", 0}, {"MaxTRESMins", "MaxTRESMins", 0},
		{"MaxTRESRunMinsPerAccount", "MaxTRESRUNMinsPerAccount", 0},
		{"MaxTRESRunMinsPerUser", "MaxTRESRUNMinsPerUser", 0}, {"MaxWall", "MaxWall", 0}}
}

// told is a list of settings as sacctmgr prints them.
type told struct {
	width int
	lines []string
}

func (t *told) add(label, value string, width int) {
	t.lines = append(t.lines, fmt.Sprintf("  %-*s= %s", cmp.Or(width, t.width), label, value))
}

// limits tells of those that are set; what was named and is not set is NONE.
func (t *told) limits(rows []mgrLabel, l cluster.Limits, named []string) {
	for _, r := range rows {
		if text := limitValue(l, r.limit); text != "" {
			t.add(r.label, text, r.width)
		} else if slices.Contains(named, r.limit) {
			t.add(r.label, "NONE", r.width)
		}
	}
}

// limitValue is one limit in words: a time, resources, or a number.
func limitValue(l cluster.Limits, name string) string {
	n, ok := l.Get(name, "")
	if ok && (name == "GrpWall" || name == "MaxWall") {
		return format.Padded(time.Duration(n) * time.Second)
	}
	return show.LimitText(l, name)
}

// assocTold tells what is set of an association; named are the settings that were given.
func assocTold(a *cluster.Association, named []string, parent string) []string {
	t := &told{width: 14}
	if slices.Contains(named, "Fairshare") {
		t.add("Fairshare", sharesText(a), 0)
	}
	t.limits(assocLabels(), a.Limits, named)
	if parent != "" {
		t.add("Parent", parent, 0)
	}
	if a.Priority > 0 {
		t.add("Priority", strconv.Itoa(a.Priority), 0)
	}
	if a.QOS != nil {
		t.add("QOS", strings.Join(a.QOS, ","), 0)
	}
	if a.DefaultQOS != "" {
		t.add("DefQOS", a.DefaultQOS, 0)
	}
	return t.lines
}

func sharesText(a *cluster.Association) string {
	if a.Shares == cluster.ShareParent {
		return "parent"
	}
	return strconv.Itoa(a.Shares)
}

// qosTold tells what is set of a QOS.
func qosTold(q *cluster.QOS, named []string) []string {
	t := &told{width: 25}
	four := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
	if q.Flags != nil {
		t.add("Flags", strings.Join(q.Flags, ","), 0)
	}
	if slices.Contains(named, "GraceTime") {
		t.add("GraceTime", strconv.Itoa(int(q.GraceTime/time.Second)), 0)
	}
	t.limits(qosLabels(), q.Limits, nil)
	if q.Preempt != nil {
		t.add("Preempt", strings.Join(q.Preempt, ","), 0)
	}
	if q.PreemptMode != "" {
		t.add("PreemptMode", q.PreemptMode, 0)
	}
	if q.PreemptExempt > 0 {
		t.add("PreemptExemptTime", format.Padded(q.PreemptExempt), 0)
	}
	if slices.Contains(named, "Priority") {
		t.add("Priority", strconv.Itoa(q.Priority), 0)
	}
	if slices.Contains(named, "UsageFactor") {
		t.add("UsageFactor", four(q.UsageFactor), 0)
	}
	if q.UsageReset != "" {
		t.add("UsageResetPeriod", string(q.UsageReset), 0)
	}
	if q.UsageThreshold != nil {
		t.add("UsageThreshold", four(*q.UsageThreshold), 0)
	}
	if q.LimitFactor != nil {
		t.add("LimitFactor", four(*q.LimitFactor), 0)
	}
	return t.lines
}

// qosFlags are the flags of QOS in Slurm's order.
func qosFlags() []string {
	return []string{"DenyOnLimit", "EnforceUsageThreshold", "NoReserve", "PartitionMaxNodes",
		"PartitionMinNodes", "OverPartQOS",
		"PartitionTimeLimit", "RequiresReservation", "NoDecay", "UsageFactorSafe"}
}

// setFlags changes the flags of a QOS.
func setFlags(q *cluster.QOS, s front.Setting) error {
	if s.Value == "-1" {
		q.Flags = nil
		return nil
	}
	words := front.SplitList(s.Value)
	has := func(list []string, f string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return strings.EqualFold(w, f) })
	}
	for _, w := range words {
		if !has(qosFlags(), w) {
			return fmt.Errorf(" Unknown QOS flag used in:\n  '%s'\n Valid QOS flags are\n  '%s'", s.Value,
				strings.Join(qosFlags(), ","))
		}
	}
	var out []string
	for _, f := range qosFlags() {
		old, now := has(q.Flags, f), has(words, f)
		if s.Sign == '-' && old && !now || s.Sign == '+' && (old || now) || s.Sign == 0 && now {
			out = append(out, f)
		}
	}
	q.Flags = out
	return nil
}
