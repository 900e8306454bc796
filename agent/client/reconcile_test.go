package client

import (
	"slices"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// withMemory is a job that was given 60 MB while it ran.
func withMemory(h *jobHere, m memoryHere) *jobHere {
	h.launch = confirmed
	h.job.Alloc.Shares[0].MemMB = 60
	h.job.Shrunk = &cluster.Shrunk{At: now}
	h.memory = m
	return h
}

func TestReconcile(t *testing.T) {
	cfg := cluster.DefaultConfig()
	with := func(h *jobHere, f func(*jobHere)) *jobHere { f(h); return h }
	cases := []struct {
		name string
		job  *jobHere
		have map[step.ID]*step.Status
		want []actionKind
	}{
		{"a new job of one node starts", here(cluster.Starting, self), nil, []actionKind{startBatch}},
		{
			"its script is being started",
			with(here(cluster.Starting, self), func(h *jobHere) { h.launch = launching }), nil, nil,
		},
		{"it runs but was not confirmed", here(cluster.Starting, self), batchStep(step.Running), []actionKind{confirm}},
		{"a gang confirms before it starts", here(cluster.Starting, self, "n2"), nil, []actionKind{confirm}},
		{"a gang starts when all have confirmed",
			with(here(cluster.Running, self, "n2"), func(h *jobHere) { h.launch = confirmed }), nil,
			[]actionKind{startBatch}},
		{"a gang that an earlier life confirmed is lost", here(cluster.Running, self, "n2"), nil, []actionKind{lost}},
		{
			"only the first node runs the script",
			with(here(cluster.Running, "n2", self), func(h *jobHere) { h.launch = confirmed }), nil, nil,
		},
		{
			"a confirmed attempt that is gone is lost, never run twice", here(cluster.Running, self), nil,
			[]actionKind{lost},
		},
		{
			"all is well", with(here(cluster.Running, self), func(h *jobHere) { h.launch = confirmed }),
			batchStep(step.Running), nil,
		},
		{"the script ended", here(cluster.Running, self), batchStep(step.Ended), []actionKind{batchOver}},
		{
			"and was told", with(here(cluster.Running, self), func(h *jobHere) { h.launch = reported }),
			batchStep(step.Ended), nil,
		},
		{"cancelled: first TERM",
			with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy = cluster.Cancelled }),
			batchStep(step.Running), []actionKind{term}},
		{"then patience",
			with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy, h.end = cluster.Cancelled, termed }),
			batchStep(step.Running), nil},
		{"then KILL", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy, h.job.EndingAt = cluster.Cancelled, now.Add(-time.Minute)
			h.end = termed
		}), batchStep(step.Running), []actionKind{kill}},
		{"the script is over: what is left of it may end in its own way",
			with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy = cluster.Completed }),
			batchStep(step.Running), []actionKind{term}},
		{"given back: what is left on the node is killed at once",
			with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy = cluster.Resized }),
			batchStep(step.Running), []actionKind{kill}},
		{"then once more", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy = cluster.Resized
			h.end = killed
			h.killedFirst = now.Add(-59 * time.Second)
			h.killedLast = now.Add(-killAgain)
		}), batchStep(step.Running), []actionKind{kill}},
		{"then it is told", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy = cluster.Resized
			h.end = killed
			h.killedFirst = now.Add(-60 * time.Second)
			h.killedLast = now.Add(-killAgain)
		}), batchStep(step.Running), []actionKind{tellStuck}},
		{"once, and killed on", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy = cluster.Resized
			h.end = unkillable
			h.killedFirst = now.Add(-60 * time.Second)
			h.killedLast = now.Add(-killAgain)
		}), batchStep(step.Running), []actionKind{kill}},
		{"clean", here(cluster.Ending, self), nil, []actionKind{finished}},
		{"clean, and said so", with(here(cluster.Ending, self), func(h *jobHere) { h.launch = clean }), nil, nil},
		{"suspended: first TSTP", here(cluster.Suspended, self), batchStep(step.Running), []actionKind{stop}},
		{
			"then patience",
			with(here(cluster.Suspended, self), func(h *jobHere) { h.stop(now.Add(-time.Second)) }),
			batchStep(step.Running), nil,
		},
		{
			"then it is frozen",
			with(here(cluster.Suspended, self), func(h *jobHere) { h.stop(now.Add(-2 * time.Second)) }),
			batchStep(step.Running), []actionKind{freeze},
		},
		{
			"resumed before that",
			with(here(cluster.Running, self), func(h *jobHere) { h.stop(now.Add(-time.Second)) }),
			batchStep(step.Running), []actionKind{thaw},
		},
		{
			"resumed", with(here(cluster.Running, self), func(h *jobHere) { h.pause = frozen }),
			batchStep(step.Running), []actionKind{thaw},
		},
		{"a signal",
			with(here(cluster.Running, self),
				func(h *jobHere) { h.job.Signals = []cluster.JobSignal{{Num: 1, Sig: 10}} }),
			batchStep(step.Running), []actionKind{deliver}},
		{"delivered once", with(here(cluster.Running, self), func(h *jobHere) {
			h.job.Signals, h.signalled = []cluster.JobSignal{{Num: 1, Sig: 10}}, 1
		}), batchStep(step.Running), nil},
		{"other memory", withMemory(here(cluster.Running, self), memoryHere{}), batchStep(step.Running),
			[]actionKind{setMemory}},
		{"which is being set", withMemory(here(cluster.Running, self), memoryHere{busy: true}),
			batchStep(step.Running), nil},
		{"which was set", withMemory(here(cluster.Running, self), memoryHere{set: 60}), batchStep(step.Running), nil},
		{"which could not be set, a moment ago",
			withMemory(here(cluster.Running, self), memoryHere{again: now.Add(time.Second)}),
			batchStep(step.Running), nil},
		{"which could not be set before",
			withMemory(here(cluster.Running, self), memoryHere{set: 90, again: now}), batchStep(step.Running),
			[]actionKind{setMemory}},
		{"other memory of one that stands still",
			withMemory(here(cluster.Suspended, self), memoryHere{}), batchStep(step.Running), []actionKind{stop}},
		{"an older attempt is a stray",
			with(here(cluster.Starting, self), func(h *jobHere) { h.job.Attempt = 2 }), batchStep(step.Running),
			[]actionKind{stray, startBatch}},
	}
	for _, c := range cases {
		actions, _ := reconcile(map[cluster.JobID]*jobHere{1: c.job}, c.have, &cfg, now)
		var got []actionKind
		for _, a := range actions {
			got = append(got, a.kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: actions %v, want %v", c.name, got, c.want)
		}
	}
	if actions, _ := reconcile(nil, batchStep(step.Running), &cfg, now); len(actions) != 1 || actions[0].kind != stray {
		t.Errorf("a step nobody wants: %+v", actions)
	}
}

