package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAppliance makes a cluster of bare machines by the README, each with a real systemd, and then does with it
// what people do.
func TestAppliance(t *testing.T) {
	image := makeImage(t)
	names := []string{"s1", "s2", "s3", "c1", "c2"}
	h, err := newHosts(t, len(names))
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	at := map[string]*machine{}
	for i, n := range names {
		at[n] = boot(t, h, i+1, n, image)
	}
	for _, m := range at {
		m.booted()
	}
	before := at["c2"].differs()
	at["c1"].must("mkdir -p /etc/systemd/system/muster-client.service.d && printf '[Service]\nOOMScoreAdjust=500\n' >/etc/systemd/system/muster-client.service.d/oom.conf")
	at["s1"].put(filepath.Join(bin, "muster"), "/root/muster")
	began := time.Now()
	vars := []string{"S1=10.77.0.1"}
	var printed string
	for _, b := range readBlocks(t, "../README.md") {
		for _, command := range b.commands {
			from := time.Now()
			out := at[b.on].must(command, vars...)
			t.Logf("%s# %s\n%s\n(%v)", b.on, command, out, time.Since(from).Round(100*time.Millisecond))
			if printed == "" {
				printed = out
				for role, name := range map[string]string{
					"server --and-client": "SERVER_TOKEN", "client": "CLIENT_TOKEN", "login": "LOGIN_TOKEN",
				} {
					k := regexp.MustCompile(`sh -s -- ` + role + ` --token (\S+)`).FindStringSubmatch(out)
					if k == nil {
						t.Fatalf("no command for a %s was printed", role)
					}
					vars = append(vars, name+"="+k[1])
				}
			}
			if strings.HasPrefix(command, "srun") && (!strings.Contains(out, "s1") || !strings.Contains(out, "s2") || !strings.Contains(out, "s3")) {
				t.Errorf("not all nodes have answered")
			}
		}
	}
	t.Logf("the README took %v", time.Since(began).Round(100*time.Millisecond))
	at["s1"].shows("muster server members | grep -c 'leads\\|follows$'", "3")
	checkPrinted(t, at, printed)
	checkTwice(t, at["c2"], vars)
	checkRestart(t, at)
	checkUpgrade(t, at, vars)
	checkGuide(t, at["c2"])
	at["s3"].must("systemctl enable --now slurmd") // guides for a single machine say so on a server
	if out := at["s3"].must("systemctl show -P ActiveState -P NRestarts muster-client"); out != "0\ninactive" && out != "inactive\n0" {
		t.Errorf("on a server, the client is %s", out)
	}
	checkRefusals(t, at["c2"])
	checkUninstall(t, at, before)
	checkComesBack(t, at, vars)
	checkLoss(at)
}

// checkPrinted pastes the command that the first server has printed, first as somebody on the way would change it.
func checkPrinted(t *testing.T, at map[string]*machine, printed string) {
	command := regexp.MustCompile(`(?m)^s=.* client --token .*$`).FindString(printed)
	if out, err := at["c2"].run(strings.Replace(command, " && [", " && s=\"$s #\" && [", 1)); err == nil || strings.Contains(out, "muster") {
		t.Errorf("a changed script was run: %v\n%s", err, out)
	}
	out := at["c2"].must(command)
	if !strings.Contains(out, "muster: c2 is in the cluster as a client") {
		t.Errorf("c2 says %s", out)
	}
	at["s1"].shows("sinfo -hN -t idle -o %N", "c2")
	for file, mode := range map[string]string{"/var/lib/muster/trust": "700", "/var/lib/muster/trust/key.pem": "600"} {
		if out := at["c2"].must("stat -c %a " + file); out != mode {
			t.Errorf("%s has mode %s", file, out)
		}
	}
	token := regexp.MustCompile(`--token (\S+)`).FindStringSubmatch(command)[1]
	if out, err := at["c2"].run("grep -rl '" + token + "' /etc /var /usr/local"); err == nil {
		t.Errorf("the token was left behind in %s", out)
	}
	if out := at["s2"].must("muster token create --install --role login"); !regexp.MustCompile(`^s=\$\(curl -fsSL http://10\.77\.0\.2:7440/install\.sh\) .* sh -s -- login --token mst1\.\S+$`).MatchString(out) {
		t.Errorf("muster token create --install on another server: %s", out)
	}
	if out := at["s1"].must("journalctl --no-pager -u muster-server"); strings.Contains(out, "mst1.") {
		t.Error("a token is in the journal")
	}
}

