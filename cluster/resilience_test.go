package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestParseHangRule: what users may write, and what is refused with the word that is wrong.
func TestParseHangRule(t *testing.T) {
	for _, c := range []struct {
		text string
		want HangRule
		bad  string
	}{
		{"", HangRule{HangDefault, HangAfter}, ""},
		{"off", HangRule{HangOff, HangAfter}, ""},
		{"Requeue", HangRule{HangRequeue, HangAfter}, ""},
		{"report,after=90s", HangRule{HangReport, 90 * time.Second}, ""},
		{"signal,after=5", HangRule{HangSignal, 5 * time.Minute}, ""},
		{"stack,after=1h", HangRule{HangStack, time.Hour}, ""},
		{"restart", HangRule{}, `"restart"`},
		{"requeue,after=", HangRule{}, `"after="`},
		{"requeue,after=1s", HangRule{}, "at least 1m0s"},
		{"requeue,soon", HangRule{}, `"soon"`},
		{"requeue,after=-9999999999", HangRule{}, "after=TIME"},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := ParseHangRule(c.text)
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("%v, want an error with %s", err, c.bad)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// TestCheckpoint: a checkpoint is the user's to report, is noted at most every checkpointGap, and survives a requeue.
func TestCheckpoint(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(nil)
	done := &CheckpointDone{Job: id, Path: "/ckpt/1"}
	w.refused(alice, done, ErrPending)
	w.run(id, 0, "n0")
	w.refused(bob, done, ErrAccess)
	w.refused(alice, &CheckpointDone{Job: id, Path: strings.Repeat("x", maxPath+1)}, ErrTooBig)
	w.ok(alice, done)
	if got := Survived(w.job(id)).Saved; got == nil || got.Count != 1 || got.Attempt != 1 || got.Path != "/ckpt/1" {
		t.Fatalf("saved: %+v", got)
	}
	w.ok(alice, done)
	if got := Survived(w.job(id)).Saved.Count; got != 1 {
		t.Errorf("%d checkpoints within %v", got, checkpointGap)
	}
	w.pass(checkpointGap)
	w.ok(alice, done)
	w.ok(alice, &Requeue{Ref: Ref{Job: id}})
	w.report("n0", id, NodeDone)
	j := w.job(id)
	if j.Phase != Pending || Survived(j).Saved == nil || Survived(j).Saved.Count != 2 {
		t.Errorf("after a requeue: phase %v, saved %+v", j.Phase, Survived(j).Saved)
	}
	w.pass(time.Hour)
	w.run(id, 0, "n0")
	if savedSince(w.job(id)) {
		t.Error("the checkpoint of the attempt before counts for the next")
	}
}

// TestChain: at its time limit, a job with --chain goes on in another attempt only if it has saved a checkpoint in this
// one.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		name         string
		chain, saves bool
		then         Phase
	}{
		{"saved", true, true, Pending},
		{"nothing saved", true, false, Ended},
		{"not asked for", false, true, Ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1)
			id := w.run(w.submit(func(s *JobSpec) {
				s.Resilience, s.Limit = &Resilience{Chain: c.chain}, time.Hour
			}), 0, "n0")
			if c.saves {
				w.ok(alice, &CheckpointDone{Job: id})
			}
			w.pass(time.Hour)
			w.due()
			w.want(id, Ending)
			w.report("n0", id, NodeDone)
			w.want(id, c.then)
		})
	}
}

// TestCheckpointGrace: a job that saves a checkpoint on a signal gets that before it makes room, and leaves as soon as
// it has saved one, or when the time that the site allows is over.
func TestCheckpointGrace(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, allow time.Duration
		grace         time.Duration
	}{
		{"as the job asks", time.Minute, 0, time.Minute},
		{"at most 2 minutes", time.Hour, 0, checkpointGrace},
		{"at most what the site allows", time.Hour, 5 * time.Minute, 5 * time.Minute},
		{"not allowed", time.Hour, -1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := preemptWorld(t, PreemptRequeue, 0)
			cfg := *w.s.Snapshot().Config()
			cfg.Preempt.CheckpointGrace = c.allow
			w.ok(root, &Configure{Config: &cfg})
			v := w.run(w.submit(func(s *JobSpec) {
				s.Resilience, s.Signal = &Resilience{SavesOnSignal: true}, Signal{Num: 10, Before: c.before, BatchOnly: true}
			}), 0, "n0")
			w.pass(time.Minute)
			if err := w.preempt(w.submit(inHigh), v); err != nil {
				t.Fatal(err)
			}
			if c.grace == 0 {
				w.want(v, Ending)
				return
			}
			j := w.want(v, Running)
			last := j.Signals[len(j.Signals)-1]
			if last.Sig != 10 || last.Scope != SignalBatchShell || !j.Preempt.Until.Equal(w.now.Add(c.grace)) {
				t.Errorf("signal %+v, until %v, want 10 and %v from %v", last, j.Preempt.Until, c.grace, w.now)
			}
			w.ok(alice, &CheckpointDone{Job: v})
			w.want(v, Ending)
			w.report("n0", v, NodeDone)
			if j := w.want(v, Pending); Survived(j).Saved == nil || j.Restarts != 1 {
				t.Errorf("saved %+v, %d restarts", Survived(j).Saved, j.Restarts)
			}
		})
	}
}

