package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/pmi"
)

// compileMPI builds the MPI program of the tests by a compiler of Debian's packages, or skips the test.
func compileMPI(t *testing.T, compiler, pkg string) string {
	t.Helper()
	cc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("%s is not installed: apt-get install %s", compiler, pkg)
	}
	program := filepath.Join(t.TempDir(), "world")
	if out, err := exec.Command(cc, "-o", program, "testdata/mpi/world.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return program
}

// TestPMI: tasks that speak PMI themselves find each other, whatever MPI library there is.
func TestPMI(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "4x4c8g", "--hollow-exec")
	const talk = `say() { echo "$1" >&3; read answer <&3; echo "$answer"; }
say "cmd=init pmi_version=1 pmi_subversion=1" >/dev/null
say "cmd=put kvsname=x key=k$PMI_RANK value=of $PMI_RANK" >/dev/null
say "cmd=barrier_in" >/dev/null
echo "$PMI_RANK of $PMI_SIZE: $(say "cmd=get kvsname=x key=k$(( (PMI_RANK + 1) % PMI_SIZE ))")"
say "cmd=finalize" >/dev/null`
	got := d.must("srun", "--mpi=pmi2", "-N3", "-n5", "-l", "sh", "-c", talk)
	for _, want := range []string{
		"0: 0 of 5: cmd=get_result rc=0 msg=success value=of 1",
		"3: 3 of 5: cmd=get_result rc=0 msg=success value=of 4",
		"4: 4 of 5: cmd=get_result rc=0 msg=success value=of 0",
	} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
	const many = 256
	got = d.must("srun", "--mpi=pmi2", "-N4", "-n"+strconv.Itoa(many), "--overcommit", "sh", "-c", talk) + "\n"
	for rank := range many {
		want := fmt.Sprintf("%d of %d: cmd=get_result rc=0 msg=success value=of %d\n", rank, many, (rank+1)%many)
		if !strings.Contains("\n"+got, "\n"+want) {
			t.Errorf("of %d ranks without %q", many, want)
		}
	}
	_, errs, code := d.run("srun", "--mpi=pmi2", "-n2", "sh", "-c", `echo "no PMI" >&3; read end <&3; true`)
	if code != 0 || !strings.Contains(errs, `slurmstepd-node-001: error: mpi/pmi2: task 0: it says "no PMI", which is no PMI`) {
		t.Errorf("a task that speaks something else: %d\n%s", code, errs)
	}
	if list := d.must("srun", "--mpi=list"); !strings.HasPrefix(list, "MPI plugin types are...\n\tnone\n\tpmi2") {
		t.Errorf("--mpi=list: %s", list)
	}
	if _, errs, code := d.run("srun", "--mpi=lam", "true"); code != 1 || !strings.Contains(errs, "Invalid MPI type 'lam', --mpi=list for acceptable types") {
		t.Errorf("--mpi=lam: %d\n%s", code, errs)
	}
	out, errs, code := d.run("srun", "--mpi=pmi2", "-n1", "true", ":", "-n1", "true")
	if code != 1 || !strings.Contains(errs, "the components of a heterogeneous job cannot be one MPI world") {
		t.Errorf("one world of two components: %d\n%s%s", code, out, errs)
	}
}

// mpiBadEnds has a rank of an MPI program abort the world, end too early and be killed.
func mpiBadEnds(t *testing.T, d *dev, manager, program string, size ...string) {
	t.Helper()
	for _, c := range []struct {
		what, text string
		code       int
		options    []string
	}{
		{"abort", "Job step aborted: Waiting up to ", 137, nil},
		{"exit", "Exited with exit code 3", 143, []string{"-K1"}},
		{"kill", "Killed", 143, []string{"-K1"}},
	} {
		args := slices.Concat([]string{"--mpi=" + manager}, size, c.options, []string{program, c.what})
		begun := time.Now()
		_, errs, code := d.run("srun", args...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit code %d, want %d, and %q in\n%s", c.what, code, c.code, c.text, errs)
		}
		if took := time.Since(begun); took > patience(20*time.Second) {
			t.Errorf("%s: the others went on for %s", c.what, took)
		}
	}
}

// mpiWorlds runs the MPI program in worlds of several shapes, and in those that end badly.
func mpiWorlds(t *testing.T, d *dev, manager, program string, more ...[]string) {
	mpi := "--mpi=" + manager
	for _, shape := range append([][]string{
		{"-N1", "-n1"}, {"-N1", "-n2"}, {"-N2", "-n4"}, {"-N4", "-n8"}, {"-N8", "-n16"},
		{"-N2", "-n5", "-m", "cyclic"},
	}, more...) {
		args := append([]string{mpi}, shape...)
		size := strings.TrimPrefix(shape[1], "-n")
		expect(t, strings.Join(args, " "), d.must("srun", append(args, program, "all")...), "world of "+size)
	}
	mpiBadEnds(t, d, manager, program, "-N2", "-n4")
	mpiBadEnds(t, d, manager, program, "-N8", "-n8") // by a tree
	for range 5 {                                    // one after another
		d.must("srun", mpi, "-N2", "-n2", program)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if out, errs, code := d.run("srun", mpi, "-N2", "-n4", program, "all"); code != 0 || out != "world of 4\n" {
				t.Errorf("four at once: %d\n%s%s", code, out, errs)
			}
		})
	}
	all.Wait()
	// The node itself as an image, where it can be one: its libraries are those that the program was built with.
	image := []string{"--container-image=/", "--container-mounts=/tmp"}
	if _, errs, code := d.run("srun", append(image, "true")...); code != 0 {
		t.Logf("not tried in a container: %s", errs)
	} else {
		args := append(append([]string{mpi, "-N2", "-n4"}, image...), program, "all")
		expect(t, "in a container", d.must("srun", args...), "world of 4")
	}
	script := writeProgram(t, d.dir, "job",
		"#!/bin/sh\n#SBATCH -N4 -n8 -o "+d.dir+"/out\nsrun "+mpi+" "+program+" all\nsrun "+mpi+" -N3 -n3 "+program+" all\n")
	d.must("sbatch", "-W", script)
	expect(t, "in a batch job", d.read("out"), "world of 8\nworld of 3\n")
}

