package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"dev.muster/api"
)

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestSubmitToHistory(t *testing.T) {
	d := startDev(t)
	d.write("job.sh",
		"#!/bin/sh\n#SBATCH -J first\necho job $SLURM_JOB_ID on $SLURMD_NODENAME\nsrun -n1 echo step\nexit 3\n")
	out, _, code := d.run("sbatch", "-W", "job.sh")
	expect(t, "sbatch", out, "Submitted batch job 1\n")
	if code != 3 {
		t.Errorf("sbatch -W: exit code %d, want the job's 3", code)
	}
	expect(t, "output", d.read("slurm-1.out"), "job 1 on gpu-node-001\nstep\n")
	expect(t, "sacct", d.must("sacct", "-nP", "-j", "1", "-o", "JobID,JobName,State,ExitCode"),
		"1|first|FAILED|3:0\n1.batch|batch|FAILED|3:0\n1.0|echo|COMPLETED|0:0")
}

func TestSrun(t *testing.T) {
	d := startDev(t)
	cases := []struct {
		name string
		args []string
		out  string
		code int
	}{
		{
			"labels", []string{"-n3", "-l", "sh", "-c", "echo $SLURM_PROCID of $SLURM_NTASKS"},
			"0: 0 of 3\n1: 1 of 3\n2: 2 of 3\n", 0,
		},
		{"worst exit code", []string{"-n3", "sh", "-c", "exit $SLURM_PROCID"}, "", 2},
		{"signal", []string{"sh", "-c", "kill -9 $$"}, "", 137},
		{"not found", []string{"no-such-program"}, "", 2},
		{"two nodes", []string{"-N2", "-l", "hostname"}, "0: gpu-node-001\n1: gpu-node-002\n", 0},
		{
			"own GPU each",
			[]string{"-n2", "--gpus-per-task=1", "-l", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"},
			"0: 0\n1: 1\n", 0,
		},
		{
			"cyclic", []string{"-N2", "-n4", "-m", "cyclic", "-l", "sh", "-c", "echo $SLURM_NODEID"},
			"0: 0\n1: 1\n2: 0\n3: 0\n", 0,
		},
		{"only one rank's output", []string{"-n3", "-o", "1", "sh", "-c", "echo $SLURM_PROCID"}, "1\n", 0},
	}
	for _, c := range cases {
		out, errs, code := d.run("srun", c.args...)
		d.wait("its end", func() bool { return d.must("squeue", "-h") == "" }) // the next one has all CPUs and GPUs to choose from
		lines := strings.SplitAfter(out, "\n")
		sortStrings(lines)
		if got := strings.Join(lines, ""); got != c.out || code != c.code {
			t.Errorf("%s: srun %q = %d %q (%s), want %d %q", c.name, c.args, code, got, errs, c.code, c.out)
		}
	}
	out, _, code := d.input("one\ntwo\n", "srun", "-n2", "-l", "cat")
	if strings.Count(out, "one") != 2 || code != 0 {
		t.Errorf("input for all tasks: %d %q", code, out)
	}
	d.must("srun", "-n2", "-o", "task-%t.out", "sh", "-c", "echo $SLURM_PROCID")
	expect(t, "file of task 1", d.read("task-1.out"), "1\n")
}

func sortStrings(s []string) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}

func TestSteps(t *testing.T) {
	d := startDev(t)
	d.write("steps.sh", `#!/bin/bash
#SBATCH -n4
for i in 1 2 3 4; do srun -n1 --exact sh -c 'echo step; sleep 0.1' & done
wait
srun --multi-prog <(printf '0 echo rank %%t\n1-3 echo offset %%o\n') | sort
`)
	if _, errs, code := d.run("sbatch", "-W", "-o", "steps.out", "steps.sh"); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, errs, d.read("steps.out"))
	}
	expect(t, "output", d.read("steps.out"), "step\nstep\nstep\nstep\noffset 0\noffset 1\noffset 2\nrank 0\n")
	expect(t, "steps in sacct", d.must("sacct", "-nP", "-j", "1", "-o", "JobID,State"),
		"1|COMPLETED\n1.batch|COMPLETED\n1.0|COMPLETED\n1.1|COMPLETED\n1.2|COMPLETED\n1.3|COMPLETED\n1.4|COMPLETED")
}