// checkTwice runs the installer again, with and without --dry-run.
func checkTwice(t *testing.T, m *machine, vars []string) {
	installed := func() string { // the data folder changes all the time
		return regexp.MustCompile(`(?m)^/var/lib/muster.*\n?`).ReplaceAllString(m.differs(), "")
	}
	was, pid := installed(), m.must("systemctl show -P MainPID muster-client")
	for _, more := range []string{"", " --dry-run"} {
		out := m.must("curl -fsSL http://$S1:7440/install.sh | sh -s -- client --token $CLIENT_TOKEN"+more, vars...)
		if !strings.Contains(out, "muster: nothing to change") {
			t.Errorf("the second time it did\n%s", out)
		}
	}
	if now := installed(); now != was || !strings.Contains(was, "/usr/local/bin/muster ") {
		t.Errorf("files have changed:\n%s\n\n%s", was, now)
	}
	if now := m.must("systemctl show -P MainPID muster-client"); now != pid {
		t.Error("the daemon was restarted")
	}
}

// startJob starts a job on a machine that ends when it is told to.
func startJob(at map[string]*machine, name, node string) (id string) {
	at["s1"].must("rm -f /tmp/" + name)
	id = at["s1"].must(fmt.Sprintf("sbatch --parsable -w %s -J %s -o /dev/null --wrap 'until [ -e /tmp/%s ]; do sleep 0.2; done; exit 3'",
		node, name, name))
	at["s1"].shows("squeue -h -j "+id+" -o %T", "RUNNING")
	return id
}

// endJob ends it, and looks whether its end is known as it was, and that it ran but once.
func endJob(t *testing.T, at map[string]*machine, name, node, id string) {
	t.Helper()
	at[node].must("touch /tmp/" + name)
	at["s1"].shows("scontrol show job "+id, "JobState=FAILED")
	if out := at["s1"].must("scontrol show job " + id); !strings.Contains(out, "ExitCode=3:0") || !strings.Contains(out, "Restarts=0") {
		t.Errorf("job %s was not the same to its end:\n%s", id, out)
	}
}

// checkRestart restarts and crashes daemons while jobs run.
func checkRestart(t *testing.T, at map[string]*machine) {
	id := startJob(at, "restarted", "c1")
	at["c1"].must("systemctl restart muster-client")
	at["c1"].shows("systemctl is-active muster-client", "active")
	at["c1"].must("systemctl kill -s KILL --kill-whom=main muster-client")
	at["s1"].shows("sinfo -hN -n c1 -o %T", "mixed")
	endJob(t, at, "restarted", "c1", id)
	id = startJob(at, "stopped", "s3")
	at["s3"].must("systemctl restart muster-server")
	at["s1"].shows("muster server members | grep -c 'leads\\|follows$'", "3")
	endJob(t, at, "stopped", "s3", id)
	if out := at["s1"].must("srun -w c1 cat /proc/self/oom_score_adj"); out != "0" {
		t.Errorf("a job's oom_score_adj is %s", out)
	}
	if !canRaise(t) {
		t.Log("this machine may not raise limits: those of the units were not looked at")
		return
	}
	if out := at["c2"].must("cat /proc/$(systemctl show -P MainPID muster-client)/oom_score_adj"); out != "-900" {
		t.Errorf("the daemon's oom_score_adj is %s", out)
	}
	if out := at["s1"].must("srun -w c1 sh -c 'ulimit -Hl; ulimit -Hn'"); !strings.HasPrefix(out, "unlimited\n1048576") {
		t.Errorf("a job's limits are %s", out)
	}
}

// canRaise reports whether CAP_SYS_RESOURCE is there, without which limits can only be lowered.
func canRaise(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "CapEff:")
	caps, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	return err == nil && caps>>unix.CAP_SYS_RESOURCE&1 == 1
}

// checkUpgrade installs another version while a job runs.
func checkUpgrade(t *testing.T, at map[string]*machine, vars []string) {
	next := filepath.Join(t.TempDir(), "muster")
	if err := build(next, "-ldflags", "-X dev.muster/slurm/front.Version="+nextVersion); err != nil {
		t.Fatal(err)
	}
	id := startJob(at, "upgraded", "c1")
	at["s1"].put(next, "/root/muster")
	if out := at["s1"].must("/root/muster install server"); !strings.Contains(out, "restart muster-server.service; jobs run on") {
		t.Errorf("the server's upgrade did\n%s", out)
	}
	out := at["c1"].must("curl -fsSL http://$S1:7440/install.sh | sh -s -- client", vars...)
	if !strings.Contains(out, "restart muster-client.service; jobs run on") {
		t.Errorf("the client's upgrade did\n%s", out)
	}
	at["c1"].shows("muster --version", nextVersion)
	at["s1"].shows("muster node list | grep ^c1", nextVersion)
	endJob(t, at, "upgraded", "c1", id)
	if out := at["c1"].must("pgrep -f '[i]nternal supervisor' | xargs -I{} readlink /proc/{}/exe"); out != "/usr/local/bin/muster" {
		t.Errorf("the supervisor runs %s", out)
	}
}

