package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestMgrReservations: sacctmgr shows the reservations of a time from history: those of today unless it is told
// otherwise.
func TestMgrReservations(t *testing.T) {
	d := startLedger(t)
	d.must("scontrol", "create", "reservation", "reservationname=maint", "starttime=now", "duration=60",
		"users=daemon", "nodes=ALL")
	d.must("scontrol", "create", "reservation", "reservationname=later", "starttime=now+2days",
		"duration=30", "accounts=art", "nodecnt=1")
	if got, want := d.must("sacctmgr", "show", "reservation", "format=cluster,name%15,tres%30"), "   Cluster            Name                           TRES \n"+
		"---------- --------------- ------------------------------ \n    ledger           maint                         cpu=16 "; got != strings.TrimRight(want, " ") && got != want {
		t.Errorf("reservations of today:\n%q\nwant\n%q", got, want)
	}
	if got := d.must("sacctmgr", "-P", "list", "resv", "names=maint"); !regexp.MustCompile(`^Cluster\|Name\|TRES\|TimeStart\|TimeEnd\|UnusedWall\nledger\|maint\|cpu=16\|20..-..-..T..:..:..\|20..-..-..T..:..:..\|\d+\.\d{6}$`).MatchString(got) {
		t.Errorf("all of it:\n%s", got)
	}
	if got := d.must("sacctmgr", "-nP", "show", "reservation", "end=now+3days", "format=name,assoc,nodenames,flags,id"); got != "maint|5|node-[001-002]|SPEC_NODES,ALL_NODES|1\nlater|4|node-001||2" {
		t.Errorf("with those to come:\n%s", got)
	}
	for cond, want := range map[string]string{
		"id=2": "later", "nodes=node-002": "maint", "name=none": "", "cluster=other": "",
		"start=now+1day": "later",
	} {
		if got := d.must("sacctmgr", "-nP", "show", "reservation", cond, "end=now+3days", "format=name"); got != want {
			t.Errorf("show reservation %s: %q, want %q", cond, got, want)
		}
	}
	if out, errs, code := d.run("sacctmgr", "show", "reservation", "maint"); code != 1 || errs != " Unknown condition: maint\n Use keyword 'set' to modify value\n" {
		t.Errorf("a name alone: exit code %d, %q %q", code, out, errs)
	}
}

// TestMgrConfiguration: sacctmgr shows how accounting is configured: the cluster's keys, and those of slurmdbd.conf.
func TestMgrConfiguration(t *testing.T) {
	d := startLedger(t, "PurgeJobAfter=12months", "ArchiveJobs=yes", "PurgeStepAfter=30days",
		"TrackWCKey=yes", "PrivateData=users,usage")
	got := d.must("sacctmgr", "show", "configuration")
	for _, want := range []string{`^Configuration data as of 20..-..-..T..:..:..\n`, `\nAccountingStorageType  = accounting_storage/sqlite\n`, `\nPrivateData            = usage,users\n`,
		`\nTrackWCKey             = Yes\n\nSlurmDBD configuration:\nArchiveDir             = /tmp\nArchiveEvents          = No\nArchiveJobs            = Yes\n`,
		`\nPurgeJobAfter          = 12 months\n`, `\nPurgeStepAfter         = 30 days\n`, `\nPurgeUsageAfter        = NONE\n`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("show configuration has no %s:\n%s", want, got)
		}
	}
}

