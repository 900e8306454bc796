package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
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
	d.wait("the line in its output",
		func() bool { return d.soFar("told.out") == "slurmstepd-node-001: error: look out\n" })
	d.wait("its processes", func() bool { _, _, code := d.run("scontrol", "listpids", id+".0"); return code == 0 })
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

// TestNotifySalloc: salloc shows what its job is told, whether or not a step runs; a job that nobody waits for cannot be
// told.
func TestNotifySalloc(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec")
	for _, command := range []string{"exec sleep 600", "srun sleep 600"} {
		said := d.work + "/said"
		cmd := exec.Command(filepath.Join(bin, "salloc"), "-K", "-n1", "-t", "5", "sh", "-c", command)
		errs, err := os.Create(said)
		if err != nil {
			t.Fatal(err)
		}
		defer errs.Close()
		cmd.Env, cmd.Dir, cmd.Stderr = d.env, d.work, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		id := ""
		d.wait("the allocation", func() bool {
			id = d.must("squeue", "-h", "-t", "running", "-o", "%i")
			return id != ""
		})
		d.wait("salloc to hear", func() bool {
			_, _, _ = d.run("scontrol", "notify", id, "look", "out")
			text, _ := os.ReadFile(said)
			return strings.Contains(string(text), "salloc: look out\n")
		})
		d.must("scancel", id)
		_ = cmd.Wait() // by a signal, or not
	}
	d.must("salloc", "-Q", "--no-shell", "-n1")
	id := d.must("squeue", "-h", "-t", "running", "-o", "%i") // those before may still be completing
	_, errs, code := d.run("scontrol", "notify", id, "x")
	if code != 1 || !strings.HasPrefix(errs, "job notify failure: Requested operation is presently disabled\n") {
		t.Errorf("a job without salloc: %d %s", code, errs)
	}
}

// TestTakeover: the lead goes to the server that is named by its number, or to another one, and jobs go on.
func TestTakeover(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	id := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600")
	g.wait("the job", func() bool { return g.must("s1", "squeue", "-h", "-j", id, "-o", "%t") == "R" })
	lead := g.leader("s1")
	others := g.others(lead)
	for _, x := range []struct{ number, says string }{{"3", "index (3)\nwhy: servers that do not lead: 2;"},
		{"0", "index (0)\nwhy: servers that do not lead: 2;"}, {"x", "index (0)\nwhy: servers that do not lead: 2;"}} {
		if _, errs, code := g.run(lead, "scontrol", "takeover", x.number); code != 1 || !strings.Contains(errs, x.says) {
			t.Errorf("takeover %s: %d %s", x.number, code, errs)
		}
	}
	if _, errs, code := g.at[lead].as(65534, "scontrol", "takeover"); code != 1 ||
		slurmWords(errs) != "slurm_takeover error: Permission denied\n" {
		t.Errorf("another user's takeover: %d %s", code, errs)
	}
	g.must(others[0], "scontrol", "takeover", "2")
	g.wait("another leader", func() bool { return g.leader(others[0]) != lead })
	second := g.leader(others[0])
	g.must(lead, "scontrol", "takeover")
	g.wait("a third lead", func() bool { at := g.leader(lead); return at != "" && at != second })
	if got := g.must("s1", "squeue", "-h", "-j", id, "-o", "%t"); got != "R" {
		t.Errorf("the job is %s", got)
	}
	if out := g.must("s1", "srun", "-n1", "echo", "goes on"); out != "goes on" {
		t.Errorf("srun: %s", out)
	}
}
