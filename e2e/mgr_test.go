package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMgrStats: sacctmgr shows the calls that sdiag counts, and has both count again.
func TestMgrStats(t *testing.T) {
	d := startLedger(t)
	d.submitAs(daemonUID, "--wrap", "true")
	got := d.must("sacctmgr", "show", "stats")
	if want := regexp.MustCompile(`^\*{67}\nsacctmgr show stats output at .* \([0-9]+\)\nData since                    .* \([0-9]+\)\nAll statistics are in microseconds\n\*{67}\n\n` +
		`Remote Procedure Call statistics by message type\n(?s:.*)\t/v1/jobs/submit {25} count:1      ave_time:[0-9]+ +total_time:[0-9]+\n(?s:.*)` +
		`\nRemote Procedure Call statistics by user\n(?s:.*)\tdaemon              \(         1\) count:1 `); !want.MatchString(got) {
		t.Errorf("sacctmgr show stats:\n%s", got)
	}
	if _, errs, code := d.as(daemonUID, "sacctmgr", "clear", "stats"); code != 1 || !strings.Contains(errs, "only operators may reset the counts") {
		t.Errorf("a user clears: exit code %d, %q", code, errs)
	}
	if _, errs, code := d.run("sacctmgr", "clear", "everything"); code != 1 || errs != "No valid entity in list command\nInput line must include \"Stats\"\n" {
		t.Errorf("clear everything: exit code %d, %q", code, errs)
	}
	d.must("sacctmgr", "clear", "stats")
	if got := d.must("sdiag"); strings.Contains(got, "/v1/jobs/submit ") {
		t.Errorf("sdiag after sacctmgr clear stats:\n%s", got)
	}
}

