package acct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// opened is a database with its writer running.
type opened struct {
	*DB
	stop func()
}

func openDB(t *testing.T, dir string) opened {
	t.Helper()
	d, err := Open(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	return opened{d, func() { cancel(); <-done }}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func job(id cluster.JobID, phase cluster.Phase, outcome cluster.Outcome) *cluster.Job {
	return &cluster.Job{ID: id, Task: cluster.TaskAny, Phase: phase, Outcome: outcome,
		Submitted: epoch.Add(time.Duration(id) * time.Second),
		Attempt:   1,
		Spec: &cluster.JobSpec{
			Layout: &cluster.Layout{}, Name: "j", User: "alice", UID: 1000, Account: "team",
			Partitions: []string{"main"},
		}}
}

func all(t *testing.T, d *DB, q Query) (out []Record) {
	t.Helper()
	if err := d.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	for r, err := range d.Jobs(context.Background(), q) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestWindow: a state with a window is what a job was in at some time of it. The table is 22.05's answer, for a job
// that was submitted at -8 s, began at 0 and ended at 6.
func TestWindow(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	j := job(1, cluster.Ended, cluster.Completed)
	j.Submitted, j.Started, j.Ended = at(-8), at(0), at(6)
	pending := State{Phase: cluster.Pending}
	running := State{Phase: cluster.Running}
	completed := State{Phase: cluster.Ended, Outcome: cluster.Completed}
	failed := State{Phase: cluster.Ended, Outcome: cluster.Failed}
	for _, c := range []struct {
		from, to int
		want     []State
	}{
		{-8, -1, []State{pending}},
		{1, 3, []State{running}},
		{-2, 8, []State{pending, running, completed}},
		{7, 10, nil},
		{1, 8, []State{running, completed}},
		{-2, 1, []State{pending, running}},
	} {
		for _, s := range []State{pending, running, completed, failed} {
			q := Query{From: at(c.from), To: at(c.to), States: []State{s}}
			if got := q.matches(j); got != slices.Contains(c.want, s) {
				t.Errorf("from %d to %d, %v: %v", c.from, c.to, s, got)
			}
		}
	}
	waits := job(2, cluster.Pending, cluster.NoOutcome)
	waits.Submitted, waits.Started = at(0), time.Time{}
	for _, s := range []State{pending, running} {
		q := Query{From: at(5), States: []State{s}}
		if got := q.matches(waits); got != (s == pending) {
			t.Errorf("a job that waits: %v is %v", s, got)
		}
	}
}

func TestQuery(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	ended := job(1, cluster.Ended, cluster.Completed)
	ended.Started, ended.Ended = epoch, epoch.Add(time.Hour)
	running := job(2, cluster.Running, cluster.NoOutcome)
	running.Alloc = &cluster.Alloc{Partition: "gpu", Shares: []cluster.Share{{Node: "n1"}}}
	other := job(3, cluster.Ended, cluster.Failed)
	other.Spec.UID, other.Spec.Account, other.Ended = 1001, "else", epoch.Add(2*time.Hour)
	step := &cluster.Step{ID: cluster.StepID{Job: 1, Step: 0}, Attempt: 1, Name: "s", Started: epoch}
	ending := job(4, cluster.Ending, cluster.NoOutcome)
	ending.EndingWhy = cluster.TimedOut
	ending.EndingAt = epoch.Add(time.Minute)
	ending.Waiting = []cluster.NodeName{"n1"}
	d.Apply(1, []cluster.Event{{Job: ended}, {Job: running}, {Job: other}, {Step: step}, {Job: ending}})
	cases := []struct {
		name string
		q    Query
		want []cluster.JobID
	}{
		{"everything", Query{}, []cluster.JobID{1, 2, 3, 4}},
		{"by id", Query{Refs: []cluster.Ref{{Job: 2}}}, []cluster.JobID{2}},
		{"by user", Query{Users: []uint32{1001}}, []cluster.JobID{3}},
		{"by account", Query{Accounts: []string{"team"}}, []cluster.JobID{1, 2, 4}},
		{
			"over, though a node is not clean yet",
			Query{States: []State{{Phase: cluster.Ended, Outcome: cluster.TimedOut}}}, []cluster.JobID{4},
		},
		{"by partition it ran in", Query{Partitions: []string{"gpu"}}, []cluster.JobID{2}},
		{"by node", Query{Nodes: []cluster.NodeName{"n1"}}, []cluster.JobID{2}},
		{"by state", Query{States: []State{{Phase: cluster.Ended, Outcome: cluster.Failed}}}, []cluster.JobID{3}},
		{"alive after", Query{From: epoch.Add(90 * time.Minute)}, []cluster.JobID{2, 3}},
		{"submitted before", Query{To: epoch.Add(time.Second)}, []cluster.JobID{1}},
	}
	for _, c := range cases {
		var got []cluster.JobID
		for _, r := range all(t, d.DB, c.q) {
			got = append(got, r.Job.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if r := all(t, d.DB, Query{Refs: []cluster.Ref{{Job: 4}}}); len(r) != 1 || r[0].Job.Phase != cluster.Ended || !r[0].Job.Ended.Equal(ending.EndingAt) {
		t.Errorf("a job that is being ended: %+v", r)
	}
	if r := all(t, d.DB, Query{
		Refs: []cluster.Ref{{Job: 1}}, Steps: true,
	}); len(r) != 1 || len(r[0].Steps) != 1 || r[0].Steps[0].Name != "s" {
		t.Errorf("steps: %+v", r)
	}
}

// TestLatestSteps: of the latest jobs a bounded number of steps is read, those that began last of the newest jobs.
func TestLatestSteps(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	const jobs, steps = jobsAtOnce + 2, 3
	for id := cluster.JobID(1); id <= jobs; id++ {
		j := job(id, cluster.Ended, cluster.Completed)
		j.Started = epoch.Add(time.Duration(id) * time.Hour)
		j.Ended = j.Started.Add(time.Hour)
		events := []cluster.Event{{Job: j}}
		for n := range steps {
			events = append(events, cluster.Event{Step: &cluster.Step{
				ID: cluster.StepID{Job: id, Step: n}, Attempt: 1, Started: j.Started.Add(time.Duration(n) * time.Minute),
			}})
		}
		d.Apply(uint64(id), events)
	}
	for _, c := range []struct {
		name         string
		q            Query
		steps, first int
	}{
		{"all", Query{Steps: true, MaxSteps: 2}, jobs * steps, 1},
		{"some of the last job's", Query{Steps: true, Latest: 10, MaxSteps: 2}, 2, jobs},
		{"those of two jobs", Query{Steps: true, Latest: 10, MaxSteps: 2 * steps}, 2 * steps, jobs - 1},
		{"those of several questions", Query{Steps: true, Latest: jobs, MaxSteps: (jobs - 1) * steps}, (jobs - 1) * steps, 2},
		{"fewer than the bound", Query{Steps: true, Latest: 2, MaxSteps: 100}, 2 * steps, jobs - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, first, last := 0, 0, 0
			for _, r := range all(t, d.DB, c.q) {
				if len(r.Steps) > 0 && first == 0 {
					first = int(r.Job.ID)
				}
				for _, st := range r.Steps {
					n, last = n+1, st.ID.Step
				}
			}
			if n != c.steps || first != c.first || last != steps-1 {
				t.Errorf("%d steps from job %d on, the last one is %d; want %d from job %d", n, first, last, c.steps, c.first)
			}
		})
	}
}

// Only the last attempt counts unless all are asked for.
func TestRequeuedJob(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	first := job(7, cluster.Ended, cluster.NodeFailed)
	first.Started = epoch.Add(time.Minute)
	second := job(7, cluster.Pending, cluster.NoOutcome)
	second.Submitted, second.Restarts = epoch.Add(time.Hour), 1
	step := &cluster.Step{ID: cluster.StepID{Job: 7, Step: 0}, Attempt: 1, Name: "s", Started: first.Started}
	d.Apply(1, []cluster.Event{{Step: step}, {Job: first}})
	d.Apply(2, []cluster.Event{{Job: second}})
	if got := all(t, d.DB, Query{}); len(got) != 1 || got[0].Job.Restarts != 1 {
		t.Errorf("last attempt: %+v", got)
	}
	got := all(t, d.DB, Query{Duplicates: true, Steps: true})
	if len(got) != 2 || len(got[0].Steps)+len(got[1].Steps) != 1 {
		t.Errorf("all attempts, the step with one of them: %+v", got)
	}
}

// However often the writer stops and the log is replayed, the tables are the same.
func TestReplayIsIdempotent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type entry struct {
		index  uint64
		events []cluster.Event
	}
	var log []entry
	for i := range 300 {
		id := cluster.JobID(1 + rnd.IntN(40))
		j := job(id, cluster.Phase(rnd.IntN(6)), cluster.Outcome(rnd.IntN(4)))
		j.Limit = time.Duration(i)
		log = append(log, entry{uint64(i + 1), []cluster.Event{{Job: j}}})
	}
	want := map[cluster.JobID]time.Duration{}
	for _, e := range log {
		want[e.events[0].Job.ID] = e.events[0].Job.Limit
	}
	dir := t.TempDir()
	from := 0
	for from < len(log) {
		d := openDB(t, dir)
		to := min(len(log), from+1+rnd.IntN(60))
		for _, e := range log[max(0, from-rnd.IntN(50)):to] { // the log is read again from somewhere before
			d.Apply(e.index, e.events)
		}
		if rnd.IntN(2) == 0 {
			if err := d.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		d.stop()
		from = to
	}
	d := openDB(t, dir)
	defer d.stop()
	got := all(t, d.DB, Query{})
	if len(got) != len(want) {
		t.Fatalf("%d jobs, want %d", len(got), len(want))
	}
	for _, r := range got {
		if r.Job.Limit != want[r.Job.ID] {
			t.Errorf("job %d has state %d, want %d", r.Job.ID, r.Job.Limit, want[r.Job.ID])
		}
	}
}

func TestDamagedFileIsSetAside(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "history.db"),
		[]byte("this is not a database, and longer than a header page of one"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDB(t, dir)
	d.Apply(1, []cluster.Event{{Job: job(1, cluster.Ended, cluster.Completed)}})
	if got := all(t, d.DB, Query{}); len(got) != 1 {
		t.Errorf("%d jobs in the new file, want 1", len(got))
	}
	d.stop()
	if aside, _ := filepath.Glob(filepath.Join(dir, "history.db.damaged-*")); len(aside) != 1 {
		t.Errorf("the damaged file is not kept: %v", aside)
	}
}

// Damage far from the file's head shows when it is opened, not when somebody asks for that job.
func TestDamagedPageIsFound(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, dir)
	for i := range 500 {
		d.Apply(uint64(i+1), []cluster.Event{{Job: job(cluster.JobID(i+1), cluster.Ended, cluster.Completed)}})
	}
	d.stop()
	path := filepath.Join(dir, "history.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte(`"id":250`)) &^ 4095 // the page that has the record
	if at < 4096 {
		t.Fatalf("no page of job 250 behind the first: %d", at)
	}
	copy(data[at:at+64], bytes.Repeat([]byte{0xa5}, 64))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	d = openDB(t, dir)
	defer d.stop()
	if aside, _ := filepath.Glob(path + ".damaged-*"); len(aside) != 1 || len(all(t, d.DB, Query{})) != 0 {
		t.Errorf("a damaged page is not noticed: %v", aside)
	}
}

// Servers gather different events together; their records are in one order all the same.
func TestOrderDoesNotDependOnGathering(t *testing.T) {
	events := []cluster.Event{{Job: job(1, cluster.Pending, 0)}, {Job: job(2, cluster.Pending, 0)},
		{Job: job(2, cluster.Ended, cluster.Completed)},
		{Job: job(1, cluster.Ended, cluster.Failed)}}
	apart, together := openDB(t, t.TempDir()), openDB(t, t.TempDir())
	defer apart.stop()
	defer together.stop()
	for i, e := range events {
		apart.Apply(uint64(i+1), []cluster.Event{e})
		if err := apart.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	together.Apply(4, events)
	for _, d := range []opened{apart, together} {
		got := all(t, d.DB, Query{})
		if len(got) != 2 || got[0].Job.ID != 1 || got[0].Job.Outcome != cluster.Failed || got[1].Job.ID != 2 {
			t.Errorf("records: %+v", got)
		}
	}
}

// export copies a database as a server does for another one.
func export(t *testing.T, d *DB, at uint64) string {
	t.Helper()
	file, err := d.Export(context.Background(), func() (uint64, error) { return at, nil })
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A server whose state jumped ahead of its history gets the past of another one, and keeps what came since.
func TestAdopt(t *testing.T) {
	whole, late := openDB(t, t.TempDir()), openDB(t, t.TempDir())
	defer whole.stop()
	defer late.stop()
	step := &cluster.Step{ID: cluster.StepID{Job: 2}, Attempt: 1, Started: epoch}
	events := []cluster.Event{1: {Job: job(1, cluster.Pending, 0)}, 2: {Job: job(1, cluster.Running, 0)},
		3: {Job: job(2, cluster.Pending, 0)},
		4: {Job: job(1, cluster.Ended, cluster.Completed)}, 5: {Step: step},
		6: {Job: job(3, cluster.Pending, 0)}, 7: {Job: job(2, cluster.Ended, cluster.Failed)}}
	late.Apply(1, events[1:2])
	for i := 1; i <= 7; i++ {
		whole.Apply(uint64(i), events[i:i+1])
	}
	if err := late.Restored(4); err != nil {
		t.Fatal(err)
	}
	if late.Whole() {
		t.Fatal("a history with a gap says it is whole")
	}
	if _, err := late.Export(context.Background(), func() (uint64, error) { return 4, nil }); err == nil {
		t.Error("a history with a gap was copied")
	}
	for i := 5; i <= 7; i++ {
		late.Apply(uint64(i), events[i:i+1])
	}
	f, err := os.Open(export(t, whole.DB, 6))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := late.Adopt(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	late.Apply(8, []cluster.Event{{Job: job(4, cluster.Pending, 0)}})
	whole.Apply(8, []cluster.Event{{Job: job(4, cluster.Pending, 0)}})
	want, got := all(t, whole.DB, Query{Steps: true}), all(t, late.DB, Query{Steps: true})
	if len(got) != 4 || !late.Whole() {
		t.Fatalf("%d records, whole: %v", len(got), late.Whole())
	}
	for i := range want {
		if got[i].Job.ID != want[i].Job.ID || got[i].Job.Phase != want[i].Job.Phase || got[i].Job.Outcome != want[i].Job.Outcome || len(got[i].Steps) != len(want[i].Steps) {
			t.Errorf("record %d: %+v, want %+v", i, got[i].Job, want[i].Job)
		}
	}
}

// Where nobody has more, a server goes on with what it had.
func TestGiveUp(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, dir)
	d.Apply(1, []cluster.Event{{Job: job(1, cluster.Ended, cluster.Completed)}})
	if err := d.Restored(9); err != nil {
		t.Fatal(err)
	}
	d.Apply(10, []cluster.Event{{Job: job(2, cluster.Pending, 0)}})
	d.stop()
	d = openDB(t, dir) // a restart forgets nothing of that
	defer func() { d.stop() }()
	if d.Whole() {
		t.Error("after a restart the gap is forgotten")
	}
	if err := d.Restored(9); err != nil {
		t.Fatal(err)
	}
	if err := d.GiveUp(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := all(t, d.DB, Query{}); len(got) != 2 || !d.Whole() {
		t.Errorf("%d records, whole: %v", len(got), d.Whole())
	}
}

// A copy has what was applied up to its index and nothing else, whatever is waiting to be written.
func TestExportIsExact(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	file, err := d.Export(context.Background(), func() (uint64, error) {
		for i := uint64(1); i <= 5; i++ {
			d.Apply(i, []cluster.Event{{Job: job(cluster.JobID(i), cluster.Pending, 0)}})
		}
		return 3, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Rename(file, filepath.Join(dir, "history.db")); err != nil {
		t.Fatal(err)
	}
	c := openDB(t, dir)
	defer c.stop()
	if got := all(t, c.DB, Query{}); len(got) != 3 || c.index != 3 {
		t.Errorf("the copy has %d records and index %d", len(got), c.index)
	}
	if got := all(t, d.DB, Query{}); len(got) != 5 {
		t.Errorf("the original has %d records", len(got))
	}
}

// TestFlushEnds: who waits for what was applied does not wait for what is applied meanwhile, which may never end.
func TestFlushEnds(t *testing.T) {
	d, err := Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.Apply(1, []cluster.Event{{Job: job(1, cluster.Pending, 0)}})
	flushed := make(chan error)
	go func() { flushed <- d.Flush(t.Context()) }()
	<-d.hurry // it waits
	d.Apply(2, []cluster.Event{{Job: job(2, cluster.Pending, 0)}})
	if err := d.write(1); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-flushed:
		if err != nil {
			t.Error(err)
		}
	case <-d.hurry:
		t.Error("it waits for the second, too")
	}
}

// TestSync: what was applied is in the file, the disk was waited for, and later commits are as quick as before.
func TestSync(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	d.Apply(7, []cluster.Event{{Job: job(1, cluster.Pending, 0)}})
	for n := 1; n <= 2; n++ {
		if err := d.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.writing.Lock()
		meta, err := prepare(d.w)
		var level int
		err = errors.Join(err, d.w.QueryRow("PRAGMA synchronous").Scan(&level))
		d.writing.Unlock()
		if err != nil || meta["applied"] != 7 || meta["synced"] != uint64(n) || level != 1 { // NORMAL
			t.Errorf("after %d: %v, synchronous %d, %v", n, meta, level, err)
		}
	}
}

// TestArrayQueue: of the tasks of an array that wait, the first and the last record are queued, however many start
// between them; the last is stored, in the order of the first.
func TestArrayQueue(t *testing.T) {
	d, err := Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	const tasks = 50
	rest := func(from int) cluster.Event {
		j := job(1, cluster.Pending, 0)
		j.ArrayID, j.Tasks = 1, cluster.RangeIDSet(from, tasks)
		return cluster.Event{Job: j}
	}
	for k := range tasks {
		d.Apply(uint64(k+1), []cluster.Event{rest(k), {Job: job(cluster.JobID(k+2), cluster.Running, 0)}})
		if k == tasks/2 {
			if err := d.write(uint64(tasks / 4)); err != nil { // others come while some are stored
				t.Fatal(err)
			}
		}
	}
	held := 0
	for _, b := range d.queue {
		for _, e := range b.events {
			if e.Job != nil && e.Job.Phase == cluster.Pending {
				held++
			}
		}
	}
	if held > 3 {
		t.Errorf("%d records of what waits are queued", held)
	}
	if err := d.write(tasks); err != nil {
		t.Fatal(err)
	}
	var ids []cluster.JobID
	for r, err := range d.Jobs(t.Context(), Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, r.Job.ID); r.Job.ID == 1 && r.Job.Tasks.Min() != tasks-1 {
			t.Errorf("stored is %s", r.Job.Tasks)
		}
	}
	if len(ids) != tasks+1 || ids[0] != 1 {
		t.Errorf("stored are %v", ids)
	}
}
