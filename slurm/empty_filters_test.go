package slurm

import (
	"strings"
	"testing"

	"dev.muster/slurm/slurmtest"
)

// TestSinfoFiltersOfNone: a filter whose list is empty lets nothing through, as in Slurm 22.05, rather than all.
func TestSinfoFiltersOfNone(t *testing.T) {
	for _, args := range [][]string{{"-n", ""}, {"-t", ""}, {"-p", ""}, {"-N", "-n", ""}, {"-N", "-p", ""}} {
		got := runLine(slurmtest.New(), t, 0, nil, append([]string{"sinfo", "-h", "-o", "%P %N"}, args...)...)
		if strings.Contains(got, "gpu-node") {
			t.Errorf("sinfo %q shows nodes:\n%s", args, got)
		}
	}
	if got := runLine(slurmtest.New(), t, 0, nil, "sinfo", "-h", "-o", "%N"); !strings.Contains(got, "gpu-node") {
		t.Errorf("sinfo shows no nodes:\n%s", got)
	}
}

// TestSqueueFiltersOfCommas: so does one of commas alone.
func TestSqueueFiltersOfCommas(t *testing.T) {
	for _, option := range []string{"-n", "-u", "-p", "-t", "-L"} {
		if got := runLine(slurmtest.New(), t, 0, nil, "squeue", "-h", "-o", "%i", option, ","); strings.TrimSpace(got) != "" {
			t.Errorf("squeue %s , shows jobs:\n%s", option, got)
		}
	}
	if got := runLine(slurmtest.New(), t, 0, nil, "squeue", "-h", "-o", "%i"); strings.TrimSpace(got) == "" {
		t.Error("squeue shows no jobs")
	}
}

// TestSacctJobWords: what cannot be read of -j is an error, in Slurm 22.05's words.
func TestSacctJobWords(t *testing.T) {
	for word, want := range map[string]string{
		"7.x":   "Bad step specified: 7",
		"7.":    "Bad step specified: 7",
		"7_1.x": "Bad step specified: 7_1",
		"7_":    "Bad job array element specified: 7",
		"7_x":   "Bad job array element specified: 7",
		"7+x":   "Bad hetjob offset specified: 7",
		"x":     "Bad job/step specified: x",
		"x_1":   "Bad job/step specified: x_1",
	} {
		want = "--- stderr\nsacct: fatal: " + want + "\n--- rc 1\n"
		if got := runLine(slurmtest.New(), t, 0, nil, "sacct", "-j", word); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	want := "--- stderr\n/nosuch is not a valid file\n--- rc 1\n"
	if got := runLine(slurmtest.New(), t, 0, nil, "sacct", "-f", "/nosuch"); got != want {
		t.Errorf("-f: %q, want %q", got, want)
	}
}
