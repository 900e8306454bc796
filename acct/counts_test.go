package acct

import (
	"context"
	"maps"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestCount: what has started and ended since a moment, and nothing from before it.
func TestCount(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	var events []cluster.Event
	add := func(id cluster.JobID, phase cluster.Phase, how cluster.Outcome, started, ended time.Duration) {
		j := job(id, phase, how)
		if started != 0 {
			j.Started = epoch.Add(started)
		}
		if ended != 0 {
			j.Ended = epoch.Add(ended)
		}
		events = append(events, cluster.Event{Job: j})
	}
	add(1, cluster.Ended, cluster.Completed, -time.Hour, -time.Minute)
	add(2, cluster.Ended, cluster.Completed, -time.Hour, time.Minute)
	add(3, cluster.Ended, cluster.Failed, time.Minute, 2*time.Minute)
	add(4, cluster.Ended, cluster.Failed, time.Minute, 2*time.Minute)
	add(5, cluster.Running, cluster.NoOutcome, time.Minute, 0)
	add(6, cluster.Pending, cluster.NoOutcome, 0, 0)
	d.Apply(1, events)
	if err := d.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := PastOf(d.DB).Count(context.Background(), epoch)
	want := map[cluster.Outcome]int{cluster.Completed: 1, cluster.Failed: 2}
	if err != nil || got.Started != 3 || !maps.Equal(got.Ended, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
