package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Line returns the options and arguments for sbatch, without the name of the script: those on the command line take
// precedence over #SBATCH lines, as the record may have been changed since. ids maps numbers of moved jobs.
func (j *Job) Line(ids map[cluster.JobID]cluster.JobID, now time.Time, loc *time.Location) ([]string, error) {
	var out []string
	known := strings.Fields(neutral)
	for _, o := range fieldOptions() {
		known = append(known, o.field)
		value, there := j.Fields[o.field]
		if !there || value == "" || slices.Contains(strings.Fields(o.nothing), value) || o.option == "" {
			continue
		}
		if o.option == "-" {
			return nil, fmt.Errorf("%s=%s is not supported", o.field, value)
		}
		out = append(out, "--"+o.option+"="+plain(value))
	}
	for key, value := range j.Fields {
		if !slices.Contains(known, key) && !slices.Contains([]string{"", "(null)", "N/A", "0", "No"}, value) {
			return nil, fmt.Errorf("the field %s=%s is unknown", key, value)
		}
	}
	out = append(out, j.counts()...)
	tres, err := j.tres()
	if err != nil {
		return nil, err
	}
	out = append(out, tres...)
	begin := j.Fields["EligibleTime"]
	if at, _ := time.ParseInLocation("2006-01-02T15:04:05", begin, loc); at.After(now) {
		out = append(out, "--begin="+begin)
	}
	if text := j.Fields["Dependency"]; text != "" && text != "(null)" {
		out = append(out, "--dependency="+renumber(text, ids))
	}
	return out, nil
}

// plain mends values that scontrol prints otherwise than sbatch reads them: the number of no task, and no time.
func plain(value string) string {
	const noTask, noTime = "4294967294", "@00:00:00"
	return strings.ReplaceAll(strings.TrimSuffix(value, noTime), noTask, "%a")
}

// counts are the options about nodes, tasks and sharing.
func (j *Job) counts() (out []string) {
	f := j.Fields
	nodes := 1
	if least, _, given := strings.Cut(f["NumNodes"], "-"); given {
		nodes, _ = strconv.Atoi(least)
		out = append(out, "--nodes="+f["NumNodes"])
	}
	perNode, _, _ := strings.Cut(f["NtasksPerN:B:S:C"], ":")
	per, _ := strconv.Atoi(perNode)
	if per > 0 {
		out = append(out, "--ntasks-per-node="+perNode)
	}
	if tasks, _ := strconv.Atoi(f["NumTasks"]); tasks > 0 && tasks != nodes*max(per, 1) {
		out = append(out, "--ntasks="+f["NumTasks"])
	}
	if cpus := f["CPUs/Task"]; cpus != "" && cpus != "1" && cpus != "N/A" {
		out = append(out, "--cpus-per-task="+cpus)
	}
	if tasks := f["ArrayTaskId"]; tasks != "" {
		out = append(out, "--array="+tasks)
	}
	if _, newer := f["Exclusive"]; !newer && f["OverSubscribe"] == "NO" { // newer releases print NO for most jobs
		out = append(out, "--exclusive")
	}
	for _, w := range valueOptions() {
		if f[w.field] == w.value {
			out = append(out, w.option)
		}
	}
	return out
}

// valueOption is an option for a single value of a field.
type valueOption struct{ field, value, option string }

func valueOptions() []valueOption {
	return []valueOption{
		{"Exclusive", "NODE", "--exclusive"},
		{"Exclusive", "YES", "--exclusive"},
		{"Exclusive", "USER", "--exclusive=user"},
		{"OverSubscribe", "USER", "--exclusive=user"},
		{"OverSubscribe", "YES", "--oversubscribe"},
		{"Contiguous", "1", "--contiguous"},
		{"Reboot", "1", "--reboot"},
		{"Requeue", "0", "--no-requeue"},
		{"Requeue", "1", "--requeue"},
	}
}

// tresOption is a field about generic resources: its option for GPUs, or that for any.
type tresOption struct{ field, gpus, all string }

func tresOptions() []tresOption {
	return []tresOption{
		{"TresPerJob", "gpus", ""},
		{"TresPerNode", "", "gres"},
		{"TresPerSocket", "gpus-per-socket", ""},
		{"TresPerTask", "gpus-per-task", ""},
		{"CpusPerTres", "cpus-per-gpu", ""},
		{"MemPerTres", "mem-per-gpu", ""},
	}
}

// tres are the options about generic resources: gres:gpu:h100:4 or gres/gpu:h100:4.
func (j *Job) tres() (out []string, err error) {
	for _, p := range tresOptions() {
		value := j.Fields[p.field]
		if value == "" || value == "(null)" {
			continue
		}
		var words []string
		for w := range strings.SplitSeq(value, ",") {
			bare := strings.TrimPrefix(strings.TrimPrefix(w, "gres:"), "gres/")
			bare = strings.Replace(bare, "=", ":", 1)
			gpus, isGPU := strings.CutPrefix(bare, "gpu:")
			switch {
			case p.field == "TresPerTask" && strings.HasPrefix(bare, "cpu:"):
				continue
			case p.all != "":
				words = append(words, bare)
			case isGPU:
				words = append(words, gpus)
			default:
				return nil, fmt.Errorf("%s=%s is not supported", p.field, value)
			}
		}
		if len(words) > 0 {
			out = append(out, "--"+cmp.Or(p.gpus, p.all)+"="+strings.Join(words, ","))
		}
	}
	return out, nil
}

// Args are the arguments of the script. scontrol prints them without quotes, so that one with a blank becomes two.
func (j *Job) Args() []string {
	words := strings.Fields(j.Fields["Command"])
	if len(words) < 2 {
		return nil
	}
	return words[1:]
}
