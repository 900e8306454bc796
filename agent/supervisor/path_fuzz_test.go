package supervisor

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// How many pairs of a path and an option TestPathFuzz tries, or for how long; make fuzz-paths sets them.
var (
	fuzzPaths = flag.Int("paths", 300, "pairs of a path and an option that are tried")
	fuzzTime  = flag.Duration("paths-for", 0, "time for which pairs are tried, in place of a number")
	fuzzSeed  = flag.Uint64("paths-seed", 0, "seed of the pairs (default: another one each time)")
)

// Options of a step that name a path.
const (
	byInput = iota
	byOutput
	byAppend
	byLabel
	byDirectory
	byProgram
	pathOptions
)

// reference is a process that bob could have started by himself: it has nothing open but its three streams.
type reference struct {
	in  io.Writer
	out *bufio.Scanner
}

// referenceMain answers each line "OPTION PATH" with the device and inode that it opened, or with "-".
func referenceMain() int {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		option, path, _ := strings.Cut(lines.Text(), " ")
		fmt.Println(referenceOpen(int(option[0]-'0'), path))
	}
	return 0
}

func referenceOpen(option int, path string) string {
	flags := map[int]int{byInput: unix.O_RDONLY, byDirectory: unix.O_PATH | unix.O_DIRECTORY, byProgram: unix.O_PATH}
	how, known := flags[option]
	if !known {
		how = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND
	}
	fd, err := unix.Open(path, how|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o666)
	if err == unix.ENXIO { // a pipe that nobody reads
		fd, err = unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return "-"
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return "-"
	}
	if option == byDirectory && unix.Faccessat(fd, ".", unix.X_OK, 0) != nil ||
		option == byProgram && unix.Access(path, unix.X_OK) != nil {
		return "-"
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// copyOf copies a program to a folder that everybody may enter.
func copyOf(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "reference")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "reference")
	if err := errors.Join(os.Chmod(dir, 0o711), os.WriteFile(file, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	return file
}

func startReference(t *testing.T) *reference {
	t.Helper()
	c := exec.Command(copyOf(t, selfExe(t)), "reference")
	c.Dir = "/tmp"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bob, Gid: bob}}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = c.Wait() })
	return &reference{in: in, out: bufio.NewScanner(out)}
}

func (r *reference) open(t *testing.T, option int, path string) string {
	t.Helper()
	if _, err := fmt.Fprintf(r.in, "%d %s\n", option, path); err != nil {
		t.Fatal(err)
	}
	if !r.out.Scan() {
		t.Fatalf("the reference has ended at %q", path)
	}
	return r.out.Text()
}

// paths makes paths by chance, of parts that have led somewhere or are near what has.
type paths struct {
	*rand.Rand
	roots, parts []string
}

func (p *paths) next() string {
	path := p.roots[p.IntN(len(p.roots))]
	for range p.IntN(5) {
		path += "/" + p.parts[p.IntN(len(p.parts))]
	}
	return path
}

// Beginnings and parts of paths. A test adds those of its own folders and processes.
const (
	commonRoots = `/proc /proc/self /proc/thread-self /dev /dev/fd /proc/sys/kernel /proc/sys/net/ipv4 /sys/kernel
		/sys/fs/cgroup /tmp / /root /etc /bin/true`
	commonParts = `.. . cwd root exe fd fdinfo ns ns/mnt task maps mem environ
		status data new new/deeper hostname core_pattern null zero tty kmsg mem ptmx
		console shadow passwd tmp etc dev proc bin bin/true kallsyms oom_score_adj
		comm map_files attr/exec net mounts ip_forward cgroup.procs a\b -`
)

// newPaths makes folders, links and processes of bob's, alice's and root's.
func newPaths(t *testing.T, g *rig, seed uint64) *paths {
	t.Helper()
	hers, roots := closedFolder(t, g.own, alice), closedFolder(t, g.own, 0)
	pids := []int{processIn(t, alice, hers), processIn(t, 0, roots), processIn(t, bob, "/tmp"), 1, g.supervisorPID()}
	p := &paths{
		Rand:  rand.New(rand.NewPCG(seed, 1)),
		roots: append([]string{g.own, hers, roots}, strings.Fields(commonRoots)...),
		parts: append([]string{""}, strings.Fields(commonParts)...),
	}
	for n, pid := range pids {
		at := fmt.Sprintf("/proc/%d", pid)
		p.roots = append(p.roots, at, fmt.Sprintf("%s/task/%d", at, pid))
		for _, part := range []string{"cwd", "root", "fd", "exe"} {
			name := fmt.Sprintf("%s-%d", part, n)
			if err := os.Symlink(at+"/"+part, filepath.Join(g.own, name)); err != nil {
				t.Fatal(err)
			}
			p.parts = append(p.parts, name)
		}
	}
	for n := range 30 {
		p.parts = append(p.parts, fmt.Sprintf("fd/%d", n))
	}
	for name, to := range map[string]string{"to-data": hers + "/data", "to-self": "/proc/self/fd/5", "loop": "loop",
		"to-sysctl": "/proc/sys/kernel/hostname", "up": "../../.."} {
		if err := os.Symlink(to, filepath.Join(g.own, name)); err != nil {
			t.Fatal(err)
		}
		p.parts = append(p.parts, name)
	}
	return p
}

