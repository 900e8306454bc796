package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// submititScript is the script that submitit writes for a job, with a shell in place of its Python program. The program
// writes what submitit reads of its variables, requeues itself on USR2, and ends at its second start.
func submititScript(folder, parameters, ids, act string) string {
	return `#!/bin/bash

# Parameters
` + parameters + `#SBATCH --error=` + folder + `/` + ids + `_0_log.err
#SBATCH --job-name=submitit
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output=` + folder + `/` + ids + `_0_log.out
#SBATCH --signal=USR2@90
#SBATCH --time=1
#SBATCH --wckey=submitit

# setup
export SETUP=done

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output ` + folder + `/` + ids + `_%t_log.out --error ` + folder + `/` + ids +
		`_%t_log.err /bin/bash ` + act + "\n"
}

const submititTask = `trap 'echo bypassing TERM' TERM
trap 'echo requeues; scontrol requeue ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; exit 255' USR2
echo started $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS \
	$SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST $SUBMITIT_EXECUTOR $SETUP
[ "$SLURM_RESTART_COUNT" = 1 ] && exit
sleep 600 &
while true; do wait; done
`

// submititStates reads sacct as submitit does: by the first three columns, with the ranges of an array's waiting tasks.
func submititStates(t *testing.T, d *dev, ids ...string) map[string]string {
	t.Helper()
	args := []string{"-o", "JobID,State,NodeList", "--parsable2"}
	for _, id := range ids {
		args = append(args, "-j", id)
	}
	rows := fields(t, "sacct", d.must("sacct", args...), "|", 3)
	if got := strings.Join(rows[0], " "); got != "JobID State NodeList" {
		t.Errorf("sacct's heads: %q", got)
	}
	states := map[string]string{}
	waiting := regexp.MustCompile(`^(\d+)_\[((?:\d+(?:-\d+)?,?)+)(?:%\d+)?\]$`)
	for _, row := range rows[1:] {
		m := waiting.FindStringSubmatch(row[0])
		if m == nil {
			states[row[0]] = row[1]
			continue
		}
		for part := range strings.SplitSeq(m[2], ",") {
			low, high, found := strings.Cut(part, "-")
			if !found {
				high = low
			}
			first, _ := strconv.Atoi(low) // the pattern wants digits
			last, _ := strconv.Atoi(high)
			for k := first; k <= last; k++ {
				states[m[1]+"_"+strconv.Itoa(k)] = row[1]
			}
		}
	}
	return states
}

// TestSubmitit: the scripts and commands of submitit: an array with a limit of running tasks, several tasks in a job, a
// preemption that requeues, a failure and a cancelled job.
func TestSubmitit(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	d.write("task.sh", submititTask)
	submit := func(name, parameters, ids, act string) string {
		d.write(name, submititScript(d.dir, parameters, ids, act))
		m := regexp.MustCompile(`job (?P<id>[0-9]+)`).FindStringSubmatch(d.must("sbatch", d.dir+"/"+name))
		if m == nil {
			t.Fatalf("%s: no job in sbatch's answer", name)
		}
		return m[1]
	}
	array := submit("array.sh", "#SBATCH --array=0-3%2\n#SBATCH --cpus-per-task=2\n#SBATCH --gpus-per-node=1\n"+
		"#SBATCH --mem=2GB\n", "%A_%a", "task.sh")
	failed := submit("fail.sh", "#SBATCH --comment='of two words'\n#SBATCH --mem=512MB\n", "%j", "-c 'exit 3'")
	pair := submit("pair.sh", "#SBATCH --ntasks-per-node=2\n", "%j",
		`-c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS'`)

	started := func(task string) func() bool {
		return func() bool { return strings.Contains(d.soFar(array+"_"+task+"_0_log.out"), "started ") }
	}
	d.wait("the first task", started("0"))
	d.wait("the second task", started("1"))
	states := submititStates(t, d, array, failed)
	for task, want := range []string{"RUNNING", "RUNNING", "PENDING", "PENDING"} {
		if got := states[array+"_"+strconv.Itoa(task)]; got != want {
			t.Errorf("task %d: %q, want %s", task, got, want)
		}
	}
	d.must("scancel", array+"_2", array+"_3")
	d.must("scancel", array+"_0", "--signal", "SIGTERM")
	d.wait("the first signal", func() bool {
		return strings.Contains(d.soFar(array+"_0_0_log.out"), "bypassing TERM")
	})
	d.must("scancel", array+"_0", "--signal", "USR2")
	d.wait("the second start", func() bool {
		return strings.Count(d.soFar(array+"_0_0_log.out"), "started "+array+" 0 0 0 0 1 1 gpu-node-00") == 2
	})
	d.must("scancel", array+"_1")
	want := map[string]string{array + "_0": "COMPLETED", array + "_1": "CANCELLED by ", array + "_2": "CANCELLED by ",
		failed: "FAILED", pair: "COMPLETED"}
	d.wait("the ends", func() bool {
		states = submititStates(t, d, array, failed, pair)
		for id, state := range want {
			if !strings.HasPrefix(states[id], state) {
				return false
			}
		}
		return true
	})
	matches(t, "the requeued task", d.read(array+"_0_0_log.out"), `started .* slurm done\nbypassing TERM\nrequeues\n`+
		`(bypassing TERM\n)?started .* slurm done\n`)
	both := d.read(pair+"_0_log.out") + d.read(pair+"_1_log.out")
	matches(t, "the two tasks", both, `0 0 2\n1 1 2\n`)
	matches(t, "the comment", d.must("sacct", "-nXP", "-j", failed, "-o", "Comment,ReqMem"), `of two words\|512M`)
}

