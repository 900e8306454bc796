package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestResize has a job of two clients' nodes give three of four back: what runs there is killed, others start
// there, steps on what it keeps go on, and history has a record for each size.
func TestResize(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	id := g.must("s1", "sbatch", "--parsable", "-N4", "--exclusive", "-o", "resize.out", "--wrap", `
srun -J all -N4 -n4 --overlap -K0 sleep 600 &
srun -J gone -N1 -n1 -w c2-002 --overlap sleep 600 &
srun -J kept -N1 -n1 -w c1-001 --overlap sleep 600 &
until [ $(squeue -h -j $SLURM_JOB_ID -o %D) = 1 ]; do sleep .1; done
srun -J new -N1 -n1 --overlap sh -c 'echo on $SLURM_NODEID of $SLURM_NNODES'
sleep 600`)
	steps := func() string { return g.must("s1", "squeue", "-h", "-s", "-j", id, "-S", "j", "-o", "%j %N") }
	g.wait("its steps",
		func() bool { return strings.Count(steps(), " sleep") == 0 && strings.Count(steps(), "\n") >= 3 })
	g.must("s1", "scontrol", "update", "jobid="+id, "numnodes=1")
	g.wait("the step of the smaller job",
		func() bool { return strings.Contains(g.read(t, "resize.out"), "on 0 of 1\n") })
	out := g.must("s2", "srun", "-N3", "--exclusive", "-x", "c1-001", "-l", "hostname")
	if strings.Count(out, "\n") != 2 {
		t.Errorf("the next job on what was given back: %q", out)
	}
	g.wait("the end of what ran there", func() bool {
		return strings.Count(g.read(t, "resize.out"), ": Killed") >= 2 && !strings.Contains(steps(), "gone")
	})
	if out := steps(); !strings.Contains(out, "kept c1-001") || !strings.Contains(out, "all c1-") {
		t.Errorf("steps that go on: %q", out)
	}
	expect(t, "the job", g.must("s3", "squeue", "-h", "-j", id, "-o", "%t %D %N"), "R 1 c1-001")
	g.must("s1", "scancel", id)
	g.wait("its end", func() bool { return g.must("s1", "squeue", "-h") == "" })
	expect(t, "its history", g.must("s2", "sacct", "-nXP", "-j", id, "-o", "state,nodelist,nnodes"),
		"RESIZING|c1-[001-002],c2-[001-002]|4\nCANCELLED by 0|c1-001|1")
	out = g.must("s2", "sacct", "-nP", "-j", id, "-o", "jobid,jobname,state")
	if strings.Count(out, ".batch|") != 1 || !strings.Contains(out, "|new|COMPLETED") {
		t.Errorf("history of its steps:\n%s", out)
	}
}

