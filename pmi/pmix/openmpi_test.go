package pmix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dev.muster/pmi"
)

// programs are the server and the program of testdata, built.
type programs struct{ server, tasks, client string }

var build = sync.OnceValues(func() (programs, error) {
	dir, err := os.MkdirTemp("", "pmix-test-")
	if err != nil {
		return programs{}, err
	}
	built = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return programs{}, err
	}
	p := programs{filepath.Join(dir, "muster-pmix"), filepath.Join(dir, "tasks"), filepath.Join(dir, "client")}
	cmd := exec.Command("go", "build", "-o", p.server, "dev.muster/pmi/helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("build the server: %w\n%s", err, out)
	}
	if out, err := exec.Command("mpicc.openmpi", "-Wall", "-o", p.tasks, "testdata/tasks.c").CombinedOutput(); err != nil {
		return p, fmt.Errorf("build the tasks: %w\n%s", err, out)
	}
	headers := pmixHeaders()
	if headers == "" {
		return p, nil
	}
	if out, err := exec.Command("cc", "-Wall", "-I", headers, "-o", p.client, "testdata/client.c",
		"-l:libpmix.so.2").CombinedOutput(); err != nil {
		return p, fmt.Errorf("build the client: %w\n%s", err, out)
	}
	return p, nil
})

// pmixHeaders is the folder of the standard's headers, "" if there is none.
func pmixHeaders() string {
	for _, pattern := range []string{
		"/usr/lib/*/pmix2/include", "/usr/include/pmix", "/usr/include", "/usr/local/include",
	} {
		found, _ := filepath.Glob(pattern + "/pmix_server.h")
		if len(found) > 0 {
			return filepath.Dir(found[0])
		}
	}
	return ""
}

// needHeaders skips where programs that call PMIx themselves cannot be built.
func needHeaders(t *testing.T) string {
	t.Helper()
	dir := pmixHeaders()
	if dir == "" {
		t.Skip("the headers of PMIx are missing (Debian: apt install libpmix-dev)")
	}
	return dir
}

// built is the folder of what was built.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// need skips where there is no Open MPI, no library or no C compiler.
func need(t *testing.T) programs {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts MPI programs")
	}
	for _, name := range []string{"mpicc.openmpi", "cc"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is missing (Debian: apt install libopenmpi-dev openmpi-bin gcc)", name)
		}
	}
	if found, _ := filepath.Glob("/usr/lib*/*/libpmix.so.2"); len(found) == 0 {
		t.Skip("libpmix.so.2 is missing (Debian: apt install libpmix2)")
	}
	p, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// log is a buffer that one goroutine writes and another reads.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// step is a step whose nodes are all this machine.
type step struct {
	t       *testing.T
	setup   pmi.Setup
	hub     *pmi.Hub
	aborts  chan pmi.Aborted
	aborted pmi.Aborted
	told    []*log // by servers, to the hub
	servers []*exec.Cmd
	downs   []io.Closer
	said    []*log // by servers, to their users
	readies []pmi.Ready
	dir     string
	uid     uint32 // of tasks
	client  bool   // tasks are the client without MPI
}

var stepNumber = 100

// begun starts the servers of a step with so many nodes, and ranks on each.
func begun(t *testing.T, nodes, each int, edit ...func(*step)) *step {
	t.Helper()
	p := need(t)
	if nodes > 1 && os.Getuid() != 0 {
		t.Skip("root alone can give nodes that are one machine a hostname each, without which Open MPI mixes up their shared memory")
	}
	stepNumber++
	s := &step{t: t, aborts: make(chan pmi.Aborted, 100), dir: t.TempDir()}
	s.setup = pmi.Setup{Job: fmt.Sprintf("%d.0", stepNumber), Size: nodes * each, Universe: nodes * each, Dir: s.dir,
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	for n := range nodes {
		var ranks []int
		for i := range each {
			ranks = append(ranks, n*each+i)
		}
		s.setup.Ranks = append(s.setup.Ranks, ranks)
		s.setup.Hosts = append(s.setup.Hosts, fmt.Sprintf("node%d-%d-%d", n+1, os.Getpid(), stepNumber))
	}
	for _, f := range edit {
		f(s)
	}
	var downs []io.Writer
	var ups []io.Reader
	for n := range nodes {
		down, up := s.server([]string{p.server}, n)
		downs, ups, s.downs = append(downs, down), append(ups, up), append(s.downs, down)
	}
	s.hub = pmi.NewHub(downs, func(a pmi.Aborted) { s.aborts <- a })
	for n, up := range ups {
		go func() {
			if err := s.hub.Serve(n, up); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Errorf("node %d: %v", n, err)
			}
		}()
	}
	t.Cleanup(s.end)
	return s
}

