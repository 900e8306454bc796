package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// spawnTalk is a program that speaks PMI itself: its words are how many tasks to start, of which program, and what they
// do. Started by one of its own it tells what it finds.
const spawnTalk = `#!/bin/sh
say() { echo "$1" >&3; read -r answer <&3; echo "$answer"; }
say "cmd=init pmi_version=1 pmi_subversion=1" >/dev/null
if [ "$PMI_SPAWNED" = 1 ]; then
	say "cmd=barrier_in" >/dev/null
	key=$(say "cmd=get kvsname=x key=port")
	name=$(say "cmd=lookup_name service=up")
	echo "child $PMI_RANK of $PMI_SIZE, $(say "cmd=get_appnum"), ${key#*value=}, ${name#*port=}: $# $1"
	[ "$2" = stay ] && exec sleep 6000
	[ "$2" = fail ] && exit 7
	say "cmd=finalize" >/dev/null
	exit 0
fi
say "cmd=publish_name service=up port=here" >/dev/null
say "mcmd=spawn
nprocs=$1
execname=$2
totspawns=2
spawnssofar=1
arg1=two words
arg2=$3
argcnt=2
preput_num=1
preput_key_0=port
preput_val_0=a b
info_num=0
endcmd
mcmd=spawn
nprocs=1
execname=$2
totspawns=2
spawnssofar=2
arg1=one
arg2=$3
argcnt=2
preput_num=1
preput_key_0=port
preput_val_0=a b
info_num=0
endcmd"
[ "$3" = stay ] && kill -9 $$
say "cmd=finalize" >/dev/null
`

// TestSpawn: tasks that speak PMI themselves ask srun for further ones, whatever MPI library there is.
func TestSpawn(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "4x4c8g", "--hollow-exec")
	talk := writeProgram(t, d.dir, "talk", spawnTalk)
	only0 := []string{"sh", "-c", `[ "$SLURM_PROCID" != 0 ] || exec "$@"`, "-"}
	for _, c := range []struct {
		nodes, tasks string
		first, all   int // of the first program, of both
	}{{"-N1", "-n2", 1, 2}, {"-N1", "-n4", 3, 4}, {"-N2", "-n4", 3, 4}} {
		line := append([]string{"--mpi=pmi2", "--overlap", "-l", c.nodes, c.tasks}, only0...)
		got := "\n" + d.must("srun", append(line, talk, strconv.Itoa(c.first), talk)...) + "\n"
		want := []string{"\n0: cmd=spawn_result rc=0 jobid="}
		for rank := range c.all {
			found := "cmd=appnum appnum=0, a b, here: 2 two words"
			if rank >= c.first {
				found = "cmd=appnum appnum=1, a b, here: 2 one"
			}
			want = append(want, fmt.Sprintf("\n%d: child %d of %d, %s\n", rank, rank, c.all, found))
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%+v without %q:\n%s", c, w, got)
			}
		}
	}
	for _, c := range []struct{ program, tasks, what, answer, says string }{
		{"/no/such", "1", "", "rc=-1", "execve(): /no/such: No such file or directory"},
		{"/bin/false", "1", "", "rc=-1", "error: mpi/pmi2: task 0: MPI_Comm_spawn: the tasks have not begun"},
		{"/bin/true", "1", "", "rc=-1", "MPI_Comm_spawn: the tasks have not begun"},
		{talk, "400", "", "rc=-1", "More processors requested than permitted"},
		{talk, "0", "", "rc=-1", `MPI_Comm_spawn: what is to be started cannot be read: "0" tasks`},
		{talk, "1", "fail", "rc=0", "Exited with exit code 7"},
	} {
		line := append([]string{"--mpi=pmi2", "--overlap", "-N1", "-n2"}, only0...)
		out, errs, code := d.run("srun", append(line, talk, c.tasks, c.program, c.what)...)
		if code != 0 || !strings.Contains(out, "spawn_result "+c.answer) || !strings.Contains(errs, c.says) {
			t.Errorf("%+v: %d\n%s%s", c, code, out, errs)
		}
	}
}