// TestWCKeys: users get workload characterization keys, jobs have their default one or one that they name, and with
// AccountingStorageEnforce=wckeys no other; reports sum by them, and a dump keeps them.
func TestWCKeys(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as several users")
	}
	lines := []string{
		"ClusterName=ledger", "TrackWCKey=yes", "PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00",
	}
	file := confFile(t, lines...)
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--conf", file)
	for _, line := range []string{
		"add account science", "add account art", "add user daemon account=science",
		"add user bin account=art",
	} {
		d.must("sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...)
	}
	said := func(want string, args ...string) {
		t.Helper()
		if out, errs, _ := d.run("sacctmgr", args...); strings.TrimRight(out+errs, "\n ") != want {
			t.Errorf("sacctmgr %q:\n%s%s\nwant\n%s", args, out, errs, want)
		}
	}
	said(" WCKeys =\n  U = daemon    W = proj1      C = ledger    \n  U = daemon    W = proj2      C = ledger",
		"-i", "add", "user", "daemon", "wckey=Proj1,proj2")
	said(" Nothing new added.", "-i", "add", "user", "daemon", "account=science", "wckey=proj2")
	said(" WCKeys =\n  U = bin       W = other      C = ledger    \n Non Default Settings", "-i", "add",
		"user", "bin", "account=art", "defaultwckey=other")
	said(" Adding User(s)\n  lp\n WCKeys =\n  U = lp        W = gone       C = ledger", "-i", "add", "user",
		"lp", "wckey=gone")
	said("WCKey|Cluster|User\ngone|ledger|lp\nother|ledger|bin\nproj1|ledger|daemon\nproj2|ledger|daemon",
		"-P", "list", "wckey")
	said("1|proj1|daemon", "-nP", "show", "wckeys", "where", "user=daemon", "wckey=PROJ1", "format=id,wckey,user")
	said("User|Def Acct|Def WCKey|Admin\nbin|art|other|None\ndaemon|science|proj1|None\nlp||gone|None\nroot|root||Administrator",
		"-P", "show", "user")
	said(" Modified users...\n  daemon", "-i", "modify", "user", "daemon", "set", "defaultwckey=proj2")
	said(" Can't modify because these users aren't associated with new default wckey 'other'...\n  U = daemon C = ledger",
		"-i", "modify", "user", "daemon", "set", "defaultwckey=other")
	said(" Unknown option: wckey=x\n Use keyword 'where' to modify condition", "-i", "modify", "user",
		"daemon", "set", "wckey=x")
	said(" Mixing Account and WCKeys is not allowed", "-i", "delete", "user", "lp", "account=art", "wckey=gone")
	said(" Deleting user WCKeys...\n  C = ledger     W = gone                 U = lp", "-i", "delete",
		"user", "lp", "wckey=gone")
	said("lp|", "-nP", "show", "user", "lp", "format=user,defaultwckey")
	said(" Nothing deleted", "-i", "delete", "user", "lp", "wckey=gone")

	loose := d.submitAs(daemonUID, "-H", "--wckey=Nobodys", "--wrap", "true")
	none := d.submitAs(3, "-H", "--wrap", "true")
	if got := d.must("squeue", "-h", "-S", "i", "-o", "%A %w"); got != loose+" nobodys\n"+none+" *" {
		t.Errorf("keys that are not enforced:\n%s", got)
	}
	d.must("scancel", loose, none)

	rewrite(t, file, append(lines, "AccountingStorageEnforce=wckeys")...)
	d.must("scontrol", "reconfigure")
	if _, errs, code := d.as(daemonUID, "sbatch", "--wckey=other", "--wrap", "true"); code != 1 || slurmWords(errs) != "sbatch: error: Batch job submission failed: Invalid wckey specification\n" {
		t.Errorf("another user's key: exit code %d, %q", code, errs)
	}
	if _, errs, code := d.as(daemonUID, "srun", "--wckey=other", "true"); code != 1 || !strings.Contains(errs, "srun: error: Unable to allocate resources: Invalid wckey specification") {
		t.Errorf("another user's key for srun: exit code %d, %q", code, errs)
	}
	named, byDefault := d.submitAs(daemonUID, "-H", "--wckey=proj1", "--wrap", "true"), d.submitAs(daemonUID, "-H", "--wrap", "true")
	if _, errs, code := d.run("scontrol", "update", "jobid="+named, "wckey=other"); code != 1 || !strings.Contains(errs, "Invalid wckey specification for job "+named) {
		t.Errorf("scontrol gives job %s a key that its user does not have: exit code %d, %q", named, code, errs)
	}
	if got := d.must("squeue", "-h", "-S", "i", "-o", "%A %w"); got != named+" proj1\n"+byDefault+" *proj2" {
		t.Errorf("keys of jobs:\n%s", got)
	}
	d.must("scontrol", "update", "jobid="+named, "wckey=")
	d.must("scontrol", "update", "jobid="+named, "wckey=proj1")
	run := []string{
		d.submitAs(daemonUID, "-n2", "--wckey=proj1", "--wrap", "sleep 1.2"),
		d.submitAs(daemonUID, "--wrap", "sleep 1.2"), d.submitAs(binUID, "--wrap", "sleep 1.2"),
	}
	d.wait("the end of the three",
		func() bool { return d.must("squeue", "-h", "-t", "PD,R,CG", "-j", strings.Join(run, ",")) == "" })
	if got := d.must("sacct", "-nPXa", "-W", "proj1", "-o", "jobid,wckey"); got != named+"|proj1\n"+run[0]+"|proj1" {
		t.Errorf("sacct -W proj1:\n%s", got)
	}
	// proj1 is used on two CPUs, a default key counts as the key that it is
	seconds := map[string]string{}
	for _, id := range run {
		seconds[id] = d.must("sacct", "-nPX", "-j", id, "-o", "cputimeraw")
	}
	if got, want := d.must("sreport", "-nP", "-t", "seconds", "cluster", "WCKeyUtilizationByUser", "start=now-1hours", "end=now+1hours", "format=wckey,login,used"),
		"other||"+seconds[run[2]]+"\nother|bin|"+seconds[run[2]]+"\nproj1||"+seconds[run[0]]+"\nproj1|daemon|"+seconds[run[0]]+"\nproj2||"+seconds[run[1]]+"\nproj2|daemon|"+seconds[run[1]]; got != want {
		t.Errorf("sreport by keys:\n%s\nwant\n%s", got, want)
	}

	dump := filepath.Join(t.TempDir(), "books.cfg")
	d.must("sacctmgr", "dump", "ledger", "file="+dump)
	text, err := os.ReadFile(dump)
	if want := "User - 'daemon':DefaultAccount='science':DefaultWCKey='proj2':WCKeys='proj1,proj2':Fairshare=1"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the dump lacks %s: %v\n%s", want, err, text)
	}
	d.must("scancel", named, byDefault)
	d.must("sacctmgr", "-i", "delete", "user", "daemon", "wckey=proj1,proj2")
	d.must("sacctmgr", "-i", "load", "file="+dump)
	said("proj1|daemon\nproj2|daemon", "-nP", "show", "wckey", "user=daemon", "format=wckey,user")
	said("daemon|proj2", "-nP", "show", "user", "daemon", "format=user,defaultwckey")
}