// TestReconcileWarns: the warning signal is due before the limit, and not at the start of a job that is shorter than
// the notice; reconcile says when to look again.
func TestReconcileWarns(t *testing.T) {
	for name, c := range map[string]struct{ limit, notice, due time.Duration }{
		"before the limit":                    {2 * time.Minute, 30 * time.Second, 90 * time.Second},
		"a notice longer than the job":        {2 * time.Minute, 10 * time.Minute, maxUnwarned},
		"a notice as long as the job":         {time.Minute, time.Minute, maxUnwarned},
		"a notice nearly as long as the job":  {time.Minute, 50 * time.Second, maxUnwarned},
		"a short job":                         {20 * time.Second, time.Minute, 10 * time.Second},
		"a short job with a notice that fits": {20 * time.Second, 5 * time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cluster.DefaultConfig()
			h := here(cluster.Running, self)
			h.launch, h.job.Started = confirmed, now
			h.job.Limit, h.job.Spec.Signal = c.limit, cluster.Signal{Num: 10, Before: c.notice}
			jobs := map[cluster.JobID]*jobHere{1: h}
			actions, again := reconcile(jobs, batchStep(step.Running), &cfg, now.Add(time.Second))
			if len(actions) != 0 || !again.Equal(now.Add(c.due)) {
				t.Errorf("before it is due: %+v, again after %v", actions, again.Sub(now))
			}
			actions, _ = reconcile(jobs, batchStep(step.Running), &cfg, now.Add(c.due))
			if len(actions) != 1 || actions[0].kind != warn {
				t.Errorf("when it is due: %+v", actions)
			}
		})
	}
}

// TestRestartedMachine asks what a client does for a job whose script it does not see.
func TestRestartedMachine(t *testing.T) {
	cfg := cluster.DefaultConfig()
	ready := []cluster.Report{
		{Node: "a", Seq: 1, Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: 7, Attempt: 1}}},
	}
	for name, c := range map[string]struct {
		phase   cluster.Phase
		nodes   []cluster.NodeName
		pending []cluster.Report
		want    Todo
		kind    cluster.UpdateKind
	}{
		"new":                        {cluster.Starting, []cluster.NodeName{"a"}, nil, Launch, ""},
		"new gang":                   {cluster.Starting, []cluster.NodeName{"a", "b"}, nil, Tell, cluster.NodeReady},
		"confirmed, still in outbox": {cluster.Starting, []cluster.NodeName{"a"}, ready, Tell, cluster.JobLost},
		"ran here":                   {cluster.Running, []cluster.NodeName{"a"}, nil, Tell, cluster.JobLost},
		"was suspended here":         {cluster.Suspended, []cluster.NodeName{"a"}, nil, Tell, cluster.JobLost},
		"led a gang":                 {cluster.Running, []cluster.NodeName{"a", "b"}, nil, Tell, cluster.JobLost},
		"ended here":                 {cluster.Ending, []cluster.NodeName{"a"}, nil, Tell, cluster.NodeDone},
	} {
		t.Run(name, func(t *testing.T) {
			j := &cluster.Job{
				ID: 7, Attempt: 1, Phase: c.phase, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}},
				Alloc: &cluster.Alloc{},
			}
			for _, n := range c.nodes {
				j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n})
			}
			d := NewSimulated("a", c.pending)
			d.Take(api.NodeWork{Node: "a", Index: 5, Jobs: []*cluster.Job{j}})
			acts, _ := d.Reconcile(map[step.ID]*step.Status{}, &cfg, time.Now())
			if len(acts) != 1 || acts[0].Do != c.want || c.kind != "" && acts[0].Updates[0].Kind != c.kind {
				t.Fatalf("does %+v, want %s %s", acts, c.want, c.kind)
			}
			if more, _ := d.Reconcile(map[step.ID]*step.Status{}, &cfg, time.Now()); c.want == Tell && len(more) != 0 {
				t.Errorf("and then again %+v", more)
			}
		})
	}
}
