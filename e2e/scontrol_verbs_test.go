package e2e

import (
	"strings"
	"testing"
)

// TestScontrolVerbs tells jobs something, lists their processes and has the server log more.
func TestScontrolVerbs(t *testing.T) {
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-exec")
	id := d.must("sbatch", "--parsable", "-o", "told.out", "-t", "5", "--wrap", "srun sleep 600")
	d.wait("its step", func() bool { return strings.Contains(d.must("squeue", "-h", "-s", "-o", "%i"), id+".0") })
	if _, errs, code := d.run("scontrol", "wait_job", id); code != 0 || errs != "scontrol: Nodes are ready for job "+id+"\n" {
		t.Errorf("wait_job: %d %s", code, errs)
	}
	d.must("scontrol", "notify", id, "look", "out")
	d.wait("the line in its output", func() bool { return d.soFar("told.out") == "slurmstepd-node-001: error: look out\n" })
	pids := d.must("scontrol", "listpids", id+".0")
	fields := strings.Fields(pids[strings.IndexByte(pids, '\n')+1:])
	if len(fields) != 5 || fields[1] != id || strings.Join(fields[2:], " ") != "0 0 0" {
		t.Fatalf("listpids: %s", pids)
	}
	if out := d.must("scontrol", "pidinfo", fields[0]); !strings.HasPrefix(out, "Slurm job id "+id+" ends at ") {
		t.Errorf("pidinfo: %s", out)
	}
	if out, _, code := d.as(65534, "scontrol", "listpids", id); code != 1 || strings.Contains(out, fields[0]) {
		t.Errorf("another user's listpids: %d %s", code, out)
	}
	if _, errs, code := d.as(65534, "scontrol", "notify", id, "x"); code != 1 || slurmWords(errs) != "job notify failure: Invalid user id\n" {
		t.Errorf("another user's notify: %d %s", code, errs)
	}
	d.must("scontrol", "setdebug", "debug")
	if _, errs, code := d.as(65534, "scontrol", "setdebug", "debug"); code != 1 || slurmWords(errs) != "slurm_set_debug_level error: Permission denied\n" {
		t.Errorf("another user's setdebug: %d %s", code, errs)
	}
	if out := d.must("scontrol", "show", "assoc_mgr", "flags=qos", "qos=normal"); !strings.Contains(out, "    GrpJobs=N(1) GrpJobsAccrue=N(0) GrpSubmitJobs=N(1) ") {
		t.Errorf("assoc_mgr: %s", out)
	}
	d.must("scancel", id)
}
