package e2e

import (
	"os"
	"strings"
	"testing"
)

// sorted is a text with its lines in order.
func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	sortStrings(lines)
	return strings.Join(lines, "")
}

// pidless drops process ids in brackets.
func pidless(text string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, "]")
		b.WriteString("[]")
	}
}

func TestSrunBinding(t *testing.T) {
	d := startDev(t)
	for _, c := range []struct {
		args, out, errs string
		code            int
	}{
		{
			"-n2 --cpu-bind=verbose true", "",
			"cpu-bind=MASK - gpu-node-001, task  0  0 []: mask 0x1 set\n" +
				"cpu-bind=MASK - gpu-node-001, task  1  1 []: mask 0x10 set\n",
			0,
		},
		{
			"-n2 --cpu-bind=verbose,map_cpu:4,0 true", "",
			"cpu-bind=MAP  - gpu-node-001, task  0  0 []: mask 0x10 set\n" +
				"cpu-bind=MAP  - gpu-node-001, task  1  1 []: mask 0x1 set\n",
			0,
		},
		{"-n2 --cpu-bind=none printenv SLURM_CPU_BIND", "quiet,mask_cpu:0x0011\nquiet,mask_cpu:0x0011\n", "", 0},
		{"-n2 --cpu-bind=map_cpu:5,6 true", "",
			"srun: Job step aborted\nsrun: error: Application launch failed: Unable to satisfy cpu bind request\n" +
				"srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0x0011.\n" +
				"srun: error: Task launch for StepId=ID.0 failed on node gpu-node-001: Unable to satisfy cpu " +
				"bind request\n", 192},
		{"-n2 --cpu-bind=rank true", "",
			"srun: Job step aborted\nsrun: error: Application launch failed: Unable to satisfy cpu bind request\n" +
				"srun: error: Entire node must be allocated for rank,one_thread\n" +
				"srun: error: Task launch for StepId=ID.0 failed on node gpu-node-001: Unable to satisfy cpu " +
				"bind request\n", 192},
		{"--exclusive -n2 --gpus=2 --gpu-bind=none printenv CUDA_VISIBLE_DEVICES", "0,1\n0,1\n", "", 0},
		{"--exclusive -n2 --gpus=4 --gpu-bind=per_task:2 printenv SLURM_STEP_GPUS", "0,1\n2,3\n", "", 0},
		{"-n2 --gpus=2 --gpu-bind=verbose,single:1 true", "",
			"gpu-bind: usable_gres=0x1; bit_alloc=0x3; local_inx=0; global_list=0; local_list=0\n" +
				"gpu-bind: usable_gres=0x2; bit_alloc=0x3; local_inx=0; global_list=1; local_list=1\n", 0},
		{"-n1 --gpus=1 --gpu-bind=map_gpu:5 printenv SLURM_STEP_GPUS", "0\n",
			"slurmstepd-gpu-node-001: error: Bind request gpu:map_gpu:5 does not specify any devices " +
				"within the allocation for task 0. Binding to the first device in the allocation instead.\n", 0},
		{"-n4 --ntasks-per-gpu=2 printenv SLURM_GPUS_ON_NODE CUDA_VISIBLE_DEVICES", "0\n0\n1\n1\n2\n2\n2\n2\n", "", 0},
		{"--gpus=1 --ntasks-per-gpu=2 printenv CUDA_VISIBLE_DEVICES", "0\n0\n", "", 0},
		{"-n2 --mem-bind=verbose,map_mem:0 printenv SLURM_MEM_BIND", "verbose,map_mem:0\nverbose,map_mem:0\n",
			"mem-bind=MAP - gpu-node-001, task  0  0 []: mask 0x1 set\n" +
				"mem-bind=MAP - gpu-node-001, task  1  1 []: mask 0x1 set\n",
			0},
		{"-n1 --mem-bind=map_mem:99 true", "",
			"slurmstepd-gpu-node-001: error: NUMA node 99 does not exist; cannot bind local task 0 to it " +
				"(--mem-bind=map_mem)\n" +
				"srun: error: gpu-node-001: task 0: Exited with exit code 1\n", 1},
		{"-N3 -n8 -O printenv SLURM_STEP_TASKS_PER_NODE", strings.Repeat("3(x2),2\n", 8), "", 0},
	} {
		d.wait("idle CPUs", func() bool { return d.must("squeue", "-h") == "" })
		out, errs, code := d.run("srun", strings.Fields(c.args)...)
		errs = sorted(pidless(errs))
		if _, rest, ok := strings.Cut(errs, "StepId="); ok {
			id, _, _ := strings.Cut(rest, ".")
			errs = strings.ReplaceAll(errs, "StepId="+id, "StepId=ID")
		}
		if sorted(out) != c.out || errs != c.errs || code != c.code {
			t.Errorf("srun %s: %d %q %q, want %d %q %q", c.args, code, out, errs, c.code, c.out, c.errs)
		}
	}
	for count, want := range map[string]int{"": 0, "=0": 0, "=2": 1} {
		_, errs, code := d.run("srun", "-n2", "--resv-ports"+count, "true")
		if code != want || strings.Contains(errs, ": Requires more ports than can be reserved") != (want > 0) {
			t.Errorf("--resv-ports%s: %d %q", count, code, errs)
		}
	}
}