func TestArray(t *testing.T) {
	d := startDev(t)
	out, _, code := d.run("sbatch", "-W", "--array=1-5%2", "-o", "a_%A_%a", "--wrap",
		"echo $SLURM_ARRAY_TASK_ID; exit $SLURM_ARRAY_TASK_ID")
	expect(t, "sbatch", out, "Submitted batch job 1\n")
	if code != 5 {
		t.Errorf("exit code %d, want the highest of the tasks', 5", code)
	}
	for i := 1; i <= 5; i++ {
		expect(t, "output", d.read(fmt.Sprintf("a_1_%d", i)), fmt.Sprintf("%d\n", i))
	}
	got := strings.Split(d.must("sacct", "-nXP", "-j", "1", "-o", "JobID,ExitCode"), "\n")
	sortStrings(got)
	expect(t, "sacct", strings.Join(got, " "), "1_1|1:0 1_2|2:0 1_3|3:0 1_4|4:0 1_5|5:0")
}

func TestDependencies(t *testing.T) {
	d := startDev(t)
	bad := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 0.2; exit 1")
	never := d.must("sbatch", "--parsable", "-o", "/dev/null", "-d", "afterok:"+bad, "--wrap", "true")
	again := d.must("sbatch", "--parsable", "-o", "again", "-d", "afternotok:"+bad, "--wrap", "echo again")
	arr := d.must("sbatch", "--parsable", "-o", "/dev/null", "--array=0-2", "-d", "afterany:"+again, "--wrap", "true")
	d.must("sbatch", "-W", "-o", "last", "-d", "afterok:"+arr, "--wrap", "echo last")
	expect(t, "afternotok", d.read("again"), "again\n")
	expect(t, "afterok of an array", d.read("last"), "last\n")
	expect(t, "reason", d.must("squeue", "-h", "-j", never, "-o", "%T %r"), "PENDING DependencyNeverSatisfied")
	d.must("scancel", never)
}