// TestMgrSession: without a command sacctmgr does those of standard input, as people know it from Slurm.
func TestMgrSession(t *testing.T) {
	d := startLedger(t)
	ask := func(code int, want string, lines ...string) {
		t.Helper()
		out, errs, got := d.input(strings.Join(lines, "\n")+"\n", "sacctmgr", "-nP")
		if got != code || strings.TrimSpace(out)+errs != want {
			t.Errorf("%q: exit code %d\n%s%s\nwant %d\n%s", lines, got, out, errs, code, want)
		}
	}
	ask(0, "sacctmgr: show account science format=account\nscience\nsacctmgr: !!\nscience\nsacctmgr: quit",
		"show account science format=account", "!!", "quit", "never")
	ask(1,
		"sacctmgr: readonly\nsacctmgr: add account x\nsacctmgr: exit"+"Can't run this command in readonly mode.\n",
		"readonly", "add account x", "exit")
	ask(0, "sacctmgr: associations\nsacctmgr: show user bin format=user,account\nbin|art\nsacctmgr: verbose\nsacctmgr: quiet\nsacctmgr: oneliner\nsacctmgr: exit",
		"associations", "show user bin format=user,account", "verbose", "quiet", "oneliner", "exit")
	ask(1, "sacctmgr: quit now"+"too many arguments for keyword:quit\n", "quit now")
	out, _, code := d.input("help\n", "sacctmgr")
	if code != 0 || !strings.Contains(out, "\n  !!                                     in a session: repeat the last command\n") || !strings.Contains(out, "\n  load <FILE> [<SPECS>] ") {
		t.Errorf("help: exit code %d\n%s", code, out)
	}
	if help := d.must("sacctmgr", "help"); !strings.Contains(out, help) {
		t.Errorf("help as a command is another text:\n%s", help)
	}
	for _, word := range []string{"verbose", "quiet", "readonly", "associations", "oneliner", "quit", "exit"} {
		if out := d.must("sacctmgr", word); out != "" {
			t.Errorf("sacctmgr %s says %q", word, out)
		}
	}
	if _, errs, code := d.run("sacctmgr", "!!"); code != 1 || errs != "invalid keyword: !!\n" {
		t.Errorf("sacctmgr !!: exit code %d, %q", code, errs)
	}
	out, _, code = d.input("add account piped\ny\nquit\n", "sacctmgr")
	if code != 0 || !strings.HasSuffix(out, "\n(N/y): \nsacctmgr: quit\n") || d.must("sacctmgr", "-nP", "show", "account", "piped", "format=account") != "piped" {
		t.Errorf("an answer behind its command: exit code %d\n%s", code, out)
	}
	d.must("sacctmgr", "-i", "delete", "user", "bin", "account=art")
	d.must("sacctmgr", "-i", "add", "user", "nosuchuser", "account=art")
	d.must("sacctmgr", "-i", "add", "user", "lp", "wckey=some")
	if got := d.must("sacctmgr", "-nP", "show", "problem"); got != "ledger|piped||Account has no users\n||lp|User has no Associations\n||nosuchuser|User does not have a uid" {
		t.Errorf("problems:\n%s", got)
	}
	d.must("sacctmgr", "-i", "add", "user", "bin", "account=art")
	for cond, want := range map[string]string{"ledger": "science", "other": ""} {
		if got := d.must("sacctmgr", "-nP", "show", "account", "science", "cluster="+cond, "withassoc", "format=account"); strings.SplitN(got, "\n", 2)[0] != want {
			t.Errorf("accounts of cluster %s: %q, want %q", cond, got, want)
		}
	}
	if out, errs, code := d.run("sacctmgr", "-i", "modify", "user", "bin", "cluster=other", "set", "maxjobs=1"); code != 1 || out != " Nothing modified\n" {
		t.Errorf("a user of another cluster: exit code %d, %q %q", code, out, errs)
	}
	if _, errs, code := d.run("sacctmgr", "-i", "add", "user", "lp", "account=art", "cluster=other"); code != 1 || !strings.Contains(errs, "There is one cluster, ledger") {
		t.Errorf("a user in another cluster: exit code %d, %q", code, errs)
	}
}