// TestExpand has a job get the nodes of another while it runs: its steps use them, with their GPUs, and history has a
// record for each size.
func TestExpand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := dir + "/slurm.conf"
	rewrite(t, conf, "ClusterName=c", "SchedulerParameters=permit_job_expansion")
	d := startDevAt(t, dir, "--hollow", "4x4c4g2gpu:h100", "--hollow-exec", "--conf", conf)
	id := d.must("sbatch", "--parsable", "-t30", "-N2", "-n2", "--gpus-per-node=1",
		"-w", "gpu-node-[001-002]", "-o", "job.out", "--wrap", `
srun -J old -n2 --overlap sleep 600 &
until [ -e go ]; do sleep .1; done
scontrol update jobid=$SLURM_JOB_ID numnodes=ALL
. ./slurm_job_${SLURM_JOB_ID}_resize.sh
tell='echo $SLURM_NODEID $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES of $SLURM_JOB_NUM_NODES'
until srun -J new -N4 -n4 --overlap --gpus-per-node=1 sh -c "$tell"; do sleep .1; done
echo yes >ran
sleep 600`)
	d.wait("its step", func() bool { return strings.Contains(d.must("squeue", "-h", "-s", "-o", "%j"), "old") })
	says := func(errs string, code int, name string, args ...string) {
		t.Helper()
		if _, got, rc := d.run(name, args...); slurmWords(got) != errs || rc != code {
			t.Errorf("%s %q: %d %q", name, args, rc, got)
		}
	}
	problem := "salloc: error: Job submit/allocate failed: Job dependency problem\n"
	says(problem, 1, "salloc", "--no-shell", "-d", "expand:99", "-n1")
	says(problem, 1, "salloc", "--no-shell", "-d", "expand:"+id+":"+id, "-n1")
	d.must("salloc", "--no-shell", "-d", "expand:"+id, "-t5", "-N2", "-n2", "--gpus-per-node=1")
	more := strings.TrimSpace(d.must("squeue", "-h", "-n", "no-shell", "-o", "%i"))
	expect(t, "the other job", d.must("squeue", "-h", "-j", more, "-o", "%t %D %N %l %E"),
		"R 2 gpu-node-[003-004] 29:00 (null)")
	says("Job is no longer pending execution for job "+id+"\n", 1, "scontrol", "update", "jobid="+id, "numnodes=3")
	says("Node count specification invalid for job "+id+"\n", 1, "scontrol", "update", "jobid="+id, "numnodes=0")
	script := d.must("sbatch", "--parsable", "-d", "expand:"+id, "-o", "script.out", "--wrap", "echo runs; sleep 600")
	d.wait("its script", func() bool { return d.soFar("script.out") != "" })
	says("Job step already exists for job "+script+"\n", 1, "scontrol", "update", "jobid="+script, "numnodes=0")
	d.must("scancel", script)
	says("", 0, "scontrol", "update", "jobid="+more, "numnodes=0")
	expect(t, "the job", d.must("squeue", "-h", "-j", id, "-o", "%t %D %N %C"), "R 4 gpu-node-[001-004] 4")
	d.wait("the other's end", func() bool { return d.must("squeue", "-h", "-j", more) == "" })
	d.write("go", "")
	d.wait("the step on all nodes", func() bool { return d.soFar("ran") != "" })
	_, out, _ := strings.Cut(d.soFar("job.out"), "resize.csh\n")
	expect(t, "steps", sorted(out), "0 gpu-node-001 0 of 4\n1 gpu-node-002 0 of 4\n"+
		"2 gpu-node-003 0 of 4\n3 gpu-node-004 0 of 4\n")
	d.must("scancel", id)
	d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "history",
		d.must("sacct", "-nXPD", "-j", id+","+more, "-o", "jobid,state,nodelist,alloctres"),
		id+"|RESIZING|gpu-node-[001-002]|billing=2,cpu=2,gres/gpu:h100=2,gres/gpu=2,node=2\n"+
			more+"|RESIZING|gpu-node-[003-004]|billing=2,cpu=2,gres/gpu:h100=2,gres/gpu=2,node=2\n"+
			id+"|CANCELLED by 0|gpu-node-[001-004]|billing=4,cpu=4,gres/gpu:h100=4,gres/gpu=4,node=4\n"+
			more+"|COMPLETED|None assigned|")
}

// TestExpandShell has the shell of an allocation give its nodes to a job: it goes on, with nothing.
func TestExpandShell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := dir + "/slurm.conf"
	rewrite(t, conf, "ClusterName=c", "SchedulerParameters=permit_job_expansion")
	d := startDevAt(t, dir, "--hollow", "2x4c4g", "--hollow-exec", "--conf", conf)
	id := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600")
	d.wait("the job", func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t") == "R" })
	out, errs, code := d.run("salloc", "-d", "expand:"+id, "sh", "-c",
		"scontrol update jobid=$SLURM_JOB_ID numnodes=0; cat slurm_job_*_resize.sh; srun hostname; echo srun $?")
	expect(t, "salloc", out, `To reset Slurm environment variables, execute
  For bash or sh shells:  . ./slurm_job_2_resize.sh
  For csh shells:         source ./slurm_job_2_resize.csh
export SLURM_NODELIST=""
export SLURM_JOB_NODELIST=""
export SLURM_NNODES=0
export SLURM_JOB_NUM_NODES=0
export SLURM_JOB_CPUS_PER_NODE=""
unset SLURM_NPROCS
unset SLURM_NTASKS
unset SLURM_TASKS_PER_NODE
srun 1
`)
	expect(t, "its errors", slurmWords(errs), `salloc: Granted job allocation 2
salloc: Waiting for resource configuration
salloc: Nodes node-002 are ready for job
srun: error: Slurm job 2 has expired
srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 2
salloc: Relinquishing job allocation 2
`)
	if code != 0 {
		t.Errorf("salloc: %d", code)
	}
	expect(t, "the job", d.must("squeue", "-h", "-j", id, "-o", "%D %N"), "2 node-[001-002]")
}

