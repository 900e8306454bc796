package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestFarm: muster farm runs the lines of a file on all nodes of a job, with CPUs and GPUs of their own, and goes on
// after it was killed.
func TestFarm(t *testing.T) {
	d := startDev(t, "--hollow", "2x4c8g4gpu:h100", "--hollow-exec")
	farm := "#!/bin/bash\n#SBATCH -N2 --exclusive --gpus-per-node=4 -t 5\n"
	batch := func(t *testing.T, line string) string {
		d.write("farm.sh", farm+line+"\necho code $?\n")
		d.must("sbatch", "--wait", "-o", "farm.out", "farm.sh")
		return d.read("farm.out")
	}
	t.Run("outside of a job", func(t *testing.T) {
		d.write("tasks", "true\n")
		_, errs, code := d.run("muster", "farm", "tasks")
		if code == 0 || !strings.Contains(errs, "call it in a batch script") {
			t.Errorf("%d: %s", code, errs)
		}
	})
	t.Run("all nodes", func(t *testing.T) {
		out := batch(t, "seq 100 | muster farm --command 'echo {} on $SLURMD_NODENAME; test {} != 50' -")
		for k := range 100 {
			if n := strings.Count("\n"+out, fmt.Sprintf("\n%d on gpu-node-00", k+1)); n != 1 {
				t.Errorf("task %d ran %d times", k+1, n)
			}
		}
		for _, want := range []string{
			"on gpu-node-001\n", "on gpu-node-002\n", "99 tasks done, 1 failed", "task 50 (", "code 1\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
	t.Run("no part of the workers' step", func(t *testing.T) {
		out := batch(t, "echo 'env; cat; echo read' | SLURM_MPI_TYPE=pmi2 muster farm -")
		if strings.Contains(out, "PMI") || !strings.Contains(out, "read\n") {
			t.Errorf("a task has variables of PMI, or reads what is the worker's:\n%s", out)
		}
	})
	t.Run("GPUs", func(t *testing.T) {
		out := batch(t, "seq 8 | muster farm -G 2 -c 2 --command 'echo gpus $CUDA_VISIBLE_DEVICES: {}' -")
		if strings.Count(out, "gpus 0,1:")+strings.Count(out, "gpus 2,3:") != 8 || !strings.Contains(out, "code 0\n") {
			t.Error(out)
		}
		out = batch(t, "seq 8 | muster farm -G 5 --command true -")
		if !strings.Contains(out, "no task fits on node gpu-node-00") {
			t.Error(out)
		}
	})
	t.Run("killed", func(t *testing.T) { d.killFarm(t, farm) })
}

// killFarm kills a farm at work, has another one go on, and checks that nothing that was done ran again.
func (d *dev) killFarm(t *testing.T, head string) {
	d.write("tasks", numberedLines(300, "echo %d >> ran; sleep 0.02"))
	d.write("killed.sh", head+"echo $$ > pid; exec muster farm --journal journal tasks\n")
	d.must("sbatch", "-o", "killed.out", "killed.sh")
	d.wait("sixty tasks to be done", func() bool { return strings.Count(d.soFar("journal"), "\n") > 60 })
	pid, err := strconv.Atoi(strings.TrimSpace(d.read("pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.wait("the job to end", func() bool { return d.must("squeue", "-h") == "" })
	done := doneTasks(d.read("journal"))
	d.write("again.sh", head+"muster farm --journal journal --resume tasks; echo code $?\n")
	d.must("sbatch", "--wait", "-o", "again.out", "again.sh")
	out := d.read("again.out")
	want := fmt.Sprintf("%d tasks done, 0 failed, 0 attempts repeated, %d left out", 300-len(done), len(done))
	if !strings.Contains(out, want) {
		t.Errorf("no %q in %s", want, out)
	}
	if all := doneTasks(d.read("journal")); len(all) != 300 {
		t.Errorf("%d tasks are done, want 300", len(all))
	}
	ran := strings.Fields(d.read("ran"))
	for _, n := range done {
		if times := len(slices.DeleteFunc(slices.Clone(ran), func(s string) bool { return s != n })); times != 1 {
			t.Errorf("task %s, which was done, ran %d times", n, times)
		}
	}
}

// doneTasks lists the tasks that a journal has as done.
func doneTasks(journal string) (list []string) {
	for line := range strings.Lines(journal) {
		if f := strings.Split(line, "\t"); len(f) == 8 && f[2] == "0" {
			list = append(list, f[0])
		}
	}
	return list
}

// numberedLines are so many lines, with %d for the number.
func numberedLines(n int, line string) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, line+"\n", k+1)
	}
	return b.String()
}
