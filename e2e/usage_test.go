package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// holds is a task that keeps MB megabytes in a child and burns CPU in another.
func holds(mb string) string {
	return `n=$(( ` + mb + ` * 1000000 )); (head -c $(( n + 1000000 )) /dev/zero | tail -c $n | sleep 1000) & while [ ! -e end ]; do :; done; kill 0`
}

// stat is the fields of the one line that sstat prints.
func (d *dev) stat(id, fields string) []string {
	out, _, _ := d.run("sstat", "-nP", "-j", id, "-o", fields)
	return strings.Split(strings.TrimSuffix(out, "\n"), "|")
}

// sizeOf reads 105212K.
func sizeOf(t *testing.T, text string) int64 {
	t.Helper()
	digits := strings.TrimRight(text, "KMGT")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatalf("%q is no size", text)
	}
	if unit := text[len(digits):]; unit != "" {
		n <<= 10 * (1 + strings.Index("KMGT", unit))
	}
	return n
}

// TestUsage: sstat shows what a running step's tasks use, sacct the same once it has ended.
func TestUsage(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-N2", "-n2", "--ntasks-per-node=1", "-o", "/dev/null", "--wrap",
		"srun sh -c '"+holds("(1 + $SLURM_PROCID) * 100")+"'; true")
	fields := "jobid,maxrss,maxrssnode,maxrsstask,mincpu,maxdiskread,ntasks"
	d.wait("200 MB in the second task and a second of CPU time in each", func() bool {
		f := d.stat(id, fields)
		return len(f) == 7 && f[4] >= "00:00:01" && sizeOf(t, f[1]) >= 200e6
	})
	f := d.stat(id, fields)
	if f[0] != id+".0" || f[2] != "gpu-node-002" || f[3] != "1" || sizeOf(t, f[1]) > 300e6 || sizeOf(t, f[5]) < 200e6 || f[6] != "2" {
		t.Errorf("sstat: %q", f)
	}
	if out := d.must("sstat", "-nP", "-a", "-j", id, "-o", "jobid"); out != id+".batch\n"+id+".0" {
		t.Errorf("all steps: %q", out)
	}
	if out := d.must("sstat", "-nP", "-i", "-j", id); !regexp.MustCompile(`^` + id + `\.0\|gpu-node-001\|\d+(,\d+)+\n` + id + `\.0\|gpu-node-002\|\d+(,\d+)+$`).MatchString(out) {
		t.Errorf("processes: %q", out)
	}
	if out := d.must("sacct", "-nP", "-j", id+".0", "-o", "maxrss,avecpu,consumedenergy,tresusageintot"); out != "||0|" {
		t.Errorf("sacct knows of a running step: %q", out)
	}
	d.kill()
	d.start()
	d.wait("figures of a daemon that was restarted", func() bool {
		f := d.stat(id, fields)
		return len(f) == 7 && f[4] >= "00:00:01" && sizeOf(t, f[1]) >= 200e6
	})
	d.write("end", "")
	d.wait("the end", func() bool { return d.must("squeue", "-h") == "" })
	f = strings.Split(d.must("sacct", "-nP", "-j", id+".0", "-o",
		"maxrss,maxrssnode,maxrsstask,averss,maxvmsizetask,mincputask,tresusageintot,tresusageinmaxnode,tresusageoutmaxtask"),
		"|")
	if sizeOf(t, f[0]) < 200e6 || f[1] != "gpu-node-002" || f[2] != "1" || sizeOf(t, f[3]) < 150e6 || sizeOf(t, f[3]) >= sizeOf(t, f[0]) || f[4] != "1" {
		t.Errorf("sacct: %q", f)
	}
	if !regexp.MustCompile(`^cpu=00:00:0\d,energy=0,fs/disk=\d+[KM]?,mem=\d+[KM]?,pages=\d+,vmem=\d+[KM]?$`).MatchString(f[6]) ||
		!strings.HasPrefix(f[7], "cpu=gpu-node-00") || !strings.Contains(f[7], ",mem=gpu-node-002,") || f[8] != "fs/disk=1" {
		t.Errorf("sacct's lists: %q", f[6:])
	}
	if _, errs, code := d.run("sstat", "-j", id); code != 0 || !strings.Contains(errs, "sstat: error: No steps running for job "+id) {
		t.Errorf("sstat of an ended job: %d, %s", code, errs)
	}
}

