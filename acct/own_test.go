package acct

import (
	"context"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestAsk asks about jobs in memory, and tries to reach more than them.
func TestAsk(t *testing.T) {
	ctx := context.Background()
	jobs := []*cluster.Job{ranJob(7, cluster.Completed), ranJob(8, cluster.Failed)}
	steps := []*cluster.Step{{ID: cluster.StepID{Job: 7}, Name: "train", Started: epoch}}
	got, err := Ask(ctx, jobs, steps,
		"SELECT j.id, j.state, j.gpus, s.name FROM jobs j LEFT JOIN steps s ON s.job = j.id")
	if err != nil || len(got.Rows) != 2 || got.Rows[0][1] != "COMPLETED" || got.Rows[0][2] != int64(2) ||
		got.Rows[0][3] != "train" || got.Rows[1][3] != nil {
		t.Errorf("answer: %+v, %v", got, err)
	}
	for _, query := range []string{
		"SELECT * FROM audit", "SELECT * FROM main.trail", "ATTACH '/etc/passwd' AS x", "DELETE FROM job",
		"SELECT 1; DELETE FROM main.job", "WITH x AS (SELECT 1) INSERT INTO main.job SELECT 1,1,1,1,1,1,1",
		"SELECT load_extension('x')", "SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/x', 'x')",
		"VACUUM INTO '/tmp/x'", "PRAGMA query_only = 0", "EXPLAIN SELECT 1; PRAGMA query_only = 0", "",
		"SELECT * FROM pragma_query_only(0), main.trail",
	} {
		if got, err := Ask(ctx, jobs, steps, query); err == nil {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if n := len(OwnTables().Rows); n < 20 || strings.Contains(OwnTables().Rows[0][0].(string), "audit") {
		t.Errorf("%d rows of tables", n)
	}
}
