package server

import (
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// TestIdle: a job's GPUs are idle since the first sample below the bound after the last above it, and
// after its start; what is not heard of for a while is not known; a job counts by the time of its
// partition.
func TestIdle(t *testing.T) {
	s, _ := pageServer(t, 1, 1)
	snap := s.snapshot()
	j, _ := snap.Job(1)
	h := newSamples()
	began := j.Started.Truncate(time.Second).Add(time.Second)
	minute := func(at time.Time, busy ...float64) {
		one := telemetry.New(telemetry.OfJob)
		for i := range 8 {
			one.GPU(i).Values[telemetry.GPUUtil] = 0
			if i < len(busy) {
				one.GPU(i).Values[telemetry.GPUUtil] = busy[i]
			}
		}
		h.take([]api.NodeSample{{Node: "n00000", At: at.Unix(), Span: 60, Data: telemetry.New(telemetry.OfNode).Pack(),
			Jobs: []api.JobSample{{Job: 1, Data: one.Pack()}}}})
	}
	// The record of the test only starts; idle ones run.
	run := *j
	run.Phase = cluster.Running
	check := func(what string, now time.Time, least time.Duration, idle int, since time.Time) {
		t.Helper()
		if got := h.idle.of(&run, least, now); got.Idle != idle || got.GPUs != 8 || !got.Since.Equal(since) {
			t.Errorf("%s: %d idle since %v, want %d since %v", what, got.Idle, got.Since, idle, since)
		}
	}
	minute(began, 90, 4.9)
	check("the first minute", began.Add(time.Minute), time.Minute, 7, began)
	minute(began.Add(time.Minute), 1, telemetry.Unknown)
	check("one has become idle, of another nothing is known", began.Add(2*time.Minute), time.Minute, 7, began.Add(time.Minute))
	check("for two minutes", began.Add(2*time.Minute), 2*time.Minute, 6, began)
	check("nothing was heard", began.Add(6*time.Minute), time.Minute, 0, time.Time{})
	minute(began.Add(10*time.Minute), 1)
	check("after a gap", began.Add(11*time.Minute), time.Minute, 8, began.Add(10*time.Minute))
	if list := h.idleJobs(snap, time.Minute, began.Add(11*time.Minute)); len(list) != 0 {
		t.Errorf("a job that starts: %+v", list)
	}
	minute(began.Add(11*time.Minute), 1, 5)
	check("at the bound", began.Add(12*time.Minute), time.Minute, 7, began.Add(10*time.Minute))
}

// TestIdlePage: a job that runs and does nothing with its GPUs is on the page and counted by metrics; what
// all GPUs and jobs do is told by node, with who has which GPU to join with.
func TestIdlePage(t *testing.T) {
	s, state := pageServer(t, 1, 1)
	now := time.Now()
	j, _ := s.snapshot().Job(1)
	ready := cluster.Report{Node: "n00000", Seq: 1, Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: 1, Attempt: j.Attempt, At: now}}}
	if out := state.Apply(cluster.Entry{Index: 1000, At: now, By: cluster.Identity{System: true}, Cmd: &ready}); out.Err != nil {
		t.Fatal(out.Err)
	}
	s.samples = newSamples()
	one := working(telemetry.OfJob, 8, -1)
	for i := range one.GPUs {
		one.GPUs[i].Values[telemetry.GPUUtil] = 0
	}
	if j, _ = s.snapshot().Job(1); j.Phase != cluster.Running {
		t.Fatalf("the job: %v", j.Phase)
	}
	s.samples.take([]api.NodeSample{{Node: "n00000", At: now.Add(-time.Minute).Unix(), Span: 60, Data: working(telemetry.OfNode, 8, 2).Pack(),
		Jobs: []api.JobSample{{Job: 1, Data: one.Pack()}}}})
	list := s.samples.idleJobs(s.snapshot(), time.Nanosecond, now.Add(time.Minute))
	if len(list) != 1 || list[0].Idle != 8 {
		t.Fatalf("%+v", list)
	}
	h := s.handler()
	for path, wants := range map[string][]string{
		"/metrics/hardware": {`muster_gpu_utilization{node="n00000",gpu="2"} 41`, `muster_gpu_utilization{node="n00000",gpu="0"} 93`,
			`muster_gpu_job{node="n00000",gpu="7",jobid="1"} 1`, `muster_job_info{jobid="1",user="a\"><img src=x>"`, `muster_job_cpus_busy{node="n00000",jobid="1"} 50`,
			`muster_node_cpu_busy_percent{node="n00000"} 50`},
		"/metrics":   {`muster_gpus_idle{partition="main"} 0`},
		"/gpus/idle": {"There are none.", "30 min 0 s unless", `unless it is set</p></div></div>`},
	} {
		body := get(t, h, "GET", path).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is not in\n%s", path, want, body)
			}
		}
	}
}
