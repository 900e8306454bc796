package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var applianceImage = flag.String("appliance", "",
	"folder of an image with systemd, which is made with debootstrap if it is not there: TestAppliance and TestPackages boot machines of it (minutes)")

// imagePackages are what an image has besides a minimal Debian: systemd, what the README uses, and what Ansible needs.
const imagePackages = "systemd,systemd-sysv,dbus,curl,iproute2,procps,openssh-server,python3"

// makeImage makes the image once.
func makeImage(t *testing.T) string {
	t.Helper()
	return makeImageWith(t, *applianceImage, imagePackages, "/usr/sbin/sshd") // older images have no sshd
}

// makeImageWith makes an image of some packages once; it is there if it has a file.
func makeImageWith(t *testing.T, image, packages, file string) string {
	t.Helper()
	if *applianceImage == "" {
		t.Skip("give -appliance=FOLDER to boot machines")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can boot machines")
	}
	for _, p := range []string{"systemd-nspawn", "debootstrap"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not here (make appliance installs it)", p)
		}
	}
	if _, err := os.Stat(image + file); err == nil {
		return image
	}
	began, fresh := time.Now(), image+".new"
	if err := os.RemoveAll(fresh); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("debootstrap", "--variant=minbase", "--include="+packages, "stable", fresh).CombinedOutput(); err != nil {
		t.Fatalf("make the image: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	if err := errors.Join(os.RemoveAll(image), os.Rename(fresh, image)); err != nil {
		t.Fatal(err)
	}
	t.Logf("the image took %v", time.Since(began).Round(time.Second))
	return image
}

// machine is one that systemd has booted: processes, files and network of its own.
type machine struct {
	t     *testing.T
	name  string
	net   string // its network namespace
	dir   string // with its root, and what differs from the image
	nsp   *exec.Cmd
	init  int // its process 1, as seen from here
	out   bytes.Buffer
	ended chan struct{}
	// groups are its control groups, in each hierarchy that systemd uses: machines must not share them.
	groups []string
}

func (m *machine) root() string { return m.dir + "/root" }

// boot starts a machine on a host of the test's network.
func boot(t *testing.T, h *hosts, i int, name, image string) *machine {
	t.Helper()
	m := newMachine(t, h, i, name, image)
	m.start()
	return m
}