// TestSpawnEnds: as with Slurm the new tasks outlive their parent, but not their job; and where they find no room they
// go with their parent.
func TestSpawnEnds(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-exec")
	talk := writeProgram(t, d.dir, "talk", spawnTalk)
	steps := func() string { return d.must("squeue", "-h", "-s", "-o", "%i") }
	batch := func(options string) string {
		script := "#!/bin/sh\n#SBATCH -N2 -n4 --parsable -o " + d.dir + "/out\n" +
			"srun --mpi=pmi2 -N2 -n2 " + options + ` sh -c '[ $SLURM_PROCID != 0 ] || exec "$@"' - ` +
			talk + " 1 " + talk + " stay\n"
		return d.must("sbatch", writeProgram(t, d.dir, "job", script))
	}
	job := batch("--overlap")
	d.wait("the end of the parent", func() bool {
		have := steps()
		return strings.Contains(have, job+".1") && !strings.Contains(have, job+".0") &&
			strings.Contains(d.soFar("out"), "child 1 of 2")
	})
	d.must("scancel", job)
	d.wait("the end of the steps", func() bool { return steps() == "" })
	job = batch("")
	d.wait("a step that waits", func() bool {
		return strings.Contains(d.soFar("out"), "why: MPI_Comm_spawn waits for what other steps of the job hold")
	})
	d.must("scancel", job+".0")
	d.wait("the end of the job", func() bool { return d.must("squeue", "-h") == "" })
	if got := d.read("out"); strings.Contains(got, "child") {
		t.Errorf("without room:\n%s", got)
	}
}

// TestSpawnPMI2: so do programs over Slurm's own library of PMI-2.
func TestSpawnPMI2(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "pmi2")
	if out, err := exec.Command("cc", "-o", program, "testdata/mpi/pmi2.c", "-lpmi2").CombinedOutput(); err != nil {
		t.Skipf("no library of PMI-2: apt-get install gcc libpmi2-0-dev: %s", out)
	}
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-exec")
	d.env = append(d.env, "SLURM_OVERLAP=1")
	got := d.must("srun", "--mpi=pmi2", "-N2", "-n3", program) + "\n"
	for _, want := range []string{"spawn 0: 0 0 0\n", "child 1 of 3, program 0: a;b=c, two; words\n",
		"child 2 of 3, program 1: a;b=c, b\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
	if got := d.must("srun", "--mpi=pmi2", "-n2", "-N1", program, "/no/such"); !strings.Contains(got, "spawn 14: 9 9 9") {
		t.Errorf("no such program: %s", got)
	}
}

// spawnProgram builds the program of TestMPISpawn by an MPICH that can spawn, or skips the test: Debian's (4.0.2 over
// UCX) cannot, by its own launcher either. MUSTER_TEST_MPICC names the compiler of another one.
func spawnProgram(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath(cmp.Or(os.Getenv("MUSTER_TEST_MPICC"), "mpicc.mpich"))
	if err != nil {
		t.Skip("mpicc.mpich is not installed: apt-get install libmpich-dev mpich")
	}
	program := filepath.Join(t.TempDir(), "spawn")
	if out, err := exec.Command(cc, "-o", program, "testdata/mpi/spawn.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	launcher := filepath.Join(filepath.Dir(cc), strings.Replace(filepath.Base(cc), "mpicc", "mpiexec", 1))
	if out, err := exec.Command(launcher, "-n", "1", program, "x", "1", program).CombinedOutput(); err != nil {
		if os.Getenv("MUSTER_TEST_MPICC") == "" {
			t.Skipf("this MPICH cannot spawn by its own launcher: %s", out)
		}
		t.Logf("by its own launcher: %v\n%s", err, out)
	}
	return program
}

// TestMPISpawn: programs of MPICH start further tasks, join them and exchange with them.
func TestMPISpawn(t *testing.T) {
	t.Parallel()
	program := spawnProgram(t)
	d := startDev(t, "--hollow", "8x4c8g", "--hollow-exec")
	d.env = append(d.env, "SLURM_OVERLAP=1")
	for _, c := range []struct {
		nodes, tasks string
		spawns, want []string
	}{
		{"-N1", "-n2", []string{"1", program}, []string{"parents 2, children 1, all 3\n"}},
		{"-N1", "-n4", []string{"4", program},
			[]string{"parents 4, children 4, all 8\n", "child 3 of 4, program 0, words 3: two words\n"}},
		{"-N2", "-n4", []string{"4", program}, []string{"parents 4, children 4, all 8\n"}},
		{"-N2", "-n4", []string{"2", program, "1", program},
			[]string{"parents 4, children 3, all 7\n", "child 2 of 3, program 1"}},
		{"-N8", "-n8", []string{"8", program}, []string{"parents 8, children 8, all 16\n"}}, // fences by a tree
	} {
		line := append([]string{"--mpi=pmi2", c.nodes, c.tasks, program, "x"}, c.spawns...)
		got := d.must("srun", line...) + "\n"
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q without %q:\n%s", line, want, got)
			}
		}
	}
	for _, c := range []struct {
		what, spawned, says string
		code                int
	}{
		{"x", "/no/such", "MPI_Comm_spawn: the tasks have not begun", 3},
		{"abort", program, "Job step aborted: Waiting up to ", 0},
		{"orphan", program, "Killed", 137},
	} {
		_, errs, code := d.run("srun", "--mpi=pmi2", "-n1", program, c.what, "1", c.spawned)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%+v: %d\n%s", c, code, errs)
		}
	}
	if left := d.must("squeue", "-h", "-s"); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}
