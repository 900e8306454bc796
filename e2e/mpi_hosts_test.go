package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/pmi"
)

// mpiMachines is how many machines an MPI program of TestMPIHosts has.
const mpiMachines = 4

// mpiConf has a silent machine be lost soon.
const mpiConf = "ClusterName=c\nSlurmdTimeout=2\nPartitionName=p Nodes=ALL Default=YES\n"

// mpiGroup is a server and machines h1 to h4. Hostname, network, processes and shared memory of each are its own, so
// that ranks of two machines reach each other by their addresses or not at all.
func mpiGroup(t *testing.T) *group {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make hosts with a hostname of their own")
	}
	product, err := gpuProduct() // it carries the server of PMIx, too
	if product == "" {
		t.Skip("no C compiler: ", err)
	}
	h, err := newHosts(t, mpiMachines+1)
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	g := newGroupOf(t, product+"/muster", h, "--conf", confFile(t, mpiConf))
	token := g.must("s1", "muster", "token", "create", "--uses", strconv.Itoa(mpiMachines))
	for i := range mpiMachines {
		g.machine(fmt.Sprintf("h%d", i+1), token)
	}
	g.wait("the machines", func() bool {
		return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%N") == fmt.Sprintf("h[1-%d]", mpiMachines)
	})
	return g
}

// machine starts a client on a host that has all of its own but the files.
func (g *group) machine(name, token string) {
	g.t.Helper()
	d := g.enrol(name, "client", "--join", g.bind("s1"), "--token", token)
	d.inside = append(d.inside, "unshare", "-umipf", "--kill-child", "--mount-proc", "sh", "-c",
		`hostname "$0" && mount -t tmpfs tmpfs /dev/shm && exec "$@"`, name)
	g.t.Cleanup(d.kill) // its first process, and so all
	g.start(name)
}

