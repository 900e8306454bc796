package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// controller is a machine of the network from which Ansible reaches the others by ssh.
type controller struct {
	t   *testing.T
	net string // its network namespace
	dir string // home, inventory, key and collection
}

// TestApplianceAnsible installs, configures, upgrades and removes a cluster with the Ansible collection, on machines
// that systemd has booted and that Ansible reaches by ssh.
func TestApplianceAnsible(t *testing.T) {
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		t.Skip("ansible-playbook is not here (make appliance installs it)")
	}
	image := makeImage(t)
	names := []string{"s1", "s2", "s3", "c1"}
	h, err := newHosts(t, len(names)+1)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	at := map[string]*machine{}
	for i, n := range names {
		at[n] = boot(t, h, i+1, n, image)
	}
	k := newController(t, h.name(len(names)+1), at)
	k.write("page.ini", fenced(t, "automation.md", "ini")[0])
	if out := k.must("ansible-inventory", "-i", k.dir+"/page.ini", "--list"); !strings.Contains(out, `"c8"`) {
		t.Errorf("the inventory of the page: %s", out)
	}
	k.checkUnreachable()
	site := k.play("site")
	checkRecap(t, site, map[string]bool{"s1": true, "s2": true, "s3": true, "c1": true})
	at["s1"].shows("muster server members | grep -c 'leads\\|follows$'", "3")
	at["s3"].shows("srun -w c1 hostname", "c1")
	if out := at["s2"].must("scontrol show config | grep ClusterName"); !strings.Contains(out, "ansible") {
		t.Errorf("the configuration was not applied: %s", out)
	}
	k.checkSecrets(at, site)
	none := map[string]bool{"s1": false, "s2": false, "s3": false, "c1": false}
	checkRecap(t, k.play("site", "--check"), none)
	checkRecap(t, k.play("site"), none)
	checkRecap(t, k.play("site", "-l", "c1"), map[string]bool{"c1": false})
	if out, _ := k.playWithout(); !regexp.MustCompile(`c1 +: ok=\d+ +changed=0 +unreachable=0 +failed=0`).MatchString(out) {
		t.Errorf("a server that is down keeps the nodes from being installed:\n%s", out)
	}
	k.checkUpgrade(at)
	k.checkDrained(at)
	k.checkRemove(at)
}

