package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// schedulerWords are the words of SchedulerParameters that have an effect, with what they do. Those of preemption are
// as older versions of Slurm name them.
var schedulerWords = []schedulerWord{
	{burstTasks, func(_ *cluster.Config, _, text string) error { // see settleBurst
		if v, err := strconv.ParseUint(text, 10, 31); err != nil || v == 0 {
			return fmt.Errorf("is no number of tasks")
		}
		return nil
	}},
	{"assoc_limit_stop", func(c *cluster.Config, _, _ string) error { c.LimitStop = true; return nil }},
	{"bf_min_age_reserve", func(c *cluster.Config, _, text string) error {
		age, err := seconds(text)
		if err == nil {
			c.ReserveAge = &age
		}
		return err
	}},
	{"bf_min_prio_reserve", func(c *cluster.Config, _, text string) error {
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("is not a priority")
		}
		c.ReservePriority = uint32(v)
		return nil
	}},
	{"disable_job_shrink", func(c *cluster.Config, _, _ string) error { c.NoShrink = true; return nil }},
	{"enable_user_top", func(c *cluster.Config, _, _ string) error { c.UserTop = true; return nil }},
	{"kill_invalid_depend", func(c *cluster.Config, _, _ string) error { c.KillInvalidDepend = true; return nil }},
	{"max_switch_wait", func(c *cluster.Config, _, text string) error {
		wait, err := seconds(text)
		if err == nil {
			c.MaxSwitchWait = wait
		}
		return err
	}},
	{"nohold_on_prolog_fail", func(c *cluster.Config, _, _ string) error { c.NoPrologHold = true; return nil }},
	{"pack_serial_at_end", func(c *cluster.Config, _, _ string) error { c.SerialAtEnd = true; return nil }},
	{"permit_job_expansion", func(c *cluster.Config, _, _ string) error { c.Expand = true; return nil }},
	{"preempt_reorder_count", oldPreempt}, {"preempt_strict_order", oldPreempt}, {"preempt_youngest_first", oldPreempt},
	{"best_fit", func(c *cluster.Config, _, _ string) error { c.BestFit = true; return nil }},
	{"disable_best_fit", func(c *cluster.Config, _, _ string) error { c.NoBestFit = true; return nil }},
	{"reduce_completing_frag", func(c *cluster.Config, _, _ string) error { c.CompleteLocal = true; return nil }},
	{"fgd", func(c *cluster.Config, _, _ string) error { c.Gradient = true; return nil }},
	{"plan_whole_nodes", func(c *cluster.Config, _, _ string) error { c.PlanWhole = true; return nil }},
	{"shortest_first", func(c *cluster.Config, _, _ string) error { c.ShortestFirst = true; return nil }},
	{"strict_order", func(c *cluster.Config, _, _ string) error { c.StrictOrder = true; return nil }},
}

func oldPreempt(c *cluster.Config, word, _ string) error {
	_, err := preemptWord(&c.Preempt, strings.TrimPrefix(word, "preempt_"))
	return err
}

type schedulerWord struct {
	name string
	set  func(c *cluster.Config, word, text string) error
}

// needless are words that tune what muster does not have: pauses between Slurm's cycles and how much they look at.
// A cycle here follows each event and looks at all jobs; planned starts have no horizon.
var needless = []string{"batch_sched_delay", "bf_busy_nodes", "bf_continue", "bf_hetjob_immediate",
	"bf_hetjob_prio", "bf_interval",
	"bf_licenses", "bf_max_job_array_resv", "bf_max_job_assoc", "bf_max_job_part", "bf_max_job_start",
	"bf_max_job_test", "bf_max_job_user",
	"bf_max_job_user_part", "bf_max_time", "bf_node_space_size", "bf_one_resv_per_job", "bf_resolution",
	"bf_running_job_reserve", "bf_window",
	"bf_window_linear", "bf_yield_interval", "bf_yield_rpc_cnt", "bf_yield_sleep", "build_queue_timeout",
	"correspond_after_task_cnt",
	"default_queue_depth", "defer", "defer_batch", "max_depend_depth", "max_rpc_cnt", "max_sched_time",
	"partition_job_depth", "sched_interval",
	"sched_max_job_start", "sched_min_interval", "step_retry_count", "step_retry_time"}

func seconds(text string) (time.Duration, error) {
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("is not a number of seconds")
	}
	return time.Duration(v) * time.Second, nil
}

// scheduler reads SchedulerParameters or DependencyParameters. One note lists the parameters without effect.
func (r *reader) scheduler(file string, n int, p pair) {
	key, value := p.key, p.value
	var tune []string
	key = strings.NewReplacer("scheduler", "Scheduler", "dependency", "Dependency", "parameters",
		"Parameters").Replace(key)
	for word := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(word), "=")
		name = strings.ToLower(name)
		k := slices.IndexFunc(schedulerWords, func(w schedulerWord) bool { return w.name == name })
		switch {
		case name == "":
		case k >= 0:
			if err := schedulerWords[k].set(r.cfg, word, text); err != nil {
				r.note(file, n, "%s: %s %v; ignored", key, word, err)
			}
		case slices.Contains(needless, name):
			tune = append(tune, name)
		default:
			r.param(file, n, paramKeyOf("SchedulerParameters"), word)
		}
	}
	if tune != nil {
		r.note(file, n, "%s: not needed, as each event is followed by a cycle over all jobs: %s", key,
			strings.Join(tune, ", "))
	}
}