// newMachine makes a machine that is off.
func newMachine(t *testing.T, h *hosts, i int, name, image string) *machine {
	t.Helper()
	m := &machine{t: t, name: name, net: "/run/netns/" + h.name(i)}
	var err error
	if m.dir, err = os.MkdirTemp("", "m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.destroy)
	for _, d := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(m.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", image, m.dir, m.dir)
	if err := syscall.Mount("overlay", m.root(), "overlay", 0, options); err != nil {
		t.Fatalf("mount: %v", err)
	}
	for file, text := range map[string]string{"/etc/hostname": name + "\n", "/etc/machine-id": ""} {
		if err := os.WriteFile(m.root()+file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.groups = ownGroups(t, filepath.Base(m.dir)+"-"+name)
	return m
}

// start switches the machine on.
func (m *machine) start() {
	m.t.Helper()
	m.init, m.ended = 0, make(chan struct{})
	const inside = `for g in $0; do echo $$ >"$g/cgroup.procs" || exit; done; exec "$@"`
	m.nsp = exec.Command("sh", "-c", inside, strings.Join(m.groups, " "), "systemd-nspawn", "-q", "-D", m.root(), "-b", "--register=no", "--keep-unit", "--machine="+m.name, "--hostname="+m.name,
		"--network-namespace-path="+m.net, "--console=read-only", "--resolv-conf=off", "--timezone=off")
	m.nsp.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	m.nsp.Stdout, m.nsp.Stderr = &m.out, &m.out
	m.nsp.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := m.nsp.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(m.nsp, m.ended)
}

// reboot restarts the machine as its administrator does.
func (m *machine) reboot() {
	m.t.Helper()
	_, _ = m.run("systemctl reboot") // it goes away under the command
	select {
	case <-m.ended:
	case <-time.After(patience(90 * time.Second)):
		m.t.Fatalf("%s has not gone down", m.name)
	}
	m.start()
	m.booted()
}

// ownGroups makes a control group in cgroup v2, and where systemd's own hierarchy of v1 is there, in that too.
func ownGroups(t *testing.T, name string) (list []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		front, back, _ := strings.Cut(line, " - ")
		f := strings.Fields(front)
		if len(f) < 5 || !strings.HasPrefix(f[4], "/sys/fs/cgroup") || !strings.HasPrefix(back, "cgroup2 ") && !strings.Contains(back, "name=systemd") {
			continue
		}
		dir := filepath.Join(f[4], name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		list = append(list, dir)
	}
	return list
}

// dropGroups removes control groups, those below first.
func dropGroups(list []string) {
	for _, g := range list {
		var all []string
		_ = filepath.WalkDir(g, func(p string, d fs.DirEntry, err error) error { // what is gone is gone
			if err == nil && d.IsDir() {
				all = append(all, p)
			}
			return nil
		})
		for i := len(all) - 1; i >= 0; i-- {
			_ = os.Remove(all[i])
		}
	}
}

// booted waits until a machine has booted.
func (m *machine) booted() {
	m.t.Helper()
	m.wait("it to boot", func() bool {
		select {
		case <-m.ended:
			m.t.Fatalf("%s ended:\n%s", m.name, &m.out)
		default:
		}
		if m.init == 0 {
			m.init = firstChild(m.nsp.Process.Pid)
		}
		if m.init == 0 {
			return false
		}
		out, _ := m.run("systemctl is-system-running")
		return strings.HasPrefix(out, "running") || strings.HasPrefix(out, "degraded")
	})
}

// firstChild is the process that systemd-nspawn has made process 1 of a machine.
func firstChild(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	for _, w := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(w); err == nil {
			if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", n)); err == nil && strings.TrimSpace(string(comm)) == "systemd" {
				return n
			}
		}
	}
	return 0
}

// run types a command as root.
func (m *machine) run(command string, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	argv := append([]string{"-t", strconv.Itoa(m.init), "-m", "-u", "-i", "-n", "-p", "-C",
		"--wd=/proc/" + strconv.Itoa(m.init) + "/root/root", "env", "-i", "HOME=/root", "USER=root",
		"TERM=dumb",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	cmd := exec.CommandContext(ctx, "nsenter", append(argv, "sh", "-c", command)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must types a command that has to succeed.
func (m *machine) must(command string, env ...string) string {
	m.t.Helper()
	out, err := m.run(command, env...)
	if err != nil {
		log, _ := m.run("journalctl --no-pager -n 40 -u 'muster*'")
		m.t.Fatalf("%s# %s\n%s%v\n%s", m.name, command, out, err, log)
	}
	return strings.TrimSpace(out)
}

// wait waits for something.
func (m *machine) wait(what string, ok func() bool) {
	m.t.Helper()
	for end := time.Now().Add(patience(90 * time.Second)); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := m.run("journalctl --no-pager -n 40; systemctl --failed --no-pager")
			m.t.Fatalf("%s: waited too long for %s\n%s", m.name, what, log)
		}
	}
}

// shows waits until a command shows something.
func (m *machine) shows(command, want string) {
	m.t.Helper()
	m.wait(fmt.Sprintf("%s to show %q", command, want), func() bool {
		out, _ := m.run(command)
		return strings.Contains(out, want)
	})
}

// put copies a file of the test's onto a machine.
func (m *machine) put(from, to string) {
	m.t.Helper()
	if out, err := exec.Command("install", "-D", "-m", "755", from, m.root()+to).CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
}

// differs lists what a machine has that the image has not, or has otherwise, where programs and configurations are.
func (m *machine) differs() string {
	m.t.Helper()
	var list []string
	for _, top := range []string{"/etc", "/usr", "/opt", "/root", "/var/lib", "/var/spool", "/var/cache"} {
		err := filepath.WalkDir(m.dir+"/upper"+top, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(p, m.dir+"/upper")
			st, err := d.Info()
			if err != nil {
				return err
			}
			if st.Mode().Type() == fs.ModeDir {
				if _, err := os.Stat(*applianceImage + name); err == nil {
					return nil
				}
			}
			if strings.HasPrefix(name, "/var/lib/systemd") || st.Mode().Type() == fs.ModeDevice|fs.ModeCharDevice { // a file of the image is gone
				return nil
			}
			list = append(list, fmt.Sprintf("%s %v %d %d", name, st.Mode(), st.Size(), st.ModTime().UnixNano()))
			return nil
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	return strings.Join(list, "\n")
}

// destroy takes a machine away.
func (m *machine) destroy() {
	if m.nsp != nil && m.nsp.Process != nil {
		if m.t.Failed() && m.init != 0 {
			log, _ := m.run("journalctl --no-pager -n 15 -u 'muster*'")
			m.t.Logf("journal of %s (end):\n%s", m.name, log)
		}
		if m.init != 0 {
			_ = syscall.Kill(m.init, syscall.SIGKILL) // and with it all its processes
		}
		select {
		case <-m.ended:
		case <-time.After(10 * time.Second):
			_ = m.nsp.Process.Kill()
			<-m.ended
		}
	}
	dropGroups(m.groups)
	if err := syscall.Unmount(m.root(), syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
		m.t.Logf("unmount %s: %v", m.root(), err)
	}
	if err := os.RemoveAll(m.dir); err != nil {
		m.t.Log(err)
	}
}
