package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// oldArchive writes an archive of a job that ended long ago.
func oldArchive(t *testing.T) string {
	t.Helper()
	at := time.Date(2024, 3, 5, 10, 0, 0, 0, time.UTC)
	j := &cluster.Job{ID: 4711, Task: cluster.TaskAny, Phase: cluster.Ended, Outcome: cluster.Completed,
		Attempt: 1, Submitted: at, Eligible: at, Started: at, Ended: at.Add(time.Minute),
		Spec: &cluster.JobSpec{
			Layout: &cluster.Layout{}, Name: "old", User: "bin", UID: binUID, GID: binUID, Account: "art",
			QOS: "normal", Partitions: []string{"main"},
		},
		Alloc: &cluster.Alloc{
			Partition: "main", Shares: []cluster.Share{{Node: "node-001", CPUs: cluster.RangeIDSet(0, 3)}},
		}}
	line, err := wire.Marshal(&cluster.Archived{Job: j, Seq: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(file, append(append(api.AppendArchiveHead(nil, "ledger", cluster.JobRecords), '\n'), append(line, '\n')...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestArchive: what is too old goes into a file and out of sacct, while reports have it still; load brings it back,
// once.
func TestArchive(t *testing.T) {
	d := startLedger(t)
	fresh := d.submitAs(binUID, "-t5", "--wrap", "true")
	d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
	jobs := func() string {
		return d.must("sacct", "-anPX", "-S", "2024-01-01", "-o", "jobid,state,elapsed")
	}
	used := func() string {
		return d.must("sreport", "-nP", "-t", "Seconds", "cluster", "UserUtilizationByAccount",
			"start=2024-03-01", "end=2024-04-01", "format=login,used")
	}
	alone := jobs()
	for range 2 {
		if got := d.must("sacctmgr", "-i", "archive", "load", "file="+oldArchive(t)); got != "sacctmgr: SUCCESS: 1 job records" {
			t.Errorf("load: %q", got)
		}
	}
	both := jobs()
	if !strings.Contains(both, "4711|COMPLETED|00:01:00") || !strings.Contains(both, fresh+"|COMPLETED") || used() != "bin|240" {
		t.Fatalf("with the archive: %s, used %s", both, used())
	}
	if _, errs, code := d.as(binUID, "sacctmgr", "-i", "archive", "dump", "PurgeJobAfter=12months"); code != 1 || !strings.Contains(errs, "only operators may archive history") {
		t.Errorf("a user archives: exit code %d, %q", code, errs)
	}
	dir := t.TempDir()
	if _, errs, code := d.run("sacctmgr", "-i", "archive", "dump", "jobs", "PurgeJobAfter=12", "Directory="+filepath.Join(dir, "absent")); code != 1 || !strings.Contains(errs, "nothing was taken out of history") || jobs() != both {
		t.Errorf("without a folder: exit code %d, %q", code, errs)
	}
	d.must("sacctmgr", "-i", "archive", "dump", "jobs", "PurgeJobAfter=12months", "Directory="+dir)
	d.wait("the old job to go", func() bool { return jobs() == alone })
	if got := used(); got != "bin|240" {
		t.Errorf("the report of what is archived: %s", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "ledger_job_archive_2024-03-05T10:00:00_*"))
	if len(files) != 1 {
		list, _ := os.ReadDir(dir)
		t.Fatalf("archives: %v", list)
	}
	d.must("sacctmgr", "-i", "archive", "load", files[0])
	if got := jobs(); got != both || used() != "bin|240" {
		t.Errorf("after load: %s\nwant %s; used %s", got, both, used())
	}
}

// TestRetention: with slurmdbd.conf beside slurm.conf old records go by themselves.
func TestRetention(t *testing.T) {
	file, dir := confFile(t, "ClusterName=ledger"), t.TempDir()
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "slurmdbd.conf"), []byte("DbdHost=db\nArchiveJobs=yes\nArchiveDir="+dir+"\nPurgeJobAfter=30days\nPurgeUsageAfter=12months\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "1x8c16g", "--conf", file)
	// Records forgotten before go with the next round alone: the first one is over before the archive comes.
	d.wait("the first round", func() bool {
		out, _, _ := d.run("sacctmgr", "-i", "archive", "dump")
		return out == "sacctmgr: SUCCESS\n"
	})
	d.must("sacctmgr", "-i", "archive", "load", "file="+oldArchive(t))
	if got := d.must("sacct", "-anPX", "-S", "2024-01-01", "-o", "jobid"); got != "4711" {
		t.Errorf("the archive: %q", got)
	}
	d.must("sacctmgr", "-i", "archive", "dump", "jobs", "PurgeJobAfter=29days")
	d.wait("the old job to go",
		func() bool { return d.must("sacct", "-anPX", "-S", "2024-01-01", "-o", "jobid") == "" })
	if files, _ := filepath.Glob(filepath.Join(dir, "ledger_job_archive_*")); len(files) != 1 {
		t.Errorf("archives in the configured folder: %v", files)
	}
	purged := []string{"-nP", "cluster", "utilization", "start=2024-03-01", "end=2024-04-01"}
	if out, errs, code := d.run("sreport", purged...); code != 0 || out != "" || !strings.Contains(errs, "sreport: warning: records of use before 20") {
		t.Errorf("a report of what is gone: exit code %d, %q, %q", code, out, errs)
	}
	if _, errs, _ := d.run("sreport", "-nP", "cluster", "utilization", "start=now-1hour", "end=now+1hour"); errs != "" {
		t.Errorf("a report of what is kept: %q", errs)
	}
}

// TestArchiveScript: a script of the site's is told what goes and archives it; if it fails nothing goes. Changes of
// the books go too.
func TestArchiveScript(t *testing.T) {
	d := startLedger(t)
	dir := t.TempDir()
	script, told := filepath.Join(dir, "archive"), filepath.Join(dir, "told")
	write := func(end string) {
		t.Helper()
		if err := os.WriteFile(script, []byte("#!/bin/sh\nenv | grep ^SLURM_ARCHIVE | sort >"+told+"\n"+end+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.must("sacctmgr", "-i", "archive", "load", "file="+oldArchive(t))
	dump := []string{
		"-i", "archive", "dump", "jobs", "txn", "PurgeJobAfter=12months", "PurgeTXNAfter=1hours",
		"Script=" + script,
	}
	write("echo no tape; exit 3")
	if _, errs, code := d.run("sacctmgr", dump...); code != 1 || !strings.Contains(errs, "exit status 3: no tape; nothing was taken out of history") {
		t.Errorf("a script that fails: exit code %d, %q", code, errs)
	}
	if got := d.must("sacct", "-anPX", "-S", "2024-01-01", "-o", "jobid"); got != "4711" {
		t.Errorf("after that sacct has %q", got)
	}
	write("")
	d.must("sacctmgr", dump...)
	d.wait("the old job to go",
		func() bool { return d.must("sacct", "-anPX", "-S", "2024-01-01", "-o", "jobid") == "" })
	text, err := os.ReadFile(told)
	if got := regexp.MustCompile(`=[0-9]{10}`).ReplaceAllString(string(text), "=TIME"); err != nil || got != "SLURM_ARCHIVE_EVENTS=0\nSLURM_ARCHIVE_JOBS=1\nSLURM_ARCHIVE_LAST_JOB=TIME\n"+
		"SLURM_ARCHIVE_LAST_TXN=TIME\nSLURM_ARCHIVE_RESERVATIONS=0\nSLURM_ARCHIVE_STEPS=0\nSLURM_ARCHIVE_TXN=1\nSLURM_ARCHIVE_USAGE=0\n" {
		t.Errorf("the script was told %v\n%s", err, got)
	}
	for word, want := range map[string]string{
		"suspend":             "pauses are part of the jobs' records",
		"PurgeSuspendAfter=1": "pauses are part of the jobs' records", "usage": "Unknown option: usage",
		"events": "say after what time",
	} {
		if _, errs, code := d.run("sacctmgr", "-i", "archive", "dump", word); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("archive dump %s: exit code %d, %q", word, code, errs)
		}
	}
}
