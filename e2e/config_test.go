package e2e

import (
	"strings"
	"testing"
)

// TestConfigCheck: a configuration is read before it is put in force, and compared with what is.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	const text = "ClusterName=c\nPartitionName=main Nodes=ALL Default=YES\n"
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", writeFile(t, "old.conf", text+"KillWait=20\n"))
	file := writeFile(t, "slurm.conf", text+"KillWait=30\nSchedulerTyp=sched/backfill\nAuthType=auth/munge\nJobSubmitPlugins=lua\nFlorbl=1\nRequeueExit=300\nPartitionName=new Nodes=ALL\n")
	out := d.must("muster", "config", "check", "--all", file)
	expect(t, "what is said", strings.ReplaceAll(out, file, "F"), `F:4: schedulertyp is no key of slurm.conf: do you mean SchedulerType?
F:6: jobsubmitplugins plugins of Slurm can not be loaded
F:7: florbl is no key of slurm.conf
F:8: requeueexit=300: want exit codes from 0 to 255, as 100,120-130; ignored
F:5: authtype needs no setting: members know each other by certificates, there is no munge
F: cluster c, 0 nodes declared, partitions main new; 4 notes`)
	if _, _, code := d.run("muster", "config", "check", "--strict", file); code != 3 {
		t.Errorf("--strict ends with %d, want 3", code)
	}
	if _, errs, code := d.run("muster", "config", "check", file+".not"); code != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("a file that is not there: %d %s", code, errs)
	}
	diff := d.must("muster", "config", "diff", file)
	for _, want := range []string{"- killwait=20", "+ killwait=30", "+ PartitionName=new", "+ authtype=auth/munge"} {
		if !strings.Contains(diff, want) {
			t.Errorf("the difference lacks %q:\n%s", want, diff)
		}
	}
	expect(t, "the same file", d.must("muster", "config", "diff", writeFile(t, "same.conf", text+"KillWait=20\n")), "nothing would change")
}
