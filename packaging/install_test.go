package packaging

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/slurm"
)

// host is a machine in a folder, and what was told of it.
type host struct {
	*Installer
	t   *testing.T
	out bytes.Buffer
}

func newHost(t *testing.T, role string) *host {
	t.Helper()
	source := filepath.Join(t.TempDir(), "muster")
	if err := os.WriteFile(source, []byte("program 1"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t}
	h.Installer = &Installer{Role: role, Root: t.TempDir(), Prefix: "/usr/local", Source: source,
		FrontEnds: []string{"sbatch", "srun", "squeue"},
		Files:     []File{{"share/man/man1/sbatch.1", "manual"}}, Out: &h.out}
	return h
}

func (h *host) put(p, text string) {
	h.t.Helper()
	p = filepath.Join(h.Root, p)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o755)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(p string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Root, p))
	if err != nil {
		h.t.Error(err)
	}
	return string(text)
}

// files are all the files and links of the machine, and what they hold.
func (h *host) tree() string {
	h.t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(h.Root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rest, _ := filepath.Rel(h.Root, p)
		all.WriteString("/" + rest)
		if to, err := os.Readlink(p); err == nil {
			all.WriteString(" -> " + to)
		} else {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			all.WriteString(": " + string(text))
		}
		all.WriteString("\n")
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	return all.String()
}

func (h *host) install() string {
	h.t.Helper()
	h.out.Reset()
	if err := h.Install(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	return h.out.String()
}

func (h *host) uninstall(purge bool) string {
	h.t.Helper()
	h.out.Reset()
	if err := h.Uninstall(context.Background(), purge); err != nil {
		h.t.Fatal(err)
	}
	return h.out.String()
}

// TestInstallTwice installs, finds nothing to do the second time, and leaves nothing when it is removed.
func TestInstallTwice(t *testing.T) {
	h := newHost(t, Client)
	h.put("/usr/local/bin/other", "not ours")
	before := h.tree()
	h.DryRun = true
	if out := h.install(); !strings.Contains(out, "would write /usr/local/bin/muster\n") || h.tree() != before {
		t.Errorf("a dry run changed something, or did not tell:\n%s\n%s", out, h.tree())
	}
	h.DryRun = false
	h.install()
	after := h.tree()
	for _, want := range []string{"/usr/local/bin/muster: program 1\n", "/usr/local/bin/squeue -> muster\n",
		"/etc/systemd/system/muster-client.service: ", "/etc/systemd/system/munge.service: ",
		"/usr/local/share/man/man1/sbatch.1: manual\n",
		"ExecStart=/usr/local/bin/muster client $MUSTER_OPTIONS\n", "/etc/muster/client.env: "} {
		if !strings.Contains(after, want) {
			t.Errorf("%q is not there:\n%s", want, after)
		}
	}
	if out := h.install(); out != "muster: nothing to change\n" || h.tree() != after {
		t.Errorf("the second time: %s", out)
	}
	h.put("/etc/muster/client.env", "MUSTER_OPTIONS=--log-level debug\n")
	if out := h.install(); out != "muster: nothing to change\n" {
		t.Errorf("an edited configuration: %s", out)
	}
	if err := os.WriteFile(h.Source, []byte("program 2"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.Files = nil
	if out := h.install(); h.read("/usr/local/bin/muster") != "program 2" || !strings.Contains(out,
		"remove /usr/local/share/man/man1/sbatch.1") {
		t.Errorf("an upgrade:\n%s", out)
	}
	h.uninstall(false)
	if h.read("/etc/muster/client.env") == "" {
		t.Error("the configuration is gone")
	}
	h.uninstall(true)
	if h.tree() != before {
		t.Errorf("it left\n%s", h.tree())
	}
	for _, dir := range []string{"/usr/local/share/muster", "/etc/muster", "/var/lib/muster"} {
		if (disk{h.Root}).exists(dir) {
			t.Errorf("it left %s", dir)
		}
	}
	if out := h.uninstall(true); out != "muster: nothing to remove\n" {
		t.Error(out)
	}
}

// TestInstallSlurm leaves an installed Slurm alone, unless it is told to take its place, and brings it back.
func TestInstallSlurm(t *testing.T) {
	for what, put := range map[string]func(*host){
		"its commands in the way": func(h *host) { h.put("/usr/local/bin/srun", "slurm") },
		"its commands elsewhere":  func(h *host) { h.put("/usr/bin/srun", "slurm") },
		"its units": func(h *host) {
			h.put("/usr/lib/systemd/system/slurmd.service", "[Unit]\nDescription=Slurm node daemon")
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t, Client)
			put(h)
			before := h.tree()
			err := h.Install(context.Background())
			if err == nil || !strings.Contains(err.Error(), "--replace-slurm") || h.tree() != before {
				t.Errorf("it said %v and left\n%s", err, h.tree())
			}
			h.ReplaceSlurm = true
			h.install()
			h.ReplaceSlurm = false // an upgrade need not say it again
			after := h.tree()
			if !strings.Contains(after, "/usr/local/bin/srun -> muster\n") || !strings.Contains(after,
				"/etc/systemd/system/slurmd.service: ") {
				t.Errorf("with --replace-slurm:\n%s", after)
			}
			if out := h.install(); out != "muster: nothing to change\n" || h.tree() != after {
				t.Errorf("the second time: %s", out)
			}
			if h.uninstall(true); h.tree() != before {
				t.Errorf("it left\n%s", h.tree())
			}
		})
	}
	h := newHost(t, Client)
	h.put("/usr/lib/systemd/system/munge.service", "[Unit]\nDescription=MUNGE")
	h.install()
	if (disk{h.Root}).exists("/etc/systemd/system/munge.service") {
		t.Error("munge's unit was hidden")
	}
}

// TestInstallMoreNames: names that another program of the machine has are not linked, whichever folder it is in.
func TestInstallMoreNames(t *testing.T) {
	h := newHost(t, Client)
	h.MoreNames = []string{"mungekey", "create-munge-key"}
	h.put("/usr/sbin/mungekey", "munge's")
	h.install()
	if after := h.tree(); !strings.Contains(after, "/usr/local/bin/create-munge-key -> muster\n") ||
		strings.Contains(after, "/usr/local/bin/mungekey") {
		t.Errorf("it linked\n%s", after)
	}
	h.put("/usr/sbin/create-munge-key", "munge's") // installed later
	if h.install(); strings.Contains(h.tree(), "/usr/local/bin/create-munge-key") {
		t.Errorf("it left\n%s", h.tree())
	}
}

// TestInstallOptions: the options of the daemon go into its file, and stay there.
func TestInstallOptions(t *testing.T) {
	h := newHost(t, Login)
	h.Options = "--node l1"
	h.install()
	h.Options = ""
	if out := h.install(); !strings.Contains(h.read("/etc/muster/client.env"),
		"\nMUSTER_OPTIONS=--login --node l1\n") || out != "muster: nothing to change\n" {
		t.Errorf("%s%s", out, h.read("/etc/muster/client.env"))
	}
	h.put("/etc/muster/client.env", envFile[:strings.Index(envFile, "@")]+"\n") // as a package brings it
	h.install()
	if !strings.Contains(h.read("/etc/muster/client.env"), "\nMUSTER_OPTIONS=--login\n") {
		t.Error("a package's file was left without --login")
	}
	h.Options = "--node l1\nExecStart=x"
	if err := h.Install(context.Background()); err == nil {
		t.Error("two lines were taken")
	}
}

// TestInstallHardening: a server that runs no jobs is restricted, and no longer once it runs some.
func TestInstallHardening(t *testing.T) {
	h := newHost(t, Server)
	h.install()
	if text := h.read(hardeningFile); !strings.Contains(text, "ProtectKernelTunables=yes") {
		t.Errorf("%s: %q", hardeningFile, text)
	}
	h.Options = "--and-client"
	h.install()
	if (disk{h.Root}).exists(hardeningFile) {
		t.Error("a server that runs jobs is restricted")
	}
	h.Options = "" // the options stay, and so does this
	if out := h.install(); out != "muster: nothing to change\n" {
		t.Error(out)
	}
	h.Options = "--bootstrap-expect 3"
	h.install()
	if h.uninstall(false); (disk{h.Root}).exists(hardeningFile) || (disk{h.Root}).exists(filepath.Dir(hardeningFile)) {
		t.Errorf("left is\n%s", h.tree())
	}
	client := newHost(t, Client)
	client.install()
	if (disk{client.Root}).exists(hardeningFile) {
		t.Error("a client has the restrictions of a server")
	}
}

// TestInstallBundle: programs for other architectures that lie beside the one to install are kept to be given out.
func TestInstallBundle(t *testing.T) {
	h := newHost(t, Server)
	if err := os.WriteFile(filepath.Join(filepath.Dir(h.Source), "muster-linux-"+other()), []byte("other"),
		0o755); err != nil {
		t.Fatal(err)
	}
	h.install()
	if h.read("/var/lib/muster/download/muster-linux-"+other()) != "other" {
		t.Error("it holds something else")
	}
}

// TestUninstallForeign: what somebody has put in the place of a link is not removed, and a broken list harms nothing.
func TestUninstallForeign(t *testing.T) {
	h := newHost(t, Client)
	h.install()
	if err := os.Remove(filepath.Join(h.Root, "/usr/local/bin/srun")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/opt/slurm/bin/srun", filepath.Join(h.Root, "/usr/local/bin/srun")); err != nil {
		t.Fatal(err)
	}
	h.put("/etc/passwd", "root")
	h.put(h.listFile(), h.read(h.listFile())+"\n../../etc/passwd\n/usr/local/../../etc/passwd\n/\n")
	h.uninstall(true)
	if h.read("/etc/passwd") != "root" || !strings.Contains(h.tree(), "srun -> /opt/slurm/bin/srun") {
		t.Errorf("left is\n%s", h.tree())
	}
}

// fakeSystemd answers systemctl.
type fakeSystemd struct {
	enabled, active string
	calls           []string
}

func (f *fakeSystemd) command(_ context.Context, name string, args ...string) (string, error) {
	switch line := name + " " + strings.Join(args, " "); args[0] {
	case "is-enabled":
		return f.enabled + "\n", nil
	case "is-active":
		return f.active + "\n", nil
	case "show":
		return "0\n", nil
	default:
		f.calls = append(f.calls, line)
	}
	return "", nil
}

// TestStart starts the daemon once, restarts it when its program has changed, and lets it run when nothing has.
func TestStart(t *testing.T) {
	h := newHost(t, Client)
	s := &fakeSystemd{enabled: "disabled", active: "inactive"}
	waited := 0
	h.Command, h.Systemd, h.Ready = s.command, true, func(context.Context) error { waited++; return nil }
	try := func(want ...string) {
		t.Helper()
		s.calls, h.changed = nil, map[string]bool{}
		actions, err := h.files(false)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.do(actions); err != nil {
			t.Fatal(err)
		}
		root := h.Root
		h.Root = "" // the files are in a folder, the commands are this machine's
		err = h.start(context.Background())
		h.Root = root
		if got := strings.Join(s.calls, "; "); err != nil || got != strings.Join(want, "; ") {
			t.Errorf("it did %q, want %q: %v", got, want, err)
		}
	}
	try("systemctl daemon-reload", "systemctl enable --quiet muster-client.service",
		"systemctl start muster-client.service")
	s.enabled, s.active = "enabled", "active"
	try()
	if err := os.WriteFile(h.Source, []byte("program 2"), 0o755); err != nil {
		t.Fatal(err)
	}
	try("systemctl restart muster-client.service")
	h.Options = "--node n1"
	try("systemctl restart muster-client.service")
	if waited != 3 {
		t.Errorf("it waited %d times for the daemon", waited)
	}
}

// TestInstallPackaged: files of a package are the package's.
func TestInstallPackaged(t *testing.T) {
	h := newHost(t, Client)
	h.put(packagedFile, "")
	before := h.tree()
	if err := h.Install(context.Background()); err == nil || !strings.Contains(err.Error(),
		"installed here as a package") || h.tree() != before {
		t.Errorf("another program: %v", err)
	}
	h.Source = "/usr/bin/muster"
	h.put("/usr/bin/muster", "packaged")
	h.install()
	if (disk{h.Root}).exists("/usr/local") || (disk{h.Root}).exists(unitDir) || !(disk{h.Root}).exists("/etc/muster/client.env") {
		t.Errorf("it made\n%s", h.tree())
	}
	if out := h.install(); out != "muster: nothing to change\n" {
		t.Error(out)
	}
}

// TestHints tells of a firewall, and of a prefix that is in no path.
func TestHints(t *testing.T) {
	h := newHost(t, Client)
	h.Prefix, h.Systemd = "/opt/muster", true
	h.Command = func(_ context.Context, _ string, args ...string) (string, error) {
		if args[0] == "is-active" && args[1] == "firewalld" {
			return "active\n", nil
		}
		return "inactive\n", errors.New("exit status 3")
	}
	h.hints(context.Background())
	if out := h.out.String(); !strings.Contains(out, "/opt/muster/bin is not in your PATH") || !strings.Contains(out,
		"firewall-cmd --permanent --add-port=7440/tcp") || strings.Contains(out, "ufw") {
		t.Error(out)
	}
}

// TestPackageLists: what lists the front-ends and the units by hand has them all.
func TestPackageLists(t *testing.T) {
	text, err := os.ReadFile("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range slurm.FrontEnds() {
		if !strings.Contains(string(text), "/usr/bin/"+n+",") {
			t.Errorf("the packages have no %s", n)
		}
	}
	units, err := Units("/usr/bin/muster")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		if !strings.Contains(string(text), "/"+u.Name) {
			t.Errorf("the packages have no %s", u.Name)
		}
	}
}

// TestSiblings: of what lies beside the program a server gives others only what nobody else can have put there.
func TestSiblings(t *testing.T) {
	dir := t.TempDir()
	i := &Installer{Role: Server, Root: t.TempDir(), Source: filepath.Join(dir, "muster"), Out: io.Discard}
	file := filepath.Join(dir, programName+architectures[0])
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		owner int
		want  int
	}{{"its own", 0o755, os.Getuid(), 1}, {"others may write it", 0o777, os.Getuid(), 0}, {"another user's", 0o755, 65534, 0}} {
		if c.owner != os.Getuid() && os.Getuid() != 0 {
			continue
		}
		if err := os.WriteFile(file, []byte("a program"), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chown(file, c.owner, -1), os.Chmod(file, c.mode)); err != nil {
			t.Fatal(err)
		}
		list, err := i.siblings()
		if err != nil || len(list) != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, len(list), err, c.want)
		}
	}
}
