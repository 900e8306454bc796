package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestNotebookSpawner: batchspawner, which starts JupyterHub's notebooks: its script comes by standard input, and it
// reads state and host of the job, and what is said where no server answers.
func TestNotebookSpawner(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec")
	script := "#!/bin/bash\n#SBATCH --output=notebook.log\n#SBATCH --job-name=spawner-jupyterhub\n" +
		"#SBATCH --chdir=" + d.dir + "\n#SBATCH --export=PATH,JUPYTERHUB_API_TOKEN\n" +
		"#SBATCH --get-user-env=L\nset -euo pipefail\nsleep 600\n"
	out, errs, code := d.input(script, "sbatch", "--parsable")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	id, _, _ := strings.Cut(lines[len(lines)-1], ";")
	if code != 0 || errs != "" || id == "" {
		t.Fatalf("%d: %q, %s", code, out, errs)
	}
	d.wait("the notebook to run", func() bool {
		return strings.HasPrefix(d.must("squeue", "-h", "-j", id, "-o", "%T %B"), "RUNNING ")
	})
	matches(t, "its host", d.must("squeue", "-h", "-j", id, "-o", "%T %B"), `(RUNNING|COMPLETING)\s+((?:[\w_-]+\.?)+)`)
	d.must("scancel", id)
	d.wait("the notebook to end", func() bool {
		state := d.must("squeue", "-h", "-j", id, "-o", "%T %B")
		return !strings.HasPrefix(state, "RUNNING") && !strings.HasPrefix(state, "COMPLETING")
	})
	lost := exec.Command(bin+"/squeue", "-h", "-j", id, "-o", "%T %B")
	lost.Env = append(slices.Clone(d.env), "MUSTER_SOCKET="+d.dir+"/none")
	said, _ := lost.CombinedOutput() // it fails: that is what is asked for
	matches(t, "without a server", string(said),
		`slurm_load_jobs error: (Socket timed out on send/recv|Unable to contact slurm controller).*`)
}

// TestJobReports: jobstats and XDMoD, which read what jobs used; jobstats also keeps its figures in a comment.
func TestJobReports(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	id := d.must("sbatch", "--parsable", "-J", "a|b", "--gpus=1", "-o", "/dev/null", "--wrap", "true")
	d.wait("history", func() bool { return d.must("sacct", "-n", "-X", "-s", "CD", "-j", id, "-o", "state") != "" })
	matches(t, "sacct -V", d.must("sacct", "-V"), `slurm \d+\.\d+\.\d+.*`)
	d.must("sacctmgr", "-i", "update", "job", "where", "jobid="+id, "set", "AdminComment=JS1:H4sIAAAA/+==")
	const columns = "jobidraw,start,end,cluster,alloctres,admincomment,user,account,state,nnodes,ncpus,reqmem,qos," +
		"partition,timelimitraw,jobname"
	stats := rowsOf(d.must("sacct", "-P", "-X", "-o", columns, "-j", id), 16)
	if got := strings.ToLower(strings.Join(stats[0], ",")); got != columns {
		t.Errorf("the heads are %q", got)
	}
	matches(t, "the GPUs", stats[1][4], `.*gres/gpu=1.*`)
	matches(t, "the comment", stats[1][5], `JS1:H4sIAAAA/\+==`)
	matches(t, "the name", stats[1][15], `a\|b`)
	matches(t, "sacct -B", d.must("sacct", "-j", id, "-B"), `.*#!/bin/sh\n.*true.*`)

	const xdmod = "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed," +
		"exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname"
	rows := rowsOf(d.shell("TZ=UTC sacct --allusers --parsable2 --noheader --allocations --duplicates "+
		"--clusters muster --format "+xdmod+" --starttime 2020-01-01T00:00:00"), 26)
	row := rows[0]
	some := strings.Join([]string{row[0], row[1], row[16], row[17], row[24], row[25]}, " ")
	matches(t, "job, state, nodes, name", some, id+" "+id+` COMPLETED 1 gpu-node-00[12] a\|b`)
	for _, k := range []int{10, 11, 12, 13} {
		matches(t, "a time", row[k], `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	}
}

// rowsOf splits lines into so many columns, of which the last is a job's name and may have the separator in it.
func rowsOf(text string, n int) (rows [][]string) {
	for line := range strings.Lines(text) {
		rows = append(rows, strings.SplitN(strings.TrimSuffix(line, "\n"), "|", n))
	}
	return rows
}

// TestRayScript: the script with which Ray's documentation starts a head and workers, with programs that stand for ray.
func TestRayScript(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "3x4c8g", "--hollow-exec")
	d.write("ray.sh", `#!/bin/bash
#SBATCH --nodes=3 --ntasks-per-node=1 --cpus-per-task=4 --output=ray.out
set -x
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" echo 10.0.0.1)
srun --nodes=1 --ntasks=1 -w "$head_node" sh -c 'echo head on $SLURMD_NODENAME > head; exec sleep 600' &
while [ ! -e head ]; do :; done
worker_num=$((SLURM_JOB_NUM_NODES - 1))
for ((i = 1; i <= worker_num; i++)); do
    node_i=${nodes_array[$i]}
    srun --nodes=1 --ntasks=1 -w "$node_i" sh -c "echo worker for $head_node_ip > worker-$i; exec sleep 600" &
done
while [ ! -e worker-2 ] || [ ! -e worker-1 ]; do :; done
echo driver sees $(cat head worker-1 worker-2)
`)
	d.must("sbatch", "--wait", "-t", "5", "ray.sh")
	const want = "driver sees head on node-001 worker for 10.0.0.1 worker for 10.0.0.1\n"
	if out := d.read("ray.out"); !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// TestServersGone: where the daemon of a machine answers and no server does, programs are told so in Slurm's words:
// batchspawner and Open OnDemand would take any others to say that the job is gone.
func TestServersGone(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	for _, name := range []string{"s1", "s2", "s3"} {
		g.at[name].kill()
	}
	_, errs, code := g.at["c1"].run("squeue", "-h", "-j", "1", "-o", "%T %B")
	matches(t, "squeue", errs,
		`slurm_load_jobs error: Unable to contact slurm controller \(connect failure\): no server leads.*`)
	if code == 0 {
		t.Error("squeue succeeded")
	}
}