// TestUsageDenied: others may not see what a user's steps use; operators may.
func TestUsageDenied(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be several users")
	}
	d := startDev(t)
	id := d.submitAs(daemonUID, "-n1", "--wrap", "sleep 600")
	d.wait("the script", func() bool { return len(d.stat(id+".batch", "jobid,maxrss")) == 2 })
	out, errs, code := d.as(binUID, "sstat", "-nP", "-j", id+".batch", "-o", "jobid")
	if want := "sstat: error: slurm_job_step_stat: there was an error with the request to gpu-node-001 rc = Invalid user id\n" +
		"sstat: error: problem getting step_layout for StepId=" + id + ".batch: Invalid user id\n"; out != "" || errs != want || code != 0 {
		t.Errorf("another user: %q, %q, %d", out, errs, code)
	}
	if out, _, _ := d.as(daemonUID, "sstat", "-nP", "-j", id+".batch", "-o", "jobid"); out != id+".batch\n" {
		t.Errorf("its own user: %q", out)
	}
	d.must("scancel", id)
}

// TestUsageSampled: without anybody asking, steps are sampled at the pace that their job asks for, and 0 is never: a
// child's memory is seen by samples alone, as its task does not wait for it.
func TestUsageSampled(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec", "--conf",
		confFile(t, "ClusterName=c", "JobAcctGatherType=jobacct_gather/cgroup",
			"JobAcctGatherFrequency=task=1,energy=5"))
	held := func(freq ...string) int64 {
		id := d.must("sbatch", append(append([]string{"--parsable", "-o", "/dev/null"}, freq...), "--wrap",
			"(head -c 101000000 /dev/zero | tail -c 100000000 | sleep 1000) & sleep 3; exec kill -9 $$")...)
		d.wait("the end", func() bool { return d.must("squeue", "-h", "-j", id) == "" })
		return sizeOf(t, d.must("sacct", "-nP", "-j", id+".batch", "-o", "maxrss"))
	}
	if n := held(); n < 100e6 {
		t.Errorf("sampled every second: %d", n)
	}
	want := "" // a machine may not tell
	if text, _ := os.ReadFile("/proc/cpuinfo"); strings.Contains(string(text), "cpu MHz") {
		want = "M"
	}
	if freq := d.must("sacct", "-nP", "-j", "1.batch", "-o", "AveCPUFreq"); !strings.Contains(freq, want) {
		t.Errorf("the CPU's frequency: %q", freq)
	}
	if n := held("--acctg-freq=task=0"); n > 50e6 {
		t.Errorf("sampled though the job asked not to: %d", n)
	}
	if out := d.must("scontrol", "show", "config"); !strings.Contains(out, "JobAcctGatherFrequency  = task=1,energy=5\n") {
		t.Error("scontrol show config does not tell how often")
	}
}

