package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"strings"
	"sync"
	"testing"
)

// textOf is what a file holds, "" if it is not there yet.
func textOf(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func me(t *testing.T) string {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// TestMail: the site's mail program is called as the reference calls it, by a server that dies meanwhile too.
func TestMail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string { return writeProgram(t, dir, name, text) }
	mailer := write("mailer", "#!/bin/sh\nwhile [ -e "+dir+"/wait ]; do echo $SLURM_JOB_ID >>"+dir+"/waits; sleep .05; done\n"+
		`echo "$1|$2|$3|$SLURM_JOB_STATE|$SLURM_JOB_MAIL_TYPE|$SLURM_JOB_EXIT_CODE_MAX|$SLURM_CLUSTER_NAME|$SLURM_JOB_NODELIST" >>`+dir+"/mails\n")
	conf := write("slurm.conf",
		"ClusterName=c\nMailProg="+mailer+"\nMailDomain=x.org\nPartitionName=main Nodes=ALL Default=YES\n")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", conf)
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	mails := func() string { return textOf(dir + "/mails") }
	id := d.must("sbatch", "--parsable", "--mail-type=ALL", "--mail-user=bob@y.org", "-J", "one", "-o",
		"/dev/null", "--wrap", "exit 3")
	d.wait("two mails", func() bool { return strings.Count(mails(), "\n") == 2 })
	for _, want := range []string{"-s|Slurm Job_id=" + id + " Name=one Began, Queued time 00:00:0",
		"|bob@y.org|RUNNING|Began||c|node-001",
		"-s|Slurm Job_id=" + id + " Name=one Failed, Run time 00:00:0",
		", FAILED, ExitCode 3|bob@y.org|FAILED|Failed|3|c|node-001"} {
		if !strings.Contains(mails(), want) {
			t.Errorf("mails %q lack %q", mails(), want)
		}
	}
	os.Remove(dir + "/mails")
	write("wait", "")
	id = d.must("sbatch", "--parsable", "--mail-type=END", "-a", "1-2", "-J", "arr", "-o", "/dev/null",
		"--wrap", "true")
	d.wait("the mail program", func() bool { return strings.Contains(textOf(dir+"/waits"), id) })
	d.kill()
	os.Remove(dir + "/wait")
	d.start()
	want := fmt.Sprintf("-s|Slurm Array Summary Job_id=%s_* (%s) Name=arr Ended, COMPLETED, ExitCode "+
		"[0-0]|%s@x.org|COMPLETED|Ended|0|c|node-001\n",
		id, id, me(t))
	d.wait("the mail", func() bool { return strings.Contains(mails(), want) })

	if _, errs, code := d.run("sbatch", "--mail-user=-A/etc/shadow", "--wrap", "true"); code == 0 || !strings.Contains(errs, "does not begin with -") {
		t.Errorf("an address that is an option: code %d, %s", code, errs)
	}
}

// TestNotify: a job's URL is called with what has happened, again if the other side cannot take it, and not within
// the server.
func TestNotify(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []map[string]any
	refuse := 1
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if refuse > 0 {
			refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(q.Body)
		m := map[string]any{}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Errorf("body %q: %v", body, err)
		}
		got = append(got, m)
	}))
	defer web.Close()
	dir := t.TempDir()
	conf := func(name, more string) string {
		if err := os.WriteFile(dir+"/"+name, []byte("ClusterName=c\n"+more+"PartitionName=main Nodes=ALL "+
			"Default=YES\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf",
		conf("slurm.conf", "CommunicationParameters=notify_local\n"))
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	id := d.must("sbatch", "--parsable", "--notify="+web.URL+"/x", "-J", "one", "-o", "/dev/null", "--wrap", "exit 3")
	calls := func() int { mu.Lock(); defer mu.Unlock(); return len(got) }
	defer func() {
		if mu.Lock(); t.Failed() {
			t.Logf("calls that came: %v; %d more are to be refused", got, refuse)
		}
		mu.Unlock()
	}()
	d.wait("two calls", func() bool { return calls() == 2 })
	events := map[any]map[string]any{}
	for _, m := range got {
		events[m["event"]] = m
	}
	if m := events["FAIL"]; m == nil || fmt.Sprint(m["job_id"]) != id || m["state"] != "FAILED" || m["exit_code"] != 3.0 || m["nodes"] != "node-001" ||
		!strings.HasPrefix(fmt.Sprint(m["text"]), "Slurm Job_id="+id+" Name=one Failed") || events["BEGIN"] == nil {
		t.Errorf("calls %v", got)
	}
	if _, errs, code := d.run("sbatch", "--notify=ftp://x", "--wrap", "true"); code == 0 || !strings.Contains(errs, "https://") {
		t.Errorf("another scheme: code %d, %s", code, errs)
	}

	strict := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", conf("strict.conf", "SlurmctldDebug=info\n"))
	strict.wait("the node", func() bool { return strict.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	before := calls()
	strict.must("sbatch", "-W", "--notify="+web.URL, "-o", "/dev/null", "--wrap", "true")
	strict.wait("the refusal",
		func() bool { return strings.Contains(strict.soFar("log"), "is an address of a server of the cluster") })
	if calls() != before {
		t.Error("a user's URL reached the server itself")
	}
}

// TestServerScripts: PrologSlurmctld runs before a job's nodes begin, EpilogSlurmctld when it has ended; a job
// whose prolog fails goes back into the queue, and srun ends.
func TestServerScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string { return writeProgram(t, dir, name, text) }
	const line = `echo "$SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_JOB_NODELIST $SLURM_JOB_EXIT_CODE2" >>`
	prolog := write("prolog",
		"#!/bin/sh\n"+line+dir+"/log\nwhile [ -e "+dir+"/wait ]; do sleep .05; done\n"+
			"squeue -h -j $SLURM_JOB_ID -o %i >>"+dir+"/asked\n[ $SLURM_JOB_NAME != bad ]\n")
	epilog := write("epilog", "#!/bin/sh\n"+line+dir+"/log\n")
	conf := write("slurm.conf",
		"ClusterName=c\nPrologSlurmctld="+prolog+"\nEpilogSlurmctld="+epilog+"\nPartitionName=main Nodes=ALL "+
			"Default=YES\n")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", conf)
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	log := func() string { return textOf(dir + "/log") }

	write("wait", "")
	id := d.must("sbatch", "--parsable", "-J", "slow", "-o", dir+"/o", "--wrap", "echo ran; exit 5")
	d.wait("the prolog", func() bool { return log() == "prolog_slurmctld "+id+" slow node-001 \n" })
	expect(t, "the job meanwhile", d.must("squeue", "-h", "-j", id, "-o", "%t %T %r %N"),
		"CF CONFIGURING None node-001")
	expect(t, "by its state", d.must("squeue", "-h", "-t", "CF", "-o", "%i"), id)
	os.Remove(dir + "/wait")
	d.wait("the epilog", func() bool { return strings.HasSuffix(log(), "epilog_slurmctld "+id+" slow node-001 5:0\n") })
	expect(t, "its output", textOf(dir+"/o"), "ran\n")
	expect(t, "what the prolog asked for", textOf(dir+"/asked"), id+"\n")

	id = d.must("sbatch", "--parsable", "-J", "bad", "-o", dir+"/never", "--wrap", "echo never")
	d.wait("it to wait for its next try",
		func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t %r") == "PD BeginTime" })
	d.must("scancel", id)
	if textOf(dir+"/never") != "" {
		t.Error("a job began whose prolog had failed")
	}
	_, errs, code := d.run("srun", "-J", "bad", "true")
	expect(t, "srun", fmt.Sprint(code, " ", errs),
		"1 srun: PrologSlurmctld failed, job killed\nsrun: error: Nodes node-001 are still not ready\n"+
			"srun: error: Something is wrong with the boot of the nodes.\n")
}

// TestJobComp: each job that has ended is in the file of jobcomp/filetxt once, also when it did while no server was
// there to write it; a script gets it as well.
func TestJobComp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := func(kind, loc string) string {
		file := dir + "/slurm.conf"
		if err := os.WriteFile(file, []byte("ClusterName=c\nJobCompType=jobcomp/"+kind+"\nJobCompLoc="+loc+"\nPartitionName=main Nodes=ALL Default=YES\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", conf("filetxt", dir+"/comp"))
	lines := func() string { return textOf(dir + "/comp") }
	one := d.must("sbatch", "--parsable", "-J", "one", "-o", "/dev/null", "--wrap", "exit 3")
	arr := d.must("sbatch", "--parsable", "-a", "1-2", "-o", "/dev/null", "--wrap", "true")
	held := d.must("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true")
	d.must("scancel", held)
	d.wait("four records", func() bool { return strings.Count(lines(), "\n") == 4 })
	for _, want := range []string{"JobId=" + one + " UserId=" + me(t) + "(",
		" Name=one JobState=FAILED Partition=main TimeLimit=UNLIMITED StartTime=20",
		" NodeList=node-001 NodeCnt=1 ProcCnt=1 ", "ExitCode=3:0 \n",
		" ArrayJobId=" + arr + " ArrayTaskId=1 ", " ArrayJobId=" + arr + " ArrayTaskId=2 ",
		"JobId=" + held + " ", "JobState=CANCELLED "} {
		if !strings.Contains(lines(), want) {
			t.Errorf("the records lack %q:\n%s", want, lines())
		}
	}
	last := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 1")
	d.wait("it to run", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%A") == last })
	d.kill()
	d.start()
	d.wait("its record", func() bool { return strings.Contains(lines(), "JobId="+last+" ") })
	if n := strings.Count(lines(), "\n"); n != 5 {
		t.Errorf("%d records of five jobs:\n%s", n, lines())
	}
	script := dir + "/script"
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho $JOBID $JOBSTATE $NODES $PROCS "+
		"$EXITCODE >>"+dir+"/told\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf("script", script)
	d.must("scontrol", "reconfigure")
	next := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 2")
	d.wait("the script", func() bool { return textOf(dir+"/told") == next+" FAILED node-001 1 2:0\n" })
}

// TestServerPrograms: the programs of a server that begins to lead and of reservations are called as the reference
// calls them, also by a server that leads later.
func TestServerPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var keys string
	for _, name := range []string{"SlurmctldPrimaryOnProg", "SlurmctldPrimaryOffProg", "ResvProlog", "ResvEpilog"} {
		keys += name + "=" + writeProgram(t, dir, name,
			"#!/bin/sh\necho \"$(basename $0) [$*] $SLURM_CLUSTER_NAME\" >>"+dir+"/log\n") + "\n"
	}
	conf := writeProgram(t, dir, "slurm.conf", "ClusterName=c\n"+keys+"PartitionName=main Nodes=ALL Default=YES\n")
	g := newGroup(t, "--conf", conf)
	logs := func(want string) {
		t.Helper()
		g.wait("the programs to say "+want, func() bool { return textOf(dir+"/log") == want })
	}
	want := "SlurmctldPrimaryOnProg [] c\n"
	logs(want)
	g.join("c1", "s1", "--hollow", "1x4c8g")
	g.wait("the node", func() bool { return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%N") == "node-001" })
	g.must("s1", "scontrol", "create", "reservation", "reservationname=r1", "starttime=now", "duration=1",
		"users=root", "nodes=node-001", "flags=ignore_jobs")
	want += "ResvProlog [r1] c\n"
	logs(want)
	g.must("s1", "scontrol", "delete", "reservation=r1")
	expect(t, "after it was deleted", textOf(dir+"/log"), want)
	for _, s := range []string{"s2", "s3"} {
		g.join(s, "s1", "--conf", conf)
	}
	g.wait("three votes", func() bool { return g.voters("s1") == 3 })
	g.must("s1", "muster", "server", "transfer", "s2")
	g.wait("both programs", func() bool {
		rest, ok := strings.CutPrefix(textOf(dir+"/log"), want)
		on, off := strings.Count(rest, "SlurmctldPrimaryOnProg [] c\n"), strings.Count(rest, "SlurmctldPrimaryOffProg [] c\n")
		return ok && on == 1 && off == 1 && strings.Count(rest, "\n") == 2
	})
}

// TestUnkillable: a job whose processes outlive SIGKILL drains its node until they are gone, and the site's program
// is called.
func TestUnkillable(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/sys/fs/cgroup/freezer/cgroup.procs"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and the freezer of cgroup v1, in which processes outlive SIGKILL")
	}
	dir := t.TempDir()
	program := writeProgram(t, dir, "program",
		"#!/bin/sh\necho $SLURM_JOB_ID $SLURM_STEP_ID $SLURMD_NODENAME >>"+dir+"/log\n")
	conf := writeProgram(t, dir, "slurm.conf",
		"ClusterName=c\nUnkillableStepTimeout=1\n"+
			"UnkillableStepProgram="+program+"\nKillWait=1\nPartitionName=main Nodes=ALL Default=YES\n")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", conf)
	id := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "echo $$ >"+dir+"/pid; exec sleep 600")
	d.wait("it to run", func() bool { return textOf(dir+"/pid") != "" })
	group := "/sys/fs/cgroup/freezer/unkillable-" + strings.TrimSpace(textOf(dir+"/pid"))
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(group+"/"+file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(group) }()
	write("cgroup.procs", textOf(dir+"/pid"))
	write("freezer.state", "FROZEN")
	defer func() { _ = os.WriteFile(group+"/freezer.state", []byte("THAWED"), 0o644) }()
	d.must("scancel", id)
	d.wait("the program", func() bool { return textOf(dir+"/log") == id+" -5 node-001\n" })
	d.wait("the node to drain", func() bool {
		return d.must("sinfo", "-h", "-o", "%t %E") == "drng Kill task failed: job "+id+" has processes that outlive SIGKILL by 1s"
	})
	write("freezer.state", "THAWED")
	d.wait("the node to come back", func() bool { return d.must("sinfo", "-h", "-o", "%t %E") == "idle none" })
	expect(t, "the job", d.must("sacct", "-nXP", "-j", id, "-o", "State"), "CANCELLED by 0")
	expect(t, "the program's calls", textOf(dir+"/log"), id+" -5 node-001\n")
}

// TestWaitForGoneTasks: sbatch --wait knows how tasks ended whose records have left before the array was over.
func TestWaitForGoneTasks(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec", "--conf",
		writeFile(t, "slurm.conf", "ClusterName=c\nMinJobAge=2\nPartitionName=p Nodes=ALL Default=YES\n"))
	script := "if [ $SLURM_ARRAY_TASK_ID = 1 ]; then exit 3; fi; while squeue -h -t all -r -o %K | grep -qx 1; " +
		"do sleep .1; done"
	if out, errs, code := d.run("sbatch", "-W", "--parsable", "--array=1-2", "-o", "/dev/null", "--wrap", script); code != 3 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