// server starts the server of one node and waits until it is ready.
func (s *step) server(argv []string, node int) (down io.WriteCloser, up io.Reader) {
	s.t.Helper()
	setup := s.setup
	setup.Node = node
	b, err := setup.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	file, err := os.CreateTemp(s.t.TempDir(), "setup")
	if err == nil {
		_, err = file.WriteAt(b, 0)
	}
	readyR, readyW, err2 := os.Pipe()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{file, readyW}
	said := &log{}
	cmd.Stderr = said
	down, err3 := cmd.StdinPipe()
	up, err4 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, err3, err4); err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	told := &log{}
	s.servers, s.said, s.told = append(s.servers, cmd), append(s.said, said), append(s.told, told)
	_, _ = file.Close(), readyW.Close()
	b, err = io.ReadAll(readyR)
	_ = readyR.Close()
	var ready pmi.Ready
	if err == nil {
		err = json.Unmarshal(b, &ready)
	}
	if err != nil {
		s.t.Fatalf("node %d is not ready: %v\n%s\n%s", node, err, b, said)
	}
	s.readies = append(s.readies, ready)
	return down, io.TeeReader(up, told)
}

// end has the servers see that the hub is gone; each then ends, and leaves no file.
func (s *step) end() {
	s.hub.Close()
	for i, cmd := range s.servers {
		_ = s.downs[i].Close()
		timer := time.AfterFunc(10*time.Second, func() {
			s.t.Errorf("the server of node %d outlives its hub", i)
			_ = cmd.Process.Kill()
		})
		_ = cmd.Wait()
		timer.Stop()
		if text := s.said[i].String(); text != "" {
			s.t.Logf("node %d says: %s", i, text)
		}
	}
	for _, host := range s.setup.Hosts { // tasks that were killed leave their shared memory
		left, _ := filepath.Glob("/dev/shm/*." + host + ".*")
		for _, file := range left {
			_ = os.Remove(file)
		}
	}
	if left, _ := os.ReadDir(s.dir); len(left) > 0 {
		s.t.Errorf("%d servers leave files: %v", len(s.servers), left)
	}
}

