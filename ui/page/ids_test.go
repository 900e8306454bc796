package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// arrays is a server with a node, an array of ten tasks of which one runs, a heterogeneous job, and a job that
// waits for it.
func arrays(t testing.TB) (*pages, *cluster.State, func(cluster.Command) any) {
	s, state := pageServer(t, 1, 0)
	do := agenttest.Doing(t, state, 1000)
	spec := func(name string) *cluster.JobSpec {
		return &cluster.JobSpec{Name: name, UID: 1000, User: "ada", Partitions: []string{"main"}, Kind: cluster.Batch,
			Limit: time.Hour, Layout: &cluster.Layout{MinNodes: 1}}
	}
	sweep := spec("sweep")
	sweep.Array = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, 9)}
	id := do(&cluster.Submit{Spec: sweep}).(cluster.JobID)
	do(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: 3, Start: &cluster.Alloc{Partition: "main",
		Shares: []cluster.Share{{Node: "n00000", CPUs: cluster.RangeIDSet(0, 1), Tasks: 1}}}}}})
	do(&cluster.SubmitHet{Specs: []*cluster.JobSpec{spec("lead"), spec("lead")}})
	after := spec("after")
	after.Depends = cluster.Depends{Terms: []cluster.Depend{{Type: cluster.AfterAny, Job: id, Task: cluster.TaskAny,
		Array: true}}}
	do(&cluster.Submit{Spec: after})
	return s, state, do
}

// TestJobNames: arrays are one row and one page, tasks and components have the ids that squeue has, in texts and in
// addresses.
func TestJobNames(t *testing.T) {
	s, state, _ := arrays(t)
	h := s.handler()
	var het, task, last string
	for j := range state.Snapshot().Jobs() {
		switch {
		case j.Het != nil && j.Het.Offset == 1:
			het = jobID(j)
		case j.Task == 3:
			task = jobID(j)
		default:
			last = jobID(j)
		}
	}
	if task != "1_3" || !strings.HasSuffix(het, "+1") {
		t.Fatalf("%s, %s", task, het)
	}
	for path, want := range map[string][]string{
		"/queue": {`<a href="/jobs/1">1</a>`, "9 pending", "1 starting", `<a href="/jobs/` +
			het + `">`, "1 to 4 of 4; 13 including array tasks"},
		"/jobs/1": {"array 1", "9 pending", `<a href="/jobs/1_3">1_3</a>`, "1_[0-2,4-9]",
			"required by: afterany"},
		"/jobs/1_3":              {`job 1_3 of array <a href="/jobs/1">1</a>`, "starting"},
		"/jobs/1_5":              {"job 1_[0-2,4-9]"},
		"/jobs/" + het:           {"job " + het, "Components", strings.Replace(het, "+1", "+0", 1)},
		"/jobs/" + last:          {"pending: afterany", `<a href="/jobs/1">1</a>`},
		"/queue?q=sweep":         {"1 to 1 of 1"},
		"/queue?q=1_3":           {"1 to 1 of 1"},
		"/queue?q=none":          {"none"},
		"/queue?node=n00000":     {"node: n00000", "1 to 1 of 1"},
		"/queue?reason=Licenses": {"reason: Licenses", "none"},
		"/queue?sort=name":       {"1 to 4 of 4"},
		"/queue?user=bob":        {"none"},
		"/map?by=job":            {"n00000"},
		"/nosuch":                {"No page at /nosuch", "<nav"},
		"/jobs/1_77":             {"there is no job 1_77"},
		"/jobs/1_3/sooner":       {"1_3 does not wait"},
		"/login?to=/queue":       {"<code>muster ui</code>"},
	} {
		w := get(t, h, "GET", path)
		for _, text := range want {
			if !strings.Contains(strings.ReplaceAll(w.Body.String(), "&#43;", "+"), text) {
				t.Errorf("%s: %d, %q is not in\n%s", path, w.Code, text, w.Body)
			}
		}
	}
	for q, to := range map[string]string{"1_3": "/jobs/1_3", "1": "/jobs/1", "n00000": "/nodes/n00000",
		"sweep": "/queue?q=sweep", "9_9": "/queue?q=9_9"} {
		if w := get(t, h, "GET", "/find?q="+q); w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
			t.Errorf("search for %s: %d, to %s", q, w.Code, w.Header().Get("Location"))
		}
	}
}

// TestLimits: a time limit is read as Slurm's tools read it.
func TestLimits(t *testing.T) {
	for text, want := range map[string]time.Duration{"30": 30 * time.Minute, "1:30": 90 * time.Second,
		"2:00:00": 2 * time.Hour,
		"1-12":    36 * time.Hour, "1-12:30": 36*time.Hour + 30*time.Minute, "2-00:00:10": 48*time.Hour +
			10*time.Second,
		"0": 0, "": 0, "x": 0, "1:2:3:4": 0, "-5": 0, "1-": 0} {
		if got, err := readLimit(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestHues: a job's color is not that of its neighbours, and a user's stays while others come and go.
func TestHues(t *testing.T) {
	s, state := pageServer(t, 40, 40)
	snap := state.Snapshot()
	hues, last := jobHues(snap), -1
	for n := range snap.Nodes() {
		h := hues[snap.Load(n.Name).Jobs[0]]
		if h == last {
			t.Errorf("%s has the colour of its neighbour", n.Name)
		}
		last = h
	}
	sees := visibility.Of(s.Snapshot(), visibility.Stranger)
	before := userHues(sees)[`a"><img src=x>`]
	state.Apply(cluster.Entry{Index: 900, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Submit{Spec: &cluster.JobSpec{
			Name: "x", UID: 1001, User: "zoe", Partitions: []string{"main"}, Kind: cluster.Batch, Limit: time.Hour,
			Layout: &cluster.Layout{MinNodes: 1}}}})
	if after := userHues(visibility.Of(s.Snapshot(), visibility.Stranger)); after[`a"><img src=x>`] != before ||
		after["zoe"] == before {
		t.Errorf("before %d, then %v", before, after)
	}
}

// TestOutdated: a node that knows only the end of a file is not asked for it again and again.
func TestOutdated(t *testing.T) {
	for want, part := range map[bool]api.TailResponse{
		true: {Text: "the end"}, false: {Text: "a part", Start: 3, End: 9},
	} {
		if err := outdated(part); (err != nil) != want {
			t.Errorf("%+v: %v", part, err)
		}
	}
	if err := outdated(api.TailResponse{}); err != nil {
		t.Errorf("nothing new: %v", err)
	}
}