// TestDaskJobqueue: the script of dask-jobqueue's SLURMCluster, with a shell in place of dask-worker, as it is scaled up
// and down, and its runner, which divides the tasks of one job.
func TestDaskJobqueue(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec")
	d.must("sacctmgr", "-i", "add", "account", "lab")
	d.must("sacctmgr", "-i", "add", "user", strings.TrimSpace(d.shell("id -un")), "account=lab")
	start := func() string {
		file := filepath.Join(d.dir, "worker.sh")
		d.write("worker.sh", `#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -e `+d.dir+`/dask-worker-%J.err
#SBATCH -o `+d.dir+`/dask-worker-%J.out
#SBATCH -p main
#SBATCH -A lab
#SBATCH -n 1
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH -t 00:30:00

echo worker with $SLURM_CPUS_PER_TASK CPUs; exec sleep 600
`)
		m := regexp.MustCompile(`(?P<job_id>\d+)`).FindStringSubmatch(d.must("sbatch", file))
		if m == nil {
			t.Fatal("no job in sbatch's answer")
		}
		if err := os.Remove(file); err != nil { // it is a temporary file
			t.Fatal(err)
		}
		return m[1]
	}
	workers := []string{start(), start(), start()}
	for _, id := range workers {
		d.wait("a worker", func() bool {
			return d.soFar("dask-worker-"+id+".out") == "worker with 2 CPUs\n"
		})
	}
	matches(t, "a worker's job", d.must("squeue", "-h", "-j", workers[0], "-o", "%j %a %C %m %l"),
		`dask-worker lab 2 2G 30:00`)
	for _, id := range workers[1:] { // scale down
		d.must("scancel", id)
	}
	d.wait("the workers to end", func() bool { return d.must("squeue", "-h", "-o", "%i") == workers[0] })
	d.must("scancel", workers[1]) // the cluster object cancels all its jobs when it closes
	d.must("scancel", workers[0])

	d.write("runner.sh", `echo "$SLURM_PROCID of $SLURM_NTASKS" in "$SLURM_JOB_ID"`)
	lines := strings.Split(d.must("srun", "-n", "4", "sh", "runner.sh"), "\n")
	slices.Sort(lines)
	matches(t, "the runner's roles", strings.Join(lines, ";"), `0 of 4 in 4;1 of 4 in 4;2 of 4 in 4;3 of 4 in 4`)
}

// TestNextflow: the directives, the traps of the wrapper script, the polling and the cancellation of Nextflow, for a
// task in a folder with a blank in its name, and for an array of tasks.
func TestNextflow(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec")
	folder := d.dir + "/work a"
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.write("work a/.command.run", `#!/bin/bash
#SBATCH -J nf-align_(1)
#SBATCH -o "`+d.dir+`/work\ a/.command.log"
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 2
#SBATCH -t 51:00:00
#SBATCH --mem 200M
set -e
set -u
on_exit() { status=${ret:=$?}; printf -- $status >'`+folder+`/.exitcode'; exit $status; }
on_term() { set +e; kill $pid; }
trap on_exit EXIT
trap on_term TERM INT USR2
trap '' USR1
echo task in "$PWD"
sleep 600 &
pid=$!
wait $pid || ret=$?
`)
	me := strings.TrimSpace(d.shell("id -un"))
	states := func() map[string]string { // by the only lines that Nextflow reads
		byID := map[string]string{}
		for line := range strings.Lines(d.must("squeue", "--noheader", "-o", "%i %t", "-t", "all", "-p", "main", "-u", me)) {
			if cols := strings.Fields(line); len(cols) == 2 {
				byID[cols[0]] = cols[1]
			}
		}
		return byID
	}
	m := regexp.MustCompile(`Submitted batch job (\d+)`).FindStringSubmatch(
		d.shell("cd '" + folder + "' && sbatch .command.run"))
	if m == nil {
		t.Fatal("no job in sbatch's answer")
	}
	d.wait("the task", func() bool { return d.soFar("work a/.command.log") == "task in "+folder+"\n" })
	if got := states()[m[1]]; got != "R" {
		t.Errorf("the task's state: %q", got)
	}
	matches(t, "the job", d.must("squeue", "-h", "-j", m[1], "-o", "%j %C %m %l"), `nf-align_\(1\) 2 200M 2-03:00:00`)
	array := d.must("sbatch", "--parsable", "--array", "0-2", "-o", "/dev/null", "--wrap",
		`[ $SLURM_ARRAY_TASK_ID = 1 ] && exit 4; sleep 600`)
	d.wait("the array", func() bool {
		now := states()
		return now[array+"_0"] == "R" && now[array+"_1"] == "F" && now[array+"_2"] == "R"
	})
	d.must("scancel", m[1], array+"_0", array+"_2")
	d.wait("the cancellations", func() bool {
		now := states()
		return now[m[1]] == "CA" && now[array+"_0"] == "CA" && now[array+"_2"] == "CA"
	})
	matches(t, "the exit file", d.read("work a/.exitcode"), "143")
}