// TestUsageAcross: a step over two clients names the node that used most, live and at its end.
func TestUsageAcross(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	id := g.must("s1", "sbatch", "--parsable", "-N4", "-n4", "-o", "/dev/null", "--wrap",
		"srun sh -c 'case $SLURMD_NODENAME in c2-002) mb=150;; *) mb=20;; esac; "+holds("mb")+"'; true")
	g.wait("150 MB on a node of the second client", func() bool {
		out, _, _ := g.run("s3", "sstat", "-nP", "-j", id, "-o", "maxrssnode,maxrss")
		f := strings.Split(strings.TrimSuffix(out, "\n"), "|")
		return len(f) == 2 && f[0] == "c2-002" && sizeOf(t, f[1]) >= 150e6
	})
	g.wait("processes on four nodes, told by a server that hears of the step a moment later", func() bool {
		out, _, _ := g.run("s2", "sstat", "-nP", "-i", "-j", id)
		return strings.Count(out, "\n") == 4 && !strings.Contains(out, "|\n")
	})
	if err := os.WriteFile(filepath.Join(g.dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.drained("s1")
	out := g.must("s2", "sacct", "-nP", "-j", id+".0", "-o", "maxrssnode,ntasks,tresusageinmaxnode")
	if !strings.HasPrefix(out, "c2-002|4|") || !strings.Contains(out, ",mem=c2-002,") {
		t.Errorf("sacct: %s", out)
	}
}

// TestUsageGPU: utilization, memory and energy of a step's own GPUs, live and at its end, and in seff.
func TestUsageGPU(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, h100(4)+"gpu 0 energy 5000000\ngpu 1 energy 7000000\n")
	id := g.must("sbatch", "--parsable", "--gpus=2", "-n1", "-o", "/dev/null", "--wrap",
		"srun sh -c 'echo $$ >pid.new; mv pid.new pid; while [ ! -e end ]; do sleep 0.1; done'; true")
	g.wait("the task", func() bool { return g.soFar("pid") != "" })
	g.wait("a first sample",
		func() bool { f := g.stat(id, "tresusageinmax"); return strings.Contains(f[0], "gres/gpuutil=0") })
	pid := strings.TrimSpace(g.read("pid"))
	g.set(h100(4) + "gpu 0 energy 5600000\ngpu 1 energy 7400000\ngpu 0 util 80\ngpu 1 util 60\ngpu 2 util 99\n" +
		fmt.Sprintf("proc 0 %s 1024 80\nproc 0 1 512 0\nproc 1 %s 2048 60\nproc 2 1 4096 99\n", pid, pid))
	g.wait("the sum of both", func() bool {
		f := g.stat(id, "tresusageinmax,tresusageinmaxnode,consumedenergy")
		return len(f) == 3 && strings.Contains(f[0], "gres/gpumem=3G,gres/gpuutil=140,") && strings.Contains(f[1], "gres/gpuutil=n1") && f[2] == "1.00K"
	})
	g.set(h100(4) + "gpu 0 energy 5600000\ngpu 1 energy 7400000\n")
	ave := regexp.MustCompile(`gres/gpuutil=(\d+)`)
	g.wait("the mean to fall", func() bool {
		f := g.stat(id, "tresusageinave,tresusageinmax")
		m := ave.FindStringSubmatch(f[0])
		return m != nil && count(m[1]) <= 130 && strings.Contains(f[1], "gres/gpuutil=140,")
	})
	g.wait("two whole seconds",
		func() bool { return g.must("sacct", "-nXP", "-j", id, "-o", "elapsedraw") >= "2" }) // seff tells nothing of less than one
	g.write("end", "")
	g.wait("the end", func() bool { return g.must("squeue", "-h") == "" })
	out := g.must("sacct", "-nP", "-j", id+".0", "-o", "JobID,TRESUsageInAve,TRESUsageInMax,ConsumedEnergyRaw")
	m := regexp.MustCompile(`^` + id + `\.0\|.*,energy=1000,.*gres/gpuutil=(\d+),.*\|.*gres/gpumem=3G,gres/gpuutil=140,.*\|1000$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("sacct: %s", out)
	}
	mean, _ := strconv.Atoi(m[1])
	if mean < 1 || mean > 130 {
		t.Errorf("the mean over idle and busy samples: %d", mean)
	}
	if out := g.must("seff", id); !regexp.MustCompile(`(?m)^GPU Efficiency: [\d.]+% of 2 GPUs$`).MatchString(out) {
		t.Errorf("seff:\n%s", out)
	}
}

// TestUsageSlice: a step on a slice of a GPU has the memory of its processes, and no utilization, as none is told.
func TestUsageSlice(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, mixed)
	id := g.must("sbatch", "--parsable", "--gres=gpu:a100_3g.20gb:1", "-n1", "-o", "/dev/null", "--wrap",
		"srun sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 600'")
	g.wait("the task", func() bool { return g.soFar("pid") != "" })
	g.set(mixed + fmt.Sprintf("proc 0/0 %s 2048 0\nproc 0/1 1 512 0\n", strings.TrimSpace(g.read("pid"))))
	g.wait("the memory of the task's process",
		func() bool { return strings.Contains(g.stat(id, "tresusageinmax")[0], "gres/gpumem=2G,mem=") })
	g.must("scancel", id)
	g.wait("the end", func() bool { return g.must("squeue", "-h") == "" })
	if out := g.must("seff", id); strings.Contains(out, "GPU Efficiency") {
		t.Errorf("seff of what was not told:\n%s", out)
	}
}
