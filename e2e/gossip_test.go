package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machines are network namespaces on a bridge: machines with addresses of their own, whose cables can
// be pulled.
type machines struct {
	t      *testing.T
	prefix string
	dir    string
}

// host is one of them, with at most one daemon.
type host struct {
	*dev
	hosts *machines
	num   int
}

func (h *machines) ip(args ...string) {
	h.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		h.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// newMachines makes the bridge, or skips the test where that is not possible.
func newMachines(t *testing.T) *machines {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &machines{t: t, prefix: "muster" + filepath.Base(dir), dir: dir}
	if out, err := exec.Command("ip", "netns", "add", h.prefix).CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		t.Skipf("no network namespaces here: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", h.prefix).CombinedOutput(); err != nil {
			t.Errorf("take the bridge away: %v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	h.ip("-n", h.prefix, "link", "add", "br0", "type", "bridge")
	h.ip("-n", h.prefix, "link", "set", "br0", "up")
	return h
}

func (h *host) ns() string   { return fmt.Sprintf("%s-%d", h.hosts.prefix, h.num) }
func (h *host) addr() string { return fmt.Sprintf("10.78.0.%d", h.num) }

// add makes a machine.
func (h *machines) add(num int) *host {
	h.t.Helper()
	m := &host{hosts: h, num: num}
	m.dev = &dev{t: h.t, dir: fmt.Sprintf("%s/%d", h.dir, num)}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !strings.HasPrefix(name, "SLURM_") && !strings.HasPrefix(name, "SBATCH_") && name != "PATH" {
			m.env = append(m.env, e)
		}
	}
	m.env = append(m.env, "MUSTER_SOCKET="+m.dir+"/s", "PATH="+bin+":"+os.Getenv("PATH"))
	near, far := fmt.Sprintf("h%d", num), fmt.Sprintf("s%d", num)
	h.ip("netns", "add", m.ns())
	h.t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", m.ns()).CombinedOutput(); err != nil {
			h.t.Errorf("take machine %d away: %v\n%s", num, err, out)
		}
	})
	h.ip("link", "add", near, "netns", m.ns(), "type", "veth", "peer", "name", far, "netns", h.prefix)
	h.ip("-n", h.prefix, "link", "set", far, "master", "br0", "up")
	h.ip("-n", m.ns(), "link", "set", "lo", "up")
	h.ip("-n", m.ns(), "addr", "add", m.addr()+"/24", "dev", near)
	h.ip("-n", m.ns(), "link", "set", near, "up")
	return m
}

// cable pulls or puts back the cable of a machine.
func (h *host) cable(state string) {
	h.t.Helper()
	h.hosts.ip("-n", h.hosts.prefix, "link", "set", fmt.Sprintf("s%d", h.num), state)
}

// boot starts the machine's daemon.
func (h *host) boot(mode string, args ...string) {
	h.t.Helper()
	log, err := os.OpenFile(h.dir+"/log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.cmd = exec.Command("ip", append([]string{"netns", "exec", h.ns(), filepath.Join(bin, "muster"), mode, "--data", h.dir + "/d",
		"--socket", h.dir + "/s", "--node", fmt.Sprintf("n%d", h.num), "--bind", h.addr() + ":7440"}, args...)...)
	h.cmd.Stdout, h.cmd.Stderr, h.cmd.Env = log, log, h.env
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.cleanup)
}

// tells waits until the log has a line and returns what the group of the expression caught.
func (h *host) tells(expr string) (found string) {
	h.t.Helper()
	re := regexp.MustCompile(expr)
	h.wait("a line like "+expr, func() bool {
		text, err := os.ReadFile(h.dir + "/log")
		m := re.FindSubmatch(text)
		if err != nil || m == nil {
			return false
		}
		found = string(m[len(m)-1])
		return true
	})
	return found
}

// nodeState waits for a state of a node and returns how long that took.
func (h *host) nodeState(node, want string) time.Duration {
	h.t.Helper()
	began := time.Now()
	h.wait(node+" to be "+want, func() bool {
		out, _, _ := h.run("sinfo", "-h", "-N", "-n", node, "-o", "%t")
		return strings.TrimSpace(out) == want
	})
	return time.Since(began)
}

// threeHosts are a server, n1, and two clients of which it knows by gossip.
func threeHosts(t *testing.T) (server, one, two *host) {
	t.Helper()
	h := newMachines(t)
	server, one, two = h.add(1), h.add(2), h.add(3)
	server.boot("server", "--log-level", "debug")
	token := server.tells(`muster client --join \S+ --token (\S+)`)
	for _, c := range []*host{one, two} {
		c.boot("client", "--join", server.addr(), "--token", token)
	}
	for _, n := range []string{"n2", "n3"} {
		server.nodeState(n, "idle")
		server.tells("host reached. member=(" + n + ") ")
	}
	return server, one, two
}

// A host whose network is cut sends no word of that. It is marked within four seconds, its job goes
// back to the queue, and it is back as soon as the network is.
func TestSilentHost(t *testing.T) {
	server, one, _ := threeHosts(t)
	server.must("sbatch", "-w", "n2", "--requeue", "--wrap", "sleep 600")
	server.nodeState("n2", "mix")
	one.cable("down")
	began := time.Now()
	server.nodeState("n2", "mix*")
	marked := time.Since(began)
	server.wait("the job to be requeued", func() bool {
		out, _, _ := server.run("squeue", "-h", "-o", "%T")
		return strings.TrimSpace(out) == "PENDING"
	})
	down := time.Since(began)
	if out := strings.TrimSpace(server.must("sinfo", "-h", "-N", "-n", "n2", "-o", "%t")); out != "down*" {
		t.Errorf("n2 without its network is %q", out)
	}
	one.cable("up")
	back := server.nodeState("n2", "mix") // the job begins there again
	t.Logf("not responding after %v, job requeued after %v, back %v after the network", marked, down, back)
	if marked > 4*time.Second || down > 8*time.Second {
		t.Errorf("not responding after %v, want 4 s; job requeued after %v, want 8 s", marked, down)
	}
}

// Where only the packets of the gossip are lost, nothing happens to nodes and jobs.
func TestGossipAloneLost(t *testing.T) {
	server, one, _ := threeHosts(t)
	server.must("sbatch", "-w", "n2", "--wrap", "sleep 600")
	server.nodeState("n2", "mix")
	one.hosts.ip("-n", one.ns(), "rule", "add", "ipproto", "udp", "prohibit")
	server.tells("over TCP but UDP probes (failed)")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		if out := strings.TrimSpace(server.must("sinfo", "-h", "-N", "-n", "n2", "-o", "%t")); out != "mix" {
			t.Fatalf("without the packets of the gossip n2 is %q", out)
		}
	}
}