// run runs the program as the step's tasks, and returns what they print and how each ends.
func (s *step) run(what string, env ...string) (out string, codes []int) {
	s.t.Helper()
	p, _ := build()
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errLate)
	defer cancel()
	go s.obey(ctx, cancel)
	var mu sync.Mutex
	var all sync.WaitGroup
	var text bytes.Buffer
	codes = make([]int, s.setup.Size)
	for node, ranks := range s.setup.Ranks {
		for i, r := range ranks {
			argv := []string{p.tasks, what, fmt.Sprint(s.setup.Size)}
			if s.client {
				argv[0] = p.client
			}
			if os.Getuid() == 0 { // nodes of the product that are on one machine have a hostname each, too
				argv = append([]string{"unshare", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`, s.setup.Hosts[node]}, argv...)
			}
			if s.uid != 0 {
				argv = append([]string{argv[0], argv[1], "sh", "-c", fmt.Sprintf(`hostname "$0" && exec setpriv --reuid=%d --regid=%d --clear-groups "$@"`, s.uid, s.uid)}, argv[5:]...)
			}
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), s.readies[node].Env[i]...)
			cmd.Env = append(cmd.Env, s.slurm(node, i, r)...)
			cmd.Env = append(cmd.Env, env...)
			all.Go(func() {
				got, err := cmd.CombinedOutput()
				mu.Lock()
				defer mu.Unlock()
				text.Write(got)
				codes[r] = cmd.ProcessState.ExitCode()
				if err != nil && cmd.ProcessState == nil {
					s.t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if context.Cause(ctx) == errLate {
		s.t.Errorf("%s: %v", what, errLate)
	}
	return text.String(), codes
}

var errLate = errors.New("it takes longer than a minute")

// obey ends all tasks when one has asked for that, as srun does.
func (s *step) obey(ctx context.Context, kill func()) {
	select {
	case s.aborted = <-s.aborts:
		time.Sleep(300 * time.Millisecond)
		kill()
	case <-ctx.Done():
	}
}

// slurm is what Open MPI asks of Slurm's environment: without the job's and the step's number it
// runs programs of one task.
func (s *step) slurm(node, local, rank int) []string {
	job, id, _ := strings.Cut(s.setup.Job, ".")
	return []string{"SLURM_JOBID=" + job, "SLURM_JOB_ID=" + job, "SLURM_STEPID=" + id, "SLURM_STEP_ID=" + id,
		fmt.Sprint("SLURM_PROCID=", rank), fmt.Sprint("SLURM_LOCALID=", local), fmt.Sprint("SLURM_NODEID=", node),
		fmt.Sprint("SLURM_NTASKS=", s.setup.Size), "SLURM_NODELIST=" + strings.Join(s.setup.Hosts, ","),
		"TEST_LAST_NODE=" + s.setup.Hosts[len(s.setup.Hosts)-1],
		fmt.Sprint("TEST_LOCAL=", len(s.setup.Ranks[node])), fmt.Sprint("TEST_LOCALID=", local),
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_mpi_yield_when_idle=1",
		"OMPI_MCA_osc=^ucx"} // Debian leaves out pt2pt too, and with it MPI_Put between nodes that have TCP alone
}

// ok runs the program and wants all tasks to end well.
func (s *step) ok(what string, env ...string) {
	s.t.Helper()
	begin := time.Now()
	out, codes := s.run(what, env...)
	if n := strings.Count(out, " ok\n"); n != s.setup.Size {
		s.t.Fatalf("%s: %d of %d tasks say ok, and end with %v:\n%s", what, n, s.setup.Size, codes, out)
	}
	s.t.Logf("%s: %d tasks on %d nodes in %v", what, s.setup.Size, len(s.setup.Hosts),
		time.Since(begin).Round(time.Millisecond))
}

func TestOpenMPI(t *testing.T) {
	for _, c := range []struct{ nodes, each int }{{1, 1}, {1, 4}, {2, 2}, {4, 1}} {
		t.Run(fmt.Sprintf("%d nodes of %d", c.nodes, c.each), func(t *testing.T) {
			begin := time.Now()
			s := begun(t, c.nodes, c.each)
			t.Logf("servers are ready after %v", time.Since(begin).Round(time.Millisecond))
			s.ok("all")
		})
	}
}

func TestOpenMPI32(t *testing.T) {
	s := begun(t, 4, 8)
	s.ok("all")
}

// Tasks tell each other only what is asked for: each question goes to the node of its rank.
func TestOpenMPIDirectModex(t *testing.T) {
	s := begun(t, 2, 2)
	s.ok("all", "OMPI_MCA_pmix_base_async_modex=1", "OMPI_MCA_pmix_base_collect_data=0")
	if !strings.Contains(s.told[0].String(), callModex) {
		t.Error("no task has asked for another's data")
	}
}

func TestOpenMPIScattered(t *testing.T) {
	s := begun(t, 2, 3, func(s *step) { s.setup.Ranks = [][]int{{0, 2, 5}, {1, 3, 4}} })
	s.ok("all")
}

func TestOpenMPINames(t *testing.T) {
	s := begun(t, 2, 1)
	s.ok("names")
}

func TestOpenMPIMeet(t *testing.T) {
	s := begun(t, 2, 2)
	s.ok("meet")
}

func TestOpenMPISpawn(t *testing.T) {
	s := begun(t, 1, 2)
	out, _ := s.run("spawn")
	for until := time.Now().Add(5 * time.Second); !strings.Contains(s.said[0].String(), "MPI_Comm_spawn"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the server says %q, the tasks\n%s", s.said[0], out)
		}
	}
}

func TestOpenMPIAbort(t *testing.T) {
	s := begun(t, 2, 2)
	out, codes := s.run("abort")
	if codes[3] != 7 || s.aborted.Rank != 3 || s.aborted.Code != 7 {
		t.Errorf("%+v, the tasks end with %v:\n%s", s.aborted, codes, out)
	}
}

// Tasks learn of those of a lost node.
func TestLostNode(t *testing.T) {
	needHeaders(t)
	s := begun(t, 2, 2)
	s.client = true
	time.AfterFunc(time.Second, func() { s.hub.Lose(1) })
	out, _ := s.run("lost")
	for _, line := range []string{"status -7 of rank 2\n", "status -7 of rank 3\n"} {
		if strings.Count(out, line) != 2 {
			t.Errorf("not two of %q:\n%s", line, out)
		}
	}
}

func TestFacts(t *testing.T) {
	needHeaders(t)
	s := begun(t, 2, 2)
	s.client = true
	out, _ := s.run("facts")
	want := `
pmix.jobid = slurm.pmix.JOB
pmix.univ.size = 4
pmix.job.size = 4
pmix.app.size = 4
pmix.max.size = 4
pmix.job.napps = 1
pmix.num.nodes = 2
pmix.local.size = 2
pmix.node.size = 2
pmix.lpeers = 0,1
pmix.lldr = 0
pmix.anlmap = (vector,(0,2,2))
pmix.tdir.rmclean = 1
pmix.nodeid = 0
pmix.hname = node1SUFFIX
`
	for r := range 4 {
		want += strings.ReplaceAll(fmt.Sprintf("pmix.hname of R = node%dSUFFIX\npmix.lrank of R = %d\npmix.nrank of R = %d\npmix.grank of R = R\npmix.apprank of R = R\npmix.appnum of R = 0\n",
			r/2+1, r%2, r%2), " R", fmt.Sprint(" ", r))
	}
	want += "peers on the second node: 2 3\nnodes: node1SUFFIX,node2SUFFIX\nrank 0 ok\n"
	want = strings.NewReplacer("JOB", s.setup.Job, "SUFFIX", strings.TrimPrefix(s.setup.Hosts[0], "node1")).Replace(strings.TrimSpace(want))
	if !strings.Contains(out, want) {
		t.Errorf("%s\nis not in\n%s", want, out)
	}
}

// A server that is asked to end leaves no file; the tasks' other servers go on.
func TestServerTerminated(t *testing.T) {
	s := begun(t, 2, 1)
	if err := s.servers[1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if state, err := s.servers[1].Process.Wait(); err != nil || state.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("%v, %v", state, err)
	}
}

func TestNoLibrary(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root alone can hide the library")
	}
	p := need(t)
	hide := []string{"unshare", "--mount", "sh", "-c", `for f in /usr/lib*/*/libpmix.so* /usr/lib*/*/pmix2/lib/libpmix.so*; do mount --bind /dev/null $f; done; exec "$0"`, p.server}
	setup := setupOf([]int{0})
	s := &step{t: t, setup: setup, dir: t.TempDir()}
	s.setup.Dir = s.dir
	down, _ := s.server(hide, 0)
	_ = down.Close()
	_ = s.servers[0].Wait()
	why := s.readies[0].Error
	if !strings.Contains(why, "apt install libpmix2") || !strings.Contains(why, "libpmix.so.2: ") {
		t.Errorf("%q", why)
	}
	if left, _ := os.ReadDir(s.dir); len(left) > 0 {
		t.Error(left)
	}
}

func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root starts the server of another user only")
	}
	s := begun(t, 2, 2, func(s *step) {
		s.uid, s.setup.UID, s.setup.GID, s.setup.Dir = 65534, 65534, 65534, "/tmp"
	})
	for _, cmd := range s.servers {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil || !bytes.Contains(status, []byte("Uid:\t65534\t65534\t65534\t65534")) {
			t.Errorf("the server is user %d's: %v", info.Sys().(*syscall.Stat_t).Uid, err)
		}
	}
	s.ok("all")
}

// TestOtherUser: a program of another user's, which says that it is the step's, does not take part.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root alone can start programs of two users")
	}
	headers := needHeaders(t)
	s := begun(t, 1, 2, func(s *step) {
		s.uid, s.setup.UID, s.setup.GID, s.setup.Dir = 65534, 65534, 65534, "/tmp"
	})
	program := filepath.Join(built, "intruder")
	if out, err := exec.Command("cc", "-Wall", "-rdynamic", "-I", headers, "-o", program, "testdata/intruder.c",
		"-l:libpmix.so.2").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	for _, c := range []struct {
		user string
		in   bool
	}{{"4242", false}, {"65534", true}} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "setpriv", "--reuid="+c.user, "--regid="+c.user, "--clear-groups", program)
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), "TEST_UID=65534")
		for _, v := range s.readies[0].Env[0] { // folders of the step are closed to others, who need none
			if !strings.Contains(v, "TMPDIR=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		out, err := cmd.CombinedOutput()
		if in := strings.HasPrefix(string(out), "joined"); in != c.in {
			t.Errorf("user %s takes part: %v, want %v (%v)\n%s", c.user, in, c.in, err, out)
		}
		if got := len(s.aborts); got > 0 && !c.in {
			t.Errorf("user %s ends the step", c.user)
		}
	}
	select {
	case <-s.aborts:
	case <-time.After(10 * time.Second):
		t.Error("the step's own user cannot end it")
	}
}
