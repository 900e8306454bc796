package acct

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
	"modernc.org/sqlite"
)

// Bounds of a question in SQL.
const (
	sqlTime      = 30 * time.Second
	sqlRows      = 100_000
	sqlBytes     = 32 << 20 // of the answer's texts
	sqlValue     = 8 << 20  // of one value on the way to it
	sqlQuery     = 64 << 10 // of the question
	sqlAtOnce    = 2
	sqlLength    = 0 // SQLITE_LIMIT_LENGTH
	sqlAttached  = 7 // SQLITE_LIMIT_ATTACHED
	sqlCellBytes = 16
)

// Table is the answer to a question in SQL. Cells are nil, int64, float64 or string.
type Table struct {
	Columns []string
	Rows    [][]any
	More    bool // there were more rows than a table has
}

// viewColumn is a column of a view that questions are asked of.
type viewColumn struct{ name, expr, help string }

// view is a table that questions in SQL are asked of: what the file has, by names and in units that people read.
type view struct {
	name, from, help string
	columns          []viewColumn
}

// views are all of them. Times are Unix seconds, null while they have not come.
func views() []view { return slices.Concat(jobViews(), clusterViews(), hardwareViews()) }

// Columns that are fields of a record: as they are, as text, as a number, as a time, or as muster works them out.

func field(name, path, help string) viewColumn {
	return viewColumn{name, "json_extract(data, '$." + path + "')", help}
}

func text(name, path, help string) viewColumn {
	return viewColumn{name, "ifnull(json_extract(data, '$." + path + "'), '')", help}
}

func number(name, path, help string) viewColumn {
	return viewColumn{name, "ifnull(json_extract(data, '$." + path + "'), 0)", help}
}

func moment(name, column, help string) viewColumn {
	return viewColumn{name, "nullif(" + column + ", 0) / 1000000000", help}
}

func worked(name, help string) viewColumn {
	return viewColumn{name, "muster_job(data, '" + name + "')", help}
}

// jobViews are of jobs and steps.
func jobViews() []view {
	return []view{
		{"jobs", "job", "every attempt of every job", []viewColumn{
			{"id", "job", "number of the job"}, {"array_id", "nullif(array, 0)", "number of its array"},
			field("task", "task", "index in the array, -1: none"),
			number("attempt", "attempt", "which attempt it was, from 1"),
			text("user", "spec.user", "user's name"), {"uid", "uid", "user's number"},
			text("account", "spec.account", "account"),
			text("qos", "spec.qos", "QOS"), worked("partition", "partition it ran in, or asked for"),
			text("name", "spec.name", "job's name"),
			text("wckey", "spec.wckey", "workload characterization key"),
			text("reservation", "alloc.reservation", "reservation it ran in"),
			worked("state", "as sacct shows it"), text("reason", "end_reason", "why it ended so"),
			number("exit_code", "exit.code", "exit code"),
			number("signal", "exit.signal", "signal that ended it"),
			moment("submitted", "submitted", "when it was submitted"),
			moment("started", "started", "when it started"), moment("ended", "ended", "when it ended"),
			worked("elapsed", "seconds it ran, pauses left out"),
			worked("time_limit", "seconds it may run, null: no limit"), worked("nodes", "nodes it was given"),
			worked("node_list", "their names, by commas"), worked("cpus", "CPUs it was given"),
			worked("mem_mb", "memory it was given, MB"), worked("gpus", "GPUs it was given"),
			worked("billing", "what it was billed each second"),
			field("backfilled", "backfilled", "1: it started before jobs ahead of it"),
			text("work_dir", "spec.work_dir", "working folder"),
			text("submit_line", "spec.submit_line", "the command line"),
			text("comment", "spec.comment", "its comment"),
			{"data", "CAST(data AS TEXT)", "the whole record, JSON"}}},
		{"steps", "step", "steps of jobs", []viewColumn{
			{"job", "job", "number of the job"}, {"attempt", "attempt", "the job's attempt"},
			{"step", "step", "number of the step; -5: the batch script"},
			text("name", "name", "step's name"),
			{"state", "muster_state(5, ifnull(json_extract(data, '$.outcome'), 0))", "as sacct shows it"},
			number("exit_code", "exit.code", "exit code"),
			number("signal", "exit.signal", "signal that ended it"),
			number("tasks", "tasks", "tasks"), moment("started", "started", "when it started"),
			{"ended", "unixepoch(json_extract(data, '$.ended'))", "when it ended"},
			number("max_rss", "usage.max_rss", "most memory in use, bytes"),
			{"user_cpu", "ifnull(json_extract(data, '$.usage.user_cpu'), 0) / 1e9", "CPU time of programs, seconds"},
			{
				"system_cpu", "ifnull(json_extract(data, '$.usage.system_cpu'), 0) / 1e9",
				"CPU time of the kernel, seconds",
			},
			{"data", "CAST(data AS TEXT)", "the whole record, JSON"}}},
		{"runs", "run JOIN class ON class.id = run.class",
			"times in which jobs ran, without pauses: what reports sum up",
			[]viewColumn{
				text("user", "user", "user's name"), text("account", "account", "account"),
				text("partition", "partition", "partition"), text("qos", "qos", "QOS"),
				text("wckey", "wckey", "workload characterization key"),
				{"state", "muster_state(5, ifnull(json_extract(data, '$.outcome'), 0))", "how the attempt ended"},
				{"started", "run.s0", "when it began"},
				{"ended", "min(run.s1, unixepoch())", "when it ended, or now"},
				{"seconds", "min(run.s1, unixepoch()) - run.s0", "how long it lasted"},
				{"cpus", "muster_tres(data, 'cpu')", "CPUs in use"},
				{"gpus", "muster_tres(data, 'gres/gpu')", "GPUs in use"},
				{"mem_mb", "muster_tres(data, 'mem')", "memory in use, MB"},
				{"nodes", "muster_tres(data, 'node')", "nodes in use"},
				{"billing", "muster_tres(data, 'billing')", "billed each second"}}},
	}
}

