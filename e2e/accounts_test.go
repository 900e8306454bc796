package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Two users that every system has.
const (
	daemonUID, binUID = 1, 2
)

// startBooks starts a cluster of two nodes where accounts count, with the accounts science (user daemon) and
// art (user bin).
func startBooks(t *testing.T) *dev {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as several users")
	}
	file := confFile(t, "ClusterName=books", "PriorityType=priority/multifactor", "PriorityWeightFairshare=10000", "PriorityWeightQOS=1000",
		"PriorityCalcPeriod=0:01", "AccountingStorageEnforce=associations,limits,qos", "PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00")
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--conf", file)
	if _, errs, code := d.as(daemonUID, "sbatch", "--wrap", "true"); code != 1 || !strings.Contains(errs, "Invalid account or account/partition combination specified") {
		t.Fatalf("without an association sbatch gives exit code %d and says %q", code, errs)
	}
	for _, line := range []string{"add account science fairshare=30", "add account art fairshare=10",
		"add qos fast priority=10 maxjobsperuser=1",
		"add user daemon account=science qos=normal,fast", "add user bin account=art maxsubmitjobs=3"} {
		d.must("sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...)
	}
	return d
}

// submitAs submits as a user and returns the id.
func (d *dev) submitAs(uid uint32, args ...string) string {
	d.t.Helper()
	out, errs, code := d.as(uid, "sbatch", append([]string{"--parsable", "-o", "/dev/null", "-D", "/"}, args...)...)
	if code != 0 {
		d.t.Fatalf("sbatch %q as user %d: exit code %d\n%s", args, uid, code, errs)
	}
	return strings.TrimSpace(out)
}