var previousProgram = flag.String("previous", "",
	"a program built from an older commit: TestApplianceUpgrade upgrades a cluster from it")

// TestApplianceUpgrade upgrades a cluster from the program of an older commit while jobs run and wait, and reboots
// a machine with jobs: it comes back by itself, its jobs are requeued or failed for that.
func TestApplianceUpgrade(t *testing.T) {
	image := makeImage(t)
	if *previousProgram == "" {
		t.Skip("give -previous=FILE, a program built from an older commit")
	}
	h, err := newHosts(t, 2)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	at := map[string]*machine{"s1": boot(t, h, 1, "s1", image), "c1": boot(t, h, 2, "c1", image)}
	for _, m := range at {
		m.booted()
	}
	s1, c1 := at["s1"], at["c1"]
	s1.put(*previousProgram, "/root/muster")
	k := regexp.MustCompile(`sh -s -- client --token (\S+)`).FindStringSubmatch(s1.must("./muster install server --and-client"))
	if k == nil {
		t.Fatal("no command for a client was printed")
	}
	vars := []string{"S1=10.77.0.1", "CLIENT_TOKEN=" + k[1]}
	c1.must("curl -fsSL http://$S1:7440/install.sh | sh -s -- client --token $CLIENT_TOKEN", vars...)
	was := s1.must("muster --version")
	past := s1.must("sbatch --parsable --wait -o /dev/null --wrap true")
	waits := s1.must("sbatch --parsable -H -o /dev/null --wrap 'exit 4'")
	ids := map[string]string{"c1": startJob(at, "oldc1", "c1"), "s1": startJob(at, "olds1", "s1")}

	s1.put(filepath.Join(bin, "muster"), "/root/muster")
	began := time.Now()
	for name, out := range map[string]string{
		"s1": s1.must("./muster install server"),
		"c1": c1.must("curl -fsSL http://$S1:7440/install.sh | sh -s -- client", vars...),
	} {
		if !strings.Contains(out, "; jobs run on") {
			t.Errorf("the upgrade of %s did\n%s", name, out)
		}
	}
	t.Logf("the upgrade of two machines from %s took %v", was, time.Since(began).Round(100*time.Millisecond))
	now := c1.must("muster --version")
	if now == was {
		t.Errorf("both programs are %s", now)
	}
	s1.shows("sinfo -hN -n c1 -o %T", "mixed")
	for name, id := range ids {
		endJob(t, at, "old"+name, name, id)
	}
	if out := s1.must("sacct -nXP -j " + past + " -o State"); out != "COMPLETED" {
		t.Errorf("a job of before is %s", out)
	}
	s1.must("scontrol release " + waits)
	s1.shows("sacct -nXP -j "+waits+" -o State,ExitCode", "FAILED|4:0")
	checkReboot(t, s1, c1)
}

// checkReboot reboots a machine on which one job runs that may be requeued and one that may not.
func checkReboot(t *testing.T, s1, c1 *machine) {
	s1.shows("sinfo -hN -n c1 -o %T", "idle")
	again := s1.must("sbatch --parsable -w c1 -o /dev/null --wrap 'echo $SLURM_RESTART_COUNT >>/root/ran; [ -n \"$SLURM_RESTART_COUNT\" ] || sleep 600'")
	never := s1.must("sbatch --parsable -w c1 --no-requeue -o /dev/null --wrap 'sleep 600'")
	for _, id := range []string{again, never} {
		s1.shows("squeue -h -j "+id+" -o %T", "RUNNING")
	}
	began := time.Now()
	c1.reboot()
	s1.shows("sacct -nXP -j "+never+" -o State", "NODE_FAIL")
	s1.shows("sacct -nXP -j "+again+" -o State", "COMPLETED")
	s1.shows("sinfo -hN -n c1 -o %T", "idle")
	t.Logf("%v after the reboot began the node was idle and its job done",
		time.Since(began).Round(100*time.Millisecond))
	if out := strings.TrimSpace(c1.must("cat /root/ran")); out != "1" { // the first time it had no number
		t.Errorf("the job ran with restart counts %q", out)
	}
	if out := s1.must("muster why " + never); !strings.Contains(out, "c1") || !strings.Contains(out, "NODE_FAIL") {
		t.Errorf("muster why %s: %s", never, out)
	}
}

