package acct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// asked is an answer as text: cells by |, rows by lines.
func asked(t *testing.T, d *DB, query string) string {
	t.Helper()
	if err := d.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	table, err := d.SQL(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	lines := []string{strings.Join(table.Columns, "|")}
	for _, r := range table.Rows {
		var cells []string
		for _, c := range r {
			cells = append(cells, fmt.Sprint(c))
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return strings.Join(lines, "\n")
}

// ranJob is a job that ran for a minute on two nodes.
func ranJob(id cluster.JobID, o cluster.Outcome) *cluster.Job {
	j := job(id, cluster.Ended, o)
	j.Eligible, j.Started, j.Limit = j.Submitted, j.Submitted.Add(time.Minute), time.Hour
	j.Ended = j.Started.Add(time.Minute)
	j.Alloc = &cluster.Alloc{
		Partition: "main",
		Shares: []cluster.Share{
			{Node: "n1", CPUs: cluster.RangeIDSet(0, 3), GPUs: cluster.RangeIDSet(0, 1), MemMB: 10},
			{Node: "n2", CPUs: cluster.RangeIDSet(0, 1), MemMB: 5},
		},
	}
	return j
}

// TestSQL: what is asked of every view comes in people's units.
func TestSQL(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	n := &cluster.Node{Name: "n1", Up: true, Drain: true, Reason: "why not", Inventory: cluster.Inventory{CPUs: 8}}
	r := &cluster.Reservation{Name: "maint", Start: epoch, End: epoch.Add(time.Hour)}
	d.Apply(1, []cluster.Event{{
		Change: &cluster.Transaction{At: epoch, Action: "Add QOS", Actor: "root", Where: "name='x'"},
	},
		{Job: ranJob(1, cluster.TimedOut)}, {Job: job(2, cluster.Pending, 0)}, {Node: n, At: epoch},
		{Resv: r, At: epoch}, {Audit: &cluster.Audit{N: 1, At: epoch, Action: "job hold", Object: "job 1"}},
		{
			Step: &cluster.Step{
				ID: cluster.StepID{Job: 1, Step: 0}, Attempt: 1, Name: "s", Tasks: 2, Started: epoch,
				Ended: epoch.Add(time.Second), Outcome: cluster.Completed,
			},
		}})
	if err := PastOf(d.DB).Add(t.Context(), epoch, []Sample{{Kind: "node", Total: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := SamplesOf(d.DB).Add(t.Context(), []Hardware{{Node: "n1", At: epoch, Data: packed(telemetry.OfNode, 1, 5)},
		{Job: 1, Node: "n1", At: epoch, Data: packed(telemetry.OfJob, 1, 5)}}); err != nil {
		t.Fatal(err)
	}
	at := epoch.Unix()
	for _, c := range []struct{ query, want string }{
		{
			"SELECT id, user, state, partition, started, elapsed, time_limit, nodes, node_list, cpus, gpus, " +
				"mem_mb FROM jobs ORDER BY id",
			fmt.Sprintf("id|user|state|partition|started|elapsed|time_limit|nodes|node_list|cpus|gpus|mem_mb\n"+
				"1|alice|TIMEOUT|main|%d|60|3600|2|n1,n2|6|2|15\n2|alice|PENDING|main|<nil>|0|0|0||0|0|0",
				at+61),
		},
		{
			"SELECT job, name, state, tasks, ended - started AS secs FROM steps",
			"job|name|state|tasks|secs\n1|s|COMPLETED|2|1",
		},
		{
			"WITH used AS (SELECT account, sum(seconds * gpus) / 60.0 AS m FROM runs GROUP BY account) SELECT " +
				"* FROM used",
			"account|m\nteam|2",
		},
		{
			"SELECT node, started, ended, drain, reason FROM node_states",
			fmt.Sprintf("node|started|ended|drain|reason\nn1|%d|<nil>|1|why not", at),
		},
		{"SELECT name, ended - started FROM reservations", "name|ended - started\nmaint|3600"},
	} {
		if got := asked(t, d.DB, c.query); got != c.want {
			t.Errorf("%s\n%s\nwant\n%s", c.query, got, c.want)
		}
	}
	columns := map[string]int{}
	for _, row := range SQLTables().Rows {
		if row[1] != "" {
			columns[row[0].(string)]++
		}
	}
	for name, n := range columns {
		table, err := d.SQL(context.Background(), "SELECT * FROM "+name)
		if err != nil || len(table.Columns) != n || len(table.Rows) == 0 {
			t.Errorf("%s has %d columns and %d rows, the list has %d columns: %v", name, len(table.Columns),
				len(table.Rows), n, err)
		}
	}
}

// TestSQLReadsOnly: whatever is asked, nothing is written, no other file is reached, and what takes too much ends.
func TestSQLReadsOnly(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, dir)
	defer d.stop()
	d.Apply(1, []cluster.Event{{Job: ranJob(1, cluster.Completed)}})
	before := asked(t, d.DB, "SELECT count(*) FROM job")
	out := filepath.Join(dir, "out.db")
	for _, query := range []string{"DELETE FROM job", "WITH x AS (SELECT 1) DELETE FROM job",
		"SELECT 1; DELETE FROM job", "SELECT 1; ATTACH '" + out + "' AS o",
		"VACUUM INTO '" + out + "'", "SELECT 1; VACUUM INTO '" + out + "'",
		"SELECT 1; PRAGMA query_only = 0; DELETE FROM job", "PRAGMA journal_mode = DELETE",
		"SELECT 1; CREATE TABLE x (a)", "SELECT load_extension('/lib/x.so')", "SELECT zeroblob(1000000000)",
		"SELECT 1; PRAGMA temp_store_directory = '" + dir + "'", "SELECT 1; PRAGMA soft_heap_limit = 1",
		"SELECT 1;;PRAGMA cache_size = 1", "SELECT 1 /* ; */ ; SELECT 2", "SELECT ';' ; PRAGMA hard_heap_limit = 1",
		"SELECT absent FROM jobs", ""} {
		_, err := d.SQL(context.Background(), query)
		var e *cluster.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", query, err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a question has written a file")
	}
	if got := asked(t, d.DB, "SELECT count(*) FROM job"); got != before {
		t.Errorf("after all of them: %s, before: %s", got, before)
	}
	for _, query := range []string{"SELECT 1;", "SELECT ';x' -- ; y\n; -- the end", "SELECT 1 AS \";a\"; /* ; b */ ",
		"SELECT 'it''s; so', 1 AS [;c], 2 AS `;d`"} {
		if _, err := d.SQL(context.Background(), query); err != nil {
			t.Errorf("%q: %v", query, err)
		}
	}
	table, err := d.SQL(context.Background(),
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
	if err != nil || len(table.Rows) != sqlRows || !table.More {
		t.Errorf("rows without end: %d, more %v, %v", len(table.Rows), table.More, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.SQL(ctx,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) "+
			"FROM n"); err == nil || ctx.Err() == nil {
		t.Errorf("a question without end: %v", err)
	}
}

// TestAuditTrail: changes survive a restart, taking one twice changes nothing, and they go with other transactions.
func TestAuditTrail(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, dir)
	a := &cluster.Audit{
		N: 1, Index: 1, At: epoch, Action: "job hold", Object: "job 7", By: "alice", UID: 1000,
		Origin: "host:s1", New: "by user",
	}
	d.Apply(1, []cluster.Event{{Audit: a}})
	d.Apply(2, []cluster.Event{{Audit: a}})
	if err := d.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.stop()
	d = openDB(t, dir)
	defer func() { d.stop() }()
	const query = "SELECT action, object, actor, uid, origin, new FROM audit"
	const head = "action|object|actor|uid|origin|new"
	if got := asked(t, d.DB, query); got != head+"\njob hold|job 7|alice|1000|host:s1|by user" {
		t.Errorf("after a restart: %s", got)
	}
	d.Apply(3, []cluster.Event{{Forget: []cluster.Cutoff{
		{Kind: cluster.TxnRecords, Before: epoch.Add(time.Hour).Unix()},
	}}})
	swept(t, d.DB)
	if got := asked(t, d.DB, query); got != head {
		t.Errorf("after the purge: %s", got)
	}
}