// TestAccountsShares: what users have used decides whose jobs come first, and sshare, sprio, squeue and
// scontrol tell the same of it.
func TestAccountsShares(t *testing.T) {
	t.Parallel()
	d := startBooks(t)
	if got, want := d.must("sacctmgr", "-nP", "show", "assoc", "format=account,user,share,qos"),
		"root||1|normal\nroot|root|1|normal\nart||10|normal\nart|bin|1|normal\nscience||30|normal\nscience|daemon|1|fast,normal"; got != want {
		t.Errorf("associations:\n%s\nwant\n%s", got, want)
	}
	if got := d.must("sshare", "-nPa", "-o", "account,user,normshares,fairshare"); !strings.Contains(got, " art||0.243902|\n  art|bin|1.000000|1.000000") {
		t.Errorf("shares before anything was used:\n%s", got)
	}
	used := d.submitAs(daemonUID, "-n4", "-t5", "--wrap", "sleep 2")
	d.wait("the first job's end and its charge", func() bool {
		raw := d.must("sshare", "-nP", "-u", "daemon", "-U", "-o", "rawusage")
		n, _ := strconv.Atoi(raw)
		return n >= 7 && d.must("squeue", "-h", "-j", used) == ""
	})
	if got, want := d.must("sshare", "-nPaU", "-o", "user,effectvusage,fairshare"), "root|0.000000|1.000000\nbin|0.000000|1.000000\ndaemon|1.000000|0.333333"; got != want {
		t.Errorf("shares after a job of daemon's:\n%s\nwant\n%s", got, want)
	}
	d.must("sbatch", "-o", "/dev/null", "-N2", "--exclusive", "-t", "30", "--wrap", "sleep 600")
	d.wait("the whole cluster in use", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%D") == "2" })
	late := d.submitAs(daemonUID, "--wrap", "true")
	first := d.submitAs(binUID, "--wrap", "true")
	fast := d.submitAs(daemonUID, "-q", "fast", "--wrap", "true")
	d.wait("all three ranked", func() bool { return strings.Count(d.must("sprio", "-h"), "\n") == 2 })
	if got, want := d.must("squeue", "-h", "-t", "PD", "-S", "-p", "-o", "%A %Q"), first+" 10000\n"+fast+" 4333\n"+late+" 3333"; got != want {
		t.Errorf("the queue by priority:\n%s\nwant\n%s", got, want)
	}
	if got, want := d.must("sprio", "-h", "-S", "-Y", "-o", "%i %u %Y %F %Q"), fmt.Sprintf("%s bin 10000 10000 0\n%s daemon 4333 3333 1000\n%s daemon 3333 3333 0", first, fast, late); got != want {
		t.Errorf("sprio:\n%s\nwant\n%s", got, want)
	}
	d.must("scontrol", "update", "jobid="+late, "nice=33")
	if got := d.must("scontrol", "show", "job", late); !strings.Contains(got, "Priority=3300 Nice=33 Account=science QOS=normal") {
		t.Errorf("after nice=33: %s", got)
	}
	d.must("scontrol", "update", "jobid="+late, "priority=20000")
	if got := d.must("squeue", "-h", "-t", "PD", "-S", "-p", "-o", "%A"); !strings.HasPrefix(got, late) {
		t.Errorf("a priority set by hand does not count: %s", got)
	}
}

// TestAccountsTop: scontrol top moves a job before its user's others, and nobody else's.
func TestAccountsTop(t *testing.T) {
	d := startBooks(t)
	d.must("sbatch", "-o", "/dev/null", "-N2", "--exclusive", "-t", "30", "--wrap", "sleep 600")
	d.wait("the whole cluster in use", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%D") == "2" })
	one, other, two := d.submitAs(binUID, "--wrap", "true"), d.submitAs(daemonUID, "--wrap", "true"), d.submitAs(binUID, "--wrap", "true")
	if _, errs, code := d.as(binUID, "scontrol", "top", two); code != 1 || !strings.Contains(errs, "Access/permission denied for job "+two) {
		t.Errorf("top without enable_user_top: exit code %d, %q", code, errs)
	}
	before := d.must("squeue", "-h", "-j", other, "-o", "%Q")
	d.must("scontrol", "top", two)
	if got := d.must("squeue", "-h", "-u", "bin", "-S", "-p", "-o", "%A"); got != two+"\n"+one {
		t.Errorf("bin's jobs by priority after scontrol top: %q, want %s before %s", got, two, one)
	}
	if got := d.must("squeue", "-h", "-j", other, "-o", "%Q"); got != before {
		t.Errorf("the priority of another user's job went from %s to %s", before, got)
	}
}

// TestAccountsLimits: limits refuse or hold back jobs with Slurm's words, and let them go when there is room.
func TestAccountsLimits(t *testing.T) {
	d := startBooks(t)
	_, errs, code := d.as(binUID, "sbatch", "-o", "/dev/null", "-a", "1-4", "--wrap", "true")
	if want := "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"; code != 1 || slurmWords(errs) != want {
		t.Errorf("four tasks with maxsubmitjobs=3: exit code %d\n%swant\n%s", code, errs, want)
	}
	if _, errs, code := d.as(binUID, "sbatch", "-q", "fast", "--wrap", "true"); code != 1 || !strings.Contains(errs, "Invalid qos specification") {
		t.Errorf("a QOS that is not bin's: exit code %d, %q", code, errs)
	}
	one := d.submitAs(daemonUID, "-q", "fast", "-t5", "--wrap", "sleep 600")
	two := d.submitAs(daemonUID, "-q", "fast", "-t5", "--wrap", "true")
	d.wait("the reason", func() bool {
		return d.must("squeue", "-h", "-j", two, "-o", "%T %r") == "PENDING QOSMaxJobsPerUserLimit"
	})
	if got := d.must("scontrol", "show", "job", two); !strings.Contains(got, "JobState=PENDING Reason=QOSMaxJobsPerUserLimit ") {
		t.Errorf("scontrol tells no reason: %s", got)
	}
	d.must("scancel", one)
	d.wait("the second job's end",
		func() bool { return d.must("squeue", "-h", "-t", "all", "-j", two, "-o", "%T") == "COMPLETED" })
	d.must("sacctmgr", "-i", "modify", "account", "science", "set", "grptres=cpu=2")
	big := d.submitAs(daemonUID, "-n3", "-t5", "--wrap", "true")
	d.wait("the account's limit",
		func() bool { return d.must("squeue", "-h", "-j", big, "-o", "%r") == "AssocGrpCpuLimit" })
	d.must("sacctmgr", "-i", "modify", "account", "science", "set", "grptres=cpu=-1")
	d.wait("its end without it",
		func() bool { return d.must("squeue", "-h", "-t", "all", "-j", big, "-o", "%T") == "COMPLETED" })
	// As in 26.05, the default account stays while its user has another one.
	d.must("sacctmgr", "-i", "add", "user", "daemon", "account=art")
	if _, errs, code := d.run("sacctmgr", "-i", "delete", "account", "science"); code != 1 || !strings.HasPrefix(errs, " Error with request: You can not remove the default account of a user\n  C = ") {
		t.Errorf("deleting the default account of users: exit code %d, %q", code, errs)
	}
	d.must("sacctmgr", "-i", "add", "qos", "brief")
	d.must("sacctmgr", "-i", "add", "qos", "over", "preempt=brief")
	d.must("sacctmgr", "-i", "modify", "user", "daemon", "set", "qos+=brief")
	d.must("sacctmgr", "-i", "delete", "qos", "brief")
	lists := d.must("sacctmgr", "-nP", "show", "assoc", "format=qos") + d.must("sacctmgr", "-nP", "show",
		"qos", "format=preempt")
	if strings.Contains(lists, "brief") {
		t.Errorf("a deleted QOS is still in lists:\n%s", lists)
	}
	if _, errs, code := d.run("sacct", "-q", "brief"); code != 1 || !strings.Contains(errs, "You gave a bad qos 'brief'. Valid QOS's are normal,") {
		t.Errorf("history of a QOS that is not there: exit code %d, %q", code, errs)
	}
	if out, _, code := d.run("sacctmgr", "-i", "delete", "user", "nobody"); code != 1 || out != " Nothing deleted\n" {
		t.Errorf("deleting a user that is not there: exit code %d, %q", code, out)
	}
}
