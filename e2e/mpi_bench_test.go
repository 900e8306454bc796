package e2e

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/pmi"
	"golang.org/x/sys/unix"
)

var benchMPI = flag.Int("bench-mpi", 0, "how often TestBenchMPI starts each step; 0: never")

// mpiSizes are the steps that are timed. Those of few nodes have their fences by srun, the others by a tree of nodes.
var mpiSizes = [][]string{
	{"-N4", "-n16"},
	{"-N8", "-n256", "--overcommit"},
	{"-N16", "-n128", "--overcommit"},
	{"-N64", "-n64"},
}

// slurmNodes is how many nodes the real Slurm has.
const slurmNodes = 8

// TestBenchMPI times steps whose ranks do no more than find each other by PMIx, exchange 4 KiB each and end, and tells
// how much srun has read and written; with MUSTER_BENCH_SLURM, a slurm.conf, those of a real Slurm in turns, and where
// there is a tree those without. See make bench-mpi.
func TestBenchMPI(t *testing.T) {
	if *benchMPI == 0 {
		t.Skip("see make bench-mpi")
	}
	product, err := gpuProduct() // it carries the server of PMIx, too
	if product == "" {
		t.Skip("no C compiler: ", err)
	}
	program := compilePMIx(t)
	d := startProduct(t, product, "--hollow", "64x16c16g", "--hollow-exec")
	srun := filepath.Join(bin, "srun")
	managers := []launcher{
		{"muster", srun, d.env, math.MaxInt},
		{"by srun", srun, append(slices.Clone(d.env), pmi.WayEnv+"="+pmi.WayHub), math.MaxInt},
	}
	if conf := os.Getenv("MUSTER_BENCH_SLURM"); conf != "" {
		env := []string{"SLURM_CONF=" + conf, "PATH=/usr/bin:/bin"}
		srun := cmp.Or(os.Getenv("MUSTER_BENCH_SRUN"), "/usr/bin/srun")
		managers = append(managers, launcher{"Slurm", srun, env, slurmNodes})
	}
	for _, size := range mpiSizes {
		nodes, err := strconv.Atoi(strings.TrimPrefix(size[0], "-N"))
		if err != nil {
			t.Fatal(err)
		}
		args := slices.Concat([]string{"--mpi=pmix"}, size, []string{program, "4096"})
		for range *benchMPI {
			for _, m := range managers {
				if nodes <= m.nodes {
					m.time(t, args)
				}
			}
		}
	}
}

// launcher is an srun whose steps are timed.
type launcher struct {
	name, srun string
	env        []string
	nodes      int // that it has
}

// time runs one step.
func (l launcher) time(t *testing.T, args []string) {
	t.Helper()
	cmd := exec.Command(l.srun, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = l.env, &out, &errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	took := time.Since(began)
	moved := movedBy(t, cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s%s", l.srun, err, &out, &errs)
	}
	fence, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-7s %s: whole step %v, fence %v, srun has moved %.2f MB", l.name, strings.Join(args[1:3], " "),
		took.Round(time.Millisecond), time.Duration(fence)*time.Microsecond, float64(moved)/1e6)
}

// movedBy is how many bytes a process that has ended has read and written; its parent has not asked for its end yet.
func movedBy(t *testing.T, pid int) (sum int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, figure, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name != "rchar" && name != "wchar" {
			continue
		}
		n, err := strconv.ParseInt(figure, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// compilePMIx builds the program that speaks PMIx by Debian's headers, or skips the test.
func compilePMIx(t *testing.T) string {
	t.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "pmix").Output()
	if err != nil {
		t.Skip("no headers of PMIx: apt-get install libpmix-dev pkgconf")
	}
	program := filepath.Join(t.TempDir(), "fence")
	args := append([]string{"-O2", "-o", program, "testdata/mpi/fence.c"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("cc: %w\n%s", err, out))
	}
	return program
}
