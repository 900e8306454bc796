package samples

import (
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// TestIdle: a job's GPUs are idle since the first sample below the bound after the last above it, and
// after its start; what is not heard of for a while is not known; a job counts by the time of its
// partition.
func TestIdle(t *testing.T) {
	snap := agenttest.Cluster(t, 1, 1).Snapshot()
	j, _ := snap.Job(1)
	h := New()
	began := j.Started.Truncate(time.Second).Add(time.Second)
	minute := func(at time.Time, busy ...float64) {
		one := telemetry.New(telemetry.OfJob)
		for i := range 8 {
			one.GPU(i).Values[telemetry.GPUUtil] = 0
			if i < len(busy) {
				one.GPU(i).Values[telemetry.GPUUtil] = busy[i]
			}
		}
		h.Take([]api.NodeSample{{Node: "n00000", At: at.Unix(), Span: 60, Data: telemetry.New(telemetry.OfNode).Pack(),
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
	check("one has become idle, of another nothing is known", began.Add(2*time.Minute), time.Minute, 7,
		began.Add(time.Minute))
	check("for two minutes", began.Add(2*time.Minute), 2*time.Minute, 6, began)
	check("nothing was heard", began.Add(6*time.Minute), time.Minute, 0, time.Time{})
	minute(began.Add(10*time.Minute), 1)
	check("after a gap", began.Add(11*time.Minute), time.Minute, 8, began.Add(10*time.Minute))
	if list := h.Idle(snap, time.Minute, began.Add(11*time.Minute)); len(list) != 0 {
		t.Errorf("a job that starts: %+v", list)
	}
	minute(began.Add(11*time.Minute), 1, 5)
	check("at the bound", began.Add(12*time.Minute), time.Minute, 7, began.Add(10*time.Minute))
}
