package e2e

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// xServer is an X server of this test's own.
type xServer struct {
	display string
	cookie  string // a file that its users have
}

// startX starts an X server that wants a cookie.
func startX(t *testing.T) *xServer {
	t.Helper()
	for _, p := range []string{"Xvfb", "xauth", "xdpyinfo", "xclock", "xwininfo"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install xvfb xauth x11-apps x11-utils", p)
		}
	}
	dir, err := os.MkdirTemp("", "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	x := &xServer{cookie: filepath.Join(dir, "cookie")}
	add := func(display string) {
		t.Helper()
		cmd := exec.Command("xauth", "-q", "-f", x.cookie, "add", display, ".", "00112233445566778899aabbccddeeff")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("xauth: %v: %s", err, out)
		}
	}
	add(":0") // the server takes any cookie of its file
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-auth", x.cookie, "-screen", "0", "320x240x8", "-nolisten", "tcp",
		"-noreset") // else it drops who comes as its last client leaves
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal("Xvfb does not start: ", err)
	}
	x.display = ":" + strings.TrimSpace(number)
	add(x.display)
	if err := os.Chown(x.cookie, daemonUID, daemonUID); err != nil {
		t.Fatal(err)
	}
	return x
}

// environ is what a user of the X server has in the environment.
func (x *xServer) environ() []string {
	return []string{"DISPLAY=" + x.display, "XAUTHORITY=" + x.cookie}
}

// windows are those that the X server shows.
func (x *xServer) windows(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("xwininfo", "-root", "-tree")
	cmd.Env = append(os.Environ(), x.environ()...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const x11Conf = "ClusterName=c\nSlurmctldHost=localhost\nPrologFlags=X11\nNodeName=n[1-3] CPUs=4 RealMemory=4000\n" +
	"PartitionName=main Nodes=ALL Default=YES\n"

// showDisplay is a program that tells which display it has, and asks the X server if it is one of srun's.
const showDisplay = "echo $DISPLAY; case $DISPLAY in localhost*) xdpyinfo | grep vendor.release; esac"

// TestX11: programs of a job show windows where srun or salloc was called, on the nodes that are asked for. A
// client without the cookie is refused; with the command, or its death, the display ends.
func TestX11(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("other users need root")
	}
	x := startX(t)
	d := startDev(t, "--hollow", "conf", "--hollow-exec", "--conf", writeFile(t, "slurm.conf", x11Conf))
	d.env = append(d.env, x.environ()...)
	srun := func(args ...string) (out string) {
		t.Helper()
		out, errs, code := d.as(daemonUID, "srun", append(args, "sh", "-c", showDisplay)...)
		if code != 0 {
			t.Errorf("srun %q: %d %s", args, code, errs)
		}
		return out
	}
	for _, c := range []struct {
		where string
		with  string // ranks that have a display there
	}{{"", "012"}, {"=all", "012"}, {"=first", "0"}, {"=batch", "0"}, {"=last", "2"}} {
		out := srun("-D", "/", "-N3", "-l", "--x11"+c.where)
		for _, rank := range []string{"0", "1", "2"} {
			own := strings.Contains(out, rank+": localhost:")
			if own != strings.Contains(c.with, rank) || strings.Count(out, "release number") != len(c.with) {
				t.Errorf("--x11%s:\n%s", c.where, out)
			}
		}
	}

	told, cmd := d.lines("salloc", "--x11", "-N1", "sh", "-c",
		"srun sh -c 'echo $DISPLAY; echo $XAUTHORITY'; srun xclock & echo here $DISPLAY; wait")
	display, file := next(t, told), next(t, told)
	if here := next(t, told); here != "here "+x.display {
		t.Errorf("salloc's own display: %q", here)
	}
	d.wait("the window", func() bool { return strings.Contains(x.windows(t), "xclock") })
	other := exec.Command("xdpyinfo")
	other.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "DISPLAY=" + display}
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: binUID, Gid: binUID}}
	if out, err := other.CombinedOutput(); err == nil || !strings.Contains(string(out), "unable to open display") {
		t.Errorf("a foreign user: %v: %s", err, out)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("XAUTHORITY: %v, %v", st, err)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(display, "localhost:"), ".")
	closed := func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:60"+number)
		if err == nil {
			conn.Close()
		}
		return err != nil
	}
	if closed() {
		t.Error("the display cannot be reached")
	}
	_ = cmd.Process.Kill() // its job goes on, its display does not
	d.wait("the end of the display", closed)
	d.wait("the window to go", func() bool { return !strings.Contains(x.windows(t), "xclock") })
	if _, err := os.Stat(file); err == nil {
		t.Error("XAUTHORITY is still there")
	}
	d.must("scancel", "-u", "root")
}

