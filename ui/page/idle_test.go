package page

import (
	"strings"
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// TestIdlePage: a job that runs and does nothing with its GPUs is on the page and counted by metrics; what
// all GPUs and jobs do is told by node, with who has which GPU to join with.
func TestIdlePage(t *testing.T) {
	s, state := pageServer(t, 1, 1)
	now := time.Now()
	j, _ := s.Snapshot().Job(1)
	ready := cluster.Report{
		Node: "n00000", Seq: 1,
		Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: 1, Attempt: j.Attempt, At: now}},
	}
	if out := state.Apply(cluster.Entry{
		Index: 1000, At: now, By: cluster.Identity{System: true}, Cmd: &ready,
	}); out.Err != nil {
		t.Fatal(out.Err)
	}
	s.Samples = samples.New()
	of(s).scraped.Samples = s.Samples
	one := agenttest.Working(telemetry.OfJob, 8, -1)
	for i := range one.GPUs {
		one.GPUs[i].Values[telemetry.GPUUtil] = 0
	}
	if j, _ = s.Snapshot().Job(1); j.Phase != cluster.Running {
		t.Fatalf("the job: %v", j.Phase)
	}
	s.Samples.Take([]api.NodeSample{{
		Node: "n00000", At: now.Add(-time.Minute).Unix(), Span: 60,
		Data: agenttest.Working(telemetry.OfNode, 8, 2).Pack(),
		Jobs: []api.JobSample{{Job: 1, Data: one.Pack()}},
	}})
	list := s.Samples.Idle(s.Snapshot(), time.Nanosecond, now.Add(time.Minute))
	if len(list) != 1 || list[0].Idle != 8 {
		t.Fatalf("%+v", list)
	}
	h := s.handler()
	for path, wants := range map[string][]string{
		"/metrics/hardware": {`muster_gpu_utilization{node="n00000",gpu="2"} 41`, `muster_gpu_utilization{node="n00000",gpu="0"} 93`,
			`muster_gpu_job{node="n00000",gpu="7",jobid="1"} 1`, `muster_job_info{jobid="1",user="a\"><img src=x>"`, `muster_job_cpus_busy{node="n00000",jobid="1"} 50`,
			`muster_node_cpu_busy_percent{node="n00000"} 50`},
		"/metrics":   {`muster_gpus_idle{partition="main"} 0`},
		"/gpus/idle": {"No idle GPUs.", "30 min 0 s unless", `unless it is set</p></div></div>`},
	} {
		body := get(t, h, "GET", path).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is not in\n%s", path, want, body)
			}
		}
	}
}
