package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// box runs the command line of a container as a container engine would, without one: with files, processes, host
// name and network of its own. Its programs are this machine's, and muster below /usr/local/bin.
type box struct {
	name    string
	net     string            // network namespace
	volumes map[string]string // folder or file in the box → the one here
	env     []string
	argv    []string
	// restrict has the words readonly, for the file tree but volumes, and uncapable, for a root without capabilities.
	restrict string

	t    *testing.T
	root string
	cmd  *exec.Cmd
	log  string        // file of its output
	done chan struct{} // closed when it has ended, with err
	err  error
}

// makeRoot builds the file tree $1 in a mount namespace and runs the rest of the arguments below it. The script
// reads lines "TARGET SOURCE" of volumes.
const makeRoot = `set -e
root=$1; name=$2; bin=$3; volumes=$4; restrict=$5; shift 5
hostname "$name"
mount -t tmpfs -o mode=755 box "$root"
for d in usr dev sys; do mkdir "$root/$d"; mount --rbind /$d "$root/$d"; done
mount -o remount,bind,ro "$root/usr"
for d in bin sbin lib lib64; do [ ! -e /$d ] || ln -s usr/$d "$root/$d"; done
mkdir -p "$root/etc" "$root/proc" "$root/run" "$root/root" "$root/var/lib"; mkdir -m 1777 "$root/tmp"
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$root/etc"; ln -s /proc/mounts "$root/etc/mtab"
mount -t proc proc "$root/proc"
mount -t tmpfs local "$root/usr/local"; mkdir -p "$root/usr/local/bin"; mount --bind "$bin" "$root/usr/local/bin"
while read -r target source; do
	if [ -d "$source" ]; then mkdir -p "$root$target"; else [ -e "$root$target" ] || touch "$root$target"; fi
	mount --bind "$source" "$root$target"
done <"$volumes"
case $restrict in *readonly*) mount -o remount,ro "$root" ;; esac
case $restrict in *uncapable*) set -- setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@" ;; esac
exec chroot "$root" "$@"`

// needBoxes skips a test where boxes cannot be made.
func needBoxes(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 || os.Getenv(withinEnv) != "" {
		t.Skip("only the machine's root can give containers file trees of their own")
	}
}

// start starts the box.
func (b *box) start(t *testing.T) {
	t.Helper()
	b.t, b.root = t, t.TempDir()
	var volumes strings.Builder
	for target, source := range b.volumes {
		fmt.Fprintf(&volumes, "%s %s\n", target, source)
	}
	list := filepath.Join(t.TempDir(), "volumes")
	if err := os.WriteFile(list, []byte(volumes.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"netns", "exec", b.net, "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork",
		"--kill-child", "sh", "-c", makeRoot, "sh", b.root, b.name, bin, list, b.restrict}, b.argv...)
	b.cmd, b.done = exec.Command("ip", args...), make(chan struct{})
	b.cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
		b.env...)
	b.log = filepath.Join(t.TempDir(), "log")
	f, err := os.Create(b.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b.cmd.Stdout, b.cmd.Stderr = f, f
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { b.err = b.cmd.Wait(); close(b.done) }()
	t.Cleanup(b.stop)
}

// init returns the process that is number 1 in the box; 0: there is none.
func (b *box) init() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.cmd.Process.Pid, b.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// stop ends the box as an engine does: by SIGTERM, and SIGKILL later.
func (b *box) stop() {
	if b.cmd == nil {
		return
	}
	defer func() { b.cmd = nil }()
	if pid := b.init(); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	select {
	case <-b.done:
	case <-time.After(patience(15 * time.Second)):
		_ = b.cmd.Process.Kill()
		<-b.done
	}
	if b.t.Failed() {
		b.t.Logf("%s:\n%s", b.name, textOf(b.log))
	}
}

// wait waits for the end of the box's command.
func (b *box) wait() error {
	select {
	case <-b.done:
		return b.err
	case <-time.After(patience(time.Minute)):
		return errors.New("it has not ended")
	}
}

// run runs a command in the box.
func (b *box) run(argv ...string) (string, error) {
	pid := b.init()
	if pid == 0 {
		return "", fmt.Errorf("%s does not run", b.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience(time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "-r",
		"--wdns=/root"}, argv...)...)
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
		b.env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// shows waits until a command of a shell in the box prints a text.
func (b *box) shows(command, want string) {
	b.t.Helper()
	var out string
	for end := time.Now().Add(patience(time.Minute)); ; time.Sleep(100 * time.Millisecond) {
		var err error
		if out, err = b.run("sh", "-c", command); err == nil && strings.Contains(out, want) {
			return
		}
		select {
		case <-b.done:
			b.t.Fatalf("%s has ended while the test waited for %q: %v", b.name, want, b.err)
		default:
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s# %s: %v, want %q\n%s", b.name, command, err, want, out)
		}
	}
}
