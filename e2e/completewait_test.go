package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestCompleteWait: nothing starts while the epilog of a job runs, muster why says so, and CompleteWait bounds it.
func TestCompleteWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	epilog := put("epilog", "#!/bin/sh\nwhile [ -e "+dir+"/hold ]; do sleep .05; done\n")
	settings := func(wait string) string {
		return put("slurm.conf",
			"ClusterName=c\nEpilog="+epilog+"\nCompleteWait="+wait+"\nPartitionName=main Nodes=ALL Default=YES\n")
	}
	d := startDev(t, "--hollow", "2x4c8g1gpu:h100", "--hollow-exec", "--conf", settings("600"))
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	is := func(id, state string) func() bool {
		return func() bool { return d.must("squeue", "-h", "-t", "all", "-j", id, "-o", "%t") == state }
	}
	ends := func() string {
		put("hold", "")
		id := d.must("sbatch", "--parsable", "-w", "gpu-node-001", "-o", "/dev/null", "--wrap", "true")
		d.wait("the job's end", is(id, "CG"))
		return id
	}

	one := ends()
	waits := d.must("sbatch", "--parsable", "-w", "gpu-node-002", "-o", "/dev/null", "--wrap", "true")
	why := d.must("muster", "why", waits)
	if !strings.Contains(why, "nothing starts in partition main while a job ends (CompleteWait=600 in slurm.conf): job "+one+" of root does, and is waited for until ") {
		t.Errorf("why: %s", why)
	}
	expect(t, "what waits", d.must("squeue", "-h", "-j", waits, "-o", "%t %r"), "PD None")
	os.Remove(dir + "/hold")
	d.wait("both to be over", func() bool { return d.must("squeue", "-h") == "" })

	one = ends()
	waits = d.must("sbatch", "--parsable", "-w", "gpu-node-002", "-o", "/dev/null", "--wrap",
		"while [ -e "+dir+"/hold ]; do sleep .05; done")
	settings("1")
	d.must("scontrol", "reconfigure")
	d.wait("the second job, a second after the end of the first", is(waits, "R"))
	expect(t, "the first job", d.must("squeue", "-h", "-j", one, "-o", "%t"), "CG")
	os.Remove(dir + "/hold")
	d.wait("both to be over", func() bool { return d.must("squeue", "-h") == "" })
}
