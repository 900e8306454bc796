package e2e

import (
	"strings"
	"testing"
)

// rasServer is a process that answers at NCCL_RAS_ADDR as NCCL's RAS does, with rank 1 missing.
const rasServer = `import os, socketserver
answer = b'''{"communicators_count":1,"communicators":[{"hash":"0x1","size":2,"ranks_count":1,"missing_ranks_count":1,
"ranks":[{"rank":0,"host":"10.0.0.1","pid":7,"cuda_dev":0,"status":{"init_state":0},"collective_counts":{"AllReduce":41}}],
"missing_ranks":[{"rank":1,"host":"10.0.0.2","pid":8,"cuda_dev":3,"status":{"unresponsive":true}}]}]}'''
class Ras(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            if line.strip() == b"STATUS":
                self.wfile.write(answer)
                return
            self.wfile.write(b"OK\n")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
host, port = os.environ["NCCL_RAS_ADDR"].split(":")
Server((host, int(port)), Ras).serve_forever()
`

// TestHangRAS: a rank that NCCL's RAS reports as missing is named, and the job is requeued as its rule says; without a
// rule, the job is only reported.
func TestHangRAS(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x4c8g2gpu:h100", "--hollow-exec")
	d.write("ras.py", rasServer)
	requeue := d.must("sbatch", "--parsable", "--gpus=1", "--hang=requeue", "--open-mode=append",
		"-o", "requeue.out", "--wrap",
		`[ "$SLURM_RESTART_COUNT" = 1 ] && exit; exec python3 ras.py`)
	report := d.must("sbatch", "--parsable", "--gpus=1", "-o", "report.out", "--wrap", "exec python3 ras.py")
	off := d.must("sbatch", "--parsable", "--gpus=1", "--hang=off", "-o", "off.out", "--wrap", "exec python3 ras.py")
	const names = "NCCL's RAS gets no answer of rank 1 (GPU 3 of process 8 on 10.0.0.2)"
	d.wait("the job to be requeued and over", func() bool {
		return d.must("sacct", "-nXPD", "-j", requeue, "-o", "state") == "REQUEUED\nCOMPLETED"
	})
	d.wait("the report", func() bool { return strings.Contains(d.soFar("report.out"), names) })
	if out := d.must("muster", "why", report); !strings.Contains(out, names+"; it was only reported") {
		t.Errorf("why: %s", out)
	}
	if out := d.must("squeue", "-h", "-o", "%i %T", "-j", report+","+off); !strings.Contains(out, report+" RUNNING") ||
		!strings.Contains(out, off+" RUNNING") {
		t.Errorf("jobs: %s", out)
	}
	if out := d.must("scontrol", "show", "job", off); strings.Contains(out, "HANG") {
		t.Errorf("a job with --hang=off: %s", out)
	}
	d.wait("the report of operators", func() bool {
		out := d.must("muster", "report")
		return strings.Contains(out, "hangs, sign ras") && strings.Contains(out, "1, action: requeue") &&
			strings.Contains(out, "1, action: report") && strings.Contains(out, "lost, requeued") &&
			strings.Contains(out, "idle GPUs now")
	})
	d.must("scancel", report, off)
}

// TestCheckpoint: a job with a checkpoint signal saves before it is preempted, and leaves as soon as it has; what it
// reports is shown.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	file := confFile(t, `
ClusterName=ckpt
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PreemptParameters=checkpoint_grace=600
PartitionName=train Nodes=ALL Default=YES
PartitionName=high Nodes=ALL PriorityTier=2
`)
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", file)
	d.write("train.sh", `#!/bin/bash
#SBATCH --exclusive --checkpoint-signal=B:USR1@500 --open-mode=append -o train.out
[ "$SLURM_RESTART_COUNT" = 1 ] && { echo resumes; exit; }
trap 'echo saves; muster checkpoint done step-42' USR1
muster progress 42 --of 100 --loss 0.25 && echo ready
while true; do sleep 0.2; done
`)
	id := d.must("sbatch", "--parsable", "train.sh")
	d.wait("the job to begin", func() bool { return d.soFar("train.out") == "ready\n" })
	high := d.must("sbatch", "--parsable", "-p", "high", "--exclusive", "-o", "/dev/null", "--wrap", "true")
	d.wait("both to end", func() bool {
		return d.must("sacct", "-nXPD", "-j", id+","+high, "-o", "state") == "PREEMPTED\nCOMPLETED\nCOMPLETED" ||
			d.must("sacct", "-nXPD", "-j", id, "-o", "state") == "PREEMPTED\nCOMPLETED"
	})
	out := d.read("train.out")
	if !strings.HasPrefix(out, "ready\nsaves\n") || !strings.HasSuffix(out, "resumes\n") {
		t.Errorf("output: %q", out)
	}
	if out := d.must("scontrol", "show", "job", id); !strings.Contains(out, "Checkpoints=1 CheckpointName=step-42") {
		t.Errorf("show job: %s", out)
	}
}

// TestChain: a job with --chain goes on after its time limit if it has saved a checkpoint.
func TestChain(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec")
	id := d.must("sbatch", "--parsable", "--chain", "-t", "60", "--open-mode=append", "-o", "chain.out", "--wrap",
		`echo part; [ "$SLURM_RESTART_COUNT" = 1 ] && exit; muster checkpoint done; exec sleep 600`)
	d.wait("the checkpoint", func() bool {
		return strings.Contains(d.must("scontrol", "show", "job", id), "Checkpoints=1 ")
	})
	d.must("scontrol", "update", "job", id, "EndTime=now")
	d.wait("the job to be over", func() bool {
		return d.must("sacct", "-nXPD", "-j", id, "-o", "state") == "TIMEOUT\nCOMPLETED"
	})
	if out := d.read("chain.out"); !strings.HasPrefix(out, "part\n") || !strings.HasSuffix(out, "part\n") {
		t.Errorf("output: %q", out)
	}
}
