package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHet(t *testing.T) {
	d := startDev(t)
	d.write("het.sh", `#!/bin/bash
#SBATCH -n1 -J both -o het.out
#SBATCH hetjob
#SBATCH -N1 -n2
echo $SLURM_HET_SIZE $SLURM_JOB_ID $SLURM_JOB_ID_HET_GROUP_1 $SLURM_NTASKS $SLURM_NTASKS_HET_GROUP_1 $SLURM_JOB_NODELIST $SLURM_JOB_NODELIST_HET_GROUP_1 $SLURM_JOB_NAME_PACK_GROUP_1
srun sh -c 'echo first $SLURM_JOB_ID.$SLURM_STEP_ID $SLURM_PROCID of $SLURM_NTASKS'
srun --het-group=1 sh -c 'echo second $SLURM_JOB_ID.$SLURM_STEP_ID $SLURM_PROCID of $SLURM_NTASKS on $SLURM_STEP_NODELIST' | sort
srun -l --het-group=0,1 sh -c 'echo all $SLURM_JOB_ID.$SLURM_STEP_ID $SLURM_PROCID of $SLURM_NTASKS node $SLURM_NODEID $SLURM_LOCALID $SLURM_GTIDS $SLURM_STEP_NODELIST $SLURM_TASKS_PER_NODE; exit $SLURM_PROCID' 2>errors | sort
echo code ${PIPESTATUS[0]}
srun -l echo a : -n1 echo b | sort
srun --het-group=2 true; echo $?
squeue -h -o '%i %T' -j $SLURM_JOB_ID
exit 3
`)
	if _, errs, code := d.run("sbatch", "-W", "het.sh"); code != 3 {
		t.Errorf("exit code %d (%s)", code, errs)
	}
	expect(t, "output", d.read("het.out"), `2 1 2 1 2 gpu-node-001 gpu-node-002 both
first 1.0 0 of 1
second 1.1 0 of 2 on gpu-node-002
second 1.1 1 of 2 on gpu-node-002
0: all 1.2 0 of 3 node 0 0 0 gpu-node-[001-002] 1,2
1: all 1.2 1 of 3 node 1 0 1,2 gpu-node-[001-002] 1,2
2: all 1.2 2 of 3 node 1 1 1,2 gpu-node-[001-002] 1,2
code 2
0: a
1: b
srun: error: Requested het-group offset exceeds highest hetjob index (2 > 1)
1
1+0 RUNNING
1+1 RUNNING
`)
	expect(t, "srun's errors", sorted(d.read("errors")),
		"srun: error: gpu-node-002: task 0: Exited with exit code 1\n"+
			"srun: error: gpu-node-002: task 1: Exited with exit code 2\n")
	d.wait("the components to end", func() bool { return d.must("squeue", "-h", "-j", "1", "-o", "%i") == "" })
	expect(t, "sacct", d.must("sacct", "-nP", "-j", "1", "-o", "JobID,JobIDRaw,JobName,State,ExitCode,NTasks"), strings.TrimSpace(`
1+0|1|both|FAILED|3:0|
1+0.batch|1.batch|batch|FAILED|3:0|1
1+0.0|1.0|sh|COMPLETED|0:0|1
1+0.2|1.2|sh|COMPLETED|0:0|1
1+0.3|1.3|echo|COMPLETED|0:0|1
1+1|2|both|FAILED|3:0|
1+1.1|2.1|sh|COMPLETED|0:0|2
1+1.2|2.2|sh|FAILED|2:0|2
1+1.3|2.3|echo|COMPLETED|0:0|1`))
	expect(t, "sacct of a component", d.must("sacct", "-nXP", "-j", "2", "-o", "JobID"), "1+1")
	expect(t, "sacct of its whole", d.must("sacct", "-nXP", "-j", "2", "--whole-hetjob", "-o", "JobID"), "1+0\n1+1")
	expect(t, "sacct of the leader", d.must("sacct", "-nXP", "-j", "1", "--whole-hetjob=no", "-o", "JobID"), "1+0")
}