// TestStepGPUs: what a step's own line asks of the job's GPUs holds, whatever the environment of the job says.
func TestStepGPUs(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	show := `bash -c 'echo "$CUDA_VISIBLE_DEVICES|$SLURM_STEP_GPUS|$SLURM_GPUS_ON_NODE"'`
	for _, c := range []struct{ job, step, want string }{
		{"-n4 --gpus=4", "-n1 --gpus=1", "0|0|1"},
		{"-n4 --gpus=4", "-n1 --gres=none", "||"},
		{"-n4 --gpus=4", "-n1 --gpus=0", "||"},
		{"-n4 --gpus=4", "-n1", "0,1,2,3|0,1,2,3|4"},
		{"-N1 -n2 --gpus-per-node=4", "-n1 --gpus=2", "0,1|0,1|2"},
		{"-N1 -n2 --gpus-per-node=4", "-n2 --gpus-per-task=2", "0,1|0,1|4 2,3|2,3|4"},
		{"-n2 --gres=gpu:2", "-n2 --gpus-per-task=1", "0|0|2 1|1|2"},
	} {
		got := d.shell("salloc -Q " + c.job + " srun " + c.step + " " + show + " 2>&1 | sort | xargs echo")
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%s: %s: %q, want %q", c.job, c.step, got, c.want)
		}
	}
}