// clusterViews are of nodes, books, reservations and the whole.
func clusterViews() []view {
	return []view{
		{"node_states", "node", "times in which a node stayed as it was", []viewColumn{
			{"node", "name", "node"}, {"started", "started", "from when"},
			{"ended", "nullif(ended, 0)", "until when, null: it still is"},
			number("down", "down", "1: it was down"), number("drain", "drain", "1: it was drained"),
			number("lost", "lost", "1: nothing was heard of it"), text("reason", "reason", "why"),
			text("set_by", "by", "who said so")}},
		{"transactions", "txn", "changes of accounts, users, associations and QOS", []viewColumn{
			{"at", "at / 1000000000", "when"}, field("action", "action", "what was done"),
			field("actor", "actor", "by whom"), field("place", "where", "to which record"),
			field("info", "info", "what was set")}},
		{"audit", "trail", "audit trail: who changed what, and from where", []viewColumn{
			{"at", "at / 1000000000", "when"}, field("action", "action", "what was done"),
			field("object", "object", "to what"), field("actor", "by", "by whom"),
			field("uid", "uid", "number of the user"), field("origin", "origin", "from where"),
			field("old", "old", "old values"), field("new", "new", "new values")}},
		{"samples", "sample", "what the cluster as a whole was, each minute of two days and each hour of two years",
			[]viewColumn{
				{"at", "at", "from when"}, {"seconds", "span", "for how long: 60 or 3600"},
				{"kind", "kind", "node, gpu, cpu, mem, partition_gpu, account_gpu …, queue, reason, jobs"},
				{"name", "name", "of what: type, partition, account, state, reason, event"},
				{"total", "total", "how much there was"},
				{"used", "used", "how much was in use, or how many there were"},
				{"lost", "lost", "how much was out of service"}}},
		{"reservations", "resv", "times of reservations", []viewColumn{
			{"name", "name", "reservation"}, {"started", "started", "from when"},
			{"ended", "ended", "until when"}, text("nodes", "nodes", "nodes, JSON"),
			text("users", "users", "users, JSON"), text("accounts", "accounts", "accounts, JSON")}},
	}
}

