package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestPerGPU: jobs with GPUs get the site's CPUs and memory for each if they do not say what they need, as in Slurm.
func TestPerGPU(t *testing.T) {
	t.Parallel()
	conf := writeFile(t, "slurm.conf", "ClusterName=c\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU=100\nDefCpuPerGPU=3\nDefMemPerGPU=1234\nMaxTasksPerNode=20\n"+
		"PartitionName=main Nodes=ALL Default=YES\nPartitionName=jd Nodes=ALL DefCpuPerGPU=5\n")
	d := startDev(t, "--conf", conf, "--hollow", "2x64c128g8gpu:h100")
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-p", "main", "-o", "%D") == "2" })
	for _, c := range []struct{ args, numCPUs, tres, lines string }{
		{"-G2", "6", "cpu=6,mem=2468M", "CpusPerTres=gpu:3 MemPerTres=gpu:1234"},
		{"-G2 -p jd", "10", "cpu=10,mem=2468M", "CpusPerTres=gpu:5 MemPerTres=gpu:1234"},
		{"--gres=gpu:2 -p jd", "10", "cpu=10,mem=2468M", "CpusPerTres=gpu:5 MemPerTres=gpu:1234"},
		{"-G2 -c2 -p jd", "2", "cpu=2,mem=2468M", "MemPerTres=gpu:1234"},
		{"-G2 --mem=100 -p jd", "10", "cpu=10,mem=100M", "CpusPerTres=gpu:5"},
		{"-G2 --cpus-per-gpu=1", "2", "cpu=2,mem=2468M", "CpusPerTres=gres:gpu:1 MemPerTres=gpu:1234"},
		{"-G2 -n4 -p jd", "10", "cpu=10,mem=2468M", "CpusPerTres=gpu:5 MemPerTres=gpu:1234"},
		{"-n2", "2", "cpu=2,mem=200M", ""},
	} {
		id := d.must("sbatch", append(strings.Fields("--parsable -o /dev/null "+c.args), "--wrap", "sleep 60")...)
		d.wait(c.args+" to run", func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%T") == "RUNNING" })
		text := d.must("scontrol", "show", "job", id)
		if got := regexp.MustCompile(`NumCPUs=(\d+)`).FindStringSubmatch(text)[1]; got != c.numCPUs || !strings.Contains(text, "TRES="+c.tres+",") {
			t.Errorf("%s: %s CPUs, want %s and %s:\n%s", c.args, got, c.numCPUs, c.tres, text)
		}
		if got := strings.Join(regexp.MustCompile(`(Cpus|Mem)PerTres=\S+`).FindAllString(text, -1), " "); got != c.lines {
			t.Errorf("%s: %q, want %q", c.args, got, c.lines)
		}
		d.must("scancel", id)
	}
	if text := d.must("scontrol", "show", "partition", "jd"); !strings.Contains(text, "JobDefaults=DefCpuPerGPU=5\n") {
		t.Error(text)
	}
	d.must("scontrol", "update", "partitionname=jd", "JobDefaults=DefCpuPerGPU=1,DefMemPerGPU=7")
	if text := d.must("scontrol", "show", "partition", "jd"); !strings.Contains(text, "JobDefaults=DefCpuPerGPU=1,DefMemPerGPU=7\n") {
		t.Error(text)
	}
	if _, errs, code := d.run("sbatch", "-N1", "-n21", "--wrap", "true"); code != 1 || !strings.Contains(errs, "Requested node configuration is not available") {
		t.Errorf("21 tasks on a node: %d %s", code, errs)
	}
	id := d.must("sbatch", "--parsable", "-n21", "-o", "/dev/null", "--wrap", "sleep 60")
	d.wait("21 tasks on two nodes",
		func() bool { return d.must("squeue", "-h", "-j", id, "-t", "R", "-o", "%D") == "2" })
}

// TestInteractiveStep: with use_interactive_step the shell of salloc begins on the job's first node, in a step that
// takes nothing from others; its counts are the job's.
func TestInteractiveStep(t *testing.T) {
	t.Parallel()
	conf := writeFile(t, "slurm.conf",
		"ClusterName=c\nLaunchParameters=use_interactive_step\nMaxStepCount=2\nJobFileAppend=1\nPartitionName=main Nodes=ALL Default=YES\n")
	d := startDev(t, "--conf", conf, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	out, errs, code := d.input(`echo on $SLURMD_NODENAME step $SLURM_STEP_ID, $SLURM_NTASKS tasks on $SLURM_NNODES nodes, $SLURM_STEP_NUM_TASKS here, $CUDA_VISIBLE_DEVICES
srun hostname </dev/null | sort | uniq -c | xargs echo
while squeue -hs -j $SLURM_JOB_ID -o %i | grep -q '0$'; do sleep .05; done
squeue -hs -j $SLURM_JOB_ID -o %i
srun true </dev/null; srun true </dev/null
exit 3
`, "salloc", "-N2", "-n4", "--gpus-per-node=2")
	if code != 3 || !strings.Contains(errs, "Step limit reached for this job") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	expect(t, "the shell", out,
		"on gpu-node-001 step 4294967290, 4 tasks on 2 nodes, 1 here, 0,1\n3 gpu-node-001 1 gpu-node-002\n1.interactive\n")
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "sacct", d.must("sacct", "-nP", "-j", "1", "-o", "JobID,State,ExitCode"),
		"1|FAILED|3:0\n1.interactive|FAILED|3:0\n1.0|COMPLETED|0:0\n1.1|COMPLETED|0:0")
	out, _, code = d.run("salloc", "-N1", "sh", "-c", "echo here $SLURM_STEP_ID")
	if code != 0 || out != "here\n" {
		t.Errorf("a command of one's own: %d %q", code, out)
	}
	expect(t, "srun -E",
		d.shell("SLURM_NTASKS=7 srun -n2 -E sh -c 'echo $SLURM_NTASKS $SLURM_STEP_NUM_TASKS'"), "7 2\n7 2\n")
	d.write("out", "old\n")
	d.must("sbatch", "-W", "-o", "out", "--wrap", "echo new")
	expect(t, "the output is added", d.read("out"), "old\nnew\n")
	d.must("sbatch", "-W", "--open-mode=truncate", "-o", "out", "--wrap", "echo new")
	expect(t, "the output replaces the old one", d.read("out"), "new\n")
}
