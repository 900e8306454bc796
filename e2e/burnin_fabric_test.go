package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	fabricNodes   = flag.Int("fabric-nodes", 8, "machines of TestBurninFabric")
	fabricSeconds = flag.String("fabric-seconds", "0.2", "time of one transfer in TestBurninFabric")
)

// fabricRate is the rate of good links, in Mbit/s: so low that two processors are enough for all of n. A bad link
// has a fifth of it.
func fabricRate(n int) int { return max(10, 320/n) }

// shape limits what a host sends and receives, in Mbit/s.
func (h *hosts) shape(i, rate int) error {
	for _, at := range [2][2]string{{h.name(i), "eth0"}, {h.prefix + "-sw", fmt.Sprintf("s%d", i)}} {
		cmd := exec.Command("tc", "-n", at[0], "qdisc", "replace", "dev", at[1], "root", "tbf", "rate", strconv.Itoa(rate)+"mbit",
			"burst", "32kb", "latency", "100ms")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
	}
	return nil
}

// introduce tells n hosts each other's link addresses. All network namespaces share one table of 1024 addresses that the
// kernel has learned, which 64 hosts would exceed.
func (h *hosts) introduce(n int) error {
	link := func(i int) string { return fmt.Sprintf("02:00:0a:4d:00:%02x", i) }
	for i := 1; i <= n; i++ {
		var lines strings.Builder
		fmt.Fprintf(&lines, "link set dev eth0 address %s\n", link(i))
		for k := 1; k <= n; k++ {
			if k != i {
				fmt.Fprintf(&lines, "neigh replace 10.77.0.%d lladdr %s dev eth0 nud permanent\n", k, link(k))
			}
		}
		cmd := exec.Command("ip", "-n", h.name(i), "-batch", "-")
		cmd.Stdin = strings.NewReader(lines.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
	}
	return nil
}

// fabricGroup is a server and machines h1, h2, … whose links have a rate, on a network without bridges between.
func fabricGroup(t *testing.T, n int) *group {
	t.Helper()
	if _, err := exec.LookPath("tc"); err != nil {
		t.Skip("no tc to slow a link: ", err)
	}
	h, err := newHosts(t, n+1)
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	if err := h.introduce(n + 1); err != nil {
		t.Fatal(err)
	}
	for i := 2; i <= n+1; i++ {
		if err := h.shape(i, fabricRate(n)); err != nil {
			t.Skip("no traffic shaper here: ", err)
		}
	}
	g := newGroupOn(t, h, "--conf", confFile(t, mpiConf))
	token := g.must("s1", "muster", "token", "create", "--uses", strconv.Itoa(n))
	for i := range n {
		g.add(fmt.Sprintf("h%d", i+1), "client", "--join", g.bind("s1"), "--token", token)
	}
	g.wait("the machines", func() bool {
		return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D") == strconv.Itoa(n)
	})
	return g
}

// fabricAnswer is what muster burnin --fabric --json prints.
type fabricAnswer struct {
	Fabric struct {
		Seconds  float64
		Nodes    []struct{ Node, Verdict, What string }
		Findings []string
		Note     string
	}
}

// fabric tests the network between all machines.
func (g *group) fabric(want int, args ...string) (a fabricAnswer) {
	g.t.Helper()
	all := fmt.Sprintf("h[1-%d]", *fabricNodes)
	words := append([]string{"burnin", "--fabric", "--json", "--seconds", *fabricSeconds}, args...)
	out, errs, code := g.run("s1", "muster", append(words, all)...)
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != want {
		g.t.Fatalf("muster burnin --fabric: %d, %v\n%s\n%s", code, err, out, errs)
	}
	return a
}

// TestBurninFabric: of machines with a network each, the one with a slow link is found and drained, a test of good
// links finds nothing, and a test that is interrupted leaves nothing behind.
func TestBurninFabric(t *testing.T) {
	t.Parallel()
	n := *fabricNodes
	g := fabricGroup(t, n)
	if a := g.fabric(0, "--rails=eth0"); len(a.Fabric.Findings) > 0 || len(a.Fabric.Nodes) != n {
		t.Errorf("with good links: %+v", a)
	}
	if drained := g.must("s1", "sinfo", "-h", "-R"); drained != "" {
		t.Errorf("with good links: %s", drained)
	}
	slow := fmt.Sprintf("h%d", 1+n/3)
	if err := g.hosts.shape(g.host(slow), fabricRate(n)/5); err != nil {
		t.Fatal(err)
	}
	g.leftOut(t, slow)
	a := g.fabric(1)
	t.Logf("one slow link of %d was found in %.1f s: %q", n, a.Fabric.Seconds, a.Fabric.Findings)
	if len(a.Fabric.Findings) != 1 || !strings.HasPrefix(a.Fabric.Findings[0], "node "+slow+": sends and receives") {
		t.Errorf("with a slow link: %+v", a)
	}
	if a.Fabric.Seconds > 60 {
		t.Errorf("it took %v s", a.Fabric.Seconds)
	}
	shown, _, code := g.run("s1", "muster", "burnin", "--show", slow)
	if code != 1 || row(shown, "fabric", "failed", "network: sends and receives", "Gb/s") == "" {
		t.Errorf("muster burnin --show: %d\n%s", code, shown)
	}
	if got := g.must("s1", "sinfo", "-h", "-n", slow, "-o", "%T %E"); !strings.HasPrefix(got, "drained burnin: network: sends") {
		t.Errorf("the node: %s", got)
	}
	if _, errs, code := g.run("s1", "muster", "burnin", "--fabric", "h1,"+slow); code != 1 ||
		!strings.Contains(errs, "needs two nodes that can run jobs, and h1,"+slow+" has 1") {
		t.Errorf("with a drained node: %d, %s", code, errs)
	}
	g.interrupted(t)
}

// leftOut has a job test its own nodes, and replace the slow one by a spare before it begins.
func (g *group) leftOut(t *testing.T, slow string) {
	t.Helper()
	if os.Getenv(withinEnv) != "" {
		t.Log("only a user who is not root swaps nodes from a node, and this user namespace has none")
		return
	}
	const nobody = "65534"
	const script = `for node in $(%[1]s burnin --fabric --job --names --seconds=%[2]s); do
	%[1]s swap $SLURM_JOB_ID $node "slow link"
done
srun sh -c 'echo $SLURMD_NODENAME'`
	out := g.dir + "/out-left"
	if err := os.WriteFile(out, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(out, 0o666); err != nil {
		t.Fatal(err)
	}
	id := g.must("s1", "sbatch", "--parsable", "--wait",
		"--nodes=4", "--ntasks-per-node=1", "--spare=1", "--nodelist=h1,"+slow,
		"--uid="+nobody, "--chdir=/", "--output="+out, "--wrap="+fmt.Sprintf(script, bin+"/muster", *fabricSeconds))
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	ran := strings.Count(string(b), "\nh")
	if ran < 4 || strings.Contains(string(b), "\n"+slow+"\n") {
		t.Errorf("job %s, whose node %s is slow:\n%s", id, slow, b)
	}
}

// interrupted ends a test by Ctrl-C.
func (g *group) interrupted(t *testing.T) {
	t.Helper()
	d := g.at["s1"]
	cmd := exec.Command(d.exe, "burnin", "--fabric", "--seconds", "30", fmt.Sprintf("h[1-%d]", *fabricNodes))
	cmd.Env, cmd.Dir = d.env, d.work
	errs, err := os.Create(t.TempDir() + "/errs")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.wait("its first round", func() bool {
		b, _ := os.ReadFile(errs.Name())
		return strings.Contains(string(b), "round 1 of")
	})
	begun := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code says more
	if code := cmd.ProcessState.ExitCode(); code != 130 || time.Since(begun) > 10*time.Second {
		b, _ := os.ReadFile(errs.Name())
		t.Errorf("after Ctrl-C: exit code %d, after %v\n%s", code, time.Since(begun), b)
	}
	g.drained("s1")
}
