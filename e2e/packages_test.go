package e2e

import (
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var packagesDir = flag.String("packages", "",
	"folder with what make bundle makes: TestPackages installs the packages and the bundle on machines")

// made finds a file of make bundle.
func made(t *testing.T, pattern string) string {
	t.Helper()
	if *packagesDir == "" {
		t.Skip("give -packages=FOLDER with what make bundle has made")
	}
	list, err := filepath.Glob(filepath.Join(*packagesDir, pattern))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %v; want one file", pattern, list, err)
	}
	return list[0]
}

// TestPackages installs the .deb on machines that become a cluster, upgrades it under a job and removes it; and a
// server from the bundle, which gives muster to machines of the other architecture too.
func TestPackages(t *testing.T) {
	deb, bundle := made(t, "muster_*_"+runtime.GOARCH+".deb"), made(t, "muster-bundle-*.tar.gz")
	image := makeImage(t)
	h, err := newHosts(t, 3)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	at := map[string]*machine{
		"s1": boot(t, h, 1, "s1", image), "c1": boot(t, h, 2, "c1", image),
		"b1": boot(t, h, 3, "b1", image),
	}
	for _, m := range at {
		m.booted()
	}
	before := at["c1"].differs()
	for _, n := range []string{"s1", "c1"} {
		at[n].put(deb, "/root/muster.deb")
		at[n].must("dpkg -i muster.deb")
		if out, _ := at[n].run("systemctl is-active muster-server muster-client"); strings.Contains(out, "\nactive") {
			t.Errorf("the package has started something: %s", out)
		}
	}
	out := at["s1"].must("muster install server")
	k := regexp.MustCompile(`sh -s -- client --token (\S+)`).FindStringSubmatch(out)
	if k == nil || strings.Contains(out, "write /usr") {
		t.Fatalf("muster install server on a machine with the package:\n%s", out)
	}
	at["c1"].must("muster install client --join 10.77.0.1 --token " + k[1])
	if out := at["c1"].must("muster install client"); out != "muster: nothing to change\nmuster: c1 is in the cluster as a client" {
		t.Errorf("the second time: %s", out)
	}
	id := startJob(at, "packaged", "c1")
	pid := at["c1"].must("systemctl show -P MainPID muster-client")
	at["c1"].must("dpkg -i muster.deb")
	if now := at["c1"].must("systemctl show -P MainPID muster-client"); now == pid {
		t.Error("an upgrade of the package has not restarted the daemon")
	}
	endJob(t, at, "packaged", "c1", id)
	if out := at["c1"].must("muster install --uninstall"); !strings.Contains(out, "muster came here as a package") {
		t.Errorf("uninstalling says %s", out)
	}
	at["c1"].must("systemctl enable --now slurmd munge && dpkg -r muster")
	if out, _ := at["c1"].run("systemctl is-active muster-client"); strings.TrimSpace(out) == "active" {
		t.Error("the daemon of a package that was removed runs")
	}
	at["c1"].must("test -e /var/lib/muster/trust/key.pem && dpkg --purge muster && rm muster.deb")
	dpkg := regexp.MustCompile(`(?m)^/var/lib/dpkg.*\n?|^/var/cache/ldconfig.*\n?`)
	now, was := dpkg.ReplaceAllString(at["c1"].differs(), ""), dpkg.ReplaceAllString(before, "")
	if strings.TrimSpace(now) != strings.TrimSpace(was) {
		t.Errorf("the package left\n%s\nwhere there was\n%s", now, was)
	}
	checkBundle(t, at, bundle)
}

// checkBundle installs a server from the bundle, from which a machine of the other architecture could be installed.
func checkBundle(t *testing.T, at map[string]*machine, bundle string) {
	at["b1"].put(bundle, "/root/bundle.tar.gz")
	at["b1"].must("tar xf bundle.tar.gz && muster-bundle/install.sh server")
	for _, arch := range []string{"amd64", "arm64"} {
		out := at["s1"].must("curl -fsSI http://10.77.0.3:7440/download/muster-linux-" + arch)
		if !strings.Contains(out, "200 OK") {
			t.Errorf("%s: %s", arch, out)
		}
	}
	if out := at["s1"].must("curl -fsS http://10.77.0.3:7440/install.sh"); !regexp.MustCompile(`sums='amd64 [0-9a-f]{64}\narm64 [0-9a-f]{64}'`).MatchString(out) {
		t.Errorf("the script has not the sums of both:\n%s", out)
	}
	at["b1"].must("echo x >>muster-bundle/muster-linux-" + runtime.GOARCH)
	if out, err := at["b1"].run("muster-bundle/install.sh server"); err == nil || !strings.Contains(out, "this bundle is damaged") {
		t.Errorf("a damaged bundle: %v\n%s", err, out)
	}
}

// TestRPM installs and removes the .rpm in the files of a machine that does not run, as the image is no
// distribution of rpm's.
func TestRPM(t *testing.T) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	rpm, image := made(t, "muster-*."+arch+".rpm"), makeImage(t)
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("rpm is not here")
	}
	h, err := newHosts(t, 1)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	m := boot(t, h, 1, "r1", image)
	m.booted()
	before := m.differs()
	call := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("rpm", append([]string{"--root", m.root()}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	call("-i", "--nodeps", rpm)
	for _, want := range []string{
		"/usr/bin/muster", "/usr/bin/sbatch", "/usr/lib/systemd/system/muster-client.service",
		"/usr/share/man/man1/srun.1", "/etc/muster/client.env",
	} {
		if !strings.Contains(call("-ql", "muster"), want+"\n") {
			t.Errorf("the package has no %s", want)
		}
	}
	if out := m.must("sbatch --version"); !strings.HasPrefix(out, "slurm ") {
		t.Error(out)
	}
	if out := m.must("muster install server"); !strings.Contains(out, "r1 is in the cluster as a server") {
		t.Error(out)
	}
	m.must("systemctl disable --now muster-server && rm -rf /var/lib/muster /run/muster")
	call("-e", "muster")
	rpmdb := regexp.MustCompile(`(?m)^/(var/lib/rpm|usr/lib/sysimage|root/\.rpmdb).*\n?`)
	if now := rpmdb.ReplaceAllString(m.differs(), ""); strings.TrimSpace(now) != strings.TrimSpace(before) {
		t.Errorf("the package left\n%s\nwhere there was\n%s", now, before)
	}
}
