package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestSQL: operators ask history in SQL, in three forms; others do not, and nobody changes anything.
func TestSQL(t *testing.T) {
	d := startLedger(t)
	ids := []string{d.submitAs(daemonUID, "-J", `a,"b"`, "-n2", "-t5", "--wrap", "true"), d.submitAs(binUID, "-J", "plain", "-t5", "--wrap", "exit 3")}
	d.wait("the end of both", func() bool { return d.must("squeue", "-h") == "" })
	const query = "SELECT name, user, account, state, exit_code, cpus FROM jobs ORDER BY id"
	if got, want := d.must("muster", "sql", query), "name   user    account  state      exit_code  cpus\na,\"b\"  daemon  science  COMPLETED  0          2\nplain  bin     art      FAILED     3          1"; got != want {
		t.Errorf("as a table:\n%s\nwant\n%s", got, want)
	}
	if got, want := d.must("muster", "sql", "--csv", "--noheader", query), "\"a,\"\"b\"\"\",daemon,science,COMPLETED,0,2\nplain,bin,art,FAILED,3,1"; got != want {
		t.Errorf("as CSV:\n%s\nwant\n%s", got, want)
	}
	var rows []struct {
		ID    json.Number `json:"id"`
		Ended *int64      `json:"ended"`
	}
	if err := json.Unmarshal([]byte(d.must("muster", "sql", "--json", "SELECT id, ended FROM jobs ORDER BY id")), &rows); err != nil || len(rows) != 2 || rows[0].ID.String() != ids[0] || rows[1].Ended == nil {
		t.Errorf("as JSON: %+v, %v", rows, err)
	}
	if got := d.must("muster", "sql", "--tables"); !regexp.MustCompile(`(?m)^ *runs +seconds `).MatchString(got) {
		t.Errorf("tables:\n%s", got)
	}
	for _, c := range []struct {
		uid   uint32
		query string
		says  string
	}{{0, "DELETE FROM jobs", "history is read only"},
		{0, "WITH x AS (SELECT 1) DELETE FROM job", "history is read only"},
		{0, "SELECT absent FROM jobs", "muster sql --tables lists"},
		{daemonUID, query, "only operators and administrators"}} {
		if _, errs, code := d.as(c.uid, "muster", "sql", c.query); code == 0 || !strings.Contains(errs, c.says) {
			t.Errorf("user %d, %s: exit code %d, %q", c.uid, c.query, code, errs)
		}
	}
	d.must("sacctmgr", "-i", "modify", "user", "daemon", "set", "adminlevel=operator")
	if out, errs, code := d.as(daemonUID, "muster", "sql", "--noheader", "SELECT count(*) FROM jobs"); code != 0 || out != "2\n" {
		t.Errorf("an operator of the books: exit code %d, %q %q", code, out, errs)
	}
}
