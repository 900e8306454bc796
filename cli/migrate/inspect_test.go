package migrate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// tool writes a program into a folder that PATH begins with.
func tool(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// inspectIn runs muster adopt inspect.
func inspectIn(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	a := &cli.App{Commands: []*cli.Command{Inspect()}, Writer: &b, ErrWriter: &b,
		ExitErrHandler: func(*cli.Context, error) {}}
	err := a.Run(append([]string{"muster", "inspect"}, args...))
	var exit cli.ExitCoder
	if errors.As(err, &exit) {
		return exit.ExitCode(), b.String() + err.Error()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, b.String()
}

// TestInspectFolder: the exit codes, and each form of output.
func TestInspectFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if code, out := inspectIn(t, dir); code != 2 || !strings.Contains(out, "muster adopt inspect: read configuration") {
		t.Errorf("without slurm.conf: %d %s", code, out)
	}
	write("slurm.conf", "ClusterName=c\nNodeName=n CPUs=4\nPartitionName=p Nodes=n\n")
	write("accounts.cfg", "# x\nCluster - 'c':Fairshare=1\nParent - 'root'\nUser - 'ann'\n")
	write("crontab.txt", "* * * * * sinfo\n")
	code, out := inspectIn(t, "--html", page, dir)
	if code != 0 || !strings.Contains(out, "Lost in muster (0)") || !strings.Contains(out, "1 users") ||
		!strings.Contains(out, "crontab.txt:1") {
		t.Errorf("%d %s", code, out)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "<h1>Migration preview: Cluster c") {
		t.Errorf("%v %s", err, text)
	}
	write("slurm.conf", "ClusterName=c\nUsePam=1\n")
	if code, out := inspectIn(t, "--json", dir); code != 1 || !strings.Contains(out, `"lost":1`) {
		t.Errorf("%d %s", code, out)
	}
	write("slurm.conf", "ClusterName=c\nJobSubmitPlugins=lua\n")
	write("job_submit.lua", "function slurm_job_submit(\n")
	if code, out := inspectIn(t, dir); code != 1 || !strings.Contains(out, "job_submit.lua") {
		t.Errorf("%d %s", code, out)
	}
}

// TestInspectLive: Slurm's commands are asked, in bounded time and memory, and muster's own are not taken for them.
func TestInspectLive(t *testing.T) {
	dir, conf := t.TempDir(), t.TempDir()
	t.Setenv("SLURM_CONF", filepath.Join(conf, "slurm.conf"))
	if err := os.WriteFile(filepath.Join(conf, "slurm.conf"), []byte("ClusterName=c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "scontrol", `case "$*" in
--version) echo slurm 23.02.1;;
"show config") echo "ClusterName = live"; echo "NEXT_JOB_ID = 51";;
"-a -o show node") echo "NodeName=n1 CPUTot=8 State=IDLE";;
*) echo "no such thing" >&2; exit 1;;
esac`)
	tool(t, dir, "squeue", "echo RUNNING; echo PENDING")
	tool(t, dir, "sacctmgr", "echo a; echo b")
	code, out := inspectIn(t)
	for _, want := range []string{"Cluster live", "1, with 8 CPUs", "1 PENDING, 1 RUNNING", "2 users",
		"at most 50 jobs", "scontrol -a -o show reservation: exit status 1: no such thing"} {
		if !strings.Contains(out, want) {
			t.Errorf("%d %s\nlacks %s", code, out, want)
		}
	}
	tool(t, dir, "scontrol", "echo 'slurm 22.05.8 (muster dev)'")
	if code, out := inspectIn(t); code != 2 || !strings.Contains(out, "scontrol in PATH is a link to muster") {
		t.Errorf("%d %s", code, out)
	}
}

// TestSlurmTools: a command that hangs, or prints without end, is ended.
func TestSlurmTools(t *testing.T) {
	dir := t.TempDir()
	tool(t, dir, "hang", "exec sleep 100")
	tool(t, dir, "flood", "exec yes")
	tools := slurmTools{ctx: t.Context(), timeout: 100 * time.Millisecond}
	if _, err := tools.run("hang"); err == nil || !strings.Contains(err.Error(), "hang: no answer for 100ms") {
		t.Error(err)
	}
	tools.timeout = 0
	if _, err := tools.run("flood"); err == nil || !strings.Contains(err.Error(), "flood: its output exceeds 64 MB") {
		t.Error(err)
	}
	if _, err := tools.run("lacking-command"); err == nil {
		t.Error("no error")
	}
}