func TestTimeLimitAndCancel(t *testing.T) {
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-o", "out", "--wrap", "trap 'echo term; exit 9' TERM; sleep 60 & wait")
	d.wait("the job to run", func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%T") == "RUNNING" })
	d.wait("its output", func() bool { _, err := os.Stat(d.dir + "/out"); return err == nil })
	d.must("scancel", id)
	d.wait("the job to end", func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%T") == "" })
	if got := d.must("sacct", "-nXP", "-j", id, "-o", "State,ExitCode"); got != "CANCELLED by "+fmt.Sprint(os.Getuid())+"|0:0" {
		t.Errorf("sacct: %q", got)
	}
}

func TestRequeue(t *testing.T) {
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "--open-mode=append", "-o", "out", "--wrap",
		`echo attempt ${SLURM_RESTART_COUNT:-0}; [ -n "$SLURM_RESTART_COUNT" ] || exec sleep 60`)
	d.wait("the first attempt", func() bool { b, _ := os.ReadFile(d.dir + "/out"); return string(b) == "attempt 0\n" })
	d.must("scontrol", "requeue", id)
	d.wait("the second attempt", func() bool {
		b, _ := os.ReadFile(d.dir + "/out")
		return strings.HasSuffix(string(b), "attempt 1\n")
	})
	d.wait("the end", func() bool { return d.must("sacct", "-nXP", "-j", id, "-o", "State") == "COMPLETED" })
}

// Errors are told to the caller, and nobody else is disturbed.
func TestBadInput(t *testing.T) {
	d := startDev(t)
	big := "#!/bin/sh\n" + strings.Repeat("# fill\n", 15<<20)
	cases := []struct {
		name, in string
		args     []string
		text     string
		code     int
	}{
		{"unknown partition", "", []string{"-p", "nope", "--wrap", "true"}, "Invalid partition name specified", 1},
		{"unknown option", "", []string{"--frobnicate", "--wrap", "true"}, "unrecognized option '--frobnicate'", 255},
		{"missing script", "", []string{"no-such.sh"}, "Unable to open file no-such.sh", 1},
		{
			"too many CPUs", "", []string{"-n1", "-c100", "--wrap", "true"},
			"Requested node configuration is not available", 1,
		},
		{
			"too many GPUs", "", []string{"--gres=gpu:99", "--wrap", "true"},
			"Requested node configuration is not available", 1,
		},
		{"array too large", "", []string{"--array=0-2000000", "--wrap", "true"}, "Invalid job array specification", 1},
		{"DOS line ends", "#!/bin/sh\r\ntrue\r\n", nil, "Batch script contains DOS line breaks", 1},
		{"script of 100 MB", big, nil, "too long", 1},
	}
	for _, c := range cases {
		_, errs, code := d.input(c.in, "sbatch", c.args...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit code %d, %q; want %d and %q", c.name, code, errs[:min(len(errs), 300)], c.code, c.text)
		}
	}
	d.write("file", "")
	if _, _, code := d.run("sbatch", "-W", "-o", "file/out", "--wrap", "true"); code == 0 {
		t.Error("a job whose output cannot be opened succeeded")
	}
	if out, _, code := d.run("sbatch", "-W", "-o", "ok", "--wrap", "echo fine"); code != 0 {
		t.Errorf("a plain job after all that: %d %s", code, out)
	}
}

func TestHoldAndUpdate(t *testing.T) {
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-H", "-o", "out", "--wrap", "echo ran")
	expect(t, "reason", d.must("squeue", "-h", "-j", id, "-o", "%r"), "JobHeldUser")
	d.must("scontrol", "update", "jobid="+id, "name=renamed", "timelimit=5")
	expect(t, "changed", d.must("squeue", "-h", "-j", id, "-o", "%j %l"), "renamed 5:00")
	d.must("scontrol", "release", id)
	d.wait("the job", func() bool { return d.must("sacct", "-nXP", "-j", id, "-o", "State") == "COMPLETED" })
}

func TestDrain(t *testing.T) {
	d := startDev(t)
	d.must("scontrol", "update", "nodename=gpu-node-001", "state=drain", "reason=test")
	expect(t, "sinfo -R", strings.Fields(d.must("sinfo", "-h", "-R"))[0], "test")
	expect(t, "placed elsewhere", d.must("srun", "hostname"), "gpu-node-002")
	d.must("scontrol", "update", "nodename=gpu-node-001", "state=resume")
	expect(t, "back", d.must("srun", "hostname"), "gpu-node-001")

	d.must("scontrol", "update", "nodename=gpu-node-001", "state=drain", "reason=test", "resumeafter=3600")
	if out := d.must("scontrol", "show", "node", "gpu-node-001"); !strings.Contains(out, " ResumeAfterTime=20") {
		t.Errorf("drained for an hour: %s", out)
	}
	d.must("scontrol", "update", "nodename=gpu-node-001", "state=drain", "reason=test", "resumeafter=1")
	d.wait("the node to serve again", func() bool {
		return d.must("sinfo", "-h", "-N", "-n", "gpu-node-001", "-o", "%t %E") == "idle none"
	})
	const refusal = "slurm_update error: You can only specify a resume time when DOWNING or DRAINING a node. Request denied\n"
	if _, errs, code := d.run("scontrol", "update", "nodename=gpu-node-001", "resumeafter=1"); code != 1 ||
		errs != refusal {
		t.Errorf("a time without a state: %d %q", code, errs)
	}
}

func TestEnvironment(t *testing.T) {
	d := startDev(t)
	d.env = append(d.env, "MINE=1", "BASH_FUNC_hello%%=() {  echo hello from a function\n}")
	d.must("sbatch", "-W", "-o", "all", "--wrap", "echo $MINE")
	expect(t, "--export by default", d.read("all"), "1\n")
	d.must("sbatch", "-W", "-o", "bare", "--export=NONE", "--wrap",
		"echo [$MINE] $HOME; command -v sort >/dev/null && echo path")
	if got := d.read("bare"); !strings.HasPrefix(got, "[] /") || !strings.HasSuffix(got, "path\n") {
		t.Errorf("--export=NONE: %q, want the login environment without MINE", got)
	}
	d.write("fn.sh", "#!/bin/bash\nhello\n")
	d.must("sbatch", "-W", "-o", "fn", "fn.sh")
	expect(t, "exported function", d.read("fn"), "hello from a function\n")
	d.must("sbatch", "-W", "-o", "pid", "--wrap", "test $SLURM_TASK_PID = $$ && echo same")
	expect(t, "SLURM_TASK_PID", d.read("pid"), "same\n")
}

// The reason of a job's end is written into its output, as Slurm's readers expect.
func TestEndNote(t *testing.T) {
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-o", "out", "--wrap", "echo begin; sleep 60")
	d.wait("the job to begin", func() bool { b, _ := os.ReadFile(d.dir + "/out"); return len(b) > 0 })
	d.must("scancel", id)
	d.wait("the line", func() bool {
		b, _ := os.ReadFile(d.dir + "/out")
		return strings.Contains(string(b),
			"slurmstepd-gpu-node-001: error: *** JOB "+id+" ON gpu-node-001 CANCELLED AT ")
	})
}

func TestWhy(t *testing.T) {
	d := startDev(t)
	holds := d.must("sbatch", "--parsable", "-N4", "--exclusive", "-t", "10", "-o", "/dev/null", "--wrap", "sleep 60")
	d.wait("the first to run", func() bool {
		return strings.Contains(d.must("muster", "why", holds), " is RUNNING on gpu-node-[001-004], until 20")
	})
	id := d.must("sbatch", "--parsable", "-N2", "--exclusive", "-t", "10", "-o", "/dev/null", "--wrap", "true")
	d.wait("a plan", func() bool { return strings.Contains(d.must("muster", "why", id), "expected start") })
	out := d.must("muster", "why", id)
	if !strings.Contains(out, "is PENDING") || !strings.Contains(out, "Resources") {
		t.Errorf("muster why: %q", out)
	}
	if want := "    job " + holds + " (wrap) of "; !strings.Contains(out, want) || !strings.Contains(out, " holds gpu-node-[001-002] until ") {
		t.Errorf("who holds what it is to get: %s", out)
	}
	var told api.WhyResponse
	if err := json.Unmarshal([]byte(d.must("muster", "why", "--json", id)), &told); err != nil || told.Job.ID == 0 || len(told.Causes) == 0 || len(told.Holders) != 1 || told.StartsAt.IsZero() {
		t.Errorf("--json: %v, %+v", err, told)
	}
	details := d.must("scontrol", "-d", "show", "job", id)
	if !strings.Contains(details, "   Why=Resources: ") || !strings.Contains(details, "   HeldBy=gpu-node-[001-002] JobId="+holds+" Until=") {
		t.Errorf("scontrol -d show job: %s", details)
	}
	if plain := d.must("scontrol", "show", "job", id) + d.must("scontrol", "-d", "show", "job"); strings.Contains(plain, "Why=") {
		t.Errorf("without -d, or of all: %s", plain)
	}
	d.must("scancel", "--me")
	d.wait("the end", func() bool { return d.must("squeue", "-h") == "" })
	ended := d.must("muster", "why", "--json", id)
	if err := json.Unmarshal([]byte(ended), &map[string]any{}); err != nil || !strings.Contains(ended, `"state": "CANCELLED"`) {
		t.Errorf("--json of a job that is over: %v, %s", err, ended)
	}
	if text := d.must("muster", "why", "--json", "gpu-node-001"); !strings.Contains(text, `"name": "gpu-node-001"`) {
		t.Errorf("--json of a node: %s", text)
	}
}

// A task of an array that has a record of its own is explained, not the first of the array, which is over.
func TestWhyTask(t *testing.T) {
	d := startDev(t)
	first := d.must("sbatch", "--parsable", "--array=1-4", "-o", "/dev/null", "--wrap", "test $SLURM_ARRAY_TASK_ID = 2")
	id := d.must("sbatch", "--parsable", "--array=1-4", "-d", "aftercorr:"+first, "-o", "/dev/null", "--wrap", "true")
	gone := func() string {
		return d.must("squeue", "-h", "-r", "-t", "PD", "-o", "%K %r", "-j", id)
	}
	d.wait("tasks that never start, and none that waits for its turn", func() bool {
		list := strings.Split(gone(), "\n")
		return len(list) == 3 && strings.Count(gone(), "DependencyNeverSatisfied") == 3
	})
	out := d.must("muster", "why", id+"_3")
	if !strings.Contains(out, "job "+id+"_3 (wrap) of ") || !strings.Contains(out, "DependencyNeverSatisfied") || strings.Contains(out, id+"_4") {
		t.Errorf("of one task: %s", out)
	}
	out = d.must("muster", "why", id)
	if !strings.Contains(out, "DependencyNeverSatisfied") || !strings.Contains(out, "muster why "+id+"_3\n") || strings.Count(out, " waits for reasons of its own") != 2 {
		t.Errorf("of the array: %s", out)
	}
}

func TestSalloc(t *testing.T) {
	d := startDev(t)
	out, errs, code := d.run("salloc", "-N2", "sh", "-c", "srun -l hostname; exit 4")
	lines := strings.SplitAfter(out, "\n")
	sortStrings(lines)
	expect(t, "output", strings.Join(lines, ""), "0: gpu-node-001\n1: gpu-node-002\n")
	if code != 4 || !strings.Contains(errs, "salloc: Granted job allocation 1\n") || !strings.Contains(errs, "Relinquishing job allocation 1") {
		t.Errorf("salloc: exit code %d, %q", code, errs)
	}
	d.wait("the allocation to end", func() bool { return d.must("squeue", "-h") == "" })
}

// The daemon is restarted under a step: srun goes on, its output is complete.
func TestStepSurvivesDaemon(t *testing.T) {
	d := startDev(t)
	type result struct {
		out, errs string
		code      int
	}
	done := make(chan result, 1)
	go func() {
		o, e, c := d.run("srun", "-n2", "sh", "-c",
			"for i in 1 2 3 4 5 6; do echo $SLURM_PROCID-$i; sleep 0.2; done; exit 5")
		done <- result{o, e, c}
	}()
	d.wait("the step", func() bool { return d.must("squeue", "-h", "-s") != "" })
	d.kill()
	d.start()
	r := <-done
	if n := strings.Count(r.out, "\n"); n != 12 || r.code != 5 {
		t.Errorf("srun: exit code %d, %d lines of output, want 5 and 12\n%s%s", r.code, n, r.out, r.errs)
	}
}

// Everything but the jobs is killed: daemon and supervisor.
func TestKillAll(t *testing.T) {
	if !kernelTellsExits() {
		t.Skip("this kernel cannot tell the exit code of another's child (6.15 and later do)")
	}
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-o", "out", "--wrap", "echo begin; sleep 2; echo end; exit 6")
	queued := d.must("sbatch", "--parsable", "-d", "afterany:"+id, "-o", "next", "--wrap", "echo next")
	d.wait("the job to begin", func() bool { b, _ := os.ReadFile(d.dir + "/out"); return len(b) > 0 })
	d.kill()
	d.killSupervisor()
	d.start()
	d.wait("the second job", func() bool {
		out, _, code := d.run("sacct", "-nXP", "-j", queued, "-o", "State")
		return code == 0 && out == "COMPLETED\n"
	})
	expect(t, "output", d.read("out"), "begin\nend\n")
	expect(t, "exit code", d.must("sacct", "-nXP", "-j", id, "-o", "State,ExitCode"), "FAILED|6:0")
}

// The binary is replaced and the daemon restarted: jobs and steps run on, under a new supervisor program.
func TestUpgradeInPlace(t *testing.T) {
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-n2", "-o", "out", "--wrap",
		"srun sh -c 'for i in 1 2 3 4 5; do echo $i; sleep 0.3; done; exit 4'")
	d.wait("output", func() bool { b, _ := os.ReadFile(d.dir + "/out"); return len(b) > 0 })
	text, err := os.ReadFile(bin + "/muster")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin+"/muster.new", text, 0o755); err != nil {
		t.Fatal(err)
	}
	d.stop()
	if err := os.Rename(bin+"/muster.new", bin+"/muster"); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.wait("the end",
		func() bool { out, _, _ := d.run("sacct", "-nXP", "-j", id, "-o", "State"); return out == "FAILED\n" })
	expect(t, "exit code", d.must("sacct", "-nXP", "-j", id, "-o", "ExitCode"), "4:0")
	if n := strings.Count(d.read("out"), "5\n"); n != 2 {
		t.Errorf("output is not complete: %q", d.read("out"))
	}
	if log := d.read("log"); !strings.Contains(log, "the supervisor was upgraded in place") {
		t.Error("the supervisor still runs the old program")
	}
}