// TestSrunScripts: scripts around tasks and steps, and files that say what runs where.
func TestSrunScripts(t *testing.T) {
	d := startDev(t)
	script := func(name, text string) string {
		d.write(name, "#!/bin/sh\n"+text)
		if err := os.Chmod(d.dir+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
		return d.dir + "/" + name
	}
	pro := script("pro", "echo export TPV=$SLURM_PROCID\necho print from prolog\n")
	epi := script("epi", "touch "+d.dir+"/epilog-$SLURM_PROCID\n")
	own := script("own", "echo step $SLURM_STEP_ID of $SLURM_STEP_NUM_TASKS\n")
	d.write("mp", "0 echo zero\n0 echo one\n")
	d.write("hosts", "gpu-node-002\ngpu-node-001\ngpu-node-002\n")
	for _, c := range []struct {
		args, out, errs string
		code            int
	}{
		{
			"-n2 --task-prolog=" + pro + " --task-epilog=" + epi + " printenv TPV",
			"0\n1\nfrom prolog\nfrom prolog\n", "", 0,
		},
		{"--prolog=" + own + " --epilog=" + own + " true", "step 0 of 1\nstep 0 of 1\n", "", 0},
		{"--prolog=/nowhere/x true", "", "srun: Access denied for /nowhere/x: No such file or directory\n", 0},
		{
			"-n1 --multi-prog mp", "",
			"srun: error: Duplicate record for task 0\nsrun: error: Line 2 of configuration file mp invalid\n",
			1,
		},
		{"--mpi=nope true", "",
			"srun: error: Couldn't find the specified plugin name for mpi/nope looking at all files\n" +
				"srun: error: Invalid MPI type 'nope', --mpi=list for acceptable types\n" +
				"srun: error: MPI: Cannot create context for mpi/nope\n" +
				"srun: error: MPI: Unable to load any plugin\n" +
				"srun: error: cannot find mpi plugin for mpi/nope\n", 1},
		{
			"-N9 -I true", "",
			"srun: error: Unable to allocate resources: Requested partition configuration not available now\n",
			1,
		},
	} {
		out, errs, code := d.run("srun", strings.Fields(c.args)...)
		if sorted(out) != c.out || slurmWords(sorted(errs)) != c.errs || code != c.code {
			t.Errorf("srun %s: %d %q %q, want %d %q %q", c.args, code, out, errs, c.code, c.out, c.errs)
		}
	}
	for _, name := range []string{"epilog-0", "epilog-1"} {
		if _, err := os.Stat(d.dir + "/" + name); err != nil {
			t.Errorf("the epilog was not run: %v", err)
		}
	}
	d.env = append(d.env, "SLURM_HOSTFILE=hosts")
	out, _, _ := d.run("srun", "-l", "printenv", "SLURMD_NODENAME")
	expect(t, "host file", sorted(out), "0: gpu-node-002\n1: gpu-node-001\n2: gpu-node-002\n")
	_, errs, code := d.run("srun", "-n4", "true")
	expect(t, "host file too short", errs,
		"srun: error: Too few NodeNames in Slurm Hostfile\nsrun: error: Failure getting NodeNames from hostfile\n")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// TestTaskPrologOfConf: the configuration's task prolog runs around batch scripts too.
func TestTaskPrologOfConf(t *testing.T) {
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/pro", []byte("#!/bin/sh\necho export FROM_CONF=yes\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := "ClusterName=c\nTaskProlog=" + dir + "/pro\nNodeName=gpu-node-001 CPUs=2 RealMemory=1000\n" +
		"PartitionName=p Nodes=ALL Default=YES\n"
	if err := os.WriteFile(dir+"/slurm.conf", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDevAt(t, dir, "--conf", dir+"/slurm.conf", "--hollow", "conf", "--hollow-exec")
	d.must("sbatch", "-W", "-o", "out", "--wrap", "echo $FROM_CONF; srun printenv FROM_CONF")
	expect(t, "output", d.read("out"), "yes\nyes\n")
}

// TestSallocSays holds the lines that the comparison with Slurm leaves out.
func TestSallocSays(t *testing.T) {
	d := startDev(t)
	_, errs, code := d.run("salloc", "-N2", "true")
	expect(t, "salloc", errs, "salloc: Granted job allocation 1\nsalloc: Waiting for resource configuration\n"+
		"salloc: Nodes gpu-node-[001-002] are ready for job\nsalloc: Relinquishing job allocation 1\n")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestStepEnds: a step that is ended tells its readers why, and asks before it kills.
func TestStepEnds(t *testing.T) {
	d := startDev(t)
	out, errs, code := d.run("srun", "-n2", "-K", "sh", "-c",
		"if [ $SLURM_PROCID = 0 ]; then while [ ! -e up ]; do sleep 0.01; done; exit 1; fi; trap 'echo term; "+
			"exit 7' TERM; touch up; while :; do sleep 0.01; done")
	if code != 7 || out != "term\n" || !strings.Contains(errs, "CANCELLED AT") || strings.Contains(errs, "Job step aborted") {
		t.Errorf("-K: %d %q %q", code, out, errs)
	}
	id := d.must("sbatch", "--parsable", "-o", "o", "--wrap", "srun sh -c 'echo up; exec sleep 60'; echo rc $?")
	has := func(text string) func() bool {
		return func() bool {
			b, err := os.ReadFile(d.dir + "/o")
			return err == nil && strings.Contains(string(b), text)
		}
	}
	d.wait("the step", has("up"))
	d.must("scancel", id+".0")
	d.wait("the end", has("rc 137"))
	if text := d.read("o"); !strings.Contains(text, "*** STEP "+id+".0 ON gpu-node-001 CANCELLED AT") || strings.Contains(text, "Force Terminated") ||
		!strings.Contains(text, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n") {
		t.Errorf("output %q", text)
	}
	d.wait("history", func() bool {
		return d.must("sacct", "-nP", "-j", id+".0", "-o", "JobID,State,ExitCode") != "" &&
			strings.Contains(d.must("sacct", "-nP", "-j", id, "-o", "JobID,State,ExitCode"), id+".0|CANCELLED by ")
	})
}

// TestStepOfEndingJob: a job whose nodes still end takes no steps, in the words for one that is over.
func TestStepOfEndingJob(t *testing.T) {
	t.Parallel()
	d := startDevAt(t, t.TempDir(), "--hollow", "1x4c8g", "--hollow-exec")
	id := d.must("sbatch", "--parsable", "-o", "up", "--wrap", "trap '' TERM; echo up; while :; do sleep .1; done")
	d.wait("the script", func() bool { return d.soFar("up") != "" })
	d.must("scancel", id)
	expect(t, "the job", d.must("squeue", "-h", "-j", id, "-o", "%t"), "CG")
	_, errs, code := d.run("srun", "--jobid="+id, "hostname")
	expect(t, "srun", errs, "srun: error: Slurm job 1 has expired\n"+
		"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 1\n")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// TestSiteDefaults: what the site says of srun and of limits holds where the user says nothing.
func TestSiteDefaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prolog := dir + "/prolog"
	if err := os.WriteFile(prolog, []byte("#!/bin/sh\necho site prolog of step $SLURM_STEP_ID\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := writeFile(t, "slurm.conf",
		"ClusterName=c\nKillOnBadExit=1\nSrunProlog="+prolog+"\nPropagateResourceLimitsExcept=NOFILE,CORE\n"+
			"PartitionName=main Nodes=ALL Default=YES\n")
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-exec", "--conf", conf)
	out, errs, code := d.run("srun", "-n2", "-N2", "sh", "-c", "[ $SLURM_PROCID = 0 ] && exit 3; sleep 600")
	if code != 3 && code != 143 || !strings.Contains(out, "site prolog of step 0") || !strings.Contains(errs, "Terminating") {
		t.Errorf("srun ends with %d: %s%s", code, out, errs)
	}
	if out := d.must("srun", "--prolog=none", "hostname"); strings.Contains(out, "site prolog") {
		t.Errorf("--prolog=none: %s", out)
	}
	limits := func(option ...string) string {
		script := "ulimit -Sn 77; ulimit -Sf 12345; " + bin + "/srun --prolog=none " + strings.Join(option, " ") + " sh -c 'ulimit -Sn; ulimit -Sf'; exit $?"
		return strings.Join(strings.Fields(d.shell(script)), " ")
	}
	if got := limits(); strings.HasPrefix(got, "77 ") || !strings.HasSuffix(got, " 12345") {
		t.Errorf("limits of a task: %s, want the node's own for open files and 12345 blocks", got)
	}
	expect(t, "what --propagate chooses", limits("--propagate=NOFILE"), "77 unlimited")
}
