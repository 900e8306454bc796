package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// priorityKey sets one key about priorities or accounts; key is lower case. known says whether it is one.
func priorityKey(c *cluster.Config, key, value string) (known bool, err error) {
	p := &c.Priority
	weight := map[string]*uint32{"age": &p.Weights.Age, "assoc": &p.Weights.Assoc, "fairshare": &p.Weights.FairShare,
		"jobsize": &p.Weights.Size, "partition": &p.Weights.Partition, "qos": &p.Weights.QOS}
	if name, ok := strings.CutPrefix(key, "priorityweight"); ok && weight[name] != nil {
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return true, fmt.Errorf("%s=%s is not a weight: want a number from 0 to 4294967295", key, value)
		}
		*weight[name] = uint32(n)
		return true, nil
	}
	switch key {
	case "priorityweighttres":
		p.Weights.TRES, err = weights(key, value, false)
	case "fairsharedampeningfactor":
		err = number(&p.Dampening, key, value)
	case "prioritytype":
		return true, setPriorityType(p, value)
	case "prioritymaxage":
		err = setTime(&p.MaxAge, key, value)
	case "prioritydecayhalflife":
		err = setTime(&p.HalfLife, key, value)
	case "prioritycalcperiod":
		err = setTime(&p.CalcPeriod, key, value)
	case "priorityusageresetperiod":
		return true, setReset(p, value)
	case "priorityfavorsmall":
		err = yes(&p.FavorSmall, key, value)
	case "priorityflags":
		return true, setPriorityFlags(p, value)
	case "accountingstorageenforce":
		return true, setEnforce(&c.Enforce, value)
	case "trackwckey":
		err = yes(&c.TrackWCKey, key, value)
	case "priorityparameters":
		for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
			if p.RefundFaults = p.RefundFaults || word == "refund_faults"; word != "refund_faults" {
				err = fmt.Errorf("priorityparameters=%s is not known: want refund_faults", word)
			}
		}
	case "accountingstoragetres":
		c.TRES = strings.Split(strings.ToLower(value), ",")
	default:
		return false, nil
	}
	return true, err
}

func setPriorityType(p *cluster.PriorityConfig, value string) error {
	switch strings.ToLower(value) {
	case "priority/multifactor":
		p.Multifactor = true
	case "priority/basic":
		p.Multifactor = false
	default:
		return fmt.Errorf("prioritytype=%s is not known: want priority/multifactor or priority/basic", value)
	}
	return nil
}

func setReset(p *cluster.PriorityConfig, value string) error {
	period := cluster.Period(strings.ToUpper(value))
	switch period {
	case "NONE":
		period = cluster.ResetNever
	case cluster.ResetNow, cluster.ResetDaily, cluster.ResetWeekly, cluster.ResetMonthly, cluster.ResetQuarterly, cluster.ResetYearly:
	default:
		return fmt.Errorf("priorityusageresetperiod=%s is not known: want NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY",
			value)
	}
	p.UsageReset = period
	return nil
}

// setPriorityFlags reads the flags; all that are known count, and the others are told of.
func setPriorityFlags(p *cluster.PriorityConfig, value string) error {
	flags := map[string][]*bool{"ACCRUE_ALWAYS": {&p.AccrueAlways},
		"CALCULATE_RUNNING": {&p.CalculateRunning}, "INCR_ONLY": {&p.IncrOnly},
		"MAX_TRES": {&p.MaxTRES}, "MAX_TRES_GRES": {&p.MaxTRESGRES}, "NO_FAIR_TREE": {&p.NoFairTree},
		"SMALL_RELATIVE_TO_TIME": {&p.SmallRelativeToTime},
		"NO_NORMAL_ASSOC":        {&p.RawAssoc}, "NO_NORMAL_PART": {&p.RawPart},
		"NO_NORMAL_QOS": {&p.RawQOS}, "NO_NORMAL_TRES": {&p.RawTRES},
		"NO_NORMAL_ALL": {&p.RawAssoc, &p.RawPart, &p.RawQOS, &p.RawTRES}, "FAIR_TREE": {}}
	var bad []string
	for _, w := range strings.Split(strings.ToUpper(value), ",") {
		set, known := flags[w]
		if !known {
			bad = append(bad, w)
		}
		for _, b := range set {
			*b = true
		}
	}
	if bad != nil {
		return fmt.Errorf("priorityflags: %s has no effect", strings.Join(bad, ","))
	}
	return nil
}

// setEnforce reads what of accounts binds users. All of them need associations, safe needs limits.
func setEnforce(e *cluster.Enforce, value string) error {
	*e = cluster.Enforce{}
	var bad []string
	for _, w := range strings.Split(strings.ToLower(value), ",") {
		switch w {
		case "associations":
			e.Associations = true
		case "limits":
			e.Associations, e.Limits = true, true
		case "safe":
			e.Associations, e.Limits, e.Safe = true, true, true
		case "qos":
			e.Associations, e.QOS = true, true
		case "wckeys":
			e.Associations, e.WCKeys = true, true
		case "all":
			*e = cluster.Enforce{Associations: true, Limits: true, QOS: true, Safe: true, WCKeys: true}
		case "1":
			e.Associations = true
		case "0", "none", "":
		default:
			bad = append(bad, w)
		}
	}
	if bad != nil {
		return fmt.Errorf("accountingstorageenforce: %s has no effect", strings.Join(bad, ","))
	}
	return nil
}

// megabytes is what one of a unit is in MB, behind a weight of memory; 0: there is no such unit.
func megabytes(unit byte) float64 {
	switch unit &^ 0x20 {
	case 'K':
		return 1.0 / 1024
	case 'M':
		return 1
	case 'G':
		return 1 << 10
	case 'T':
		return 1 << 20
	case 'P':
		return 1 << 30
	}
	return 0
}

// weights reads CPU=1.0,Mem=0.25G,GRES/gpu=2.0. A unit behind the weight of memory says what it is the weight of.
func weights(key, value string, units bool) (out []cluster.Amount, err error) {
	for _, w := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
		name, text, _ := strings.Cut(w, "=")
		name, per := strings.ToLower(name), 1.0
		if n := len(text); units && n > 0 && megabytes(text[n-1]) != 0 {
			per, text = megabytes(text[n-1]), text[:n-1]
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x < 0 {
			return nil, fmt.Errorf("%s=%s: %s is not a weight such as cpu=1.0 or gres/gpu=2", key, value, w)
		}
		if slices.ContainsFunc(out, func(a cluster.Amount) bool { return a.TRES == name }) {
			return nil, fmt.Errorf("%s=%s: %s is there twice", key, value, name)
		}
		out = append(out, cluster.Amount{TRES: name, N: x / per})
	}
	return out, nil
}

// maxPeriod is as long as a period can be.
const maxPeriod = 10 * 365 * 24 * time.Hour

// settlePriority gives times that make no sense Slurm's own.
func settlePriority(p *cluster.PriorityConfig) {
	if p.MaxAge <= 0 || p.MaxAge > maxPeriod {
		p.MaxAge = maxPeriod
	}
	if p.HalfLife > maxPeriod { // UNLIMITED: it never fades
		p.HalfLife = 0
	}
	p.CalcPeriod = min(max(p.CalcPeriod, time.Second), maxPeriod)
}
