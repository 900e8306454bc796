package cluster

import (
	"testing"
	"time"
)

// TestCheckCrontab: a crontab whose lines cannot be is refused at the door, since its jobs could not end: they would
// have lines commented out that are none, which breaks whatever command ends them, as the report of a node.
func TestCheckCrontab(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.Keys = map[string]string{"scronparameters": "enable"}
	w.ok(root, &Configure{Config: &cfg})
	put := func(first, last int) *CrontabPut {
		spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID, User: "alice"}
		spec.Cron = &Cron{When: "0 0 1 1 *"}
		spec.Begin = w.now.Add(time.Hour)
		return &CrontabPut{UID: alice.UID, Text: "x\n", Jobs: []CronJob{{Spec: spec, First: first, Last: last}}}
	}
	for _, c := range []struct {
		first, last int
		want        bool
	}{{1, 1, true}, {1, 2, true}, {0, 0, false}, {-5, 2, false}, {2, 1, false}} {
		if err := Check(w.s.Snapshot(), put(c.first, c.last)); (err == nil) != c.want {
			t.Errorf("lines %d to %d: %v", c.first, c.last, err)
		}
	}
	w.ok(alice, put(-5, 2)) // one that an earlier version has let in
	w.ok(alice, &Cancel{Ref: Ref{Job: w.s.Crontab(alice.UID).Jobs[0].Job}})
	if got := w.s.Crontab(alice.UID).Text; got != DisabledLine+"x\n"+DisabledLine {
		t.Errorf("the crontab after the end of its job: %q", got)
	}
}

// TestLinesOfTwoJobs: the lines of a crontab are each job's own, since the end of a job makes them longer: a thousand
// jobs that had all of a megabyte of lines would make gigabytes of it on each server.
func TestLinesOfTwoJobs(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.Keys = map[string]string{"scronparameters": "enable"}
	w.ok(root, &Configure{Config: &cfg})
	put := func(text string, lines ...[2]int) *CrontabPut {
		c := &CrontabPut{UID: alice.UID, Text: text}
		for _, l := range lines {
			spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID, User: "alice"}
			spec.Cron = &Cron{When: "0 0 1 1 *"}
			c.Jobs = append(c.Jobs, CronJob{Spec: spec, First: l[0], Last: l[1]})
		}
		return c
	}
	const text = "a\nb\nc\n"
	for _, c := range []struct {
		name  string
		lines [][2]int
		want  bool
	}{
		{"one after the other", [][2]int{{1, 1}, {2, 3}}, true},
		{"in another order", [][2]int{{3, 3}, {1, 2}}, true},
		{"the same", [][2]int{{1, 1}, {1, 1}}, false},
		{"one in the other", [][2]int{{1, 3}, {2, 2}}, false},
		{"beyond the text", [][2]int{{1, 1 << 30}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := Check(w.s.Snapshot(), put(text, c.lines...)); (err == nil) != c.want {
				t.Error(err)
			}
		})
	}
	both := put(text, [2]int{1, 3}, [2]int{1, 3}) // one that an earlier version has let in
	for _, id := range w.ok(alice, both).Result.([]JobID) {
		w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	}
	if got := w.s.Crontab(alice.UID).Text; got != DisabledLine+"a\n"+DisabledLine+"b\n"+DisabledLine+"c\n" {
		t.Errorf("the crontab after the end of its jobs: %q", got)
	}
}
