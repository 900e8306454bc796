package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// holdHistory keeps a server from writing its history until the test ends or free is called.
func holdHistory(t *testing.T, d *dev) (free func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+d.dir+"/d/acct/history.db?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	free = func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
	t.Cleanup(free)
	return free
}

// TestHistoryLagIsTold holds back the history of the only server. Every command, the REST interface and the page
// then report that records are missing.
func TestHistoryLagIsTold(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "4x8c16g4gpu:h100", "--hollow-exec", "--http", addr)
	run := func(name string) string {
		id := d.must("sbatch", "--parsable", "-J", name, "-D", "/tmp", "-o", "/dev/null", "--wrap", "true")
		d.wait(name+" to end", func() bool { return d.must("squeue", "-h", "-t", "CD", "-j", id, "-o", "%t") == "CD" })
		return id
	}
	first := run("first")
	d.must("sacct", "-nX", "-j", first, "-o", "State")
	user := &restUser{t: t, base: "http://" + addr, token: tokenOf(t, d, 0), client: http.DefaultClient}
	page := func() string {
		_, text := fetch(t, "http://"+addr+"/queue?state=ended")
		return text
	}
	const missing = "are missing"
	if strings.Contains(page(), missing) {
		t.Error("the page reports missing records at once")
	}
	free := holdHistory(t, d)
	late := run("late")
	for _, c := range [][]string{
		{"sacct", "-nX", "-o", "JobID"},
		{"sacct", "-nX", "-j", late, "-o", "JobID"},
		{"sreport", "cluster", "utilization"},
		{"sreport", "user", "top"},
		{"seff", first},
		{"sacctmgr", "show", "transactions"},
		{"muster", "sql", "SELECT id FROM jobs"},
	} {
		out, errs, code := d.run(c[0], c[1:]...)
		if code != 0 || !strings.Contains(errs, ": as of 20") || !strings.Contains(errs, missing) {
			t.Errorf("%q: %d, %q, %q", c, code, out, errs)
		}
	}
	out, errs, _ := d.run("sacct", "-X", "--json")
	var answer struct {
		Warnings []struct{ Description string }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Warnings) != 1 ||
		!strings.Contains(answer.Warnings[0].Description, missing) {
		t.Errorf("sacct --json: %v, %v, %s", err, answer.Warnings, errs)
	}
	status, got := user.ask("GET", "/slurmdb/v0.0.44/jobs/", "")
	if list, _ := got["warnings"].([]any); status != 200 || len(list) != 1 {
		t.Errorf("REST: %d, %v", status, got["warnings"])
	}
	d.wait("the page to report it", func() bool { return strings.Contains(page(), missing) })
	free()
	d.wait("sacct to have all", func() bool {
		out, errs, _ := d.run("sacct", "-nX", "-j", late, "-o", "State")
		return strings.TrimSpace(out) == "COMPLETED" && errs == ""
	})
	if strings.Contains(page(), missing) {
		t.Error("the page reports missing records that are there")
	}
}

// TestHistoryLagIsAnsweredElsewhere holds back the history of a server that follows. It has the leader answer.
func TestHistoryLagIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	leader := g.awaitLeader("s1")
	slow := g.others(leader)[0]
	holdHistory(t, g.at[slow])
	id := g.must(leader, "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "--wrap", "true")
	g.wait("the job to end", func() bool { return g.must(leader, "squeue", "-h", "-t", "CD", "-j", id, "-o", "%t") == "CD" })
	for _, c := range [][]string{
		{"sacct", "-nX", "-j", id, "-o", "State"},
		{"muster", "sql", "--noheader", "SELECT state FROM jobs WHERE id = " + id},
	} {
		began := time.Now()
		out, errs, code := g.run(slow, c[0], c[1:]...)
		if code != 0 || strings.TrimSpace(out) != "COMPLETED" || errs != "" {
			t.Errorf("%q: %d, %q, %q after %v", c, code, out, errs, time.Since(began))
		}
	}
}

// TestHistoryLagWithoutLeader starts one of three servers whose history is gone. Nobody can say which entries of its
// log count, so that its history stays empty: it reports that.
func TestHistoryLagWithoutLeader(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	id := g.must("s1", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "--wrap", "true")
	for _, s := range []string{"s1", "s2", "s3"} {
		g.wait("the job to end", func() bool { return g.must(s, "squeue", "-h", "-t", "CD", "-j", id, "-o", "%t") == "CD" })
	}
	for _, s := range []string{"s1", "s2", "s3"} {
		g.at[s].stop()
	}
	g.at["s2"].removeHistory()
	g.start("s2")
	out, errs, code := g.run("s2", "sacct", "-nX", "-j", id, "-o", "State")
	if code != 0 || !strings.Contains(out, "COMPLETED") && !strings.Contains(errs, "are missing") {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}

// removeHistory removes the history of a server that was stopped.
func (d *dev) removeHistory() {
	d.t.Helper()
	if err := os.RemoveAll(d.dir + "/d/acct"); err != nil {
		d.t.Fatal(err)
	}
}