// checkGuide types what guides for Slurm say.
func checkGuide(t *testing.T, m *machine) {
	m.must("systemctl enable --now munge && systemctl enable --now slurmdbd && systemctl enable --now slurmd")
	for _, unit := range []string{"munge", "slurmd", "muster-client"} {
		m.shows("systemctl is-active "+unit, "active")
	}
	pid := m.must("systemctl show -P MainPID muster-client")
	m.must("systemctl restart slurmd")
	if now := m.must("systemctl show -P MainPID muster-client"); now == pid {
		t.Error("restarting slurmd has not restarted the client")
	}
	m.must("systemctl stop slurmd")
	m.shows("systemctl is-active muster-client", "inactive")
	m.must("systemctl start slurmd")
	m.shows("sinfo -hN -n c2 -o %T", "idle")
}

// checkRefusals does what must not be done.
func checkRefusals(t *testing.T, m *machine) {
	for command, want := range map[string]string{
		"muster install server":                        "this machine joined as a node",
		"muster install client extra":                  "takes options only",
		"muster install":                               "say what this machine becomes",
		"muster install client --prefix 'a b'":         "want a path like /usr/local",
		"curl -fsS http://10.77.0.1:7440/":             "404",
		"curl -fsS http://10.77.0.1:7440/v1/nodes":     "404",
		"curl -fsS -X POST 10.77.0.1:7440/install.sh":  "405",
		"curl -fsS http://10.77.0.5:7440/install.sh":   "curl: (",
		"curl -fsSk https://10.77.0.1:7440/install.sh": "curl: (",
	} {
		if out, err := m.run(command); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q\n%s", command, err, want, out)
		}
	}
}

// checkUninstall removes everything, but not while a job runs.
func checkUninstall(t *testing.T, at map[string]*machine, before string) {
	m := at["c2"]
	id := startJob(at, "kept", "c2")
	if out, err := m.run("muster install --uninstall"); err == nil || !strings.Contains(out, "node c2 is one of the nodes of job "+id) {
		t.Errorf("while a job ran: %v\n%s", err, out)
	}
	if out, err := at["s3"].run("muster install --uninstall"); err == nil || !strings.Contains(out, "muster server leave s3 first") {
		t.Errorf("of a server of a group: %v\n%s", err, out)
	}
	at["s1"].shows("sinfo -hN -n c2 -o %T", "mixed")
	endJob(t, at, "kept", "c2", id)
	at["s1"].shows("sinfo -hN -n c2 -o %T", "idle")
	out := m.must("muster install --uninstall --purge")
	if now := m.differs(); now != before {
		t.Errorf("uninstalling did\n%s\nand left\n%s\nwhere there was\n%s", out, now, before)
	}
	left, _ := m.run("pgrep -a muster; ls -d /run/muster /sys/fs/cgroup/muster* 2>/dev/null; systemctl list-unit-files --no-legend | grep -i 'muster\\|slurm\\|munge'")
	if left != "" {
		t.Errorf("it left\n%s", left)
	}
}

// checkComesBack installs a machine again: one that has left, and one that was lost and made again.
func checkComesBack(t *testing.T, at map[string]*machine, vars []string) {
	if out := at["s1"].must("sinfo -hN -o %N"); strings.Contains(out, "c2") {
		t.Errorf("the node of a machine that has left is still there: %s", out)
	}
	join := "curl -fsSL http://$S1:7440/install.sh | sh -s -- client --token $CLIENT_TOKEN"
	if out := at["c2"].must(join, vars...); !strings.Contains(out, "muster: c2 is in the cluster as a client") {
		t.Errorf("after it left: %s", out)
	}
	at["s1"].shows("sinfo -hN -n c2 -o %T", "idle")
	at["c2"].must("systemctl stop muster-client; rm -rf /var/lib/muster /usr/local/bin/muster")
	at["s1"].shows("sinfo -hN -n c2 -o %T", "down")
	if out := at["c2"].must(join, vars...); !strings.Contains(out, "muster: c2 is in the cluster as a client") {
		t.Errorf("made anew: %s", out)
	}
	at["s1"].shows("sinfo -hN -n c2 -o %T", "idle")
}

// checkLoss loses one of the three machines by which the cluster began, the one that leads.
func checkLoss(at map[string]*machine) {
	leader := strings.Fields(at["c1"].must("muster server members | grep leads"))[0]
	_ = syscall.Kill(at[leader].init, syscall.SIGKILL) // the machine is gone with it
	<-at[leader].ended
	at["c1"].shows("muster server members", "leads")
	other := map[string]string{"s1": "s2", "s2": "s3", "s3": "s1"}[leader]
	at[other].shows("srun -w c1 hostname", "c1")
}
