package cluster

import (
	"testing"
	"time"
)

// TestCheckCrontab: a crontab whose lines can not be is refused at the door, since its jobs could not end: they would
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
