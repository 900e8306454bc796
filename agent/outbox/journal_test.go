package outbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestJournal: what was told of attempts that ended is known after a restart and when the file has begun again once,
// in its order; a line that a crash cut off does no harm.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	open := func() *journal {
		t.Helper()
		j, err := openJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	put := func(j *journal, updates ...cluster.Update) {
		t.Helper()
		if err := j.Put("n1", updates); err != nil {
			t.Fatal(err)
		}
	}
	update := func(kind cluster.UpdateKind, job cluster.JobID, text string) cluster.Update {
		return cluster.Update{Kind: kind, Job: job, Attempt: 1, Error: text}
	}
	told := func(j *journal, job cluster.JobID) string {
		t.Helper()
		updates, err := j.Ended(Attempt{job, 1, "n1"})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, u := range updates {
			out = append(out, string(u.Kind)+strings.TrimSpace(u.Error[:min(2, len(u.Error))]))
		}
		return strings.Join(out, " ")
	}
	j := open()
	put(j, update(cluster.NodeReady, 1, ""))
	put(j, update(cluster.StepNow, 1, ""), update(cluster.BatchOver, 1, "a"), update(cluster.NodeDone, 2, ""))
	put(j, update(cluster.NodeDone, 1, "b"))
	if told(j, 1) != "step batch_overa doneb" || told(j, 2) != "done" || told(j, 3) != "" || j.Highest() != 3 {
		t.Errorf("told %q, %q, %q; next %d", told(j, 1), told(j, 2), told(j, 3), j.Highest())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(dir+"/ended", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, `{"node":"n1","updates":[{"kind":"do`)
	f.Close()
	j = open()
	if told(j, 1) != "step batch_overa doneb" || j.Highest() != 3 {
		t.Errorf("after a restart: %q; next %d", told(j, 1), j.Highest())
	}
	large := strings.Repeat("x", maxJournal/4)
	for i := range 5 {
		put(j, update(cluster.BatchOver, cluster.JobID(10+i), large))
	}
	if told(j, 1) != "step batch_overa doneb" || told(j, 14) != "batch_overxx" {
		t.Errorf("in the file before: %q, in the new one %q", told(j, 1), told(j, 14))
	}
	for i := range 5 {
		put(j, update(cluster.BatchOver, cluster.JobID(20+i), large))
	}
	if j.Has(Attempt{1, 1, "n1"}) || told(j, 24) != "batch_overxx" || j.Highest() != 25 {
		t.Errorf("after two files it knows %v, %q, next %d", j.Has(Attempt{1, 1, "n1"}), told(j, 24), j.Highest())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