// TestHang: what is done about a job that hangs follows its own rule, or that of its partition; what is not certain
// needs a rule.
func TestHang(t *testing.T) {
	for _, c := range []struct {
		name, job, part string
		by              HangKind
		want            HangAction
		phase           Phase
	}{
		{"certain, no rule", "", "", HangRAS, HangReport, Running},
		{"uncertain, no rule", "", "", HangQuiet, HangDefault, Running},
		{"uncertain, rule", "report", "", HangQuiet, HangReport, Running},
		{"the partition's", "", "requeue", HangSpin, HangRequeue, Ending},
		{"its own before the partition's", "off", "requeue", HangRAS, HangDefault, Running},
		{"signal", "signal", "", HangStep, HangSignal, Running},
		{"stack", "stack,after=1m", "", HangStep, HangStack, Running},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1)
			cfg := *w.s.Snapshot().Config()
			cfg.Partitions[0].Hang = c.part
			w.ok(root, &Configure{Config: &cfg})
			id := w.run(w.submit(func(s *JobSpec) { s.Resilience = &Resilience{Hang: c.job} }), 0, "n0")
			found := &HangFound{Job: id, Attempt: 1, Kind: c.by, Text: "rank 3 on n0 does not answer"}
			w.refused(alice, found, ErrUser)
			if got := w.ok(sys, found).Result; got != c.want {
				t.Fatalf("%v, want %q", got, c.want)
			}
			j := w.want(id, c.phase)
			if (Survived(j).Hung != nil) != (c.want != HangDefault) {
				t.Errorf("hung: %+v", Survived(j).Hung)
			}
			if c.want == HangDefault {
				return
			}
			if !strings.HasPrefix(j.SystemComment, "HANG: rank 3 on n0 does not answer; ") {
				t.Errorf("comment %q", j.SystemComment)
			}
			if signals := len(j.Signals); (signals == 1) != (c.want == HangSignal) {
				t.Errorf("%d signals", signals)
			}
			if got := w.ok(sys, found).Result; got != HangDefault {
				t.Errorf("it is dealt with twice: %v", got)
			}
		})
	}
}

// TestHangBudget: a job is requeued for hangs maxHangActions times within a day; then it is only reported.
func TestHangBudget(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) { s.Resilience = &Resilience{Hang: "requeue"} })
	for try := 1; try <= maxHangActions+1; try++ {
		w.pass(time.Hour)
		w.run(id, 0, "n0")
		want := HangRequeue
		if try > maxHangActions {
			want = HangReport
		}
		if got := w.ok(sys, &HangFound{Job: id, Attempt: w.job(id).Attempt, Kind: HangRAS, Text: "x"}).Result; got != want {
			t.Fatalf("try %d: %v, want %v", try, got, want)
		}
		if want == HangRequeue {
			w.report("n0", id, NodeDone)
		}
	}
	w.want(id, Running)
	w.pass(budgetTime)
	if got := w.ok(sys, &HangFound{Job: id, Attempt: w.job(id).Attempt, Kind: HangRAS, Text: "x"}).Result; got != HangRequeue {
		t.Errorf("a day later: %v", got)
	}
}

// goldenResilience has a job that saved a checkpoint and was found to hang.
func goldenResilience(w *world) {
	cfg := *w.s.Config()
	cfg.Partitions = slices.Clone(cfg.Partitions)
	cfg.Partitions[0].Hang = "report,after=30m"
	cfg.Preempt.CheckpointGrace, cfg.Preempt.LeastLost = time.Minute, true
	w.ok(root, &Configure{Config: &cfg})
	id := w.start(w.submit(func(s *JobSpec) {
		s.Resilience = &Resilience{Hang: "requeue,after=5m", CheckpointFile: "latest", SavesOnSignal: true, Chain: true,
			Straggler: StragglerReport}
		s.Signal = Signal{Num: 10, Before: time.Minute}
	}), TaskAny, 5, nodeName(0))
	for e := range w.s.Hooks() {
		if e.Kind == HookProlog {
			w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: e.ID}}})
		}
	}
	w.report(nodeName(0), id, NodeReady)
	w.ok(alice, &CheckpointDone{Job: id, Path: "/ckpt/100"})
	w.ok(sys, &StragglerFound{Job: id, Attempt: 1, Node: nodeName(0), Text: "GPU 3 is slow"})
	w.ok(sys, &HangFound{Job: id, Attempt: 1, Kind: HangStep, Text: "no step for 5m0s"})
	w.report(nodeName(0), id, NodeDone)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
}
