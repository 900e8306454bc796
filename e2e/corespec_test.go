package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestCoreSpec has jobs say themselves what they leave of their nodes, where the site allows it. The figures are
// Slurm's.
func TestCoreSpec(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x16c8g", "--hollow-exec", "--conf", confFile(t, `
ClusterName=left
AllowSpecResourcesUsage=yes
DefMemPerCPU=100
PartitionName=main Nodes=ALL Default=YES
`))
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	const see = `echo $SLURM_JOB_CPUS_PER_NODE $SLURM_CPUS_ON_NODE; srun -n1 sh -c 'echo step $SLURM_CPUS_ON_NODE'`
	for opts, want := range map[string]string{
		"-S0": "16 16\nstep 16", "-S3": "13 13\nstep 13", "--thread-spec=2": "14 14\nstep 14",
	} {
		file := t.TempDir() + "/out"
		id := d.must("sbatch", "--parsable", "-W", opts, "-o", file, "--wrap", see)
		expect(t, opts, contents(t, file), want)
		out := d.must("scontrol", "show", "-d", "job", id)
		if !strings.Contains(out, " NumCPUs=16 ") || !strings.Contains(out, "OverSubscribe=NO") {
			t.Errorf("%s: %s", opts, out)
		}
		d.wait("history", func() bool {
			return strings.HasPrefix(d.must("sacct", "-nPX", "-j", id, "-o", "NCPUS,State"), "16|COMPLETED")
		})
	}
	out, errs, code := d.run("sbatch", "-S16", "--wrap", "true")
	first, why, _ := strings.Cut(errs, "\n")
	expect(t, "too many", first,
		"sbatch: error: Batch job submission failed: Requested node configuration is not available")
	if !strings.HasPrefix(why, "sbatch: why: no set of nodes of partition main can ever run this job: it needs ") {
		t.Errorf("why it is refused: %q", why)
	}
	if code != 1 || out != "" {
		t.Errorf("too many: %d %q", code, out)
	}
	id := d.must("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "exec sleep 600")
	for _, c := range [][2]string{
		{"CoreSpec=2", "2 NO"}, {"ThreadSpec=3", "3 Threads NO"}, {"CoreSpec=-1", "N/A NO"},
		{"CoreSpec=4", "4 NO"},
	} {
		d.must("scontrol", "update", "jobid="+id, c[0])
		expect(t, c[0], d.must("squeue", "-h", "-j", id, "-o", "%X %h"), c[1])
	}
	d.must("scontrol", "release", id)
	d.wait("the job", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%X %C") == "4 16" })
	if out := d.must("scontrol", "show", "-d", "job", id); !strings.Contains(out, " CPU_IDs=0-5,8-13 Mem=1200 ") || !strings.Contains(out, " CoreSpec=4\n") {
		t.Errorf("job: %s", out)
	}
	expect(t, "the node", d.must("sinfo", "-h", "-o", "%C %t"), "16/0/0/16 alloc")
	_, errs, _ = d.run("srun", "--jobid="+id, "--overlap", "-S2", "true")
	expect(t, "a step", errs,
		"srun: error: Ignoring --core-spec value for a job step within an existing job. Set specialized cores at job allocation time.\n")
}

// TestSpecBound: tasks run on the CPUs that the node does not keep from jobs, or on those that their job says.
func TestSpecBound(t *testing.T) {
	t.Parallel()
	all := runtime.NumCPU()
	if all < 2 {
		t.Skip("a node that keeps a CPU must have two")
	}
	d := startDev(t, "--node", "n1", "--conf", confFile(t, fmt.Sprintf(`
ClusterName=bound
AllowSpecResourcesUsage=yes
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
NodeName=n1 CPUs=%d CpuSpecList=%d
PartitionName=main Nodes=ALL Default=YES
`, all, all-1)))
	d.wait("an idle node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	whole, rest := cluster.RangeIDSet(0, all-1).String(), cluster.RangeIDSet(0, all-2).String()
	const see = `exec grep Cpus_allowed_list: /proc/self/status`
	for opts, want := range map[string]string{
		"--exclusive": rest, "-n" + strconv.Itoa(all-1): rest, "-S1": rest, "--thread-spec=1": rest,
		"-S0": whole,
	} {
		for _, line := range []string{see, "srun -n1 -c$SLURM_CPUS_ON_NODE sh -c '" + see + "'"} {
			file := t.TempDir() + "/out"
			d.must("sbatch", "-W", opts, "-o", file, "--wrap", line)
			if got := contents(t, file); got != "Cpus_allowed_list:\t"+want {
				t.Errorf("%s, %s: %q, want %s", opts, line, got, want)
			}
		}
	}
	out, errs, code := d.run("sbatch", "-N1", "-n", strconv.Itoa(all), "-o", "/dev/null", "--wrap", "true")
	if code != 1 || !strings.Contains(errs, "Requested node configuration is not available") {
		t.Errorf("more than jobs may have: %d %q %q", code, out, errs)
	}
}

// TestNoCoreSpec leaves out what the site does not allow, and says so as Slurm does: the job shares its node.
func TestNoCoreSpec(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x16c8g", "--hollow-exec")
	for opt, name := range map[string]string{"-S2": "-S", "--thread-spec=2": "--thread-spec"} {
		out, errs, code := d.run("sbatch", "--parsable", opt, "-o", "/dev/null", "--wrap", "true")
		expect(t, opt, errs,
			"sbatch: error: Ignoring "+name+" since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n")
		if code != 0 || d.must("squeue", "-h", "-t", "all", "-j", strings.TrimSpace(out), "-o", "%X %h %C") != "N/A OK 1" {
			t.Errorf("%s: %d, job %s", opt, code, out)
		}
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
