package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAttach: several look on at a step beside its srun, see what it prints on all nodes and type for it; one
// that leaves does not end the step. Their exit code is that of the tasks, and the srun has missed nothing.
func TestAttach(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	d.write("job.sh", "#!/bin/sh\nmkfifo in; srun -N2 -n2 -l sh -c 'echo early; read x; echo got $x; read y; echo $y >&2; "+
		"exit $((SLURM_PROCID + 4))' <in & exec 3>in; wait $!\n")
	job := d.must("sbatch", "--parsable", "-N2", "-n2", "-o", "out", "job.sh")
	d.wait("the step", func() bool { return strings.Count(d.soFar("out"), "early") == 2 })
	step := job + ".0"
	if out := d.must("sattach", "--layout", step); out != "Job step layout:\n\t2 tasks, 2 nodes (gpu-node-[001-002])\n\n"+
		"\tNode 0 (gpu-node-001), 1 task(s): 0 \n\tNode 1 (gpu-node-002), 1 task(s): 1 " {
		t.Errorf("layout: %q", out)
	}
	first, cmd := d.lines("sattach", "--output-filter=1", "--input-filter=9", step) // so the tasks do not see the end of its input
	if line := <-first; line != "early" {
		t.Errorf("what was printed before: %q", line)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	type result struct {
		out, errs string
		code      int
	}
	look := func(in string, args ...string) <-chan result {
		c := make(chan result, 1)
		go func() {
			out, errs, code := d.input(in, "sattach", append(args, step)...)
			c <- result{out, errs, code}
		}()
		return c
	}
	second := look("one\ntwo\n", "-l")
	var got result
	select {
	case got = <-second:
	case <-time.After(20 * time.Second):
		t.Fatal("the step does not end")
	}
	for _, line := range []string{"0: early", "1: early", "0: got one", "1: got one"} {
		if !strings.Contains(got.out, line+"\n") {
			t.Errorf("printed: %q, not %q", got.out, line)
		}
	}
	for _, line := range []string{"0: two", "1: two", "sattach: error: task 0 exited with exit code 4",
		"sattach: error: task 1 exited with exit code 5"} {
		if !strings.Contains(got.errs, line+"\n") {
			t.Errorf("errors: %q, not %q", got.errs, line)
		}
	}
	if got.code != 5 {
		t.Errorf("exit code %d", got.code)
	}
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	out := d.read("out")
	for rank := range 2 {
		for _, line := range []string{"early", "got one", "two"} {
			if !strings.Contains(out, fmt.Sprintf("%d: %s\n", rank, line)) {
				t.Errorf("srun: %q, not %q of %d", out, line, rank)
			}
		}
	}
	for _, c := range []struct{ step, want string }{
		{step, "sattach: error: Could not get job step info: Job/step already completing or completed\n"},
		{"77.0", "sattach: error: Could not get job step info: Invalid job id specified\n"},
		{"1.x", "sattach: fatal: Bad step specified: 1\n"},
	} {
		if _, errs, code := d.run("sattach", c.step); errs != c.want || code != 1 {
			t.Errorf("%s: %q %d", c.step, errs, code)
		}
	}
}
