package e2e

import (
	"strings"
	"testing"
)

// TestOversubscribe runs jobs on each other's CPUs in partitions that allow it.
func TestOversubscribe(t *testing.T) {
	t.Parallel()
	file := confFile(t, `
ClusterName=over
PartitionName=own Nodes=ALL Default=YES
PartitionName=force Nodes=ALL OverSubscribe=FORCE:2
PartitionName=may Nodes=ALL OverSubscribe=YES
`)
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", file)
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-p", "own", "-t", "idle", "-o", "%D") == "1" })
	if out := d.must("sinfo", "-h", "-o", "%P %h"); out != "own* NO\nforce FORCE:2\nmay YES:4" {
		t.Errorf("sinfo: %q", out)
	}
	batch := func(args ...string) string {
		t.Helper()
		return d.must("sbatch", append([]string{
			"--parsable", "--mem=10", "-o", "/dev/null", "--wrap", "exec sleep 600",
		}, args...)...)
	}
	see := func(want string) {
		t.Helper()
		d.wait("jobs to be "+want,
			func() bool { return d.must("squeue", "-h", "-S", "i", "-o", "%j %t %h %C") == want })
	}
	a, _, c := batch("-J", "a", "-n4", "-p", "force"), batch("-J", "b", "-n4", "-p", "force"), batch("-J", "c", "-n3", "-p", "force")
	see("a R YES 4\nb R YES 4\nc PD YES 3")
	if out := d.must("sinfo", "-h", "-p", "own", "-o", "%C %t"); out != "4/0/0/4 alloc" {
		t.Errorf("sinfo: %q", out)
	}
	if out := d.must("scontrol", "show", "node"); !strings.Contains(out, "CPUAlloc=4 CPUEfctv=4 CPUTot=4 ") || !strings.Contains(out, " AllocMem=20 ") {
		t.Errorf("node: %s", out)
	}
	if out := d.must("scontrol", "show", "-d", "job", a); !strings.Contains(out, " CPU_IDs=0-3 ") || !strings.Contains(out, "   OverSubscribe=YES ") {
		t.Errorf("job: %s", out)
	}
	batch("-J", "d", "-n1", "-p", "may", "-s")
	see("a R YES 4\nb R YES 4\nc PD YES 3\nd R YES 1")
	d.must("scancel", a)
	see("b R YES 4\nc R YES 3\nd R YES 1")
	d.must("scancel", "-n", "d")
	d.must("scancel", "-n", "b")
	see("c R YES 3")
	batch("-J", "e", "-n1", "-p", "may")
	batch("-J", "f", "-n1", "-p", "own")
	see("c R YES 3\ne R OK 1\nf PD OK 1")
	d.must("scancel", c)
	see("e R OK 1\nf R OK 1")
}

// TestGang has jobs on the same CPUs take turns: one runs while the other is stopped.
func TestGang(t *testing.T) {
	t.Parallel()
	file := confFile(t, `
ClusterName=gang
PreemptMode=GANG
SchedulerTimeSlice=5
PreemptParameters=suspend_grace_time=0
PartitionName=force Nodes=ALL OverSubscribe=FORCE:2 Default=YES
`)
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", file)
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	for _, name := range []string{"a", "b"} {
		d.must("sbatch", "-J", name, "-n4", "--mem=10", "-o", name+".out", "--wrap", "while :; do echo; sleep .1; done")
	}
	see := func(want string) {
		t.Helper()
		d.wait("jobs to be "+want, func() bool { return d.must("squeue", "-h", "-S", "i", "-o", "%j %t") == want })
	}
	see("a R\nb S")
	if out := d.must("sinfo", "-h", "-o", "%C %t"); out != "4/0/0/4 alloc" {
		t.Errorf("sinfo: %q", out)
	}
	see("a S\nb R")
	stopped := d.soFar("a.out")
	more := len(d.soFar("b.out")) + 10
	d.wait("the other to run", func() bool { return len(d.soFar("b.out")) > more })
	if still := d.soFar("a.out"); len(still) > len(stopped)+1 { // it may have been about to write
		t.Errorf("the job that is stopped has written %d lines more", len(still)-len(stopped))
	}
	see("a R\nb S")
	d.must("scancel", "-n", "a")
	see("b R")
}