// TestExpandClients has a job on one client get the nodes of another client. A step on both goes on while the new
// client's daemon and the leader are killed and come back, and further ones begin there; history has each size.
func TestExpandClients(t *testing.T) {
	t.Parallel()
	conf := t.TempDir() + "/slurm.conf"
	rewrite(t, conf, "ClusterName=c", "SchedulerParameters=permit_job_expansion")
	g := fullGroup(t, 2, "--conf", conf)
	if err := os.Chmod(g.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	user := "--uid=daemon" // root of a client's machine changes no jobs
	id := g.must("s1", "sbatch", "--parsable", user, "-t30", "-N2", "-w", "c1-[001-002]", "-o", "job.out", "--wrap", `
until [ -e go ]; do sleep .1; done
scontrol update jobid=$SLURM_JOB_ID numnodes=ALL
. ./slurm_job_${SLURM_JOB_ID}_resize.sh
srun -J all -N4 -n4 --overlap sh -c 'until [ -e end ]; do sleep .1; done; echo all on $SLURMD_NODENAME' &
until [ -e more ]; do sleep .1; done
srun -N2 -n2 -w c2-[001-002] --overlap sh -c 'echo more on $SLURMD_NODENAME of $SLURM_JOB_NUM_NODES'
touch end
wait`)
	g.wait("the job", func() bool { return g.must("s1", "squeue", "-h", "-j", id, "-o", "%t") == "R" })
	g.must("s2", "salloc", user, "--no-shell", "-J", "donor", "-d", "expand:"+id, "-t5", "-N2", "-w", "c2-[001-002]")
	donor := strings.TrimSpace(g.must("s1", "squeue", "-h", "-n", "donor", "-o", "%i"))
	g.must("s3", "scontrol", "update", "jobid="+donor, "numnodes=0")
	size := func() string { return g.must("s1", "squeue", "-h", "-j", id, "-o", "%t %D %N") }
	expect(t, "the job", size(), "R 4 c1-[001-002],c2-[001-002]")
	rewrite(t, g.dir+"/go")
	steps := func() string { return g.must("s1", "squeue", "-h", "-s", "-j", id, "-o", "%j %N") }
	g.wait("the step on both clients",
		func() bool { return strings.Contains(steps(), "all c1-[001-002],c2-[001-002]") })
	leader := g.leader("s1")
	g.at["c2"].kill()
	g.at[leader].kill()
	g.start("c2")
	g.start(leader)
	g.wait("all of them", func() bool {
		out, _, code := g.run("s1", "sinfo", "-h", "-t", "alloc,mix", "-o", "%D")
		return code == 0 && strings.TrimSpace(out) == "4"
	})
	expect(t, "the job afterwards", size(), "R 4 c1-[001-002],c2-[001-002]")
	rewrite(t, g.dir+"/more")
	g.wait("its end", func() bool { return g.must("s1", "squeue", "-h") == "" })
	_, out, _ := strings.Cut(g.read(t, "job.out"), "resize.csh\n")
	expect(t, "steps", sorted(out), "all on c1-001\nall on c1-002\nall on c2-001\nall on c2-002\n"+
		"more on c2-001 of 4\nmore on c2-002 of 4\n")
	expect(t, "history", g.must("s2", "sacct", "-nXPD", "-j", id+","+donor, "-o", "jobid,state,nodelist"),
		id+"|RESIZING|c1-[001-002]\n"+donor+"|RESIZING|c2-[001-002]\n"+
			id+"|COMPLETED|c1-[001-002],c2-[001-002]\n"+donor+"|COMPLETED|None assigned")
}