// stateWord is the state of a job as sacct shows it: of those that have ended by outcome.
func stateWord(p cluster.Phase, o cluster.Outcome) string {
	if p != cluster.Ended {
		return map[cluster.Phase]string{
			cluster.Pending: "PENDING", cluster.Starting: "RUNNING", cluster.Running: "RUNNING",
			cluster.Suspended: "SUSPENDED", cluster.Ending: "COMPLETING",
		}[p]
	}
	return o.State()
}

// jobValue is a column of jobs that is worked out.
func jobValue(j *cluster.Job, what string) driver.Value {
	switch what {
	case "state":
		return stateWord(j.Phase, j.Outcome)
	case "elapsed":
		return int64(j.RunTime(time.Now()) / time.Second)
	case "time_limit":
		if j.Limit == cluster.Unlimited {
			return nil
		}
		return int64(j.Limit / time.Second)
	case "partition":
		return strings.Join(partitions(j), ",")
	case "node_list":
		var names []string
		for _, n := range j.AllocNodes() {
			names = append(names, string(n))
		}
		return strings.Join(names, ",")
	}
	if j.Alloc == nil {
		return int64(0)
	}
	tres := map[string]string{"cpus": "cpu", "mem_mb": "mem", "gpus": "gres/gpu", "nodes": "node", "billing": "billing"}
	return int64(cluster.AmountOf(j.Given(), tres[what]))
}

// record decodes what a function in SQL is given; ok is false for what is no record, whose values are null.
func record[T any](v driver.Value) (x T, ok bool) {
	var data []byte
	switch v := v.(type) {
	case []byte:
		data = v
	case string:
		data = []byte(v)
	}
	return x, data != nil && wire.Unmarshal(data, &x) == nil
}

// sqlFunctions makes the functions that the views are made of known to every connection that is opened later.
var sqlFunctions = sync.OnceValue(func() error {
	return errors.Join(
		sampleFunctions(),
		sqlite.RegisterScalarFunction("muster_job", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			j, ok := record[cluster.Job](args[0])
			what, named := args[1].(string)
			if !ok || !named || j.Spec == nil {
				return nil, nil
			}
			return jobValue(&j, what), nil
		}),
		sqlite.RegisterDeterministicScalarFunction("muster_tres", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			c, ok := record[cluster.UsageClass](args[0])
			what, named := args[1].(string)
			if !ok || !named {
				return nil, nil
			}
			return int64(cluster.AmountOf(c.TRES, what)), nil
		}),
		sqlite.RegisterDeterministicScalarFunction("muster_state", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			phase, ok1 := args[0].(int64)
			outcome, ok2 := args[1].(int64)
			if !ok1 || !ok2 {
				return nil, nil
			}
			return stateWord(cluster.Phase(phase), cluster.Outcome(outcome)), nil
		}))
})

// SQLTables lists the views, their columns and what they mean.
func SQLTables() Table { return tablesOf(views()) }

func tablesOf(list []view) Table {
	t := Table{Columns: []string{"table", "column", "meaning"}}
	for _, v := range list {
		t.Rows = append(t.Rows, []any{v.name, "", v.help})
		for _, c := range v.columns {
			t.Rows = append(t.Rows, []any{v.name, c.name, c.help})
		}
	}
	return t
}

// SQL answers a question that reads: one SELECT over the views (SQLTables). It takes at most sqlTime, and as many
// rows and bytes as a Table has. A fault of the question is a cluster.Error. The file is opened such that
// nothing can be written, nor any other file be reached.
func (d *DB) SQL(ctx context.Context, query string) (Table, error) {
	if err := checkSQL(query); err != nil {
		return Table{}, err
	}
	select {
	case d.asking <- struct{}{}:
		defer func() { <-d.asking }()
	case <-ctx.Done():
		return Table{}, ctx.Err()
	}
	d.files.RLock()
	defer d.files.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, sqlTime)
	defer cancel()
	db, err := sql.Open("sqlite", "file:"+d.path+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=trusted_schema(1)")
	if err != nil {
		return Table{}, fmt.Errorf("open history: %w", err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return Table{}, fmt.Errorf("open history: %w", err)
	}
	defer conn.Close()
	if err := makeViews(ctx, conn, views()); err != nil {
		return Table{}, fmt.Errorf("make the tables of SQL: %w", err)
	}
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return Table{}, sqlError(ctx, err)
	}
	defer rows.Close()
	t, err := readTable(rows)
	if err != nil {
		return Table{}, sqlError(ctx, err)
	}
	return t, nil
}