// TestMgrJobs: sacctmgr modify job says something of jobs, also of those that are history only; users speak of
// their own.
func TestMgrJobs(t *testing.T) {
	t.Parallel()
	d := startLedger(t, "MinJobAge=2", "TrackWCKey=yes")
	past, other, held := d.submitAs(daemonUID, "--wrap", "exit 3"), d.submitAs(binUID, "--wrap", "true"), d.submitAs(daemonUID, "-H", "--wrap", "true")
	d.wait("two jobs to be history only",
		func() bool { return d.must("squeue", "-h", "-t", "all", "-o", "%A") == held })
	submitted := func(id string) string {
		return "  " + id + " submitted at " + d.must("sacct", "-nPX", "-j", id, "-o", "submit")
	}
	said := func(id, want string) {
		t.Helper()
		if got := d.must("sacct", "-nPX", "-j", id, "-o", "comment,derivedexitcode,admincomment,systemcomment,wckey"); got != want {
			t.Errorf("sacct of job %s: %q, want %q", id, got, want)
		}
	}
	says := func(uid uint32, want string, code int, args ...string) {
		t.Helper()
		if out, errs, got := d.as(uid, "sacctmgr", args...); got != code || strings.TrimRight(out+errs, "\n") != want {
			t.Errorf("sacctmgr %q of user %d: exit code %d\n%s%s\nwant %d\n%s", args, uid, got, out, errs, code, want)
		}
	}
	denied := "sacctmgr: error: Your user doesn't have privilege to perform this action\n Error with request: Access/permission denied\n  "
	says(daemonUID, " Modified jobs...\n"+submitted(past), 0, "-i", "modify", "job", "where", "jobid="+past,
		"set", "comment=two words", "derivedexitcode=7")
	said(past, "two words|7:0|||*")
	says(binUID, denied+"job "+past+" is another user's", 1, "-i", "modify", "job", "jobid="+past, "set",
		"comment=mine")
	says(daemonUID, denied+"only operators may set AdminComment of a job", 1, "-i", "modify", "job",
		"jobid="+past, "set", "admincomment=mine")
	says(0, " Modified jobs...\n"+submitted(past)+"\n"+submitted(held), 0, "-i", "modify", "job",
		"user=daemon", "set", "AdminComment=checked", "SystemComment=sys", "NewWCKey=Proj")
	said(past, "two words|7:0|checked|sys|proj")
	said(held, "|0:0|checked|sys|proj")
	said(other, "|0:0|||*")
	if got := d.must("scontrol", "show", "job", held); !strings.Contains(got, "AdminComment=checked") || !strings.Contains(got, "SystemComment=sys") {
		t.Errorf("the job that waits:\n%s", got)
	}
	says(daemonUID, " Modified jobs...\n"+submitted(past), 0, "-i", "modify", "job", "wckey=proj",
		"endtime=now", "set", "comment=over")
	nothing := " Nothing modified\nsacctmgr: Request didn't affect anything or your user doesn't have privilege to perform this action"
	says(0, nothing, 1, "-i", "modify", "job", "jobid=999", "set", "comment=x")
	says(0, nothing, 1, "-i", "modify", "job", "starttime=now+1hour", "set", "comment=x")
	says(0, nothing, 1, "-i", "modify", "job", "cluster=other", "set", "comment=x")
	says(0, " You didn't give me anything to set", 1, "-i", "modify", "job", "jobid="+past)
	says(0,
		" Unknown option: comment+=x\n Use keyword 'where' to modify condition\n You didn't give me anything to set",
		1, "-i", "modify", "job", "jobid="+past, "set", "comment+=x")
	says(0, "sacctmgr: fatal: Bad job/step specified: x", 1, "-i", "modify", "job", "jobid=x", "set", "comment=x")
	says(0, " Unknown condition: 7\n Use keyword 'set' to modify value", 1, "-i", "modify", "job", "7",
		"set", "comment=x")
	says(0,
		"sacctmgr: error: Invalid value for DerivedExitCode (300): want CODE or CODE:SIGNAL, from 0 to 255\n You didn't give me anything to set",
		1, "-i", "modify", "job", "jobid="+past, "set", "derivedexitcode=300")
	for _, tt := range []struct{ answer, comment, said string }{
		{"n", "never", "\n Changes Discarded\n"}, {"y", "asked", ""},
	} {
		out, _, code := d.input(tt.answer+"\n", "sacctmgr", "modify", "job", "jobid="+past, "set",
			"comment="+tt.comment)
		if code != 0 || !strings.HasPrefix(out, " Modified jobs...\n"+submitted(past)+"\nWould you like to commit") || !strings.HasSuffix(out, tt.said) {
			t.Errorf("answer %s: exit code %d\n%s", tt.answer, code, out)
		}
	}
	said(past, "asked|7:0|checked|sys|proj")
	if got := d.must("sacctmgr", "-nP", "show", "txn", "action=modify job", "actor=daemon", "format=where,info"); !strings.HasSuffix(got, `|comment="over"`) || !strings.HasPrefix(got, "job="+past+" submitted=") {
		t.Errorf("transactions:\n%s", got)
	}
	d.kill()
	d.start()
	d.wait("the daemon", func() bool { _, _, code := d.run("sinfo"); return code == 0 })
	said(past, "asked|7:0|checked|sys|proj")
}

// TestMgrDeleted: withdeleted shows what was deleted too, whole branches with it, unless it was made again.
func TestMgrDeleted(t *testing.T) {
	d := startLedger(t)
	show := func(what string, want string, more ...string) {
		t.Helper()
		if got := d.must("sacctmgr", append([]string{"-nP", "show", what}, more...)...); got != want {
			t.Errorf("show %s %q:\n%s\nwant\n%s", what, more, got, want)
		}
	}
	for _, line := range []string{"add account deep parent=science grptres=cpu=5",
		"add user lp account=deep fairshare=3", "add qos gold priority=7",
		"modify user daemon set maxjobs=3", "delete user lp", "delete user daemon",
		"delete account deep,science", "delete qos gold", "delete user bin", "add user bin account=art"} {
		d.must("sacctmgr", append([]string{"-i"}, strings.Fields(line)...)...)
	}
	show("user", "bin|art|None\nroot|root|Administrator")
	show("user", "bin|art|None\ndaemon|science|None\nlp|deep|None\nroot|root|Administrator", "withdeleted")
	show("account", "art\nroot", "format=account")
	show("account", "art\ndeep\nroot\nscience", "withdeleted", "format=account")
	show("qos", "normal|0\ngold|7", "withdeleted", "format=name,priority")
	show("assoc",
		"root|||\nroot|root||\nart||root|\nart|bin||\nscience||root|\nscience|daemon||\ndeep||science|cpu=5\ndeep|lp||",
		"withdeleted", "format=account,user,parentname,grptres")
	show("assoc", "root|\nroot|root\nart|\nart|bin", "format=account,user")
	show("cluster", "ledger", "withdeleted", "format=cluster")
	if _, errs, code := d.run("sacctmgr", "show", "wckey", "withdeleted"); code != 1 || !strings.Contains(errs, "has no withdeleted") {
		t.Errorf("show wckey withdeleted: exit code %d, %q", code, errs)
	}
}