func TestHetLife(t *testing.T) {
	d := startDev(t)
	id := d.must("sbatch", "--parsable", "-H", "-t", "5", "-J", "two", "-o", "/dev/null", ":", "-n2",
		"--wrap", "sleep 60")
	expect(t, "squeue", d.must("squeue", "-h", "-S", "i", "-o", "%i %r %l %j %C"),
		"1+0 JobHeldUser 5:00 two 1\n1+1 JobHeldUser 5:00 two 2")
	expect(t, "squeue -O",
		d.must("squeue", "-h", "-S", "i", "-O", "jobarrayid:5,hetjobid:5,hetjoboffset:5,hetjobidset:5"),
		"1+0  1    0    1-2  \n1+1  1    1    1-2  ")
	if out := d.must("scontrol", "show", "job", "1+1"); !strings.HasPrefix(out, "JobId=2 HetJobId=1 HetJobOffset=1 JobName=two\n   HetJobIdSet=1-2\n") {
		t.Errorf("scontrol show job: %s", out)
	}
	for _, one := range []string{"2", "1+1"} {
		_, errs, code := d.run("scancel", one)
		if want := "scancel: error: Kill job error on job id " + one + ": Operation not permitted on individual component of heterogeneous job\n"; errs != want || code != 60 {
			t.Errorf("scancel %s: %d %s", one, code, errs)
		}
	}
	_, errs, code := d.run("scontrol", "suspend", id)
	if want := "Job is pending execution for job 1\n"; errs != want || code != 1 {
		t.Errorf("scontrol suspend: %d %s", code, errs)
	}
	d.must("scontrol", "update", "job=1+[0-1]", "timelimit=7")
	d.must("scontrol", "update", "job=1+1", "timelimit=6")
	expect(t, "limits", d.must("squeue", "-h", "-S", "i", "-o", "%i %l"), "1+0 7:00\n1+1 6:00")
	d.must("scontrol", "release", "1+0,1+1")
	states := func() string {
		return strings.ReplaceAll(d.must("squeue", "-h", "-S", "i", "-j", id, "-o", "%i %T"), "\n", " ")
	}
	d.wait("it to run", func() bool { return states() == "1+0 RUNNING 1+1 RUNNING" })
	d.must("scontrol", "suspend", id)
	expect(t, "suspended", states(), "1+0 SUSPENDED 1+1 SUSPENDED")
	d.must("scontrol", "resume", id)
	d.must("scancel", "2")
	d.wait("one to end", func() bool { return states() == "1+0 RUNNING" })
	d.must("scontrol", "requeue", id)
	d.wait("both to be requeued", func() bool { return strings.Contains(states(), "1+1 ") })
	d.must("scancel", id)
	d.wait("it to end", func() bool { return states() == "" })

	out, errs, code := d.run("salloc", "-n1", ":", "-n2", "sh", "-c",
		"echo $SLURM_JOB_ID $SLURM_HET_SIZE $SLURM_NTASKS $SLURM_JOB_ID_HET_GROUP_1; "+
			"srun --het-group=0-1 hostname | sort")
	expect(t, "salloc", out, "3 2 3 4\ngpu-node-001\ngpu-node-002\ngpu-node-002\n")
	if code != 0 {
		t.Errorf("salloc: %d %s", code, errs)
	}
	out, errs, code = d.run("srun", "-l", "-n1", "sh", "-c",
		"echo $SLURM_PROCID $SLURM_NTASKS $SLURM_HET_SIZE", ":", "-n2", "sh", "-c",
		"echo $SLURM_PROCID $SLURM_JOB_ID")
	if expect(t, "srun", sorted(out), "0: 0 3 2\n1: 1 5\n2: 2 5\n"); code != 0 {
		t.Errorf("srun: %d %s", code, errs)
	}
	_, errs, _ = d.run("salloc", "-n2", "srun", "-n1", "true", ":", "-n1", "true")
	if want := "srun: error: Job 7 has one component only: give its tasks different commands by --multi-prog, " +
		"or submit a heterogeneous job (sbatch A : B)\n"; !strings.Contains(errs, want) {
		t.Errorf("two commands in a plain allocation: %s", errs)
	}
	for _, bad := range []struct{ line, want string }{
		{
			"--array=1-2 : -n1 --wrap true",
			"sbatch: error: Batch job submission failed: Invalid job array specification\n",
		},
		{
			"-n1 : -p none --wrap true",
			"sbatch: error: invalid partition specified: none\n" +
				"sbatch: error: Batch job submission failed: Invalid partition name specified\n",
		},
		{
			"-w gpu-node-001 : -w gpu-node-001 --wrap true",
			"sbatch: error: Batch job submission failed: Invalid node name specified\n",
		},
	} {
		if _, errs, code := d.run("sbatch", strings.Fields(bad.line)...); slurmWords(errs) != bad.want || code != 1 {
			t.Errorf("sbatch %s: %d %s", bad.line, code, errs)
		}
	}
}

