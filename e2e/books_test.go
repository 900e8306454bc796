package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// startLedger starts a cluster whose usage does not fade, with users daemon in science and bin in art.
func startLedger(t *testing.T, more ...string) *dev {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run jobs as several users")
	}
	file := confFile(t, append(more, "ClusterName=ledger", "PriorityType=priority/multifactor", "PriorityDecayHalfLife=0", "PriorityUsageResetPeriod=NONE", "PriorityCalcPeriod=0:01",
		"AccountingStorageEnforce=associations,limits,qos", "PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00")...)
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--conf", file)
	for _, line := range []string{
		"add account science", "add account art", "add user daemon account=science",
		"add user bin account=art",
	} {
		d.must("sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...)
	}
	return d
}

// TestLedger: after a random history sshare, sreport and sacct, each with its own sums, agree to the second.
func TestLedger(t *testing.T) {
	t.Parallel()
	d := startLedger(t)
	r := rand.New(rand.NewPCG(5, 6))
	var ids []string
	for range 12 {
		uid := uint32(1 + r.IntN(2))
		ids = append(ids,
			d.submitAs(uid, "-n", strconv.Itoa(1+r.IntN(4)), "-t5", "--wrap", fmt.Sprintf("sleep %.1f", 3*r.Float64())))
	}
	d.wait("a first job", func() bool { return d.must("squeue", "-h", "-j", ids[0], "-o", "%T") != "PENDING" })
	long := d.submitAs(daemonUID, "-n", "2", "-t5", "--wrap", "until [ -e "+d.dir+"/go ]; do sleep 0.1; done")
	again := d.submitAs(binUID, "-n", "3", "-t5", "--wrap",
		"[ -n \"$SLURM_RESTART_COUNT\" ] || exec sleep 200; sleep 2")
	d.wait("the long ones", func() bool {
		return d.must("squeue", "-h", "-j", long+","+again, "-o", "%T") == "RUNNING\nRUNNING"
	})
	d.wait("a second of the one", func() bool {
		return d.must("sacct", "-nPX", "-j", again, "-o", "elapsedraw") >= "1"
	})
	d.must("scontrol", "suspend", long)
	d.must("scontrol", "requeue", again)
	d.wait("the second start", func() bool {
		return strings.Contains(d.must("scontrol", "show", "job", again), "Restarts=1") && d.must("squeue", "-h", "-t", "all", "-j", again, "-o", "%T") != "PENDING"
	})
	d.wait("the long one to go on, once its CPUs are free", func() bool {
		_, _, code := d.run("scontrol", "resume", long)
		return code == 0
	})
	if err := os.WriteFile(d.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.wait("the end of all", func() bool { return d.must("squeue", "-h") == "" })
	users := func(lines string) map[string]string {
		sum := map[string]string{}
		for line := range strings.SplitSeq(lines, "\n") {
			if f := strings.Split(line, "|"); len(f) == 2 && (f[0] == "daemon" || f[0] == "bin") {
				sum[f[0]] = f[1]
			}
		}
		return sum
	}
	sacct := map[string]int{}
	for line := range strings.SplitSeq(d.must("sacct", "-nPXaD", "-o", "user,cputimeraw"), "\n") {
		user, text, _ := strings.Cut(line, "|")
		n, _ := strconv.Atoi(text)
		sacct[user] += n
	}
	span := []string{"start=now-1hour", "end=now+1hour"}
	report := users(d.must("sreport", append([]string{
		"-nP", "-t", "Seconds", "cluster", "UserUtilizationByAccount", "format=login,used",
	}, span...)...))
	billed := users(d.must("sreport", append([]string{
		"-nP", "-t", "Seconds", "-T", "billing", "user", "top", "format=login,used",
	}, span...)...))
	var share map[string]string
	d.wait("the last charge", func() bool {
		share = users(d.must("sshare", "-nPaU", "-o", "user,rawusage"))
		return share["daemon"] == report["daemon"] && share["bin"] == report["bin"]
	})
	for _, u := range []string{"daemon", "bin"} {
		if want := strconv.Itoa(sacct[u]); want == "0" || report[u] != want || billed[u] != want || share[u] != want {
			t.Errorf("user %s: sacct has %s CPU-seconds, sreport %s, billed %s, sshare %s", u, want,
				report[u], billed[u], share[u])
		}
	}
	if got := d.must("sreport", append([]string{"-nP", "-t", "Seconds", "cluster", "goodput"}, span...)...); !strings.Contains(got, "ledger|Lost|requeued|cpu|") {
		t.Errorf("goodput tells of no requeue:\n%s", got)
	}
	if got := d.must("sreport", append([]string{"-nP", "job", "SizesByAccount", "flatview", "printjobcount", "grouping=4"}, span...)...); !strings.HasPrefix(got, "ledger|art|") {
		t.Errorf("sizes:\n%s", got)
	}
	if got := d.must("sreport", "-t", "Hours", "--tres=gres/gpu", "cluster", "AccountUtilizationByUser", "start=now-1hour", "end=now+1hour"); !strings.Contains(got, "Usage reported in TRES Hours") || !strings.Contains(got, " gres/gpu        0 ") {
		t.Errorf("GPU hours where no TRES are configured:\n%s", got)
	}
	if got := d.must("seff", long); !strings.Contains(got, "Cluster: ledger\nUser/Group: daemon/") || !strings.Contains(got, "State: COMPLETED (exit code 0)") || !strings.Contains(got, "CPU Efficiency: ") {
		t.Errorf("seff:\n%s", got)
	}
	if got := d.must("sdiag"); !strings.Contains(got, "Jobs submitted: 14\n") || !strings.Contains(got, "/v1/jobs/submit ") || !strings.Contains(got, "\tdaemon          (       1) count:") {
		t.Errorf("sdiag:\n%s", got)
	}
}

// TestCoordinator: a coordinator changes the account's users and cancels its jobs, and nobody else's.
func TestCoordinator(t *testing.T) {
	d := startLedger(t)
	if got, want := d.must("sacctmgr", "-i", "add", "coordinator", "account=science", "names=daemon"), " Adding Coordinator User(s)\n  daemon\n To Account(s) and all sub-accounts\n  science"; !strings.HasSuffix(got, strings.TrimSpace(want)) {
		t.Errorf("add coordinator says\n%s", got)
	}
	if got := d.must("sacctmgr", "-nP", "show", "account", "withcoord", "format=account,coord"); got != "art|\nroot|\nscience|daemon" {
		t.Errorf("coordinators:\n%s", got)
	}
	if _, errs, code := d.as(daemonUID, "sacctmgr", "-i", "add", "user", "bin", "account=science", "maxjobs=2"); code != 0 {
		t.Errorf("a coordinator may not add a user: %s", errs)
	}
	if _, errs, code := d.as(daemonUID, "sacctmgr", "-i", "modify", "user", "bin", "where", "account=art", "set", "maxjobs=2"); code != 1 || !strings.Contains(errs, "coordinates no account") && !strings.Contains(errs, "Access/permission denied") {
		t.Errorf("a coordinator changes another account: %d %q", code, errs)
	}
	theirs, other := d.submitAs(binUID, "-A", "science", "-t5", "--wrap", "sleep 600"), d.submitAs(binUID, "-A", "art", "-t5", "--wrap", "sleep 600")
	if _, errs, code := d.as(daemonUID, "scancel", theirs); code != 0 {
		t.Errorf("a coordinator may not cancel a job of the account: %s", errs)
	}
	if _, _, code := d.as(daemonUID, "scancel", other); code == 0 {
		t.Error("a coordinator cancels a job of another account")
	}
	d.wait("the end", func() bool {
		return d.must("squeue", "-h", "-t", "all", "-j", theirs, "-o", "%T") == "CANCELLED" && d.must("squeue", "-h", "-j", other, "-o", "%T") == "RUNNING"
	})
}

// TestBooksFile: what dump writes load reads: into the same books nothing, into others all of it.
func TestBooksFile(t *testing.T) {
	d := startLedger(t)
	d.must("sacctmgr", "-i", "add", "account", "deep", "parent=science", "grptres=cpu=5", "maxwall=1:00:00")
	d.must("sacctmgr", "-i", "add", "user", "nobody", "account=deep", "fairshare=3")
	d.must("sacctmgr", "-i", "add", "coordinator", "account=deep", "names=daemon")
	file := filepath.Join(t.TempDir(), "books.cfg")
	d.must("sacctmgr", "dump", "ledger", "file="+file)
	if got := d.must("sacctmgr", "-i", "load", "file="+file); got != "For cluster ledger\n Nothing new added." {
		t.Errorf("load of what is there: %q", got)
	}
	show := func() string {
		return d.must("sacctmgr", "-nP", "show", "assoc",
			"format=account,user,parentname,share,grptres,maxwall") + d.must("sacctmgr", "-nP", "show",
			"account", "withcoord")
	}
	before := show()
	d.must("sacctmgr", "-i", "delete", "user", "daemon,nobody")
	d.must("sacctmgr", "-i", "delete", "account", "science")
	d.must("sacctmgr", "-i", "load", "file="+file)
	if after := show(); after != before {
		t.Errorf("after load:\n%s\nbefore:\n%s", after, before)
	}
}

// TestBooksClean: load with clean has the books be as the file is: what came since goes, what was changed or moved
// is as it was.
func TestBooksClean(t *testing.T) {
	d := startLedger(t)
	for _, line := range []string{"add account deep parent=science grptres=cpu=5 maxwall=1:00:00",
		"add user nobody account=deep fairshare=3", "add user nobody account=art",
		"add coordinator account=deep names=daemon", "modify user bin set adminlevel=operator"} {
		d.must("sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...)
	}
	file := filepath.Join(t.TempDir(), "books.cfg")
	d.must("sacctmgr", "dump", "ledger", "file="+file)
	if got := d.must("sacctmgr", "-i", "load", "file="+file, "clean"); got != "For cluster ledger\n Nothing new added." {
		t.Errorf("load of what is there: %q", got)
	}
	show := func() string {
		return d.must("sacctmgr", "-nP", "show", "assoc",
			"format=account,user,parentname,share,grptres,maxwall,maxjobs") +
			"\n" + d.must("sacctmgr", "-nP", "show", "account", "withcoord") + "\n" + d.must("sacctmgr", "-nP", "show", "user", "withcoord")
	}
	before := show()
	for _, line := range []string{"add account extra", "add account below parent=extra",
		"add user lp account=below", "add user daemon account=art",
		"modify account deep set parent=extra grptres=cpu=7 maxjobs=3",
		"modify user daemon where account=science set maxjobs=1",
		"add coordinator account=science names=bin", "delete coordinator account=deep names=daemon",
		"modify user bin set adminlevel=none", "delete user nobody account=art"} {
		d.must("sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...)
	}
	got := d.must("sacctmgr", "-i", "load", file, "clean")
	if after := show(); after != before {
		t.Errorf("after load:\n%s\nbefore:\n%s\nload said:\n%s", after, before, got)
	}
	for _, want := range []string{
		"\n Deleted Account below\n", "\n Deleted User lp\n",
		"\n Deleted association of account art, user daemon", "\n Changed association of account deep\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("load says nothing of%s:\n%s", want, got)
		}
	}
	held := d.submitAs(daemonUID, "-H", "-A", "science", "--wrap", "true")
	if err := os.WriteFile(file, []byte("Cluster - 'ledger':QOS='normal'\nParent - 'root'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := d.run("sacctmgr", "-i", "load", file, "clean"); code != 1 || !strings.Contains(errs, "Job(s) active") || show() != before {
		t.Errorf("load without accounts that jobs have: exit code %d, %q", code, errs)
	}
	d.must("scancel", held)
	d.must("sacctmgr", "-i", "load", file, "clean")
	if got := d.must("sacctmgr", "-nP", "show", "assoc", "format=account,user"); got != "root|\nroot|root" {
		t.Errorf("an empty file leaves\n%s", got)
	}
}

// TestBudget: a QOS with a period of its own is a budget: what is used up holds jobs back until it begins again.
func TestBudget(t *testing.T) {
	t.Parallel()
	d := startLedger(t)
	if out := d.must("sacctmgr", "-i", "add", "qos", "gold", "grptresmins=cpu=1", "UsageResetPeriod=monthly"); !strings.Contains(out, "UsageResetPeriod         = MONTHLY") {
		t.Errorf("add qos says\n%s", out)
	}
	if got := d.must("sacctmgr", "-nP", "show", "qos", "format=name,grptresmins,usageresetperiod"); got != "normal||NONE\ngold|cpu=1|MONTHLY" {
		t.Errorf("show qos:\n%s", got)
	}
	if _, errs, code := d.run("sacctmgr", "-i", "modify", "qos", "gold", "set", "usageresetperiod=hourly"); code != 1 || !strings.Contains(errs, "it is NONE, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY") {
		t.Errorf("a period that is none: exit code %d, %q", code, errs)
	}
	d.must("sacctmgr", "-i", "modify", "user", "bin", "set", "qos+=gold")
	first := d.submitAs(binUID, "-q", "gold", "-N2", "--exclusive", "-t5", "--wrap", "sleep 600")
	d.wait("the budget's end",
		func() bool { return d.must("squeue", "-h", "-t", "all", "-j", first, "-o", "%T") == "TIMEOUT" })
	next := d.submitAs(binUID, "-q", "gold", "-t5", "--wrap", "true")
	d.wait("the reason",
		func() bool { return d.must("squeue", "-h", "-j", next, "-o", "%r") == "QOSGrpCPUMinutesLimit" })
	d.must("sacctmgr", "-i", "modify", "qos", "gold", "set", "RawUsage=0")
	d.wait("a job on a new budget",
		func() bool { return d.must("squeue", "-h", "-t", "all", "-j", next, "-o", "%T") == "COMPLETED" })
	d.must("sacctmgr", "-i", "modify", "qos", "gold", "set", "usageresetperiod=none")
	if got := d.must("sacctmgr", "-nP", "show", "qos", "gold", "format=usageresetperiod"); got != "NONE" {
		t.Errorf("after usageresetperiod=none: %q", got)
	}
}

// TestRefund: with PriorityParameters=refund_faults nobody is charged for an attempt that a node's failure ended.
func TestRefund(t *testing.T) {
	t.Parallel()
	d := startLedger(t, "PriorityParameters=refund_faults")
	id := d.submitAs(binUID, "-N1", "-w", "node-001", "-n2", "--no-requeue", "-t5", "--wrap", "sleep 600")
	raw := func() string { return d.must("sshare", "-nPU", "-u", "bin", "-o", "rawusage") }
	d.wait("a charge", func() bool { return raw() != "0" })
	d.must("scontrol", "update", "nodename=node-001", "state=down", "reason=power")
	d.wait("the job's end",
		func() bool { return d.must("squeue", "-h", "-t", "all", "-j", id, "-o", "%T") == "NODE_FAIL" })
	if got := raw(); got != "0" {
		t.Errorf("after the fault bin is charged %s", got)
	}
	if got := d.must("sreport", "-nP", "-t", "Seconds", "cluster", "goodput", "start=now-1hour", "end=now+1hour"); !strings.Contains(got, "|Lost|fault: NodeDown, not charged|cpu|") {
		t.Errorf("goodput:\n%s", got)
	}
}

// TestTransactions: history knows who changed what of the books.
func TestTransactions(t *testing.T) {
	d := startLedger(t)
	d.must("sacctmgr", "-i", "modify", "user", "daemon", "set", "adminlevel=admin")
	if _, errs, code := d.as(daemonUID, "sacctmgr", "-i", "modify", "user", "bin", "where", "account=art", "set", "maxjobs=2"); code != 0 {
		t.Fatal(errs)
	}
	d.must("sacctmgr", "-i", "delete", "user", "bin")
	want := "Modify Associations|daemon|acct='art' user='bin'|limits=[{\"name\":\"MaxJobs\",\"max\":2}]\nRemove Users|root|name='bin'|"
	if got := d.must("sacctmgr", "-nP", "show", "transactions", "format=action,actor,where,info"); !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "Add Accounts|root|name='science'|description=") {
		t.Errorf("transactions:\n%s\nwant them to end with\n%s", got, want)
	}
	if got := d.must("sacctmgr", "-nP", "show", "txn", "actor=daemon", "start=now-1hour", "format=action"); got != "Modify Associations" {
		t.Errorf("what daemon did: %q", got)
	}
	if got := d.must("sacctmgr", "-nP", "show", "transactions", "end=now-1hour"); got != "" {
		t.Errorf("an hour ago: %q", got)
	}
}
