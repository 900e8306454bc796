package e2e

import (
	"strings"
	"testing"
)

// TestVerbose: -v tells what is done in the words that scripts look for, and only what is true.
func TestVerbose(t *testing.T) {
	d := startDev(t)
	out, errs, code := d.run("srun", "-v", "-N2", "-n3", "sh", "-c", "exit $((SLURM_PROCID / 2))")
	id, _, _ := strings.Cut(d.must("sacct", "-nXPojobid"), "\n")
	for _, want := range []string{
		"srun: defined options\n", "srun: ntasks              : 3\n", "srun: end of defined options\n",
		"srun: jobid " + id + ": nodes(2):`gpu-node-[001-002]', cpu counts: ",
		"srun: launching StepId=" + id + ".0 on host gpu-node-001, 2 tasks: [0-1]\n",
		"srun: launching StepId=" + id + ".0 on host gpu-node-002, 1 tasks: 2\n",
		"Node gpu-node-001, 2 tasks started\n",
		"Received task exit notification for 2 tasks of StepId=" + id + ".0 (status=0x0000).\n",
		"gpu-node-001: tasks 0-1: Completed\n",
		"Received task exit notification for 1 task of StepId=" + id + ".0 (status=0x0100).\n",
		"srun: error: gpu-node-002: task 2: Exited with exit code 1\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("srun -v does not say %q", want)
		}
	}
	if code != 1 || out != "" || strings.Contains(errs, "debug") {
		t.Errorf("exit %d, output %q, said:\n%s", code, out, errs)
	}
	held := strings.TrimSpace(d.must("sbatch", "-H", "-a", "1-3", "--parsable", "--wrap=true"))
	for _, c := range []struct{ args, want string }{
		{held + "_2", "scancel: Terminating job " + held + "_2\n"},
		{held, "scancel: Terminating job " + held + "\n"},
	} {
		if _, errs, _ := d.run("scancel", "-v", c.args); errs != c.want {
			t.Errorf("scancel -v %s says %q", c.args, errs)
		}
	}
	list, _, _ := d.run("squeue", "-v", "-u", "root", "-t", "all")
	for _, want := range []string{"\nusers       = root\n", "\nverbose     = 1\n", " records="} {
		if !strings.Contains(list, want) {
			t.Errorf("squeue -v has no %q:\n%s", want, list)
		}
	}
	list, _, _ = d.run("squeue", "-v", "--start", "-j", held, "-p", "main")
	for _, want := range []string{"\nall         = true\n", "\njobs        = " + held + "\n", "\nsort        = S\n",
		"\nstates      = PD\n", "\nsibling      = false\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("squeue -v --start has no %q:\n%s", want, list)
		}
	}
	list, _, _ = d.run("sinfo", "-v", "-N", "-l", "-t", "idle")
	for _, want := range []string{
		"\nfiltering   = true\nformat      = nodelist:0 ,nodes:.6 ,partition:.9 ,statelong:.11 ,cpus:4 ,",
		"\nnode_field  = true\n", "\npart_field  = true\n", "\nall_flag        = false\n", "\ncpus_flag       = true\n",
		"\ndefault_time_flag =false\n", "\nweight_flag     = true\n-----------------------------\n\n",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("sinfo -v has no %q:\n%s", want, list)
		}
	}
	if _, errs, _ := d.run("sinfo", "-vvv"); !strings.Contains(errs, "sinfo: debug2: GET /v1/nodes answered after ") {
		t.Errorf("sinfo -vvv: %s", errs)
	}
}
