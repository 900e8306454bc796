package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func known(t *testing.T, text string) []*reason {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readKnown(path)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestStaleReasons: a reason that explains nothing, or too much, is itself an error.
func TestStaleReasons(t *testing.T) {
	cmds := []command{
		{1, "", "srun a", false}, {2, "", "srun b", false}, {3, "", "srun c", false},
		{4, "", "srun d", false}, {5, "", "squeue", false},
	}
	cases := []struct {
		known   string
		differs int // the first commands of the list
		all     bool
		want    string
	}{
		{"srun a :: why", 1, true, ""},
		{"srun a :: why", 0, true, "explains no difference any more"},
		{"srun a :: chance: why", 0, true, ""},
		{"srun :: why", 3, true, ""},
		{"srun :: why", 4, true, "explains 4 commands"},
		{"srun :: many: why", 4, true, ""},
		{"sbatch :: why", 0, true, "part of no command"},
		{"sbatch :: why", 0, false, ""},
	}
	for _, c := range cases {
		list := known(t, "# a comment\n\n"+c.known+"\n")
		for _, cmd := range cmds[:c.differs] {
			if whyKnown(cmd, list) == nil {
				t.Errorf("%q does not explain %q", c.known, cmd.text)
			}
		}
		got := strings.Join(staleReasons(cmds, list, c.all), "\n")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q with %d differences: %q, want %q", c.known, c.differs, got, c.want)
		}
	}
}

// TestKnownFile: the list of this folder can be read and names only commands of this folder.
func TestKnownFile(t *testing.T) {
	list, err := readKnown("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	cmds, err := readCommands("commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		r.chance = true
	}
	for _, wrong := range staleReasons(cmds, list, true) {
		t.Error(wrong)
	}
}

func TestReplace(t *testing.T) {
	r := replacer{base: 2100, end: 2110, dir: "/tmp/x/s/001", own: "22.05.8"}
	for _, c := range []struct{ in, want string }{
		{"Submitted batch job 2101\n", "Submitted batch job JJJ2\n"},
		{
			"salloc: Relinquishing job allocation 2100\nsalloc: Job allocation 2100 has been revoked.\n",
			"salloc: Relinquishing job allocation JJJ1\n",
		},
		{
			"salloc: Granted job allocation 2100\nsalloc: Waiting for resource configuration\nsalloc: Nodes n[1-2] are ready for job\n",
			"salloc: Granted job allocation JJJ1\n",
		},
		{"slurm-wlm 22.05.8 (muster abc123)\n", "slurm VERSION\n"},
		{"slurm 22.05.8\n", "slurm VERSION\n"},
		{"idle 22.05.8 1\n", "idle VERSION 1\n"},
		{"JobState=RUNNING Reason=Prolog x\n", "JobState=RUNNING Reason=None x\n"},
		{"a Scheduler=Backfill\n", "a Scheduler=ANY\n"},
		{"FAILED|SchedBackfill,StartRecieved\n", "FAILED|SchedANY,StartRecieved\n"},
		{
			"sbatch: error: Batch job submission failed: X\nsbatch: why: too many\n",
			"sbatch: error: Batch job submission failed: X\n",
		},
		{"/tmp/x/s/001/out\n", "/DIR/out\n"},
	} {
		if got := r.replace(c.in); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

func TestInOrderOf(t *testing.T) {
	if got := inOrderOf("a\nb\n", "b\na\n"); got != "a\nb\n" {
		t.Errorf("same lines in another order: %q", got)
	}
	if got := inOrderOf("a\nb\n", "b\nc\n"); got != "b\nc\n" {
		t.Errorf("other lines: %q", got)
	}
}