// TestHetAcross: components whose nodes are of different clients, and steps started from anywhere. Not by root, for
// whom nodes may not speak to each other.
func TestHetAcross(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	out := g.must("s1", "srun", "-l", "-w", "c1-002", "hostname", ":", "-n2", "-N2", "-w", "c2-001,c2-002",
		"sh", "-c", "echo $SLURM_PROCID $SLURM_NTASKS $SLURM_NODEID")
	expect(t, "srun by a server", sorted(out+"\n"), "0: c1-002\n1: 1 3 1\n2: 2 3 2\n")
	dir := t.TempDir()
	for at := dir; at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	sub := func(script string) string {
		out, errs, code := g.at["s2"].as(1, "sbatch", "--parsable", "-D", dir, "-o", "het.out", "-w",
			"c1-001", ":", "-w", "c2-001", "--wrap", script)
		if code != 0 {
			t.Fatal(errs)
		}
		return strings.TrimSpace(out)
	}
	id := sub("echo $SLURM_JOB_NODELIST_HET_GROUP_1; srun --het-group=1 hostname; srun -l --het-group=0,1 hostname | sort")
	g.drained("s2")
	text, _ := os.ReadFile(filepath.Join(dir, "het.out"))
	expect(t, "output", string(text), "c2-001\nc2-001\n0: c1-001\n1: c2-001\n")
	g.at["s1"].wait("history to follow",
		func() bool { return g.must("s3", "sacct", "-nXP", "-j", id, "-o", "state") == "COMPLETED\nCOMPLETED" })
	id = sub("srun --het-group=0,1 sleep 60")
	g.at["s1"].wait("both components' steps",
		func() bool { return strings.Count(g.must("s1", "squeue", "-h", "-s", "-o", "%i"), ".0") == 2 })
	g.must("s1", "scancel", id)
	g.drained("s1")
}

// TestHetSuspended: a heterogeneous job is stopped as a whole to make room on one of its nodes, goes on as a whole,
// and has another one stopped for it.
func TestHetSuspended(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	text := "ClusterName=c\nPreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\nSelectTypeParameters=CR_Core_Memory\n" +
		"NodeName=n[1-2] CPUs=4 RealMemory=4000\nPartitionName=low Nodes=ALL Default=YES OverSubscribe=FORCE:1\nPartitionName=high Nodes=ALL PriorityTier=5 OverSubscribe=FORCE:1\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--conf", conf, "--hollow", "conf", "--hollow-exec")
	states := func() string {
		return strings.ReplaceAll(d.must("squeue", "-h", "-S", "i", "-t", "all", "-o", "%i %T"), "\n", ", ")
	}
	d.must("sbatch", "-n4", "--mem=10", "-w", "n1", "-o", "first", ":", "-n4", "--mem=10", "-w", "n2",
		"--wrap", "srun --het-group=1 sh -c 'while :; do echo x >>ticks; sleep 0.05; done'")
	d.wait("its step to run", func() bool { return d.soFar("ticks") != "" })
	still := "while a=$(wc -c <ticks); sleep 0.3; [ $a != $(wc -c <ticks) ]; do :; done" // six of its turns long
	d.must("sbatch", "-p", "high", "-n4", "--mem=10", "-w", "n1", "-o", "second", "--wrap",
		still+"; echo still; until [ -e go ]; do sleep 0.05; done")
	d.wait("its step on the other node to stand still", func() bool { return d.soFar("second") == "still\n" })
	expect(t, "states", states(), "1+0 SUSPENDED, 1+1 SUSPENDED, 3 RUNNING")
	stood := d.read("ticks")
	d.write("go", "")
	d.wait("the whole to go on", func() bool { return strings.HasPrefix(states(), "1+0 RUNNING, 1+1 RUNNING") })
	d.wait("its step to go on", func() bool { return d.read("ticks") != stood })
	d.must("sbatch", "-p", "high", "-n4", "--mem=10", "-o", "third", ":", "-p", "high", "-n4", "--mem=10",
		"--wrap", "true")
	d.wait("the other to have run in its place",
		func() bool { return strings.HasSuffix(states(), "4+0 COMPLETED, 4+1 COMPLETED") })
	d.wait("the whole to go on again", func() bool { return strings.HasPrefix(states(), "1+0 RUNNING, 1+1 RUNNING") })
	d.must("scancel", "1")
}