// TestExternStep: with PrologFlags=Contain every job has an external step in lists and history, and
// the batch script is listed while it runs.
func TestExternStep(t *testing.T) {
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	conf := "ClusterName=c\nPrologFlags=Contain\nNodeName=gpu-node-[001-002] CPUs=2 RealMemory=8000 Feature=red\nPartitionName=p Nodes=ALL Default=YES\n"
	if err := os.WriteFile(dir+"/slurm.conf", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDevAt(t, dir, "--conf", dir+"/slurm.conf", "--hollow", "conf", "--hollow-exec")
	id := d.must("sbatch", "--parsable", "-N2", "-C", "red", "-t", "7", "-o", "/dev/null", "--wrap",
		"srun -n1 sleep 60")
	steps := func() string { return d.must("squeue", "-s", "-h", "-o", "%i %j %A") }
	d.wait("the steps", func() bool { return strings.Contains(steps(), id+".0") })
	expect(t, "squeue -s", steps(), id+".0 sleep 1\n"+id+".batch batch 1\n"+id+".extern extern 2")
	expect(t, "sacct", d.must("sacct", "-nP", "-j", id, "-o", "JobID,State,NTasks"),
		id+"|RUNNING|\n"+id+".batch|RUNNING|1\n"+id+".extern|RUNNING|2\n"+id+".0|RUNNING|1")
	d.must("scancel", "-s", "STOP", id)
	expect(t, "a stopped job", d.must("squeue", "-h", "-o", "%t"), "ST")
	d.must("scancel", "-s", "CONT", id)
	expect(t, "a continued job", d.must("squeue", "-h", "-o", "%t"), "R")
	d.must("scancel", id)
	d.wait("the end", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "history", d.must("sacct", "-nP", "-j", id+".extern,"+id+".0", "-o", "JobID,State,ExitCode"),
		id+".extern|COMPLETED|0:0\n"+id+".0|CANCELLED|0:15")
	for args, want := range map[string]string{
		"-k 7": id, "-k 8": "", "-i 2": id, "-i 1": "", "-C red": id, "-C blue": "",
		"-g 0": map[bool]string{true: id}[os.Getgid() == 0],
	} {
		expect(t, "sacct "+args,
			d.must("sacct", append([]string{"-nXP", "-o", "JobID", "-j", id}, strings.Fields(args)...)...),
			want)
	}
	if out := d.must("sacct", "-j", id, "--env-vars"); !strings.Contains(out, "\nPATH=") || !strings.HasPrefix(out, "Environment used for "+id) {
		t.Errorf("--env-vars: %q", out)
	}
}

// TestScancelMany: many jobs are ended together; what there is to say comes in the order of the jobs, and who is
// asked is asked for each.
func TestScancelMany(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	const n = 70
	ids := make([]string, n)
	for i := range ids {
		ids[i] = d.must("sbatch", "--parsable", "-H", "--wrap", "true")
	}
	out, errs, code := d.input("y\nn\ny\n"+strings.Repeat("n\n", n), "scancel", "-i", "--me")
	if left := strings.Fields(d.must("squeue", "-h", "-o", "%i")); code != 0 || len(left) != n-2 || strings.Count(out, "[y/n]? ") != n {
		t.Errorf("asked %d times, %d of %d jobs are left; exit code %d, %s", strings.Count(out, "[y/n]? "),
			len(left), n, code, errs)
	}
	want := ""
	for _, id := range ids {
		want += "scancel: Terminating job " + id + "\n"
	}
	if _, errs, code := d.run("scancel", append([]string{"-v", "x" + ids[0]}, ids...)...); code != 1 || !strings.Contains(errs, "Invalid job id x"+ids[0]) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	_, errs, code = d.run("scancel", append([]string{"-v"}, ids...)...)
	said := ""
	for line := range strings.Lines(errs) {
		if strings.Contains(line, "Terminating") {
			said += line
		}
	}
	if left := d.must("squeue", "-h"); code != 0 || said != want || left != "" {
		t.Errorf("exit code %d, left %q, said %s", code, left, errs)
	}
}
