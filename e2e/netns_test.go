package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// hosts is a network of its own: a bridge, and a network namespace for each host. Front-ends reach daemons
// there by their sockets in the file system.
type hosts struct {
	t      *testing.T
	prefix string
	disk   string // size of a member's own disk, e.g. 64m; empty for the machine's
	block  bool   // it is one that can hang
}

// mount gives a member a disk of its own for its data.
func (h *hosts) mount(dir string) {
	h.t.Helper()
	if h.block {
		if err := h.blockDisk(dir); err != nil {
			h.t.Logf("no disk hangs: %v", err)
			h.block = false
		}
		return
	}
	if h.disk == "" {
		return
	}
	data := dir + "/d"
	if err := os.Mkdir(data, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size="+h.disk); err != nil {
		h.t.Fatal(err)
	}
}

// unmount takes it away when the member has ended.
func (h *hosts) unmount(dir string) {
	if h.disk != "" || h.block {
		_ = syscall.Unmount(dir+"/d", syscall.MNT_DETACH) // perhaps it never was there
	}
}

// fill leaves no room on a member's disk until free.
func (h *hosts) fill(dir string) {
	f, err := os.Create(dir + "/d/fill")
	if err != nil {
		h.t.Error(err)
		return
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		if _, err := f.Write(block); err != nil {
			return // full
		}
	}
}

func (h *hosts) free(dir string) {
	if err := os.Remove(dir + "/d/fill"); err != nil {
		h.t.Error(err)
	}
}

var networks atomic.Int32

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Environment of a test that runs again as root of a user namespace of its own.
const (
	withinEnv = "MUSTER_E2E_WITHIN" // set there
	binEnv    = "MUSTER_E2E_BIN"    // folder with the binary
)

// again runs the test once more as root of namespaces of its own, for an ordinary user.
func again(t *testing.T) error {
	if out, err := exec.Command("unshare", "-Urnm", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("no user namespaces: %w: %s", err, out)
	}
	cmd := exec.Command("unshare", append([]string{
		"-Urnm", os.Args[0], "-test.run", "^" + t.Name() + "$", "-test.v",
	}, givenFlags()...)...)
	cmd.Env = append(os.Environ(), withinEnv+"=1", binEnv+"="+bin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as root of a user namespace: %v\n%s", err, out)
	}
	t.Skipf("passed as root of a user namespace:\n%s", out)
	return nil
}

// givenFlags are this package's flags as they were given.
func givenFlags() (args []string) {
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// newHosts makes n hosts, or says why it cannot.
func newHosts(t *testing.T, n int) (*hosts, error) {
	if os.Getuid() != 0 {
		return nil, again(t)
	}
	if os.Getenv(withinEnv) != "" { // /run is of the machine's root
		if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
			return nil, fmt.Errorf("mount a /run of its own: %w", err)
		}
	}
	h := &hosts{t: t, prefix: fmt.Sprintf("mt%d-%d", os.Getpid(), networks.Add(1))}
	t.Cleanup(func() { h.down(n) })
	steps := [][]string{{"netns", "add", h.prefix + "-sw"},
		{"-n", h.prefix + "-sw", "link", "add", "br0", "type", "bridge"},
		{"-n", h.prefix + "-sw", "link", "set", "br0", "up"}}
	for i := 1; i <= n; i++ {
		ns, far, near := h.name(i), fmt.Sprintf("h%d", i), fmt.Sprintf("s%d", i)
		steps = append(steps, []string{"netns", "add", ns},
			[]string{"-n", h.prefix + "-sw", "link", "add", near, "type", "veth", "peer", "name", far, "netns", ns},
			[]string{"-n", h.prefix + "-sw", "link", "set", near, "master", "br0", "up"},
			[]string{"-n", ns, "link", "set", "lo", "up"}, []string{"-n", ns, "link", "set", far, "name", "eth0"},
			[]string{
				"-n", ns, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i), "dev", "eth0",
			}, []string{"-n", ns, "link", "set", "eth0", "up"})
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *hosts) name(i int) string { return fmt.Sprintf("%s-n%d", h.prefix, i) }

func (h *hosts) down(n int) {
	for i := 1; i <= n; i++ {
		_ = ip("netns", "del", h.name(i)) // some were never made
	}
	_ = ip("netns", "del", h.prefix+"-sw")
}

// cut takes a host off the network; heal brings it back.
func (h *hosts) cut(i int)  { h.set(i, "down") }
func (h *hosts) heal(i int) { h.set(i, "up") }

func (h *hosts) set(i int, state string) {
	if err := ip("-n", h.prefix+"-sw", "link", "set", fmt.Sprintf("s%d", i), state); err != nil {
		h.t.Error(err)
	}
}

// mute makes one host's packets to another one vanish, the other direction works; unmute ends that.
func (h *hosts) mute(from, to int)   { h.route("add", from, to) }
func (h *hosts) unmute(from, to int) { h.route("del", from, to) }

func (h *hosts) route(what string, from, to int) {
	if err := ip("-n", h.name(from), "route", what, "blackhole", fmt.Sprintf("10.77.0.%d/32", to)); err != nil {
		h.t.Error(err)
	}
}

// TestOrdinaryUser runs a test that needs hosts as a user who is not root.
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the other tests run as an ordinary user already")
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	test := filepath.Join(bin, "e2e.test") // where others may read it
	if err := os.WriteFile(test, self, 0o755); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	const nobody = 65534
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(test, "-test.run", "^TestSilentHost$", "-test.v")
	cmd.Dir, cmd.Env = home, append(os.Environ(), binEnv+"="+bin, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(string(out), "no user namespaces"):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "passed as root of a user namespace"):
		t.Errorf("it did not run:\n%s", out)
	}
}
