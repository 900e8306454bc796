package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRestoreReconciles: a cluster is brought back from a file that is older than what its nodes have seen. Jobs
// that ended since end as their nodes tell; what was started since runs on, once, and is shown; no number is given
// twice; and muster health lists what differed. A node's word alone does not make a job of root's: that one is
// ended, and told.
func TestRestoreReconciles(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as another user")
	}
	g := newGroup(t)
	if err := os.Chmod(g.dir, 0o777); err != nil { // jobs write there
		t.Fatal(err)
	}
	for _, c := range []string{"c1", "c2"} {
		g.join(c, "s1", "--hollow", "2x8c16g", "--hollow-prefix", c+"-", "--hollow-exec")
	}
	g.wait("the nodes", func() bool {
		out, _, _ := g.run("s1", "sinfo", "-hN", "-t", "idle")
		return strings.Count(out, "\n") == 4
	})
	n := 0
	submitAs := func(uid uint32, code int, args ...string) string {
		t.Helper()
		n++
		script := fmt.Sprintf("echo begin >>run.%d; until [ -e go.%d ]; do sleep 0.05; done; echo end >>run.%d; exit %d",
			n, n, n, code)
		args = slices.Concat([]string{
			"--parsable", "-o", "/dev/null", "-J", fmt.Sprint("j", n),
		}, args, []string{"--wrap", script})
		out, errs, rc := g.at["s1"].as(uid, "sbatch", args...)
		if rc != 0 {
			t.Fatalf("sbatch %q: exit code %d, %s", args, rc, errs)
		}
		return strings.TrimSpace(out)
	}
	submit := func(code int, args ...string) string { return submitAs(daemonUID, code, args...) }
	let := func(which int) {
		t.Helper()
		if err := os.WriteFile(fmt.Sprintf("%s/go.%d", g.dir, which), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	state := func(id string) string {
		out, _, _ := g.run("s1", "sacct", "-nXP", "-j", id, "-o", "State,ExitCode")
		return strings.TrimSpace(out)
	}
	runs := func(id string) {
		t.Helper()
		g.wait("job "+id+" to run", func() bool {
			b, _ := os.ReadFile(fmt.Sprintf("%s/run.%s", g.dir, id))
			return len(b) > 0
		})
	}

	ends := submit(3, "--requeue", "-w", "c1-001")        // 1: runs when it is saved, ended since
	stays := submit(0, "-w", "c1-002")                    // 2: runs before and after
	waits := submit(5, "-H", "-w", "c2-001")              // 3: waits when it is saved, runs since
	gang := submit(0, "-H", "-N2", "-w", "c1-001,c2-001") // 4: so, on nodes of two machines
	for _, id := range []string{ends, stays} {
		runs(id)
	}
	file := g.dir + "/saved"
	g.must("s1", "muster", "snapshot", "save", file)

	let(1)
	g.wait("its end", func() bool { return state(ends) == "FAILED|3:0" })
	g.must("s1", "scontrol", "release", waits)
	runs(waits)
	later := submit(7, "-w", "c2-002") // 5: submitted since, runs
	runs(later)
	over := submit(0, "-w", "c2-001")       // 6: submitted since, and over
	roots := submitAs(0, 0, "-w", "c2-002") // 7: submitted since by root, runs
	runs(roots)
	let(6)
	g.wait("its end", func() bool { return state(over) == "COMPLETED|0:0" })
	g.must("s1", "scontrol", "release", gang)
	runs(gang)

	g.at["s1"].kill()
	if err := os.RemoveAll(g.dir + "/s1/d"); err != nil {
		t.Fatal(err)
	}
	g.must("s1", "muster", "snapshot", "restore", "--data", g.dir+"/s1/d", "--node", "s1", file)
	g.start("s1")
	next := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true") // waits until nodes have told
	highest := slices.Max([]int{count(ends), count(stays), count(waits), count(later), count(over), count(roots)})
	if got, _ := strconv.Atoi(next); got <= highest {
		t.Errorf("job %s gets a number that was given: %d was the highest", next, highest)
	}
	g.wait("the end that its node tells", func() bool { return state(ends) == "FAILED|3:0" })
	for _, id := range []string{stays, waits, later, gang} {
		if got := state(id); got != "RUNNING|0:0" {
			t.Errorf("job %s runs, and is shown as %s", id, got)
		}
	}
	out, _, _ := g.run("s1", "muster", "health")
	for _, want := range []string{
		"restored ", "job " + ends, "job " + waits, "job " + later, "job " + gang, "job " + roots,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("muster health does not tell of %q:\n%s", want, out)
		}
	}
	if got := state(roots); got != "NODE_FAIL|0:0" {
		t.Errorf("root's job that only a node knows is shown as %s", got)
	}
	for _, which := range []int{2, 3, 4, 5} {
		let(which)
	}
	g.drained("s1")
	for id, want := range map[string]string{
		ends: "FAILED|3:0", stays: "COMPLETED|0:0", waits: "FAILED|5:0", later: "FAILED|7:0",
		gang: "COMPLETED|0:0",
	} {
		if got := state(id); got != want {
			t.Errorf("job %s: %s, want %s", id, got, want)
		}
	}
	for _, which := range []int{1, 2, 3, 4, 5, 6} {
		if b, _ := os.ReadFile(fmt.Sprintf("%s/run.%d", g.dir, which)); string(b) != "begin\nend\n" {
			t.Errorf("job j%d ran like this: %q", which, b)
		}
	}
}

// TestRestoreCancelled: a job that was cancelled since the snapshot was saved does not run for good afterwards, though
// its end was the servers' to know: its node tells that it was ended.
func TestRestoreCancelled(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.join("c1", "s1", "--hollow", "1x8c16g", "--hollow-prefix", "c1-", "--hollow-exec")
	state := func(id string) string {
		out, _, _ := g.run("s1", "sacct", "-nXP", "-j", id, "-o", "State,ExitCode")
		return strings.TrimSpace(out)
	}
	id := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "touch began; exec sleep 1000")
	g.wait("the job to run", func() bool {
		_, err := os.Stat(g.dir + "/began")
		return err == nil && state(id) == "RUNNING|0:0"
	})
	file := g.dir + "/saved"
	g.must("s1", "muster", "snapshot", "save", file)
	g.must("s1", "scancel", id)
	g.wait("its end", func() bool { return strings.HasPrefix(state(id), "CANCELLED") })
	g.wait("its node to be idle", func() bool { return g.must("s1", "sinfo", "-h", "-o", "%t") == "idle" })

	g.at["s1"].kill()
	if err := os.RemoveAll(g.dir + "/s1/d"); err != nil {
		t.Fatal(err)
	}
	g.must("s1", "muster", "snapshot", "restore", "--data", g.dir+"/s1/d", "--node", "s1", file)
	g.start("s1")
	g.wait("the end that its node tells", func() bool { return state(id) == "FAILED|0:15" })
	g.wait("its node to be free", func() bool { return g.must("s1", "sinfo", "-h", "-o", "%t") == "idle" })
}
