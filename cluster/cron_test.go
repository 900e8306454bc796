package cluster

import (
	"testing"
	"time"
)

// TestCronTime: when lines of a crontab run next.
func TestCronTime(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	from := time.Date(2026, 11, 25, 7, 30, 10, 0, berlin) // a Wednesday
	for spec, want := range map[string]string{
		"* * * * *":             "2026-11-25 07:31",
		"0 * * * *":             "2026-11-25 08:00",
		"0 0 * * *":             "2026-11-26 00:00",
		"30 7 * * *":            "2026-11-26 07:30",
		"*/20 8-10/2 * * wed":   "2026-11-25 08:00",
		"1-5,30 8-17/2 * * thu": "2026-11-26 08:01",
		"0 0 1 jan *":           "2027-01-01 00:00",
		"0 0 29 2 *":            "2028-02-29 00:00",
		"0 0 * * 7":             "2026-11-29 00:00",
		"0 12 1 * fri":          "2026-11-27 12:00", // the first, or a Friday
		"0 0 30 2 *":            "0001-01-01 00:00",
		CronNamed("@elevenses"): "2026-11-25 11:00",
	} {
		c, err := ParseCron(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := c.Next(from).Format("2006-01-02 15:04"); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	for _, bad := range []string{
		"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-3 * * * *",
		"*/0 * * * *", "a * * * *", "1,,2 * * * *",
	} {
		if _, err := ParseCron(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestCrontab: a job of a crontab keeps its number from run to run, and its lines are commented out once it is ended.
func TestCrontab(t *testing.T) {
	w := newWorld(t, 1)
	cfg := DefaultConfig()
	cfg.Keys = map[string]string{"scronparameters": "enable,explicit_scancel"}
	w.ok(root, &Configure{Config: &cfg})
	spec := &JobSpec{
		Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID, User: "alice", Kind: Batch,
		Timing: Timing{Cron: &Cron{When: "0 * * * *"}, Begin: w.now.Add(time.Minute)},
	}
	w.refused(alice, &Submit{Spec: spec}, "")
	put := &CrontabPut{UID: alice.UID, Text: "# mine\n#SCRON -t 5\n@hourly true\n", Jobs: []CronJob{{spec, 2, 3}}}
	w.refused(bob, put, ErrUser)
	id := w.ok(alice, put).Result.([]JobID)[0]
	w.wantWait(id, WaitBegin)
	w.pass(time.Hour)
	w.run(id, 0, "n0")
	w.seq["n0"]++
	w.ok(sys, &Report{
		Node: "n0", Seq: w.seq["n0"],
		Updates: []Update{
			{Kind: BatchOver, Job: id, Attempt: 1, At: w.now, Exit: ExitStatus{Code: 1}},
			{Kind: NodeDone, Job: id, Attempt: 1, At: w.now},
		},
	})
	if j := w.want(id, Pending); j.Spec.Cron.After.IsZero() || j.Restarts != 0 {
		t.Fatalf("after a run: run after %v, %d restarts", j.Spec.Cron.After, j.Restarts)
	}
	w.due()
	j := w.wantWait(id, WaitBegin)
	next := j.Spec.Begin
	if !j.Spec.Cron.After.IsZero() || next.Minute() != 0 || !next.After(w.now) || next.After(w.now.Add(time.Hour)) {
		t.Errorf("the next run begins at %v", next)
	}
	w.ok(alice, &Requeue{Ref: Ref{Job: id}})
	w.due()
	if at := w.wantWait(id, WaitBegin).Spec.Begin; !at.Equal(next.Add(time.Hour)) {
		t.Errorf("the run after the next one begins at %v, not an hour after %v", at, next)
	}
	w.refused(alice, &Cancel{Ref: Ref{Job: id}}, ErrCron)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}, Cron: true})
	if c := w.s.Crontab(alice.UID); c == nil || c.Text != "# mine\n#DISABLED: #SCRON -t 5\n#DISABLED: @hourly true\n" || len(c.Jobs) != 0 {
		t.Errorf("the crontab: %+v", c)
	}
	// A new one ends what waits of the old one, and lets run what runs.
	first := w.ok(alice, put).Result.([]JobID)[0]
	w.pass(time.Hour)
	w.run(first, 0, "n0")
	w.ok(alice, put)
	w.over(first, 0)
	w.ok(alice, &CrontabPut{UID: alice.UID})
	if c := w.s.Crontab(alice.UID); c != nil {
		t.Errorf("the crontab after it was taken away: %+v", c)
	}
}
