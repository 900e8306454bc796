package client

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const self = cluster.NodeName("n1")

// here is a job on this node, with nodes as its allocation.
func here(phase cluster.Phase, nodes ...cluster.NodeName) *jobHere {
	j := &cluster.Job{ID: 1, Attempt: 1, Phase: phase, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}, Alloc: &cluster.Alloc{}, Started: now.Add(-time.Minute),
		EndingAt: now, Limit: cluster.Unlimited}
	for _, n := range nodes {
		j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n})
	}
	return &jobHere{node: self, job: j}
}

func batchStep(state step.State) map[step.ID]*step.Status {
	id := step.ID{Job: 1, Attempt: 1, Step: cluster.BatchStep, Node: self}
	return map[step.ID]*step.Status{id: {ID: id, State: state}}
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
		{"its script is being started", with(here(cluster.Starting, self), func(h *jobHere) { h.launching = true }), nil, nil},
		{"it runs but was not confirmed", here(cluster.Starting, self), batchStep(step.Running), []actionKind{confirm}},
		{"a gang confirms before it starts", here(cluster.Starting, self, "n2"), nil, []actionKind{confirm}},
		{"a gang starts when all have confirmed", with(here(cluster.Running, self, "n2"), func(h *jobHere) { h.confirmed = true }), nil,
			[]actionKind{startBatch}},
		{"a gang that an earlier life confirmed is lost", here(cluster.Running, self, "n2"), nil, []actionKind{lost}},
		{"only the first node runs the script", with(here(cluster.Running, "n2", self), func(h *jobHere) { h.confirmed = true }), nil, nil},
		{"a confirmed attempt that is gone is lost, never run twice", here(cluster.Running, self), nil, []actionKind{lost}},
		{"all is well", with(here(cluster.Running, self), func(h *jobHere) { h.confirmed = true }), batchStep(step.Running), nil},
		{"the script ended", here(cluster.Running, self), batchStep(step.Ended), []actionKind{batchOver}},
		{"and was told", with(here(cluster.Running, self), func(h *jobHere) { h.told = true }), batchStep(step.Ended), nil},
		{"cancelled: first TERM", with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy = cluster.Cancelled }),
			batchStep(step.Running), []actionKind{term}},
		{"then patience", with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy, h.termed = cluster.Cancelled, true }),
			batchStep(step.Running), nil},
		{"then KILL", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy, h.termed, h.job.EndingAt = cluster.Cancelled, true, now.Add(-time.Minute)
		}), batchStep(step.Running), []actionKind{kill}},
		{"the script is over: what is left of it may end in its own way", with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy = cluster.Completed }),
			batchStep(step.Running), []actionKind{term}},
		{"given back: what is left on the node is killed at once", with(here(cluster.Ending, self), func(h *jobHere) { h.job.EndingWhy = cluster.Resized }),
			batchStep(step.Running), []actionKind{kill}},
		{"then once more", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy = cluster.Resized
			h.killing = now.Add(-59 * time.Second)
			h.killed = now.Add(-killAgain)
		}), batchStep(step.Running), []actionKind{kill}},
		{"then it is told", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy = cluster.Resized
			h.killing = now.Add(-60 * time.Second)
			h.killed = now.Add(-killAgain)
		}), batchStep(step.Running), []actionKind{stuck}},
		{"once, and killed on", with(here(cluster.Ending, self), func(h *jobHere) {
			h.job.EndingWhy = cluster.Resized
			h.killing = now.Add(-60 * time.Second)
			h.killed = now.Add(-killAgain)
			h.stuck = true
		}), batchStep(step.Running), []actionKind{kill}},
		{"clean", here(cluster.Ending, self), nil, []actionKind{finished}},
		{"clean, and said so", with(here(cluster.Ending, self), func(h *jobHere) { h.done = true }), nil, nil},
		{"suspended: first TSTP", here(cluster.Suspended, self), batchStep(step.Running), []actionKind{stop}},
		{"then patience", with(here(cluster.Suspended, self), func(h *jobHere) { h.stopping = now.Add(-time.Second) }), batchStep(step.Running), nil},
		{"then it is frozen", with(here(cluster.Suspended, self), func(h *jobHere) { h.stopping = now.Add(-2 * time.Second) }), batchStep(step.Running), []actionKind{freeze}},
		{"resumed before that", with(here(cluster.Running, self), func(h *jobHere) { h.stopping = now.Add(-time.Second) }), batchStep(step.Running), []actionKind{thaw}},
		{"resumed", with(here(cluster.Running, self), func(h *jobHere) { h.frozen = true }), batchStep(step.Running), []actionKind{thaw}},
		{"a signal", with(here(cluster.Running, self), func(h *jobHere) { h.job.Signals = []cluster.JobSignal{{Num: 1, Sig: 10}} }),
			batchStep(step.Running), []actionKind{deliver}},
		{"delivered once", with(here(cluster.Running, self), func(h *jobHere) {
			h.job.Signals, h.signalled = []cluster.JobSignal{{Num: 1, Sig: 10}}, 1
		}), batchStep(step.Running), nil},
		{"an older attempt is a stray", with(here(cluster.Starting, self), func(h *jobHere) { h.job.Attempt = 2 }), batchStep(step.Running),
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

// The warning signal is due before the limit, and reconcile says when to look again.
func TestReconcileWarns(t *testing.T) {
	cfg := cluster.DefaultConfig()
	h := here(cluster.Running, self)
	h.confirmed = true
	h.job.Limit, h.job.Spec.Signal = 2*time.Minute, cluster.Signal{Num: 10, Before: 30 * time.Second}
	jobs := map[cluster.JobID]*jobHere{1: h}
	actions, again := reconcile(jobs, batchStep(step.Running), &cfg, now)
	if len(actions) != 0 || !again.Equal(now.Add(30*time.Second)) {
		t.Errorf("before it is due: %+v, again at %v", actions, again)
	}
	if actions, _ = reconcile(jobs, batchStep(step.Running), &cfg, now.Add(30*time.Second)); len(actions) != 1 || actions[0].kind != warn {
		t.Errorf("when it is due: %+v", actions)
	}
}

func TestOutboxSurvives(t *testing.T) {
	dir := t.TempDir()
	put := func(b *outbox, n int) {
		for range n {
			if _, err := b.put(self, []cluster.Update{{Kind: cluster.NodeDone, Job: 1}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func() *outbox {
		b, err := openOutbox(dir)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := open()
	put(b, 3)
	if err := b.ack(b.pending()[:2]); err != nil {
		t.Fatal(err)
	}
	_ = b.file.Close() // a crash: no close of ours
	b = open()
	if p := b.pending(); len(p) != 1 || p[0].Seq != 3 || b.seq(self) != 2 {
		t.Fatalf("after a restart: %+v, last known %d", p, b.seq(self))
	}
	_ = b.file.Close()
	f, err := os.OpenFile(filepath.Join(dir, "outbox"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"node":"n1","seq":4,"upd`); err != nil { // a line cut off by a crash
		t.Fatal(err)
	}
	_ = f.Close()
	b = open()
	put(b, 1)
	if p := b.pending(); len(p) != 2 || p[1].Seq != 4 {
		t.Fatalf("after a torn line: %+v", p)
	}
	if err := b.ack(b.pending()); err != nil {
		t.Fatal(err)
	}
	if err := b.renew(); err != nil {
		t.Fatal(err)
	}
	_ = b.close()
	if b = open(); len(b.pending()) != 0 || b.seq(self) != 4 {
		t.Errorf("after renewal: %d pending, last number %d, want 0 and 4", len(b.pending()), b.seq(self))
	}
	_ = b.close()
}

func TestParseHollow(t *testing.T) {
	nodes, err := ParseHollow("2x16c64g8gpu:h100")
	if err != nil || len(nodes) != 2 || nodes[1].Name != "gpu-node-002" {
		t.Fatalf("%v %+v", err, nodes)
	}
	inv := nodes[0].Inventory
	if inv.CPUs != 16 || inv.MemMB != 65536 || len(inv.GPUs) != 8 || inv.GPUs[7].Type != "h100" || inv.GPUs[7].Cores.String() != "8-15" {
		t.Errorf("%+v", inv)
	}
	for _, bad := range []string{"", "8", "x16c1g", "8x16c", "0x1c1g", "8x16c64gpu", "99999x1c1g", "1x1c1g99gpu"} {
		if _, err := ParseHollow(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestMultiProg(t *testing.T) {
	parse := func(text string, tasks int) (map[int][]string, error) {
		return parseMultiProg(&cluster.StepSpec{Argv: []string{"mp"}, MultiProgFile: true, MultiProg: text}, tasks)
	}
	got, err := parse("# comment\n0 echo master %t\n1-2 sh -c \"echo %o\"\n", 3)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[2], []string{"sh", "-c", "echo 1"}) || !slices.Equal(got[0], []string{"echo", "master", "0"}) {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		text  string
		tasks int
		want  string
	}{
		{"0 a\n0 b\n", 1, "Duplicate record for task 0\nLine 2 of configuration file mp invalid"},
		{"0 a\n", 2, "Configuration file mp invalid, no record for task id 1"},
		{"", 1, "Configuration file mp invalid, no record for task id 0"},
		{"0-x a\n", 1, "Invalid task range specification\nLine 1 of configuration file mp invalid"},
		{"0\n", 1, "Line 1 of configuration file mp invalid"},
		{"0-5 a\n", 2, "Invalid task id, 5 >= ntasks\nLine 1 of configuration file mp invalid"},
	} {
		if _, err := parse(c.text, c.tasks); err == nil || err.Error() != c.want {
			t.Errorf("%q for %d tasks: %v, want %s", c.text, c.tasks, err, c.want)
		}
	}
}
