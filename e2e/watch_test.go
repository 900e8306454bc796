package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestWatch: muster watch tells what happens to a job through the death of the server that it asks, and ends with the
// job's exit code; of a large array it tells the numbers and the task that fails.
func TestWatch(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	leader := g.leader("s1")
	at := g.others(leader)[0]
	id := g.must(at, "sbatch", "--parsable", "-o", "/dev/null", "-J", "train", "--wrap",
		"while [ ! -e "+g.dir+"/go ]; do sleep .1; done; exit 3")
	got, cmd := g.at[at].lines("muster", "watch", id)
	hear := func(want string) {
		t.Helper()
		for line := ""; !strings.Contains(line, "job "+id+" (train) "+want); {
			if line = next(t, got); line == "(end)" {
				t.Fatalf("muster watch has ended before %q", want)
			}
		}
	}
	hear("runs on ")
	g.at[leader].kill()
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	hear("has ended: FAILED, exit code 3:0, after ")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("muster watch ends with %v", err)
	}
	g.awaitLeader(at)
	array := g.must(at, "sbatch", "--parsable", "-o", "/dev/null", "-a", "0-19", "-J", "sweep", "--wrap",
		"[ $SLURM_ARRAY_TASK_ID != 7 ]")
	out, errs, code := g.run(at, "muster", "watch", array)
	if code != 1 || !strings.Contains(out, "job "+array+"_7 (sweep) has ended: FAILED") ||
		!strings.Contains(out, "jobs: 19 completed, 1 failed") || strings.Contains(out, "_8") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if _, errs, code := g.run(at, "muster", "watch", "999"); code != 1 || !strings.Contains(errs, "no such job") {
		t.Errorf("%d %s", code, errs)
	}
}