// stepBy is a step of bob's that names a path by an option. Its report is what that leads to.
func (g *rig) stepBy(option int, path, report string) step.Spec {
	own := step.IO{Kind: step.File, Path: report}
	return g.asBob(func(sp *step.Spec) {
		task := &sp.Tasks[0]
		task.Stdout, task.Stderr = own, step.IO{Kind: step.Same}
		switch option {
		case byInput:
			task.Stdin = step.IO{Kind: step.File, Path: path}
			task.Argv = []string{"/usr/bin/stat", "-L", "-c", "%d:%i", "/proc/self/fd/0"}
		case byDirectory:
			sp.Dir = path
			task.Argv = []string{"/usr/bin/stat", "-L", "-c", "%d:%i", "."}
		case byProgram:
			task.Argv = []string{path, "--version"}
		default:
			task.Stdout = step.IO{Kind: step.File, Path: path, Append: option == byAppend}
			if option == byLabel {
				task.Stdout.Label = "0: "
			}
			task.Stderr = own
			task.Argv = []string{"/bin/sh", "-c", "stat -L -c %d:%i /proc/self/fd/3 3>&1 >&2"}
		}
	})
}

// sweepAfter removes what bob has by then in a folder, and has not now.
func sweepAfter(t *testing.T, dir string) {
	t.Helper()
	bobs := func() map[string]bool {
		have := map[string]bool{}
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			if info, err := e.Info(); err == nil && info.Sys().(*syscall.Stat_t).Uid == bob {
				have[e.Name()] = true
			}
		}
		return have
	}
	before := bobs()
	t.Cleanup(func() {
		for name := range bobs() {
			if !before[name] {
				_ = os.RemoveAll(filepath.Join(dir, name))
			}
		}
	})
}

// TestPathFuzz: whatever path bob names by whatever option, the step gets nothing that bob could not open by himself.
func TestPathFuzz(t *testing.T) {
	needRoot(t)
	seed := *fuzzSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	g := newRig(t)
	sweepAfter(t, "/tmp")
	null := referenceOpen(byInput, os.DevNull)
	p, ref, report := newPaths(t, g, seed), startReference(t), filepath.Join(g.own, "report")
	until := time.Now().Add(*fuzzTime)
	tried, opened := 0, [pathOptions]int{}
	for ; tried < *fuzzPaths || time.Now().Before(until); tried++ {
		option, path := p.IntN(pathOptions), p.next()
		if tried < pathOptions { // what is certain to be opened
			option = tried
			path = []string{"/etc/passwd", g.own + "/o", g.own + "/a", g.own + "/l", "/usr", "/bin/true"}[option]
		}
		_ = os.Remove(report)
		sp := g.stepBy(option, path, report)
		st := g.run(sp).Tasks[0]
		delete(g.st, sp.ID)
		_ = g.r.Forget(sp.ID)
		text, _ := os.ReadFile(report)
		if st.PID == 0 || strings.Contains(string(text), "couldn't chdir") {
			continue
		}
		opened[option]++
		want, got := ref.open(t, option, path), strings.TrimSpace(string(text))
		if slices.Contains([]string{"/dev/fd/0", "/dev/fd/1", "/dev/fd/2",
			"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"}, path) {
			want = null // what the supervisor's own streams lead to
		}
		own := slices.ContainsFunc([]string{"self", "mounts", "net", "/dev/"}, func(part string) bool {
			return strings.Contains(path, part) // leads elsewhere for each process
		}) || option == byProgram || option == byLabel
		if want == "-" || !own && got != want {
			t.Errorf("seed %d: option %d, %q: the step has %s, bob by himself %s", seed, option, path, got, want)
		}
	}
	t.Logf("%d pairs with seed %d; opened by option: %v", tried, seed, opened)
	for option, n := range opened {
		if n == 0 {
			t.Errorf("option %d: no path was opened, so nothing was compared", option)
		}
	}
}
