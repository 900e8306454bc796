package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// preemptTypes are the values of PreemptType.
var preemptTypes = map[string]cluster.PreemptType{
	"preempt/none": cluster.PreemptNone, "preempt/partition_prio": cluster.PreemptTier,
	"preempt/qos": cluster.PreemptQOS,
}

// policyKey sets one key of those of priorityKey and preemptKey.
func policyKey(c *cluster.Config, key, value string) (known bool, err error) {
	if known, err = priorityKey(c, key, value); known {
		return known, err
	}
	return preemptKey(c, key, value)
}

// preemptKey sets one key about preemption; key is lower case. known says whether it is one.
func preemptKey(c *cluster.Config, key, value string) (known bool, err error) {
	p := &c.Preempt
	switch key {
	case "preempttype":
		kind, ok := preemptTypes[strings.ToLower(value)]
		if !ok {
			return true, fmt.Errorf("preempttype=%s is not known: want preempt/none, preempt/partition_prio or preempt/qos",
				value)
		}
		p.Type = kind
	case "preemptmode":
		return true, setPreemptMode(&p.Mode, value)
	case "preemptexempttime":
		if err := setTime(&p.Exempt, key, value); err != nil {
			return true, err
		}
		if p.Exempt == cluster.Unlimited { // -1: none
			p.Exempt = 0
		}
	case "schedulertimeslice":
		n, err := strconv.Atoi(value)
		if err != nil || n < minTurn || n > maxTurn {
			return true, fmt.Errorf("schedulertimeslice=%s: want a number of seconds from %d to %d", value,
				minTurn, maxTurn)
		}
		p.TurnLength = time.Duration(n) * time.Second
	case "preemptparameters":
		var bad []string
		for w := range strings.SplitSeq(value, ",") {
			if known, err := preemptWord(p, w); err != nil {
				return true, err
			} else if !known {
				bad = append(bad, w)
			}
		}
		if bad != nil {
			return true, fmt.Errorf("preemptparameters: %s has no effect", strings.Join(bad, ","))
		}
	default:
		return false, nil
	}
	return true, nil
}

// preemptWord sets one word of PreemptParameters.
func preemptWord(p *cluster.PreemptConfig, word string) (known bool, err error) {
	switch key, text, _ := strings.Cut(strings.ToLower(word), "="); key {
	case "youngest_first":
		p.Youngest = true
	case "strict_order":
		p.Reorders = 0
	case "reorder_count":
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxReorders {
			return true, fmt.Errorf("reorder_count=%s: want a number from 0 to %d", text, maxReorders)
		}
		p.Reorders = n
	case "least_lost_work":
		p.LeastLost = true
	case "checkpoint_grace":
		return true, setGrace(&p.CheckpointGrace, key, text)
	case "suspend_grace_time":
		return true, setGrace(&p.SuspendGrace, key, text)
	default:
		return false, nil
	}
	return true, nil
}

// setGrace reads a time in seconds; 0, which means none at all, becomes negative.
func setGrace(to *time.Duration, key, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxTurn {
		return fmt.Errorf("%s=%s: want a number of seconds from 0 to %d", key, text, maxTurn)
	}
	*to = time.Duration(n) * time.Second
	if n == 0 {
		*to = -1
	}
	return nil
}

// Bounds of a turn, in seconds.
const (
	minTurn = 5
	maxTurn = 65533
)

// maxReorders bounds how often a choice of jobs is made again.
const maxReorders = 100

// setPreemptMode keeps a PreemptMode as it is shown.
func setPreemptMode(to *string, value string) error {
	mode, flags, err := cluster.ParsePreemptMode(value)
	if err != nil {
		return err
	}
	if mode != cluster.PreemptOff || len(flags) == 0 {
		flags = append(flags, string(mode))
	}
	*to = strings.Join(flags, ",")
	return nil
}

// settlePreempt settles what depends on all lines: without a PriorityTier the tiers are the job factors.
func (r *reader) settlePreempt() {
	cfg := r.cfg
	if cfg.Preempt.Type == cluster.PreemptNone {
		return
	}
	says := func(p *cluster.Partition) bool {
		return cfg.PreemptModeText(p) != string(cluster.PreemptOff)
	}
	if !slices.ContainsFunc(cfg.Partitions, func(p cluster.Partition) bool { return says(&p) }) {
		r.notes = append(r.notes,
			fmt.Sprintf("PreemptType=preempt/%s without a PreemptMode: only jobs of a QOS that has one make room",
				cfg.Preempt.Type))
	}
	if cfg.Preempt.Type != cluster.PreemptTier || r.tiered {
		return
	}
	differ := false
	for i := range cfg.Partitions {
		p := &cfg.Partitions[i]
		differ = differ || p.PriorityJobFactor != cfg.Partitions[0].PriorityJobFactor
		p.PriorityTier = p.PriorityJobFactor
	}
	if differ {
		r.notes = append(r.notes,
			"PreemptType=preempt/partition_prio without any PriorityTier: PriorityJobFactor counts as the tier of partitions; set PriorityTier")
	}
}