// received is how many bytes a host has received.
func (h *hosts) received(i int) (n int64) {
	h.t.Helper()
	const file = "/sys/class/net/eth0/statistics/rx_bytes"
	out, err := exec.Command("ip", "netns", "exec", h.name(i), "cat", file).Output()
	if err == nil {
		n, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// runs are the processes of a program on a host.
func (h *hosts) runs(i int, program string) (pids []string) {
	h.t.Helper()
	out, err := exec.Command("ip", "netns", "pids", h.name(i)).Output()
	if err != nil {
		h.t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(string(out)) {
		if exe, err := os.Readlink("/proc/" + pid + "/exe"); err == nil && exe == program {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestMPIHosts: MPI programs over machines that have nothing in common but files, in worlds that end well, badly, and
// with the loss of a machine.
func TestMPIHosts(t *testing.T) {
	t.Parallel()
	g := mpiGroup(t)
	names := g.must("s1", "srun", "-l", "-N4", "-n4", "hostname")
	expect(t, "hostnames", sortedLines(names), "0: h1\n1: h2\n2: h3\n3: h4")
	for _, l := range mpiLibraries {
		t.Run(l.manager, func(t *testing.T) { g.world(t, l) })
	}
}

// mpiLibrary is an MPI library of Debian's.
type mpiLibrary struct {
	manager, compiler, pkg string
	// leaves is "leave" if ranks must not call MPI_Finalize over TCP. In that of Debian's MPICH (4.0 over UCX 1.13) one
	// rank may wait for an answer of another that waits for all in PMI, and so indefinitely, whoever has started them.
	leaves string
	// osc is what has MPI_Put find a way between hosts; "": it gives wrong values, whoever starts the ranks.
	osc string
}

var mpiLibraries = []mpiLibrary{
	{"pmi2", "mpicc.mpich", "libmpich-dev mpich", "leave", ""},
	{"pmix", "mpicc.openmpi", "libopenmpi-dev openmpi-bin", "", "OMPI_MCA_osc=^ucx"},
}

// compile builds the MPI program, or skips the test where the library or what starts its programs is missing.
func (l mpiLibrary) compile(t *testing.T, d *dev) string {
	t.Helper()
	if !strings.Contains(d.must("srun", "--mpi=list")+"\n", "\n\t"+l.manager+"\n") {
		t.Skipf("this machine has no %s: apt-get install libpmix2", pmi.Library)
	}
	return compileMPI(t, l.compiler, l.pkg)
}

// world runs an MPI program on the machines.
func (g *group) world(t *testing.T, l mpiLibrary) {
	t.Helper()
	program := l.compile(t, g.at["s1"])
	wide := []string{"--mpi=" + l.manager, "-N4", "-n8", "--overcommit", program}
	for _, what := range []string{"all", "bulk"} {
		before := g.hosts.received(g.host("h1"))
		expect(t, what, g.must("s1", "srun", append(wide, what, l.leaves)...), "world of 8")
		const least = 1 << 20 // what an Allreduce of 1 MiB moves to each machine at least
		if got := g.hosts.received(g.host("h1")) - before; what == "bulk" && got < least {
			t.Errorf("h1 has received %d bytes: the ranks did not speak by the network", got)
		}
	}
	if l.osc != "" {
		put := append([]string{"--export=ALL," + l.osc}, wide...)
		expect(t, "put", g.must("s1", "srun", append(put, "put")...), "world of 8")
	}
	mpiBadEnds(t, g.at["s1"], l.manager, program, "-N2", "-n4")
	g.loses(t, program, wide)
	g.nothingOf(t, program)
}

// begins starts srun at the first server, and returns once so many tasks have said that they have begun.
func (g *group) begins(t *testing.T, tasks int, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	d := g.at["s1"]
	cmd := exec.Command(filepath.Join(bin, "srun"), args...)
	errs := &bytes.Buffer{}
	cmd.Env = d.env
	cmd.Dir = d.work
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended if all went well
	if _, err := io.ReadFull(out, make([]byte, tasks*len("begun\n"))); err != nil {
		t.Fatalf("it has not begun: %v\n%s", err, errs)
	}
	return cmd, errs
}

// loses cuts a machine off in the middle of a step, and has it back.
func (g *group) loses(t *testing.T, program string, wide []string) {
	t.Helper()
	lost := g.host("h4")
	cmd, _ := g.begins(t, 1, append(wide, "stay")...)
	g.hosts.cut(lost)
	for _, name := range []string{"h1", "h2", "h3"} {
		g.wait("the ranks on "+name+" to be gone", func() bool { return g.hosts.runs(g.host(name), program) == nil })
	}
	jobs := g.must("s1", "sacct", "-nXP", "-S", "now-1hours", "-o", "State,NodeList")
	if !strings.HasSuffix(jobs, "\nNODE_FAIL|h[1-4]") {
		t.Errorf("the last job has not failed with its node:\n%s", jobs)
	}
	g.hosts.heal(lost)
	g.wait("h4 to be back", func() bool { return g.state("h4") == "idle" })
	if err := cmd.Wait(); err == nil {
		t.Error("srun says that all went well")
	}
}

// nothingOf waits until no process and no file of a step is left on any machine.
func (g *group) nothingOf(t *testing.T, program string) {
	t.Helper()
	g.drained("s1")
	for i := range mpiMachines {
		name := fmt.Sprintf("h%d", i+1)
		g.wait("the ranks on "+name+" to be gone", func() bool { return g.hosts.runs(g.host(name), program) == nil })
	}
	g.wait("the files of steps to be gone", func() bool {
		left, err := filepath.Glob(g.dir + "/*/d/spool/mpi-*")
		return err == nil && len(left) == 0
	})
}

var mpiMany = flag.Int("mpi-many", 0, "ranks of the worlds of TestMPIMany; 0: none")

// TestMPIMany: large worlds of MPI programs, many more ranks than the nodes have processors.
func TestMPIMany(t *testing.T) {
	t.Parallel()
	if *mpiMany == 0 {
		t.Skip("see make mpi-many")
	}
	product, err := gpuProduct() // it carries the server of PMIx, too
	if product == "" {
		t.Skip("no C compiler: ", err)
	}
	d := startProduct(t, product, "--hollow", "8x16c16g", "--hollow-exec")
	for _, l := range mpiLibraries {
		t.Run(l.manager, func(t *testing.T) {
			program := l.compile(t, d)
			begun := time.Now()
			size := fmt.Sprint("-n", *mpiMany)
			out := d.must("srun", "--mpi="+l.manager, "-N8", size, "--overcommit", program, "sum")
			expect(t, "a large world", out, fmt.Sprint("world of ", *mpiMany))
			t.Logf("%d ranks: %v", *mpiMany, time.Since(begun).Round(10*time.Millisecond))
		})
	}
}
