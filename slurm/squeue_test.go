package slurm

import (
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// TestCombined: what waits of one array in one partition is one line, unless -r or a task is asked for.
func TestCombined(t *testing.T) {
	spec := func(part string) *cluster.JobSpec {
		return &cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: []string{part}, Array: &cluster.ArraySpec{Limit: 2}}
	}
	jobs := []*cluster.Job{
		{ID: 13, ArrayID: 10, Task: 3, Spec: spec("train"), Wait: cluster.WaitHeldAdmin},
		{ID: 10, ArrayID: 10, Task: cluster.TaskAny, Tasks: cluster.RangeIDSet(4, 9), Spec: spec("train"), Wait: cluster.WaitBegin},
		{ID: 11, ArrayID: 10, Task: 1, Spec: spec("debug")},
		{ID: 12, ArrayID: 10, Task: 2, Spec: spec("train"), Phase: cluster.Running},
		{ID: 14, Task: cluster.TaskAny, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: []string{"train"}}},
	}
	for name, c := range map[string]struct {
		o    queueOptions
		want string
	}{
		"joined":     {queueOptions{}, "10_[3-9] BeginTime,JobHeldAdmin; 10_1 None; 10_2 None; 14 None"},
		"-r":         {queueOptions{perTask: true}, "10_3 JobHeldAdmin; 10_[4-9%2] BeginTime; 10_1 None; 10_2 None; 14 None"},
		"-j of task": {queueOptions{query: api.JobQuery{Refs: []cluster.Ref{{Job: 10, Tasks: cluster.NewIDSet(4)}}}}, "10_3 JobHeldAdmin; 10_[4-9%2] BeginTime; 10_1 None; 10_2 None; 14 None"},
	} {
		var got []string
		for _, j := range c.o.combined(jobs) {
			r := newRow(nil, j)
			got = append(got, r.id()+" "+r.reason())
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: %s\nwant %s", name, text, c.want)
		}
	}
}

func TestBadSort(t *testing.T) {
	for sort, want := range map[string]string{"": "", "P,-i": "", "#P,+t": "", "%": "%", "-P,%": "%", "bogus": "s"} {
		if got := (&queueOptions{sort: sort}).badSort(); got != want {
			t.Errorf("--sort=%s: %q, want %q", sort, got, want)
		}
	}
}

// TestSacctFilters: the values of sacct's filters, and how wrong ones are refused.
func TestSacctFilters(t *testing.T) {
	for _, c := range []struct {
		set  func(*sacctOptions, string) error
		v    string
		want string
	}{
		{setSacctFlags, "SchedMain,schedbackfill", ""},
		{setSacctFlags, "nope", "sacct: error: str_2_job_flags: Invalid job flag nope"},
		{setSacctGroups, "0", ""},
		{setSacctGroups, "nogroup_x", "sacct: error: Invalid group id: nogroup_x"},
		{setSacctUnits, "g", ""},
		{setSacctUnits, "X", "sacct: error: Invalid unit type 'X'. Possible options are 'KMGTP'\nsacct: fatal: Invalid unit type"},
		{func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "1-2", ""},
		{func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "x", "sacct: error: Invalid numeric value \"x\" for requested cpu range."},
		{func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "1:00:00", ""},
		{func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "abc", "sacct: fatal: Invalid time limit specification"},
	} {
		var o sacctOptions
		got := ""
		if err := c.set(&o, c.v); err != nil {
			got = strings.Join(err.(*opt.UsageError).Lines, "\n")
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.v, got, c.want)
		}
	}
}

// TestSacctShows: -j JOB.STEP selects that step alone.
func TestSacctShows(t *testing.T) {
	job := &cluster.Job{ID: 5}
	rows := map[string]acctRow{"5": {jobRow: jobRow{Job: job}}}
	for name, n := range map[string]int{"5.batch": cluster.BatchStep, "5.extern": cluster.ExternStep, "5.0": 0, "5.1": 1} {
		rows[name] = acctRow{jobRow: jobRow{Job: job}, step: &cluster.Step{ID: cluster.StepID{Job: 5, Step: n}}}
	}
	for list, want := range map[string]string{"5": "5 5.batch 5.extern 5.0 5.1", "5.1": "5.1", "5.batch,5.0": "5.batch 5.0", "5.0,5": "5 5.batch 5.extern 5.0 5.1", "6": "5 5.batch 5.extern 5.0 5.1"} {
		var o sacctOptions
		if err := setSacctJobs(&o, list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"5", "5.batch", "5.extern", "5.0", "5.1"} {
			if r := rows[name]; o.shows(&r) {
				got = append(got, name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("-j %s: %s, want %s", list, text, want)
		}
	}
}

// TestNodesOfPending: a job that waits is told to want as many nodes as it names, or its tasks need.
func TestNodesOfPending(t *testing.T) {
	for _, c := range []struct {
		spec cluster.Layout
		want int
	}{
		{cluster.Layout{}, 1},
		{cluster.Layout{MinNodes: 3}, 3},
		{cluster.Layout{NodeList: []cluster.NodeName{"n1", "n2"}, TasksPerNode: 8}, 2},
		{cluster.Layout{Tasks: 9, TasksPerNode: 4}, 3},
	} {
		r := jobRow{Job: &cluster.Job{Spec: &cluster.JobSpec{Layout: &c.spec}}}
		if got := r.numNodes(); got != c.want {
			t.Errorf("%+v: %d nodes, want %d", c.spec, got, c.want)
		}
	}
}

// TestStepRequest: what a step asked for of GPUs, as 22.05 tells it.
func TestStepRequest(t *testing.T) {
	gpus := func(n int64) []cluster.GRES { return []cluster.GRES{{Name: "gpu", Count: n}} }
	devices := cluster.NewIDSet(0, 1)
	for name, c := range map[string]struct {
		asked   *cluster.StepAsked
		devices cluster.IDSet
		want    string
	}{
		"nothing":           {nil, devices, "cpu:2 gres:gpu:4   "},
		"of a job without":  {&cluster.StepAsked{CPUsPerTask: 2}, cluster.IDSet{}, "    "},
		"-c2":               {&cluster.StepAsked{CPUsPerTask: 2}, devices, "cpu:4 gres:gpu:4 cpu:2  "},
		"--gpus":            {&cluster.StepAsked{PerJob: gpus(2)}, devices, "cpu:2,gres:gpu:2 gres:gpu:4   "},
		"--gpus-per-task":   {&cluster.StepAsked{PerTask: gpus(1)}, devices, "cpu:2 gres:gpu:4 gres:gpu:1 gpu:per_task:1 "},
		"--gres":            {&cluster.StepAsked{PerNode: gpus(2)}, devices, "cpu:2 gres:gpu:2   "},
		"bound, memory":     {&cluster.StepAsked{GPUBind: "none", MemPerGPU: 10}, devices, "cpu:2 gres:gpu:4  gpu:none gres:gpu:10"},
		"bound with a word": {&cluster.StepAsked{GPUBind: "gpu:closest"}, devices, "cpu:2 gres:gpu:4  gpu:closest "},
	} {
		s := &stepRow{Step: &cluster.Step{Tasks: 2, Asked: c.asked, Shares: []cluster.Share{{GPUs: c.devices}}}}
		s.job.Job = &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{PerNode: gpus(4)}}}
		got := strings.Join([]string{s.perStep(), s.perNode(), s.perTask(), s.tresBind(), s.memPerTRES()}, " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