// TestAnsiblePage: the playbooks and variables exist that the pages name.
func TestAnsiblePage(t *testing.T) {
	page, readme, roles := textOf("../docs/automation.md"), textOf("../packaging/ansible/README.md"), ""
	for _, pattern := range []string{"roles/*/*/*.yml", "playbooks/*.yml"} {
		files, err := filepath.Glob("../packaging/ansible/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			roles += textOf(f)
		}
	}
	for _, name := range regexp.MustCompile(`muster\.cluster\.(\w+)`).FindAllStringSubmatch(page+readme, -1) {
		if _, err := os.Stat("../packaging/ansible/playbooks/" + name[1] + ".yml"); err != nil {
			t.Error(err)
		}
	}
	for _, name := range regexp.MustCompile(`\bmuster_\w+`).FindAllString(page+readme, -1) {
		if !strings.Contains(roles, name) && name != "muster_sha256" { // that one is Terraform's
			t.Errorf("no role uses %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`(?m)^(muster_\w+):`).FindAllStringSubmatch(
		textOf("../packaging/ansible/roles/member/defaults/main.yml"), -1) {
		if !strings.Contains(readme, "`"+name[1]+"`") {
			t.Errorf("the README lacks %s", name[1])
		}
	}
}

// newController lets Ansible into the machines.
func newController(t *testing.T, net string, at map[string]*machine) *controller {
	t.Helper()
	k := &controller{t: t, net: net, dir: t.TempDir()}
	k.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", k.dir+"/key")
	k.must("ansible-galaxy", "collection", "install", "../packaging/ansible", "-p", k.dir)
	key, err := os.ReadFile(k.dir + "/key.pub")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range at {
		m.booted()
		if err := os.MkdirAll(m.root()+"/root/.ssh", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(m.root()+"/root/.ssh/authorized_keys", key, 0o600); err != nil {
			t.Fatal(err)
		}
		m.shows("systemctl is-active ssh", "active")
	}
	program, err := filepath.Abs(filepath.Join(bin, "muster"))
	if err != nil {
		t.Fatal(err)
	}
	k.write("inventory.ini", "[muster_servers]\ns1 ansible_host=10.77.0.1\ns2 ansible_host=10.77.0.2\n"+
		"s3 ansible_host=10.77.0.3\n[muster_clients]\nc1 ansible_host=10.77.0.4\n[all:vars]\nansible_user=root\n"+
		"ansible_ssh_private_key_file="+k.dir+"/key\nansible_python_interpreter=/usr/bin/python3\n"+
		"muster_program="+program+"\nmuster_config_dir="+k.dir+"/config\n")
	k.write("config/slurm.conf", "ClusterName=ansible\nPartitionName=main Nodes=ALL Default=YES MaxTime=60\n")
	return k
}

// write writes a file below the controller's folder.
func (k *controller) write(name, text string) {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// run runs a command in the controller's network.
func (k *controller) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", k.net, name}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.dir, "LANG=C.UTF-8", "ANSIBLE_COLLECTIONS_PATH=" + k.dir,
		"ANSIBLE_HOST_KEY_CHECKING=False", "ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=False"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must runs a command that has to succeed.
func (k *controller) must(name string, args ...string) string {
	k.t.Helper()
	out, err := k.run(name, args...)
	if err != nil {
		k.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// play runs a playbook of the collection, and prints how long it took.
func (k *controller) play(name string, args ...string) string {
	k.t.Helper()
	began := time.Now()
	out := k.must("ansible-playbook", append([]string{"-v", "-i", k.dir + "/inventory.ini", "muster.cluster." + name}, args...)...)
	k.t.Logf("%s %s took %v", name, strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	return out
}

// checkRecap compares the machines that a playbook has changed with those that it should change.
func checkRecap(t *testing.T, out string, want map[string]bool) {
	t.Helper()
	rows := regexp.MustCompile(`(?m)^(\w+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0`).FindAllStringSubmatch(out, -1)
	if len(rows) != len(want) {
		t.Errorf("%d machines of %d are well", len(rows), len(want))
	}
	for _, r := range rows {
		if changed := r[2] != "0"; changed != want[r[1]] {
			t.Errorf("%s: %s tasks changed it:\n%s", r[1], r[2], out)
		}
	}
}

// playWithout plays the site with an inventory of which the server s3 is not there.
func (k *controller) playWithout(args ...string) (string, error) {
	k.write("unreachable.ini", strings.Replace(textOf(k.dir+"/inventory.ini"), "=10.77.0.3", "=10.77.0.9", 1))
	return k.run("ansible-playbook", append([]string{"-T", "5", "-i", k.dir + "/unreachable.ini", "muster.cluster.site"},
		args...)...)
}

// checkUnreachable plays while one server is not there: no cluster may be created.
func (k *controller) checkUnreachable() {
	for _, args := range [][]string{nil, {"-l", "s1,s2"}} {
		out, err := k.playWithout(args...)
		if err == nil || !strings.Contains(out, "so a second cluster might be created") {
			k.t.Errorf("without one of the servers, %q: %v\n%s", args, err, out)
		}
	}
}

// checkDrained upgrades a node that somebody has drained: it stays drained.
func (k *controller) checkDrained(at map[string]*machine) {
	at["s1"].must("scontrol update nodename=c1 state=drain reason=fan")
	k.play("upgrade", "-l", "c1")
	if out := at["s1"].must("sinfo -hN -n c1 -o '%T %E'"); out != "drained fan" {
		k.t.Errorf("a node that was drained before the upgrade is %s", out)
	}
	if list := at["s1"].must("muster node list | grep ^c1"); strings.Contains(list, nextVersion) {
		k.t.Errorf("it was not installed: %s", list)
	}
}

// checkSecrets looks for join tokens where they must not be, and for files that a play should have removed.
func (k *controller) checkSecrets(at map[string]*machine, out string) {
	if strings.Contains(out, "mst1.") {
		k.t.Error("Ansible has printed a token")
	}
	for name, m := range at {
		left, _ := m.run("ls -d /run/muster-* 2>/dev/null; grep -rlE 'mst1[.][0-9a-f]{64}' /etc /root /run /tmp /var/lib /usr/local")
		if left != "" {
			k.t.Errorf("on %s there is %s", name, left)
		}
		if out := m.must("journalctl --no-pager"); strings.Contains(out, "mst1.") {
			k.t.Errorf("a token is in the journal of %s", name)
		}
	}
	for line := range strings.Lines(at["s1"].must("muster token list | tail -n +2")) {
		if f := strings.Fields(line); len(f) > 2 && f[2] != "0" {
			k.t.Errorf("a token can still be used: %s", line)
		}
	}
}

// checkUpgrade installs another version while a job runs: the play waits for the job.
func (k *controller) checkUpgrade(at map[string]*machine) {
	next := filepath.Join(k.t.TempDir(), "muster")
	if err := build(next, "-ldflags", "-X dev.muster/slurm/front.Version="+nextVersion); err != nil {
		k.t.Fatal(err)
	}
	id := startJob(at, "upgraded", "c1")
	ended := make(chan string, 1)
	go func() { // the job ends once the node is drained
		at["s1"].shows("sinfo -hN -n c1 -o %T", "draining")
		ended <- at["s1"].must("squeue -h -j " + id + " -o %T")
		endJob(k.t, at, "upgraded", "c1", id)
	}()
	out := k.play("upgrade", "-e", "muster_program="+next)
	if state := <-ended; state != "RUNNING" {
		k.t.Errorf("while the node was drained, the job was %s", state)
	}
	checkRecap(k.t, out, map[string]bool{"s1": true, "s2": true, "s3": true, "c1": true})
	list := at["s1"].must("muster node list")
	if n := strings.Count(list, nextVersion); n != len(at) {
		k.t.Errorf("%d members of %d have the new version:\n%s", n, len(at), list)
	}
	at["s1"].shows("sinfo -hN -n c1 -o %T", "idle")
	checkRecap(k.t, k.play("upgrade", "-e", "muster_program="+next),
		map[string]bool{"s1": false, "s2": false, "s3": false, "c1": false})
}

// checkRemove removes a node and a server, twice.
func (k *controller) checkRemove(at map[string]*machine) {
	args := []string{"-e", "muster_remove_hosts=c1,s3", "-e", "muster_purge=true"}
	checkRecap(k.t, k.play("remove", args...), map[string]bool{"c1": true, "s3": true})
	checkRecap(k.t, k.play("remove", args...), map[string]bool{"c1": false, "s3": false})
	at["s1"].shows("muster server members | grep -c 'leads\\|follows$'", "2")
	for _, name := range []string{"c1", "s3"} {
		left, _ := at[name].run("pgrep -a muster; ls -d /usr/local/bin/muster /usr/local/lib/muster /var/lib/muster /etc/muster 2>/dev/null")
		if left != "" {
			k.t.Errorf("%s still has\n%s", name, left)
		}
	}
	if out := at["s1"].must("sinfo -hN -o %N"); strings.Contains(out, "c1") {
		k.t.Errorf("the node is still there: %s", out)
	}
}
