package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/wire"
)

// importedJob is the record of a job of another cluster.
func importedJob(id JobID) *Job {
	at := time.Unix(1_700_000_000, 0).UTC()
	return &Job{
		ID: id, Task: TaskAny, Phase: Ended, Outcome: Completed, Submitted: at, Eligible: at, Started: at.Add(time.Minute),
		Ended: at.Add(time.Hour),
		Spec:  &JobSpec{Layout: &Layout{}, Name: "old", User: "alice", UID: 1001, Account: "team", Partitions: []string{"p"}},
		Rarely: Rarely{Imported: &ImportedJob{Cluster: "old", Release: 2205, Row: uint64(id), Changed: at.Unix(), State: 3,
			Start: at.Unix() + 60, End: at.Unix() + 3600, TRESAlloc: "cpu=4,mem=2000", Partition: "p"}},
	}
}

// importedResv is a reservation of another cluster.
func importedResv() *ResvSpan {
	return &ResvSpan{Name: "course", From: 1_700_000_000, To: 1_700_003_600, Nodes: []NodeName{"old1"},
		Flags: ResvSpecNodes, Users: []string{"alice"}, TRES: []Amount{{"cpu", 16}}}
}

func encodedText(t testing.TB, v any) wire.RawMessage {
	t.Helper()
	text, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func importOf(t testing.TB, from, passed int64, jobs ...*Job) *ImportHistory {
	c := &ImportHistory{From: from, Import: Import{Cluster: "old", Release: 2205, Source: "a1", Passed: passed}}
	for _, j := range jobs {
		c.Jobs = append(c.Jobs, encodedText(t, j))
		c.Import.Highest = max(c.Import.Highest, j.ID)
		c.Import.NewestNow = max(c.Import.NewestNow, j.Imported.Changed)
	}
	return c
}

func TestImportGoesOn(t *testing.T) {
	w := newWorld(t, 0)
	first := importOf(t, 0, 2, importedJob(7), importedJob(8))
	first.Gap = 1000
	events := w.ok(root, first).Events
	if len(events) < 2 || events[0].Imported == nil || events[0].Imported.Job.ID != 7 {
		t.Fatalf("got %d events", len(events))
	}
	if w.s.NextID != 1009 {
		t.Errorf("new jobs begin at %d, want 1009", w.s.NextID)
	}
	w.refused(root, importOf(t, 0, 1, importedJob(7)), "")
	last := importOf(t, 2, 3, importedJob(9))
	last.Import.Over = true
	w.ok(root, last)
	for i := range w.s.Imports() {
		if i.Passed != 3 || i.Jobs != 3 || !i.Over || i.Newest != 1_700_000_000 || i.Highest != 9 {
			t.Errorf("got %+v", i)
		}
	}
	again := importOf(t, 0, 3, importedJob(9))
	again.Import.Source = "b2"
	w.ok(root, again) // a newer dump begins at its first job
}

func TestImportRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Job)
		by     Identity
	}{
		{"no operator", func(*Job) {}, alice},
		{"no number", func(j *Job) { j.ID = 0 }, root},
		{"another cluster", func(j *Job) { j.Imported.Cluster = "x" }, root},
		{"no origin", func(j *Job) { j.Imported = nil }, root},
		{"a phase", func(j *Job) { j.Phase = Starting }, root},
		{"no outcome", func(j *Job) { j.Outcome = NoOutcome }, root},
		{"a negative time", func(j *Job) { j.Imported.Start = -1 }, root},
		{"a late time", func(j *Job) { j.Imported.End = 1 << 40 }, root},
		{"a control character", func(j *Job) { j.Spec.Name = "a\x1b[2J" }, root},
		{"a user of two lines", func(j *Job) { j.Spec.User = "a\nb" }, root},
		{"a count", func(j *Job) { j.Imported.TRESAlloc = "cpu=-1" }, root},
		{"a long name", func(j *Job) { j.Spec.Name = strings.Repeat("x", MaxImportedRow) }, root},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 0)
			j := importedJob(7)
			c.change(j)
			cmd := &ImportHistory{Import: Import{Cluster: "old", Source: "a", Passed: 1}}
			cmd.Jobs = append(cmd.Jobs, encodedText(t, j))
			if out := w.apply(c.by, cmd); out.Err == nil || len(out.Events) > 0 {
				t.Errorf("got %v, %d events", out.Err, len(out.Events))
			}
			if w.s.imports.Len() != 0 {
				t.Error("it is kept")
			}
		})
	}
}

// TestImportedReservations: a time of a reservation enters history, and one that cannot be is refused.
func TestImportedReservations(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ResvSpan)
		ok     bool
	}{
		{"one", func(*ResvSpan) {}, true},
		{"no name", func(r *ResvSpan) { r.Name = "" }, false},
		{"a name of two lines", func(r *ResvSpan) { r.Name = "a\nb" }, false},
		{"an end before its beginning", func(r *ResvSpan) { r.To = r.From }, false},
		{"a late end", func(r *ResvSpan) { r.To = 1 << 40 }, false},
		{"a user", func(r *ResvSpan) { r.Users = []string{"\x1b"} }, false},
		{"many nodes", func(r *ResvSpan) { r.Nodes = make([]NodeName, maxImportedNodes+1) }, false},
	} {
		w := newWorld(t, 0)
		r := importedResv()
		c.change(r)
		cmd := importOf(t, 0, 0)
		cmd.Resvs = append(cmd.Resvs, encodedText(t, r))
		out := w.apply(root, cmd)
		if (out.Err == nil) != c.ok || c.ok && out.Events[0].Imported.Resv.Name != "course" {
			t.Errorf("%s: %v, %d events", c.name, out.Err, len(out.Events))
		}
	}
}

func TestImportGapTooLarge(t *testing.T) {
	w := newWorld(t, 0)
	c := importOf(t, 0, 1, importedJob(0x03ff0000-1))
	c.Gap = 1000
	w.refused(root, c, "")
}

func TestTRESList(t *testing.T) {
	l := TRESList("cpu=4,mem=18446744073709551614,gres/gpu:h100=2")
	var parts []string
	for name, n := range l.All() {
		parts = append(parts, fmt.Sprint(name, " ", n))
	}
	if got := strings.Join(parts, "; "); got != "cpu 4; mem 18446744073709551614; gres/gpu:h100 2" {
		t.Errorf("got %s", got)
	}
	if n, ok := l.Count("gres/gpu:h100"); n != 2 || !ok {
		t.Errorf("got %d, %t", n, ok)
	}
}
