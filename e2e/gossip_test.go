package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tells waits until the log has a line, and returns what the group of the expression caught.
func (d *dev) tells(expr string) (found string) {
	d.t.Helper()
	re := regexp.MustCompile(expr)
	d.wait("a line like "+expr, func() bool {
		text, err := os.ReadFile(d.dir + "/log")
		m := re.FindSubmatch(text)
		if err != nil || m == nil {
			return false
		}
		found = string(m[1])
		return true
	})
	return found
}

// state is how sinfo shows a node.
func (g *group) state(node string) string {
	out, _, _ := g.run("s1", "sinfo", "-h", "-N", "-n", node, "-o", "%t")
	return strings.TrimSpace(out)
}

// gossiping is a server and two clients of one node each, c1-001 and c2-001, on hosts of their own;
// the server knows of them by gossip.
func gossiping(t *testing.T) *group {
	t.Helper()
	h, err := newHosts(t, 3)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	g := newGroupOn(t, h, "--log-level", "debug")
	for _, c := range []string{"c1", "c2"} {
		g.join(c, "s1", "--hollow", "1x8c16g", "--hollow-prefix", c+"-", "--hollow-exec")
		g.at["s1"].tells("(host reached). member=" + c + " ")
		g.wait(c+" to be idle", func() bool { return g.state(c+"-001") == "idle" })
	}
	return g
}

// A host whose network is cut sends no word of that. It is marked within four seconds, its job goes
// back to the queue, and it is back as soon as the network is.
func TestSilentHost(t *testing.T) {
	g := gossiping(t)
	const node = "c1-001"
	ran := filepath.Join(g.dir, "ran")
	g.must("s1", "sbatch", "-w", node, "--requeue", "--wrap", "touch "+ran+"; sleep 600")
	g.wait("the job to run", func() bool { _, err := os.Stat(ran); return err == nil && g.state(node) == "mix" })
	g.hosts.cut(g.host("c1"))
	began := time.Now()
	g.wait("the node not to respond", func() bool { return g.state(node) == "mix*" })
	marked := time.Since(began)
	g.wait("the job to be requeued", func() bool {
		out, _, _ := g.run("s1", "squeue", "-h", "-o", "%T")
		return strings.TrimSpace(out) == "PENDING"
	})
	down := time.Since(began)
	if s := g.state(node); s != "down*" {
		t.Errorf("the node without its network is %q", s)
	}
	began = time.Now()
	g.hosts.heal(g.host("c1"))
	g.wait("the job to begin there again", func() bool { return g.state(node) == "mix" })
	t.Logf("not responding after %v, job requeued after %v, back %v after the network", marked, down, time.Since(began))
	if marked > 4*time.Second || down > 8*time.Second {
		t.Errorf("not responding after %v, want 4 s; job requeued after %v, want 8 s", marked, down)
	}
}

// Where only the packets of the gossip are lost, nothing happens to nodes.
func TestGossipAloneLost(t *testing.T) {
	t.Parallel()
	g := gossiping(t)
	if err := ip("-n", g.hosts.name(g.host("c1")), "rule", "add", "ipproto", "udp", "prohibit"); err != nil {
		t.Skipf("UDP alone cannot be cut here: %v", err)
	}
	g.at["s1"].tells("(over TCP but UDP probes failed)")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		if out := g.must("s1", "sinfo", "-h", "-o", "%t"); out != "idle" {
			t.Fatalf("without the packets of the gossip nodes are %q", out)
		}
	}
}

// A client of whom nobody tells the new servers hears of them by gossip: after all that it knew are
// gone it still finds those that came later.
func TestServersReplaced(t *testing.T) {
	g := newGroup(t)
	g.join("c1", "s1", "--hollow", "1x8c16g", "--hollow-prefix", "c1-", "--hollow-exec")
	knows := func(servers ...string) {
		t.Helper()
		g.wait("the client to know the new servers", func() bool {
			text, err := os.ReadFile(g.at["c1"].dir + "/d/trust/servers")
			for _, s := range servers {
				if err != nil || !strings.Contains(string(text), g.bind(s)) {
					return false
				}
			}
			return true
		})
	}
	began := time.Now()
	g.join("s2", "s1")
	g.join("s3", "s1")
	knows("s2", "s3")
	if took := time.Since(began); took > patience(20*time.Second) {
		t.Errorf("that took %v: it was learnt by asking", took)
	}
	g.wait("three voters", func() bool { return g.voters("s1") == 3 })
	g.wait("s1 to be out", func() bool {
		_, _, code := g.run("s2", "muster", "server", "leave", "s1")
		return code == 0 && g.members("s2")["s1"] == ""
	})
	g.at["s1"].stop()
	if out := g.must("c1", "sinfo", "-h", "-o", "%t"); out == "" {
		t.Error("the client's host has no answer though two servers are there")
	}
}
