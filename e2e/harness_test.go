// Package e2e tests the whole product: the built binary under Slurm's names, real sockets, files
// and processes. Nothing outside a temporary folder is touched.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// frontEnds are the names under which the binary is called.
var frontEnds = []string{
	"muster", "sbatch", "srun", "salloc", "scancel", "squeue", "sinfo", "scontrol", "sacct", "sacctmgr",
	"sprio", "sshare", "sreport", "sdiag", "seff", "sstat", "sbcast", "sgather", "sattach", "scrontab",
	"strigger", "swait",
}

// bin is a folder with the binary and its links, made once.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// openToAll reports whether every user may make files in a folder.
func openToAll(dir string) bool {
	for need := os.FileMode(0o3); ; need = 0o1 {
		st, err := os.Stat(dir)
		if err != nil || st.Mode().Perm()&need != need {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

func run(m *testing.M) int {
	if bin = os.Getenv(binEnv); bin != "" {
		return m.Run()
	}
	if !openToAll(os.TempDir()) { // other users' processes are part of these tests
		os.Setenv("TMPDIR", "/tmp")
	}
	dir, err := os.MkdirTemp("", "muster-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	var options []string
	if *setClocks {
		overlay, err := clockOverlay(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		options = []string{"-overlay", overlay}
	}
	if err := build(filepath.Join(dir, "muster"), options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, name := range frontEnds[1:] {
		if err := os.Symlink("muster", filepath.Join(dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// build builds the product.
func build(file string, flags ...string) error {
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", file}, flags, []string{".."})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// dev is one running daemon in a folder of its own: a whole cluster, or a member of one.
type dev struct {
	t    *testing.T
	mode string // the daemon's command
	dir  string
	exe  string // its program file
	work string // where front-ends are called
	args []string
	cmd  *exec.Cmd
	env  []string
	// inside is a command that runs the daemon, in a network of its own say.
	inside []string
}

// startDev starts muster dev; with no arguments, four hollow nodes that execute.
func startDev(t *testing.T, args ...string) *dev {
	t.Helper()
	dir, err := os.MkdirTemp("", "m") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	return startDevAt(t, dir, args...)
}

// startProduct starts muster dev of another build of the product.
func startProduct(t *testing.T, product string, args ...string) *dev {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	return startBuild(t, dir, product+"/muster", args...)
}

// startDevAt starts muster dev in a folder that is given.
func startDevAt(t *testing.T, dir string, args ...string) *dev {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--hollow", "4x8c16g4gpu:h100", "--hollow-exec"}
	}
	return startBuild(t, dir, filepath.Join(bin, "muster"), args...)
}

// startBuild starts muster dev of a build, and waits for its nodes.
func startBuild(t *testing.T, dir, exe string, args ...string) *dev {
	t.Helper()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDev(t, dir, "dev", args)
	d.exe = exe
	t.Cleanup(d.cleanup)
	d.start()
	d.wait("idle nodes", func() bool {
		out, _, code := d.run("sinfo", "-h", "-N", "-t", "idle") // without -N a partition has a line even without nodes
		return code == 0 && out != ""
	})
	return d
}

func newDev(t *testing.T, dir, mode string, args []string) *dev {
	d := &dev{t: t, mode: mode, dir: dir, exe: filepath.Join(bin, "muster"), work: dir, args: args}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !strings.HasPrefix(name, "SLURM_") && !strings.HasPrefix(name, "SBATCH_") && name != "PATH" {
			d.env = append(d.env, e)
		}
	}
	d.env = append(d.env, "MUSTER_SOCKET="+dir+"/s", "PATH="+bin+":"+os.Getenv("PATH"))
	return d
}

func (d *dev) start() {
	d.t.Helper()
	log, err := os.OpenFile(d.dir+"/log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	argv := slices.Concat(d.inside, []string{d.exe, d.mode, "--data", d.dir + "/d", "--socket", d.dir + "/s"}, d.args)
	d.cmd = exec.Command(argv[0], argv[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.Env = append(os.Environ(), "MUSTER_TEST_CLOCK="+d.dir+"/clock")
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
}

// kill ends the daemon as a crash would.
func (d *dev) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// ended reports whether the daemon has ended by itself.
func (d *dev) ended() bool {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(d.cmd.Process.Pid, &status, syscall.WNOHANG, nil)
	return err != nil || pid != 0
}

// stopTime is how long a daemon may take to end; after that it tells where its goroutines are.
const stopTime = 20 * time.Second

// stop ends the daemon as systemd would.
func (d *dev) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience(stopTime), func() {
		_ = d.cmd.Process.Signal(syscall.SIGQUIT)
	})
	_ = d.cmd.Wait()
	if !late.Stop() {
		d.t.Errorf("the daemon of %s did not end within %v", d.dir, stopTime)
		if log, err := os.ReadFile(d.dir + "/log"); err == nil {
			_, stacks, _ := strings.Cut(string(log), "SIGQUIT")
			d.t.Logf("its goroutines:\n%s", stacks)
		}
	}
}

func (d *dev) cleanup() {
	d.noPanic()
	if d.t.Failed() {
		if log, err := os.ReadFile(d.dir + "/log"); err == nil {
			d.t.Logf("log of the daemon (end):\n%s", log[max(0, len(log)-8000):])
		}
	}
	d.stop()
	// A supervisor whose folder is gone kills what is left of its steps and ends.
	_ = os.RemoveAll(d.dir)
}

// noPanic fails the test if a command met a defect.
func (d *dev) noPanic() {
	d.t.Helper()
	log, _ := os.ReadFile(d.dir + "/log") // there may be none yet
	if _, what, met := strings.Cut(string(log), "a defect of muster"); met {
		d.t.Errorf("a command met a defect:%.2000s", what)
	}
}

// run calls a front-end and returns what it printed and its exit code.
func (d *dev) run(name string, args ...string) (out, errs string, code int) {
	return d.input("", name, args...)
}

func (d *dev) input(in, name string, args ...string) (out, errs string, code int) {
	return d.exec(nil, in, name, args...)
}

// as calls a front-end as another user.
func (d *dev) as(uid uint32, name string, args ...string) (out, errs string, code int) {
	return d.exec(&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}, "", name, args...)
}

func (d *dev) exec(attr *syscall.SysProcAttr, in, name string, args ...string) (out, errs string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience(2*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	var o, e bytes.Buffer
	cmd.SysProcAttr = attr
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = strings.NewReader(in), &o, &e, d.env, d.work
	err := cmd.Run()
	var x *exec.ExitError
	switch {
	case errors.As(err, &x):
		code = x.ExitCode()
	case err != nil:
		code = -1
		e.WriteString(err.Error())
	}
	return o.String(), e.String(), code
}

// must calls a front-end that has to succeed.
func (d *dev) must(name string, args ...string) string {
	d.t.Helper()
	out, errs, code := d.run(name, args...)
	if code != 0 {
		d.t.Fatalf("%s %q: exit code %d\n%s%s", name, args, code, out, errs)
	}
	return strings.TrimSuffix(out, "\n")
}

// whyLine is what is added to Slurm's words for a refusal (docs/slurm-compat.md).
var whyLine = regexp.MustCompile(`(?m)^(sbatch|srun|salloc): why: .*\n`)

// slurmWords is what a command said in Slurm's words.
func slurmWords(errs string) string { return whyLine.ReplaceAllString(errs, "") }

// wait polls until ok holds; the product offers no event for what tests wait for from outside.
// pause stops the daemon until it is sent SIGCONT. On a busy machine its threads stop one after the other, so the last
// is waited for.
func (d *dev) pause() *os.Process {
	d.t.Helper()
	p := d.cmd.Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		d.t.Fatal(err)
	}
	d.wait("the daemon to stop", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		return len(threads) > 0 && !slices.ContainsFunc(threads, runs)
	})
	return p
}

// runs reports whether a thread is not stopped, by its file in /proc.
func runs(stat string) bool {
	text, err := os.ReadFile(stat)
	_, after, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(after, "T")
}

func (d *dev) wait(what string, ok func() bool) {
	d.t.Helper()
	began := time.Now()
	for ; time.Since(began) < patience(time.Minute); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	d.t.Fatalf("waited %v for %s; meanwhile:\n%s", time.Since(began).Round(time.Second), what, d.state())
}

// maxPatience is how often longer than on a machine of its own a test waits at most.
const maxPatience = 10

// patience is how long a test waits for what takes less than limit on a machine of its own: as many times as there are
// processes that want one of its processors.
func patience(limit time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return limit
	}
	word, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return limit
	}
	share := load / float64(runtime.NumCPU())
	return time.Duration(min(max(share, 1), maxPatience) * float64(limit))
}

// state is what the daemon says of nodes and jobs, for a test that goes wrong.
func (d *dev) state() string {
	var all strings.Builder
	for _, c := range [][]string{
		{"sinfo", "-N", "-o", "%N %T %E"}, {"squeue", "-o", "%i %T %r %N"},
		{"sacct", "-nPo", "jobid,state,exitcode,nodelist,start,end"},
	} {
		out, errs, _ := d.run(c[0], c[1:]...)
		fmt.Fprintf(&all, "%s:\n%s%s", c[0], out, errs)
	}
	return all.String()
}

func (d *dev) read(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// soFar is what a file holds, "" if it is not there yet.
func (d *dev) soFar(name string) string {
	d.t.Helper()
	if _, err := os.Stat(filepath.Join(d.dir, name)); os.IsNotExist(err) {
		return ""
	}
	return d.read(name)
}

func (d *dev) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// count adds up the numbers of a text.
func count(text string) (n int) {
	for _, w := range strings.Fields(text) {
		k, _ := strconv.Atoi(w)
		n += k
	}
	return n
}

// killSupervisor kills the supervisor of this daemon.
func (d *dev) killSupervisor() {
	d.t.Helper()
	_ = syscall.Kill(d.supervisor(), syscall.SIGKILL)
}

// supervisor is the process id of this daemon's supervisor.
func (d *dev) supervisor() int {
	d.t.Helper()
	pids := supervisors(d.t, d.dir+"/d/client")
	if len(pids) == 0 {
		d.t.Fatal("no supervisor found")
	}
	return pids[0]
}

// supervisors are the process ids of the supervisors of a folder, found by their command lines.
func supervisors(t testing.TB, dir string) (pids []int) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	want := "internal\x00supervisor\x00--dir\x00" + dir + "\x00"
	for _, p := range procs {
		if text, err := os.ReadFile(p); err == nil && strings.HasSuffix(string(text), want) {
			var pid int
			if _, err := fmt.Sscanf(p, "/proc/%d/cmdline", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// kernelTellsExits reports whether PIDFD_GET_INFO has exit codes: Linux 6.15 and later.
func kernelTellsExits() bool {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	var major, minor int
	if _, serr := fmt.Sscanf(string(text), "%d.%d", &major, &minor); err != nil || serr != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 15
}

// writeFile makes a file in a folder that goes with the test.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeProgram makes a program in a folder.
func writeProgram(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// freeAddr is an address of the loopback where nobody listened a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// shell runs a line of shell that has to succeed, in the folder and environment of front-ends.
func (d *dev) shell(line string) string {
	d.t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = d.work, d.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}
