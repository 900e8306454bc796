package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var benchMPI = flag.Int("bench-mpi", 0, "how often TestBenchMPI starts each step; 0: never")

// mpiSizes are the steps that are timed.
var mpiSizes = [][]string{{"-N4", "-n16"}, {"-N8", "-n256", "--overcommit"}}

// TestBenchMPI times steps whose ranks do no more than find each other by PMIx, exchange 4 KiB each and end; with
// MUSTER_BENCH_SLURM, a slurm.conf, those of a real Slurm in turns. See make bench-mpi.
func TestBenchMPI(t *testing.T) {
	if *benchMPI == 0 {
		t.Skip("see make bench-mpi")
	}
	product, err := gpuProduct() // it carries the server of PMIx, too
	if product == "" {
		t.Skip("no C compiler: ", err)
	}
	program := compilePMIx(t)
	d := startProduct(t, product, "--hollow", "8x16c16g", "--hollow-exec")
	managers := map[string]func(args ...string) string{"muster": func(args ...string) string {
		return d.must("srun", args...)
	}}
	if conf := os.Getenv("MUSTER_BENCH_SLURM"); conf != "" {
		managers["Slurm"] = func(args ...string) string { return slurmRun(t, conf, args) }
	}
	for _, size := range mpiSizes {
		args := slices.Concat([]string{"--mpi=pmix"}, size, []string{program, "4096"})
		for range *benchMPI {
			for name, run := range managers {
				began := time.Now()
				fence, err := strconv.Atoi(strings.TrimSpace(run(args...)))
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%-6s %s: whole step %v, fence %v", name, strings.Join(size, " "),
					time.Since(began).Round(time.Millisecond), time.Duration(fence)*time.Microsecond)
			}
		}
	}
}

// slurmRun calls the srun of a real Slurm.
func slurmRun(t *testing.T, conf string, args []string) string {
	t.Helper()
	srun := cmp.Or(os.Getenv("MUSTER_BENCH_SRUN"), "/usr/bin/srun")
	cmd := exec.Command(srun, args...)
	cmd.Env = []string{"SLURM_CONF=" + conf, "PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", srun, err, out)
	}
	return string(out)
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