// checkSQL refuses what is no question. The file itself refuses the rest.
func checkSQL(query string) error {
	word, _, _ := strings.Cut(strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", " ", "(", " ", "*", " ").Replace(query)),
		" ")
	switch {
	case len(query) > sqlQuery:
		return cluster.Errorf(cluster.Invalid, "", "a question has at most %d bytes, this one has %d",
			sqlQuery, len(query))
	case !slices.Contains([]string{"SELECT", "WITH", "VALUES", "EXPLAIN"}, strings.ToUpper(word)):
		return cluster.Errorf(cluster.Invalid, "",
			"history is read only: ask with one SELECT (or WITH, VALUES, EXPLAIN), not %q; muster sql --tables lists what there is",
			word)
	case !isOne(query):
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"history is read only: ask with one SELECT, and nothing behind its semicolon")
	}
	return nil
}

// isOne reports whether a question is one statement. A second one may be a PRAGMA, of which some change all connections
// of this process, those that write too.
func isOne(query string) bool {
	closing := map[byte]string{'\'': "'", '"': "\"", '`': "`", '[': "]"}
	for over := false; query != ""; {
		end, is := closing[query[0]]
		switch {
		case strings.HasPrefix(query, "--"):
			_, query, _ = strings.Cut(query, "\n")
			continue
		case strings.HasPrefix(query, "/*"):
			_, query, _ = strings.Cut(query[2:], "*/")
			continue
		case query[0] == ';':
			over = true
		case strings.IndexByte(" \t\r\n\f", query[0]) < 0 && over:
			return false
		case is: // a quote that is doubled begins another text
			_, query, _ = strings.Cut(query[1:], end)
			continue
		}
		query = query[1:]
	}
	return true
}

// makeViews makes the views, and then shuts the connection in: it writes nothing and reaches no other file.
func makeViews(ctx context.Context, conn *sql.Conn, list []view) error {
	for _, v := range list {
		var cols []string
		for _, c := range v.columns {
			cols = append(cols, c.expr+" AS "+c.name)
		}
		if err := run(ctx, conn,
			"CREATE TEMP VIEW "+v.name+" AS SELECT "+strings.Join(cols, ", ")+" FROM main."+v.from); err != nil {
			return err
		}
	}
	if err := run(ctx, conn, "PRAGMA query_only = 1"); err != nil {
		return err
	}
	for id, most := range map[int]int{sqlAttached: 0, sqlLength: sqlValue} {
		if _, err := sqlite.Limit(conn, id, most); err != nil {
			return err
		}
	}
	return nil
}

// readTable reads rows up to the bounds of a table.
func readTable(rows *sql.Rows) (t Table, err error) {
	if t.Columns, err = rows.Columns(); err != nil {
		return t, err
	}
	for size := 0; rows.Next(); {
		if len(t.Rows) == sqlRows || size > sqlBytes {
			t.More = true
			return t, nil
		}
		row, to := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return t, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				v = string(b)
				row[i] = v
			}
			if s, ok := v.(string); ok {
				size += len(s)
			}
			size += sqlCellBytes
		}
		t.Rows = append(t.Rows, row)
	}
	return t, rows.Err()
}

// sqlError says what is wrong with a question.
func sqlError(ctx context.Context, err error) error {
	text := err.Error()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return cluster.Errorf(cluster.Invalid, "",
			"the question takes longer than %s: narrow it with WHERE, or ask sreport, which has sums",
			sqlTime)
	case strings.Contains(text, "readonly"), strings.Contains(text, "too many attached"):
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"history is read only: nothing in it can be changed, and no other file be reached")
	case strings.Contains(text, "no such table"), strings.Contains(text, "no such column"):
		return cluster.Errorf(cluster.Invalid, "", "%s; muster sql --tables lists what there is", text)
	}
	return cluster.Errorf(cluster.Invalid, "", "the question cannot be answered: %s", text)
}
