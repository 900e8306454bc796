package cluster

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]Age{
		"12": {12, AgeMonths}, "12months": {12, AgeMonths}, "1Month": {1, AgeMonths},
		"30days": {30, AgeDays}, "48hours": {48, AgeHours}, "0": {}, "": {}, "days": {}, "5weeks": {},
		"-1days": {},
	} {
		if got, ok := ParseAge(text); got != want || ok != (want.N > 0) {
			t.Errorf("%q is %+v, %v, want %+v", text, got, ok, want)
		}
	}
}

// forgotten are the cutoffs of the events of a command.
func forgotten(a Applied) (out []Cutoff) {
	for _, e := range a.Events {
		out = append(out, e.Forget...)
	}
	return out
}

// TestRetain: with each new day and month a hook is made for what is too old; records go when it is done, and
// one that failed is tried again an hour later.
func TestRetain(t *testing.T) {
	w := newWorld(t, 1)
	w.now = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	cfg := *w.s.Config()
	cfg.Retention = Retention{
		Dir:   "/archive",
		Rules: []RetainRule{{JobRecords, Age{2, AgeMonths}, true}, {StepRecords, Age{10, AgeDays}, false}},
	}
	w.ok(root, &Configure{Config: &cfg})
	unix := func(text string) int64 { x, _ := time.Parse(time.DateOnly, text); return x.Unix() }
	hook := func() *Hook {
		t.Helper()
		for e := range w.s.Hooks() {
			return e
		}
		return nil
	}
	done := func(failed string) []Cutoff {
		t.Helper()
		e := hook()
		if e == nil {
			t.Fatal("there is no hook")
		}
		return forgotten(w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: e.ID, Failed: failed}}}))
	}
	w.due()
	if e := hook(); e == nil || e.Kind != HookRetain || e.Retain.Dir != "/archive" || len(e.Retain.Cutoffs) != 2 || e.Retain.Cutoffs[0] != (Cutoff{JobRecords, unix("2026-01-01"), true}) ||
		e.Retain.Cutoffs[1] != (Cutoff{StepRecords, unix("2026-03-21"), false}) {
		t.Fatalf("hook %+v", e)
	}
	w.due() // one is under way
	w.refused(root, &Retain{}, ErrNoChange)
	if got := done("disk full"); got != nil {
		t.Errorf("after a failure %v goes", got)
	}
	w.due()
	if e := hook(); e != nil {
		t.Error("a failed hook is tried again at once")
	}
	if at := w.s.NextTimer(w.now); !at.Equal(w.now.Add(retainRetry)) {
		t.Errorf("the next try is at %v", at)
	}
	w.pass(retainRetry)
	w.due()
	if got := done(""); len(got) != 2 {
		t.Errorf("%v goes, want jobs and steps", got)
	}
	w.due()
	if e := hook(); e != nil {
		t.Errorf("what has gone goes again: %+v", e.Retain)
	}
	if at := w.s.NextTimer(w.now); at.Unix() != unix("2026-04-01") {
		t.Errorf("the next look is at %v", at)
	}
	w.now = time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	w.due()
	if got := done(""); len(got) != 2 || got[0].Before != unix("2026-02-01") || got[1].Before != unix("2026-03-22") {
		t.Errorf("in April %v goes", got)
	}
	w.refused(alice, &Retain{}, ErrAccess)
	w.refused(alice, &LoadHistory{Records: []Archived{{Step: &Step{ID: StepID{Job: 1}}}}}, ErrAccess)
	w.refused(root, &LoadHistory{Records: []Archived{{Job: &Job{ID: 1}}}}, ErrNoChange)
	admin := Identity{UID: 1005, User: "ada"}
	w.ok(root, &ChangeAccounts{Changes: []Change{{User: &User{Name: "ada", AdminLevel: "Administrator"}}}})
	w.refused(admin, &Retain{
		Retention{Script: "/tmp/mine", Rules: []RetainRule{{TxnRecords, Age{1, AgeDays}, true}}},
	}, ErrAccess)
	w.refused(admin, &Retain{ // root's daemon would write there
		Retention{Dir: "/etc/sudoers.d", Rules: []RetainRule{{TxnRecords, Age{1, AgeDays}, true}}},
	}, ErrAccess)
	w.refused(root, &Retain{Retention{Rules: []RetainRule{{"nodes", Age{1, AgeDays}, false}}}}, ErrNoChange)
	w.ok(root, &Retain{Retention{Rules: []RetainRule{{UsageRecords, Age{1, AgeHours}, false}}}})
	if got := done(""); len(got) != 1 || got[0].Kind != UsageRecords {
		t.Errorf("by hand %v goes", got)
	}
}