// TestX11Refused: what cannot be done is told in Slurm's words, before there is a job.
func TestX11Refused(t *testing.T) {
	t.Parallel()
	x := startX(t)
	file := writeFile(t, "slurm.conf", x11Conf)
	d := startDev(t, "--hollow", "conf", "--hollow-exec", "--conf", file)
	plain := d.env
	with := func(more ...string) []string {
		return append(plain[:len(plain):len(plain)], append(x.environ(), more...)...)
	}
	refused := func(env []string, line, want string, code int) {
		t.Helper()
		d.env = env
		words := strings.Fields(line)
		if _, errs, rc := d.run(words[0], words[1:]...); rc != code || errs != want+"\n" {
			t.Errorf("%s: %d %q, want %d %q", line, rc, errs, code, want)
		}
	}
	const none = ": error: No DISPLAY variable set, cannot setup x11 forwarding."
	refused(append(with(), "DISPLAY="), "srun --x11 true", "srun"+none, 255)
	refused(append(with(), "DISPLAY="), "salloc --x11 true", "salloc"+none, 255)
	refused(with("XAUTHORITY=/none"), "srun --x11 true",
		"srun: error: x11_get_xauth: Could not retrieve magic cookie. Cannot use X11 forwarding.", 255)
	refused(with(), "salloc --x11 --no-shell", "salloc: error: --x11 cannot be done with --no-shell: "+
		"salloc has to stay, to carry what programs show", 1)
	refused(with(), "sbatch --x11 --wrap=true",
		"sbatch: unrecognized option '--x11'\nTry \"sbatch --help\" for more information", 255)
	d.env = with()
	const late = "srun: error: Ignoring --x11 option for a job step within an existing job. " +
		"Set x11 options at job allocation time.\n"
	if out, errs, code := d.run("salloc", "-Q", "srun", "--x11", "sh", "-c", "echo $DISPLAY"); code != 0 || errs != late || out != x.display+"\n" {
		t.Errorf("within a job: %d %q %q", code, out, errs)
	}
	rewrite(t, file, strings.Replace(x11Conf, "PrologFlags=X11\n", "", 1))
	d.must("scontrol", "reconfigure")
	const off = "X11 forwarding not available"
	refused(with(), "srun --x11 true", "srun: error: Unable to allocate resources: "+off, 1)
	refused(with(), "salloc --x11 true", "salloc: error: Job submit/allocate failed: "+off, 1)
	if out := d.must("sacct", "-nX", "-o", "jobid"); len(strings.Fields(out)) != 1 {
		t.Errorf("jobs: %q", out)
	}
}

// TestX11Across: the X server is where srun was called, the nodes are other members.
func TestX11Across(t *testing.T) {
	t.Parallel()
	x := startX(t)
	g := newGroup(t, "--conf", writeFile(t, "slurm.conf", "ClusterName=c\nSlurmctldHost=localhost\nPrologFlags=X11\n"+
		"PartitionName=main Nodes=ALL Default=YES\n"))
	for _, name := range []string{"c1", "c2"} {
		g.join(name, "s1", "--hollow", "1x8c16g", "--hollow-prefix", name+"-", "--hollow-exec")
	}
	d := g.at["s1"]
	g.wait("both nodes", func() bool { return strings.Count(g.must("s1", "sinfo", "-hN", "-t", "idle"), "\n") == 1 })
	d.env = append(d.env, x.environ()...)
	out, errs, code := d.run("srun", "-v", "--x11", "-N2", "-l", "sh", "-c", showDisplay)
	if code != 0 || strings.Count(out, "release number") != 2 || strings.Count(out, "localhost:") != 2 {
		t.Errorf("srun: %d\n%s\n%s", code, out, errs)
	}
	if strings.Count(errs, "srun: X11 forwarding established on DISPLAY=c") != 2 {
		t.Errorf("-v: %s", errs)
	}
	d.write("again.sh", "srun sh -c 'echo $DISPLAY'; until [ -e $1 ]; do sleep 0.1; done\n"+
		"until srun xdpyinfo >/dev/null 2>&1; do sleep 0.1; done; srun sh -c 'echo $DISPLAY'\n")
	told, _ := d.lines("salloc", "-Q", "--x11", "-N1", "-w", "c2-001", "sh", d.dir+"/again.sh", d.dir+"/go")
	before := next(t, told)
	g.at["c2"].kill() // what it carries breaks off, but programs that start later find the same display
	g.start("c2")
	d.write("go", "")
	if after := next(t, told); after != before || !strings.HasPrefix(after, "localhost:") {
		t.Errorf("DISPLAY was %q and is %q", before, after)
	}
}