// TestMPICH: programs of Debian's MPICH, started by srun; those of its own mpiexec go on to work.
func TestMPICH(t *testing.T) {
	t.Parallel()
	program := compileMPI(t, "mpicc.mpich", "libmpich-dev mpich")
	d := startDev(t, "--hollow", "8x16c16g", "--hollow-exec", "--conf", confFile(t, "MpiDefault=pmi2\n"))
	mpiWorlds(t, d, "pmi2", program)
	expect(t, "by MpiDefault", d.must("srun", "-N2", "-n2", program), "world of 2")
	expect(t, "none", d.must("srun", "--mpi=none", "-n2", program), "world of 1\nworld of 1")
	if shown := d.must("scontrol", "show", "config"); !strings.Contains(shown, "\nMpiDefault              = pmi2\n") {
		t.Errorf("as shown:\n%s", shown)
	}
	expect(t, "mpiexec", d.must("salloc", "-Q", "-N2", "-n4", "mpiexec.mpich", program, "all"), "world of 4")
}

// startOpenMPI starts a product that serves PMIx, and has the program of the tests built by Open MPI.
func startOpenMPI(t *testing.T, nodes string) (d *dev, program string) {
	t.Helper()
	program = compileMPI(t, "mpicc.openmpi", "libopenmpi-dev openmpi-bin")
	return startPMIx(t, nodes), program
}

// ofPMIx is held by the one cluster that runs programs of Open MPI: they name their files in /dev/shm by node, user,
// job and step, which are the same in several clusters of one machine.
var ofPMIx sync.Mutex

// startPMIx starts a product that serves PMIx, and carries the server for that.
func startPMIx(t *testing.T, nodes string) *dev {
	t.Helper()
	product, err := gpuProduct()
	if product == "" {
		t.Skip("no C compiler: ", err)
	}
	ofPMIx.Lock()
	t.Cleanup(ofPMIx.Unlock)
	d := startProduct(t, product, "--hollow", nodes, "--hollow-exec")
	d.env = append(d.env, "HWLOC_COMPONENTS=-gl") // which calls X servers of other tests, and writes that they refuse
	if list := d.must("srun", "--mpi=list"); !strings.HasSuffix(list, "\n\tpmix") {
		t.Skipf("this machine has no %s: apt-get install libpmix2", pmi.Library)
	}
	return d
}

// TestOpenMPI: programs of Debian's Open MPI, started by srun through its libpmix; those of its own mpirun go on to
// work.
func TestOpenMPI(t *testing.T) {
	t.Parallel()
	d, program := startOpenMPI(t, "8x16c16g")
	mpiWorlds(t, d, "pmix", program)
	expect(t, "by version", d.must("srun", "--mpi=pmix_v4", "-N2", "-n2", program), "world of 2")
	expect(t, "put", d.must("srun", "--mpi=pmix", "-N1", "-n4", program, "put"), "world of 4")
	left, err := filepath.Glob(d.dir + "/*/spool/mpi-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	d.env = append(d.env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	expect(t, "mpirun", d.must("salloc", "-Q", "-N2", "-n4", "mpirun.openmpi", program, "all"), "world of 4")
}

// TestMPI4Py: Python programs over mpi4py, of Debian's package, which is built for Open MPI.
func TestMPI4Py(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // of the package
	if out, err := exec.Command(python, "-c", "import mpi4py").CombinedOutput(); err != nil {
		t.Skipf("mpi4py is not installed: apt-get install python3-mpi4py: %s", out)
	}
	d := startPMIx(t, "4x4c8g")
	program := writeProgram(t, d.dir, "sum.py", `#!/usr/bin/python3
from mpi4py import MPI
world = MPI.COMM_WORLD
words = world.gather("%d of %d" % (world.rank, world.size), root=0)
half = world.Split(world.rank % 2)
total = world.allreduce(world.rank)
if world.rank == 0:
    print(", ".join(words), "sum", total, "half", half.size)
`)
	expect(t, "mpi4py", d.must("srun", "--mpi=pmix", "-N2", "-n4", program),
		"0 of 4, 1 of 4, 2 of 4, 3 of 4 sum 6 half 2")
	_, errs, code := d.run("srun", "--mpi=pmix", "-K1", "-N2", "-n2", python, "-c",
		"from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1: MPI.COMM_WORLD.Abort(5)\nMPI.COMM_WORLD.barrier()")
	if code == 0 || !strings.Contains(errs, "Job step aborted") {
		t.Errorf("abort: %d\n%s", code, errs)
	}
}
