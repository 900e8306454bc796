package acct

import (
	"context"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// oldJob is the record of a job of a Slurm cluster, submitted so many seconds after a time.
func oldJob(id cluster.JobID, after int, changed int64, change func(*cluster.Job)) *cluster.Job {
	at := epoch.Add(time.Duration(after) * time.Second).Truncate(time.Second)
	j := &cluster.Job{ID: id, Task: cluster.TaskAny, Phase: cluster.Ended, Outcome: cluster.Completed, Submitted: at,
		Eligible: at, Started: at.Add(time.Minute), Ended: at.Add(2 * time.Minute), Attempt: int(at.Unix()),
		Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "old", User: "alice", UID: 1001, Account: "team"}}
	j.Imported = &cluster.ImportedJob{Cluster: "old", Row: uint64(id), Changed: changed, State: 3,
		Eligible: at.Unix(), Start: at.Unix() + 60, End: at.Unix() + 120, TRESAlloc: "cpu=4", Partition: "p"}
	if change != nil {
		change(j)
	}
	return j
}

func importedEvents(t *testing.T, jobs ...*cluster.Job) (out []cluster.Event) {
	t.Helper()
	for _, j := range jobs {
		text, err := wire.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, cluster.Event{Imported: &cluster.Imported{Job: j, Text: text}})
		st := &cluster.Step{ID: cluster.StepID{Job: j.ID, Step: cluster.BatchStep}, Attempt: j.Attempt, Started: j.Started,
			Imported: &cluster.ImportedStep{State: 3}}
		if text, err = wire.Marshal(st); err != nil {
			t.Fatal(err)
		}
		out = append(out, cluster.Event{Imported: &cluster.Imported{Step: st, Text: text}})
	}
	return out
}

// oldRecords reads all jobs, and sums up the CPU seconds that they used.
func oldRecords(t *testing.T, d *DB, q Query) (list []Record, used float64) {
	t.Helper()
	for r, err := range d.Jobs(context.Background(), q) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	rows, err := d.Usage(context.Background(),
		cluster.UsageQuery{Time: cluster.Span{From: epoch.Unix() - 3600, To: epoch.Unix() + 86400}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		used += cluster.AmountOf(r.Used, "cpu")
	}
	return list, used
}

func TestImported(t *testing.T) {
	requeued := func(j *cluster.Job) { j.Outcome = cluster.Requeued }
	held := func(j *cluster.Job) {
		j.Outcome, j.Eligible, j.Started = cluster.Cancelled, time.Time{}, time.Time{}
		j.Imported.Eligible, j.Imported.Start = 0, 0
	}
	all := []*cluster.Job{oldJob(7, 0, 1, requeued), oldJob(7, 500, 1, nil), oldJob(8, 10, 1, held), oldJob(9, 20, 5, nil)}
	d, err := Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	native := &cluster.Job{ID: 7, Task: cluster.TaskAny, Phase: cluster.Pending, Submitted: epoch.Add(time.Hour),
		Eligible: epoch.Add(time.Hour), Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "new"}}
	if err := d.store(append(importedEvents(t, all...), cluster.Event{Job: native}), 1); err != nil {
		t.Fatal(err)
	}
	for index, c := range []struct {
		name   string
		again  []*cluster.Job
		worked float64
	}{
		{"at first", nil, 3 * 60 * 4},
		{"the same again", all, 3 * 60 * 4},
		{"an older record", []*cluster.Job{oldJob(9, 20, 4, func(j *cluster.Job) { j.Imported.TRESAlloc = "cpu=1" })},
			3 * 60 * 4},
		{"a newer record", []*cluster.Job{oldJob(9, 20, 6, func(j *cluster.Job) { j.Imported.TRESAlloc = "cpu=8" })},
			4 * 60 * 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := d.store(importedEvents(t, c.again...), uint64(index+2)); err != nil {
				t.Fatal(err)
			}
			list, used := oldRecords(t, d, Query{Duplicates: true, Steps: true, From: epoch.Add(-time.Hour)})
			if len(list) != 4 || used != c.worked {
				t.Errorf("%d records, %v CPU seconds, want 4 and %v", len(list), used, c.worked)
			}
			for _, r := range list {
				if r.Job.Imported != nil && len(r.Steps) != 1 {
					t.Errorf("job %d has %d steps", r.Job.ID, len(r.Steps))
				}
			}
			if list, _ = oldRecords(t, d, Query{From: epoch.Add(-time.Hour)}); len(list) != 3 {
				t.Errorf("%d jobs without duplicates, want 7 of both clusters and 9", len(list))
			}
			named := []cluster.Ref{{Job: 8}}
			if list, _ = oldRecords(t, d, Query{Refs: named}); len(list) != 1 {
				t.Errorf("%d records of a job that was never eligible, by its number", len(list))
			}
		})
	}
}

// TestImportedReservation: a reservation of a Slurm cluster is there once, with what its jobs used.
func TestImportedReservation(t *testing.T) {
	d, err := Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	events := importedEvents(t, oldJob(7, 0, 1, func(j *cluster.Job) { j.Spec.Reservation = "course" }))
	resv := &cluster.ResvSpan{Name: "course", From: epoch.Unix(), To: epoch.Unix() + 600,
		TRES: []cluster.Amount{{TRES: "cpu", N: 16}}}
	events = append(events, cluster.Event{Imported: &cluster.Imported{Resv: resv}})
	for index := range uint64(2) {
		if err := d.store(events, index+1); err != nil {
			t.Fatal(err)
		}
		list, err := d.Reservations(context.Background(), cluster.Span{From: epoch.Unix(), To: epoch.Unix() + 3600})
		if err != nil || len(list) != 1 || cluster.AmountOf(list[0].Used, "cpu") != 60*4 {
			t.Errorf("%+v, %v", list, err)
		}
	}
}
