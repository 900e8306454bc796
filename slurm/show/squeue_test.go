package show

import (
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

func BenchmarkSqueueRows(b *testing.B) {
	f := slurmtest.New()
	v := &View{Now: slurmtest.Clock}
	var jobs []*cluster.Job
	for i := range 10_000 {
		j := *f.Jobs[i%len(f.Jobs)]
		j.ID += cluster.JobID(i)
		jobs = append(jobs, &j)
	}
	o := &queueOptions{allStates: true}
	for b.Loop() {
		rows := o.rows(v, jobs)
		sortRows(rows, jobColumns(), jobOrders[:], o.defaultSort())
		f, _ := o.jobFormat()
		var line []byte
		for i := range rows {
			line = append(f.Row(line[:0], &rows[i]), '\n')
		}
	}
}

// TestCombined: what waits of one array in one partition is one line, unless -r or a task is asked for.
func TestCombined(t *testing.T) {
	spec := func(part string) *cluster.JobSpec {
		return &cluster.JobSpec{
			Layout: &cluster.Layout{}, Partitions: []string{part}, Array: &cluster.ArraySpec{Limit: 2},
		}
	}
	jobs := []*cluster.Job{
		{ID: 13, ArrayID: 10, Task: 3, Spec: spec("train"), Wait: cluster.WaitHeldAdmin},
		{
			ID: 10, ArrayID: 10, Task: cluster.TaskAny, Tasks: cluster.RangeIDSet(4, 9),
			Spec: spec("train"), Wait: cluster.WaitBegin,
		},
		{ID: 11, ArrayID: 10, Task: 1, Spec: spec("debug")},
		{ID: 12, ArrayID: 10, Task: 2, Spec: spec("train"), Phase: cluster.Running},
		{
			ID: 14, Task: cluster.TaskAny,
			Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: []string{"train"}},
		},
	}
	for name, c := range map[string]struct {
		o    queueOptions
		want string
	}{
		"joined": {queueOptions{}, "10_[3-9] BeginTime,JobHeldAdmin; 10_1 None; 10_2 None; 14 None"},
		"-r": {
			queueOptions{perTask: true},
			"10_3 JobHeldAdmin; 10_[4-9%2] BeginTime; 10_1 None; 10_2 None; 14 None",
		},
		"-j of task": {
			queueOptions{query: api.JobQuery{Refs: []cluster.Ref{{Job: 10, Tasks: cluster.NewIDSet(4)}}}},
			"10_3 JobHeldAdmin; 10_[4-9%2] BeginTime; 10_1 None; 10_2 None; 14 None",
		},
	} {
		var got []string
		for _, j := range c.o.combined(jobs) {
			r := NewRow(nil, j)
			got = append(got, r.ShownID()+" "+r.Reason())
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
		r := JobRow{Job: &cluster.Job{Spec: &cluster.JobSpec{Layout: &c.spec}}}
		if got := r.NumNodes(); got != c.want {
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
		"nothing":          {nil, devices, "cpu:2 gres:gpu:4   "},
		"of a job without": {&cluster.StepAsked{CPUsPerTask: 2}, cluster.IDSet{}, "    "},
		"-c2":              {&cluster.StepAsked{CPUsPerTask: 2}, devices, "cpu:4 gres:gpu:4 cpu:2  "},
		"--gpus":           {&cluster.StepAsked{PerJob: gpus(2)}, devices, "cpu:2,gres:gpu:2 gres:gpu:4   "},
		"--gpus-per-task": {
			&cluster.StepAsked{PerTask: gpus(1)}, devices, "cpu:2 gres:gpu:4 gres:gpu:1 gpu:per_task:1 ",
		},
		"--cpus-per-gpu":  {&cluster.StepAsked{PerJob: gpus(2), CPUsPerGPU: 3}, devices, "cpu:6,gres:gpu:2 gres:gpu:4   "},
		"one CPU per GPU": {&cluster.StepAsked{CPUsPerGPU: 1}, devices, "cpu:2 gres:gpu:4   "},
		"CPUs of the GPUs of tasks": {
			&cluster.StepAsked{PerTask: gpus(1), CPUsPerGPU: 2}, devices, " gres:gpu:4 gres:gpu:1 gpu:per_task:1 ",
		},
		"--gres": {&cluster.StepAsked{PerNode: gpus(2)}, devices, "cpu:2 gres:gpu:2   "},
		"bound, memory": {
			&cluster.StepAsked{GPUBind: "none", MemPerGPU: 10}, devices,
			"cpu:2 gres:gpu:4  gpu:none gres:gpu:10",
		},
		"bound with a word": {&cluster.StepAsked{GPUBind: "gpu:closest"}, devices, "cpu:2 gres:gpu:4  gpu:closest "},
	} {
		s := &StepRow{Step: &cluster.Step{Tasks: 2, Asked: c.asked, Shares: []cluster.Share{{GPUs: c.devices}}}}
		s.Job.Job = &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{PerNode: gpus(4)}}}
		got := strings.Join([]string{s.PerStep(), s.PerNode(), s.PerTask(), s.TRESBind(), s.MemPerTRES()}, " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestReasonNamesNodes: the nodes that a job names and that are out of service are one host list.
func TestReasonNamesNodes(t *testing.T) {
	for note, want := range map[string]string{"[n7 n8]": "ReqNodeNotAvail, UnavailableNodes:n[7-8]",
		"n7":                       "ReqNodeNotAvail, UnavailableNodes:n7",
		"Reserved for maintenance": "ReqNodeNotAvail, Reserved for maintenance", "": "ReqNodeNotAvail"} {
		r := &JobRow{Job: &cluster.Job{Wait: cluster.WaitNodeNotAvail, WaitNote: note, Spec: &cluster.JobSpec{}}}
		if got := r.Reason(); got != want {
			t.Errorf("%q: %q, want %q", note, got, want)
		}
	}
}
