package page

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestExitText: how a job ended is said in words, and only what means something.
func TestExitText(t *testing.T) {
	for want, e := range map[string]cluster.ExitStatus{
		"exit code 0":                         {},
		"exit code 3":                         {Code: 3},
		"signal 9 (killed)":                   {Signal: 9},
		"exit code 1, signal 15 (terminated)": {Code: 1, Signal: 15},
		"out of memory":                       cluster.OOMExit,
	} {
		if got := exitText(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// TestNeverRan: a job that was refused has no run time, however long ago that was.
func TestNeverRan(t *testing.T) {
	now := time.Now()
	j := &cluster.Job{
		ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}, Phase: cluster.Ended, Submitted: now.Add(-time.Hour),
		Ended: now.Add(-time.Hour),
	}
	if row := jobRow(cluster.NewState().Snapshot(), j, now); row.For != "never ran" {
		t.Errorf("its time is %q", row.For)
	}
}

// TestTypedPaths: the lists are also found by the paths that those of one job and one node begin with.
func TestTypedPaths(t *testing.T) {
	s, _ := pageServer(t, 1, 0)
	for path, want := range map[string]string{"/jobs": "/queue", "/jobs/": "/queue", "/nodes": "/map", "/nodes/": "/map"} {
		if w := get(t, s.handler(), "GET", path); w.Code != 302 || w.Header().Get("Location") != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Location"))
		}
	}
}