// TestMgrLevels: operators do with jobs, reservations and the books what root does, but for the levels of users;
// administrators do that, and change nodes, partitions and the configuration too; both lose it with their level. So
// it is in Slurm.
func TestMgrLevels(t *testing.T) {
	d := startLedger(t)
	d.must("sacctmgr", "-i", "add", "user", "nobody", "account=art")
	const operator, administrator, plain = daemonUID, binUID, 65534
	mine := d.submitAs(plain, "-H", "--begin=now+1hour", "--wrap", "true")
	try := func(uid uint32, may bool, name string, args ...string) {
		t.Helper()
		if out, errs, code := d.as(uid, name, args...); code == 0 != may {
			t.Errorf("%s %q of user %d: exit code %d, %s%s", name, args, uid, code, out, errs)
		}
	}
	for _, level := range []string{"none", "given"} {
		may := level == "given"
		if may {
			d.must("sacctmgr", "-i", "modify", "user", "daemon", "set", "adminlevel=operator")
			d.must("sacctmgr", "-i", "modify", "user", "bin", "set", "adminlevel=admin")
		}
		for _, uid := range []uint32{operator, administrator} {
			try(uid, may, "sacctmgr", "-i", "add", "account", fmt.Sprint("of", uid))
			try(uid, may, "scontrol", "release", mine)
			try(uid, may, "scontrol", "update", "jobid="+mine, "priority=5000")
			try(uid, may, "scontrol", "hold", mine)
			try(uid, may, "sacctmgr", "-i", "modify", "job", "jobid="+mine, "set", "admincomment=seen")
			try(uid, may, "scontrol", "create", "reservation", "reservationname=r", "starttime=now+1hour",
				"duration=5", "nodes=node-001", "users=root")
			try(uid, may, "scontrol", "delete", "reservationname=r")
			for _, args := range [][]string{{"update", "nodename=node-002", "state=drain", "reason=x"},
				{"update", "nodename=node-002", "state=resume"},
				{"update", "partitionname=main", "state=down"},
				{"update", "partitionname=main", "state=up"}, {"reconfigure"}} {
				try(uid, may && uid == administrator, "scontrol", args...)
			}
			try(uid, may && uid == administrator, "sacctmgr", "-i", "modify", "user", "nobody", "set",
				"adminlevel=operator")
			try(uid, false, "sacctmgr", "-i", "archive", "dump", "txn", "purgetxnafter=1hours", "script=/bin/true")
		}
	}
	try(operator, true, "scancel", mine)
	d.must("sacctmgr", "-i", "modify", "user", "daemon,bin,nobody", "set", "adminlevel=none")
	try(operator, false, "sacctmgr", "-i", "add", "account", "more")
	try(administrator, false, "scontrol", "update", "nodename=node-002", "state=drain", "reason=x")
	try(plain, false, "sacctmgr", "-i", "add", "account", "more")
}
