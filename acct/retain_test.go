package acct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"dev.muster/cluster"
)

func swept(t *testing.T, d *DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.Swept(ctx); err != nil {
		t.Fatal(err)
	}
}

func usageOf(t *testing.T, d *DB, from, to time.Time) []cluster.UsageRow {
	t.Helper()
	rows, err := d.Usage(context.Background(), cluster.UsageQuery{Time: cluster.Span{From: from.Unix(), To: to.Unix()}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func counted(t *testing.T, d *DB, from, to time.Time) []cluster.Utilization {
	t.Helper()
	rows, err := d.Utilization(context.Background(), cluster.Span{From: from.Unix(), To: to.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func old(t *testing.T, d *DB, kind cluster.RecordKind, before time.Time) (out []cluster.Archived) {
	t.Helper()
	for a, err := range d.Old(context.Background(), cluster.Cutoff{Kind: kind, Before: before.Unix()}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// TestForget: old jobs go with their steps and sums stay; archived ones come back as they were and are not counted
// twice; then the sums go too.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, dir)
	defer func() { d.stop() }()
	n := &cluster.Node{Name: "n1", Up: true, Inventory: cluster.Inventory{CPUs: 64}}
	events := []cluster.Event{{Node: n, At: epoch.Add(-time.Hour)}}
	const jobs, gone = 9000, 7000 // job i was submitted in second i
	for i := cluster.JobID(1); i <= jobs; i++ {
		events = append(events, cluster.Event{Job: ranJob(i, cluster.Completed)},
			cluster.Event{
				Step: &cluster.Step{
					ID: cluster.StepID{Job: i}, Attempt: 1, Name: "s",
					Started: epoch.Add(time.Duration(i) * time.Second),
					Ended:   epoch.Add(time.Duration(i+1) * time.Second),
				},
			})
	}
	d.Apply(1, events)
	cut, end := epoch.Add(gone*time.Second+121*time.Second), epoch.Add(4*time.Hour)
	swept(t, d.DB)
	usage, load := usageOf(t, d.DB, epoch, end), counted(t, d.DB, epoch, end)
	archive := append(old(t, d.DB, cluster.JobRecords, cut), old(t, d.DB, cluster.StepRecords, cut)...)
	d.Apply(2, []cluster.Event{{Forget: []cluster.Cutoff{{Kind: cluster.JobRecords, Before: cut.Unix()}}}})
	if err := d.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	copied := export(t, d.DB, 2) // perhaps while records go: the copy goes on with it
	late := t.TempDir()
	if err := os.Rename(copied, filepath.Join(late, "history.db")); err != nil {
		t.Fatal(err)
	}
	d.stop()
	d = openDB(t, dir) // as does a restart
	swept(t, d.DB)
	left := all(t, d.DB, Query{Steps: true})
	if len(left) != jobs-gone || left[0].Job.ID != gone+1 || len(left[0].Steps) != 1 {
		t.Fatalf("%d jobs are left, the first is %d", len(left), left[0].Job.ID)
	}
	if got := asked(t, d.DB, "SELECT count(*) FROM step"); got != "count(*)\n2000" {
		t.Errorf("steps: %s", got)
	}
	if got := usageOf(t, d.DB, epoch, end); !reflect.DeepEqual(got, usage) {
		t.Errorf("usage is %+v, was %+v", got, usage)
	}
	c := openDB(t, late)
	defer c.stop()
	swept(t, c.DB)
	if got := all(t, c.DB, Query{}); len(got) != len(left) {
		t.Errorf("a copy has %d jobs, the original %d", len(got), len(left))
	}
	var load3 []cluster.Event
	for i := range archive {
		load3 = append(load3, cluster.Event{Load: archive[i : i+1]})
	}
	d.Apply(3, load3)
	d.Apply(4, load3)
	back := all(t, d.DB, Query{Steps: true})
	if len(back) != jobs || back[0].Job.ID != 1 || len(back[0].Steps) != 1 {
		t.Errorf("%d jobs are there after the archive was loaded, the first is %d with %d steps", len(back),
			back[0].Job.ID, len(back[0].Steps))
	}
	if got := usageOf(t, d.DB, epoch, end); !reflect.DeepEqual(got, usage) {
		t.Errorf("usage with the archive is %+v, was %+v", got, usage)
	}
	if got := counted(t, d.DB, epoch, end); !reflect.DeepEqual(got, load) {
		t.Errorf("utilization with the archive is %+v, was %+v", got, load)
	}
	third := counted(t, d.DB, epoch.Add(2*time.Hour), end)
	d.Apply(5, []cluster.Event{
		{Forget: []cluster.Cutoff{{Kind: cluster.UsageRecords, Before: epoch.Add(2 * time.Hour).Unix()}}},
	})
	swept(t, d.DB)
	if got := usageOf(t, d.DB, epoch, epoch.Add(time.Hour)); len(got) != 0 {
		t.Errorf("usage that was forgotten: %+v", got)
	}
	if got := counted(t, d.DB, epoch.Add(2*time.Hour), end); !reflect.DeepEqual(got, third) {
		t.Errorf("utilization of what is kept is %+v, was %+v", got, third)
	}
}

// TestForgetAll: numbers of records are not given again, so that an archive comes back to where it was.
func TestForgetAll(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	d.Apply(1, []cluster.Event{{Job: ranJob(1, cluster.Completed)}, {Job: ranJob(2, cluster.Completed)}})
	if err := d.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	cut := epoch.Add(24 * time.Hour)
	archive := old(t, d.DB, cluster.JobRecords, cut)
	d.Apply(2, []cluster.Event{{Forget: []cluster.Cutoff{{Kind: cluster.JobRecords, Before: cut.Unix()}}}})
	swept(t, d.DB)
	d.Apply(3, []cluster.Event{{Job: ranJob(3, cluster.Completed)}, {Load: archive}})
	var got []cluster.JobID
	for _, r := range all(t, d.DB, Query{}) {
		got = append(got, r.Job.ID)
	}
	if len(got) != 3 || got[0] != 1 || got[2] != 3 {
		t.Errorf("records %v, want 1, 2, 3", got)
	}
	if rows := usageOf(t, d.DB, epoch, cut); len(rows) != 1 || rows[0].Jobs != 3 {
		t.Errorf("usage %+v, want that of three jobs", rows)
	}
}

// TestForgetRest: why a node was down, for whom a reservation was and who changed the books goes and comes back;
// for how long stays in reports.
func TestForgetRest(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	hours := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Hour) }
	n := func(down bool, reason string) *cluster.Node {
		return &cluster.Node{
			Name: "n1", Up: true, Down: down, Reason: reason, ReasonBy: "ann",
			Inventory: cluster.Inventory{CPUs: 8},
		}
	}
	r := &cluster.Reservation{
		Name: "r1", Start: hours(4), End: hours(5), Nodes: []cluster.NodeName{"n1"}, Users: []string{"ann"},
	}
	d.Apply(1, []cluster.Event{{Node: n(false, ""), At: hours(0)}, {Node: n(true, "burnt"), At: hours(1)},
		{Node: n(false, ""), At: hours(2)}, {Node: n(true, "again"), At: hours(7)},
		{Node: n(false, ""), At: hours(8)}, {Resv: r, At: hours(3)},
		{Change: &cluster.Transaction{At: hours(1), Action: "Add Users", Where: "name='ann'"}}})
	cut, end := hours(6), hours(9)
	span := cluster.Span{From: epoch.Unix(), To: end.Unix()}
	told := func() (text string) {
		t.Helper()
		swept(t, d.DB)
		ctx := context.Background()
		nodes, err := d.NodeSpans(ctx, span)
		resvs, err2 := d.Reservations(ctx, span)
		changes, err3 := d.Changes(ctx, span)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		for _, s := range nodes {
			text += fmt.Sprintf("%s %v %v|", s.Reason, s.By != "", s.Forgotten)
		}
		for _, s := range resvs {
			text += fmt.Sprintf("%s %v|", s.Name, s.Users)
		}
		for _, x := range changes {
			text += x.Where
		}
		return text
	}
	all, used := told(), counted(t, d.DB, epoch, end)
	if want := " false false|burnt true false| false false|again true false| false false|r1 [ann]|name='ann'"; all != want {
		t.Fatalf("history is %s\nwant %s", all, want)
	}
	kinds := []cluster.RecordKind{cluster.EventRecords, cluster.ResvRecords, cluster.TxnRecords}
	var archive []cluster.Archived
	var cutoffs []cluster.Cutoff
	for _, k := range kinds {
		archive, cutoffs = append(archive, old(t, d.DB, k, cut)...), append(cutoffs,
			cluster.Cutoff{Kind: k, Before: cut.Unix()})
	}
	if len(archive) != 3 || archive[0].Event.Reason != "burnt" || archive[1].Resv.Name != "r1" || archive[2].Change.Where != "name='ann'" {
		t.Fatalf("the archive has %+v", archive)
	}
	d.Apply(2, []cluster.Event{{Forget: cutoffs}})
	if got, want := told(), " false false| false true| false false|again true false| false false|"; got != want {
		t.Errorf("after that %s\nwant %s", got, want)
	}
	for _, k := range kinds {
		if again := old(t, d.DB, k, cut); again != nil {
			t.Errorf("there is something to be archived again: %+v", again)
		}
	}
	if got := counted(t, d.DB, epoch, end); !reflect.DeepEqual(got, used) {
		t.Errorf("utilization is %+v, was %+v", got, used)
	}
	d.Apply(3, []cluster.Event{{Load: archive}})
	d.Apply(4, []cluster.Event{{Load: archive}})
	if got := told(); got != all {
		t.Errorf("with the archive %s\nwant %s", got, all)
	}
	d.Apply(5, []cluster.Event{{Forget: []cluster.Cutoff{{Kind: cluster.UsageRecords, Before: cut.Unix()}}}})
	d.Apply(6, []cluster.Event{{Load: archive}})
	if got, want := told(), " false false|again true false| false false|name='ann'"; got != want {
		t.Errorf("with the archive of what no report has: %s\nwant %s", got, want)
	}
}

// TestLoadWhileFetching: an archive that is loaded while the past is on its way to a late server is counted once
// there too, also if it goes again before that has come.
func TestLoadWhileFetching(t *testing.T) {
	for _, again := range []bool{false, true} {
		whole, late := openDB(t, t.TempDir()), openDB(t, t.TempDir())
		cut, end := epoch.Add(130*time.Second), epoch.Add(4*time.Hour)
		var events []cluster.Event
		for i := cluster.JobID(1); i <= 20; i++ {
			events = append(events, cluster.Event{Job: ranJob(i, cluster.Completed)},
				cluster.Event{
					Step: &cluster.Step{
						ID: cluster.StepID{Job: i}, Attempt: 1,
						Started: epoch.Add(time.Duration(i) * time.Second),
						Ended:   epoch.Add(time.Duration(i+1) * time.Second),
					},
				})
		}
		gone := []cluster.Event{{Forget: []cluster.Cutoff{{Kind: cluster.JobRecords, Before: cut.Unix()}}}}
		whole.Apply(1, events)
		swept(t, whole.DB)
		archive := append(old(t, whole.DB, cluster.JobRecords, cut), old(t, whole.DB, cluster.StepRecords,
			epoch.Add(3*time.Second))...)
		if len(archive) < 4 || len(archive) > 20 {
			t.Fatalf("the archive has %d records", len(archive))
		}
		whole.Apply(2, gone)
		swept(t, whole.DB)
		if err := late.Restored(2); err != nil {
			t.Fatal(err)
		}
		base, err := os.Open(export(t, whole.DB, 2))
		if err != nil {
			t.Fatal(err)
		}
		next := [][]cluster.Event{
			{{Job: ranJob(30, cluster.Completed)}}, {{Load: archive}},
			{{Job: ranJob(31, cluster.Completed)}},
		}
		if again {
			next = append(next, []cluster.Event{
				{Forget: []cluster.Cutoff{{Kind: cluster.JobRecords, Before: cut.Unix() + 5}}},
			})
		}
		for i, e := range next {
			whole.Apply(uint64(3+i), e)
			late.Apply(uint64(3+i), e)
		}
		swept(t, whole.DB)
		if err := late.Flush(context.Background()); err != nil { // it is all in the file when the past comes
			t.Fatal(err)
		}
		if err := late.Adopt(context.Background(), base); err != nil {
			t.Fatal(err)
		}
		swept(t, late.DB)
		if got, want := usageOf(t, late.DB, epoch, end), usageOf(t, whole.DB, epoch, end); !reflect.DeepEqual(got, want) {
			t.Errorf("gone again %v: usage is %+v, elsewhere %+v", again, got, want)
		}
		for _, what := range []string{
			"SELECT id, submitted FROM jobs ORDER BY 1", "SELECT job, step FROM steps ORDER BY 1",
			"SELECT count(*), sum(seconds) FROM runs",
		} {
			if got, want := asked(t, late.DB, what), asked(t, whole.DB, what); got != want {
				t.Errorf("gone again %v: %s gives\n%s\nelsewhere\n%s", again, what, got, want)
			}
		}
		whole.stop()
		late.stop()
		_ = base.Close()
	}
}

// TestAmend: what is said of a job afterwards changes its record and moves its use to another wckey; a record of
// somebody else's stays. On a late server it waits for the past, and comes out the same.
func TestAmend(t *testing.T) {
	whole, late := openDB(t, t.TempDir()), openDB(t, t.TempDir())
	job := ranJob(1, cluster.Completed)
	record := cluster.JobRecord{ID: job.ID, Submitted: job.Submitted, UID: job.Spec.UID}
	whole.Apply(1, []cluster.Event{{Job: job}, {Job: ranJob(2, cluster.Completed)}})
	if err := late.Restored(1); err != nil {
		t.Fatal(err)
	}
	base, err := os.Open(export(t, whole.DB, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	say := func(text string, r cluster.JobRecord) cluster.Event {
		return cluster.Event{
			Amend: &cluster.AmendedJob{JobRecord: r, Amendment: cluster.Amendment{Comment: &text, WCKey: &text}},
		}
	}
	others, unknown := record, record
	others.UID++
	unknown.ID = 99
	for i, e := range [][]cluster.Event{
		{say("first", record)}, {say("key", record), say("other", others), say("nobody", unknown)},
	} {
		whole.Apply(uint64(2+i), e)
		late.Apply(uint64(2+i), e)
	}
	for _, d := range []opened{whole, late} {
		if err := d.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.Adopt(context.Background(), base); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]opened{"whole": whole, "late": late} {
		if got, want := asked(t, d.DB, "SELECT id, comment, wckey FROM jobs ORDER BY 1"), "id|comment|wckey\n1|key|key\n2||"; got != want {
			t.Errorf("%s: jobs\n%s\nwant\n%s", name, got, want)
		}
		if got, want := asked(t, d.DB, "SELECT wckey, count(*) FROM runs GROUP BY 1 ORDER BY 1"), "wckey|count(*)\n|1\nkey|1"; got != want {
			t.Errorf("%s: runs\n%s\nwant\n%s", name, got, want)
		}
		d.stop()
	}
}
