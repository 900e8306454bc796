package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestMgrReservations: sacctmgr shows the reservations of a time from history: those of today unless it is told otherwise.
func TestMgrReservations(t *testing.T) {
	d := startLedger(t)
	d.must("scontrol", "create", "reservation", "reservationname=maint", "starttime=now", "duration=60", "users=daemon", "nodes=ALL")
	d.must("scontrol", "create", "reservation", "reservationname=later", "starttime=now+2days", "duration=30", "accounts=art", "nodecnt=1")
	if got, want := d.must("sacctmgr", "show", "reservation", "format=cluster,name%15,tres%30"), "   Cluster            Name                           TRES \n"+
		"---------- --------------- ------------------------------ \n    ledger           maint                         cpu=16 "; got != strings.TrimRight(want, " ") && got != want {
		t.Errorf("reservations of today:\n%q\nwant\n%q", got, want)
	}
	if got := d.must("sacctmgr", "-P", "list", "resv", "names=maint"); !regexp.MustCompile(`^Cluster\|Name\|TRES\|TimeStart\|TimeEnd\|UnusedWall\nledger\|maint\|cpu=16\|20..-..-..T..:..:..\|20..-..-..T..:..:..\|\d+\.\d{6}$`).MatchString(got) {
		t.Errorf("all of it:\n%s", got)
	}
	if got := d.must("sacctmgr", "-nP", "show", "reservation", "end=now+3days", "format=name,assoc,nodenames,flags,id"); got != "maint|5|node-[001-002]|SPEC_NODES|1\nlater|4|node-001||2" {
		t.Errorf("with those to come:\n%s", got)
	}
	for cond, want := range map[string]string{"id=2": "later", "nodes=node-002": "maint", "name=none": "", "cluster=other": "", "start=now+1day": "later"} {
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
	d := startLedger(t, "PurgeJobAfter=12months", "ArchiveJobs=yes", "PurgeStepAfter=30days", "TrackWCKey=yes", "PrivateData=users,usage")
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
	ask(0, "sacctmgr: show account science format=account\nscience\nsacctmgr: !!\nscience\nsacctmgr: quit", "show account science format=account", "!!", "quit", "never")
	ask(1, "sacctmgr: readonly\nsacctmgr: add account x\nsacctmgr: exit"+"Can't run this command in readonly mode.\n", "readonly", "add account x", "exit")
	ask(0, "sacctmgr: associations\nsacctmgr: show user bin format=user,account\nbin|art\nsacctmgr: verbose\nsacctmgr: quiet\nsacctmgr: oneliner\nsacctmgr: exit",
		"associations", "show user bin format=user,account", "verbose", "quiet", "oneliner", "exit")
	ask(1, "sacctmgr: quit now\nsacctmgr:"+"too many arguments for keyword:quit\n", "quit now")
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
