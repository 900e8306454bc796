package e2e

import (
	"strings"
	"testing"
)

// TestWrappers submits, lists and ends jobs in the words of PBS and LSF.
func TestWrappers(t *testing.T) {
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-exec")
	d.write("job.pbs", "#!/bin/bash\n#PBS -N sum -l nodes=2:ppn=2,walltime=00:05:00\n#PBS -j oe\n"+
		"echo $PBS_JOBID $PBS_JOBNAME $PBS_QUEUE $PBS_O_WORKDIR\nsort $PBS_NODEFILE | uniq -c\n")
	id := strings.TrimSpace(d.must("muster", "qsub", "-q", "main", "job.pbs"))
	d.wait("its end", func() bool { return strings.Contains(d.must("muster", "qstat", id), " C main") })
	want := id + " sum main " + d.dir + "\n      2 node-001\n      2 node-002\n"
	if got := d.read("sum.o" + id); got != want {
		t.Errorf("the job wrote %q, want %q", got, want)
	}
	held, _, code := d.input("sleep 600\n", "muster", "qsub", "-h", "-l", "walltime=90", "-N", "held")
	if held = strings.TrimSpace(held); code != 0 || !strings.Contains(d.must("muster", "qstat"), held+"                   held             root            00:00:00 H main") {
		t.Errorf("held: %d %s", code, d.must("muster", "qstat"))
	}
	d.must("muster", "qalter", "-l", "walltime=600", held)
	if out := d.must("squeue", "-h", "-j", held, "-o", "%l %T"); out != "10:00 PENDING" {
		t.Errorf("altered: %s", out)
	}
	d.must("muster", "qrls", held)
	d.wait("its start", func() bool { return strings.Contains(d.must("muster", "qstat", "-f", held), "job_state = R") })
	d.must("muster", "qdel", held)
	if _, errs, code := d.run("muster", "qstat", "999"); code != 153 || slurmWords(errs) != "qstat: Unknown Job Id 999\n" {
		t.Errorf("an unknown job: %d %s", code, errs)
	}
	if out := d.must("muster", "pbsnodes", "-a"); strings.Count(out, "state = free") == 0 {
		t.Errorf("nodes: %s", out)
	}
	out, errs, code := d.input("#BSUB -J lsf -n 2 -R span[ptile=1]\n#BSUB -o lsf.%J\necho $LSB_JOBID $LSB_MCPU_HOSTS\n",
		"muster", "bsub", "-q", "main")
	number, _, ok := strings.Cut(strings.TrimPrefix(out, "Job <"), "> is submitted to queue <main>.\n")
	if code != 0 || !ok {
		t.Fatalf("bsub: %d %s %s", code, out, errs)
	}
	d.wait("its output", func() bool { return d.soFar("lsf."+number) == number+" node-001 1 node-002 1\n" })
	out = d.must("muster", "bsub", "sleep", "600")
	number, _, _ = strings.Cut(strings.TrimPrefix(out, "Job <"), ">")
	d.wait("its start",
		func() bool { return strings.Contains(d.must("muster", "bjobs"), number+"       root    RUN   main") })
	if out := d.must("muster", "bkill", number); out != "Job <"+number+"> is being terminated" {
		t.Errorf("bkill: %s", out)
	}
	if _, errs, code := d.run("muster", "bsub", "-c", "5", "true"); code != 1 || !strings.Contains(errs, "limited by -W") {
		t.Errorf("what cannot be done: %d %s", code, errs)
	}
	if out := d.must("muster", "lsid"); !strings.Contains(out, "My cluster name is ") {
		t.Errorf("lsid: %s", out)
	}
}
