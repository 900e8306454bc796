package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/agent"
	hardware "dev.muster/agent/machine"
	"dev.muster/cluster"
	"dev.muster/slurm"
)

var benchNodes = flag.Int("bench-nodes", 0, "how many hollow nodes TestBenchNodes makes; 0: none")

// Bars of the figures below.
const (
	joinedWithin = 30 * time.Second
	leaderMemory = 300 // MiB
	leaderShare  = 0.1 // of a core, idle
	idleTime     = 20 * time.Second
	joinAtOnce   = 32  // members, as their side of it takes this machine's processors too
	benchGossip  = 100 // members; the idle cost of a server does not grow with them, that of this process by the square
	settleTime   = 2 * time.Minute
	benchTasks   = 5000
	clockTick    = 10 * time.Millisecond // of /proc/PID/stat
)

// TestBenchNodes has many hollow nodes join three servers: each as a member of its own, which costs the
// servers what a compute node does, and a hundred a member. See make bench-nodes.
func TestBenchNodes(t *testing.T) {
	if *benchNodes == 0 {
		t.Skip("see make bench-nodes")
	}
	for _, each := range []int{1, 100} {
		t.Run(fmt.Sprintf("%d a member", each), func(t *testing.T) { benchFleet(t, *benchNodes/each, each) })
	}
}

func benchFleet(t *testing.T, members, each int) {
	g := fullGroup(t, 0)
	began := time.Now()
	g.fleet(members, each, 0)
	idle := func() int { return count(g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D")) }
	g.wait("all nodes to be idle", func() bool { return idle() == members*each })
	joined := time.Since(began)
	leader := g.at[g.awaitLeader("s1")]
	settled := leader.settles(began)
	share, udp, tcp := leader.idleCost()
	memory := leader.memory()

	began = time.Now()
	g.must("s1", "sbatch", "-Q", fmt.Sprintf("--array=1-%d", benchTasks), "-o", "/dev/null", "--wrap", "true")
	g.drained("s1")
	rate := benchTasks / time.Since(began).Seconds()
	after := leader.memory()
	lost, back := g.leaderLost()
	t.Logf("\n"+`%d members, %d nodes each
all nodes idle after                    %v
the leader has settled after            %v
leader idle, of a core                  %.1f %%
leader's memory, idle / after the jobs  %d / %d MiB
datagrams of gossip a second            %.0f (all members)
TCP segments a second                   %.0f (all members)
jobs a second                           %.0f (an array of %d)
leader killed → all nodes respond again %v, down meanwhile: %d`, members, each, joined.Round(time.Millisecond), settled.Round(time.Second),
		share*100, memory, after, udp, tcp, rate, benchTasks, back.Round(time.Millisecond), lost)
	if joined > joinedWithin {
		t.Errorf("the nodes were idle after %v, want %v", joined, joinedWithin)
	}
	if share > leaderShare {
		t.Errorf("the leader takes %.2f of a core, want %.2f", share, leaderShare)
	}
	if after > leaderMemory {
		t.Errorf("the leader takes %d MiB, want %d", after, leaderMemory)
	}
	if lost > 0 {
		t.Errorf("a new leader gave up %d nodes that are well", lost)
	}
}

// leaderLost kills the leader and tells how many nodes were ever down after that, and when all responded again.
func (g *group) leaderLost() (down int, back time.Duration) {
	g.t.Helper()
	leader := g.awaitLeader("s1")
	other, all := g.others(leader)[0], count(g.must("s1", "sinfo", "-h", "-o", "%D"))
	nodes := func(state string) int {
		out, _, _ := g.run(other, "sinfo", "-h", "-t", state, "-o", "%D")
		return count(out)
	}
	if n := nodes("down"); n != 0 {
		g.t.Errorf("%d nodes were down before", n)
	}
	began := time.Now()
	g.at[leader].kill()
	g.wait("another leader", func() bool { name := g.leader(other); return name != "" && name != leader })
	for watched := began; time.Since(watched) < idleTime; {
		down = max(down, nodes("down"))
		if back == 0 && nodes("idle") == all && nodes("no_respond") == 0 {
			back = time.Since(began)
		}
	}
	return down, back
}

// fleet makes members of so many hollow nodes each, which run nothing. They are goroutines of this
// process, but to the servers each is what a compute node is: it has a certificate and connections of its
// own, and the first of them take part in the gossip.
func (g *group) fleet(members, each int, jobs time.Duration) {
	g.t.Helper()
	token := g.must("s1", "muster", "token", "create", "--role", "node", "--hollow", "--uses", strconv.Itoa(members))
	log, err := os.Create(g.dir + "/fleet.log")
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	joining := make(chan struct{}, joinAtOnce)
	for i := range members {
		nodes, err := hardware.ParseHollow(fmt.Sprintf("%dx8c16g", each))
		if err != nil {
			g.t.Fatal(err)
		}
		name := fmt.Sprintf("f%04d", i)
		for k := range nodes {
			nodes[k].Name = cluster.NodeName(fmt.Sprintf("%s-%03d", name, k))
			nodes[k].Inventory.Host = string(nodes[k].Name)
		}
		dir := g.dir + "/" + name
		cfg := agent.Config{Client: true, Dir: dir, Socket: dir + "/s", NodeName: cluster.NodeName(name),
			Hollow: agent.HollowConfig{Nodes: nodes, Time: jobs},
			Bind:   fmt.Sprintf("127.251.%d.%d:7440", i/250, 1+i%250),
			Join:   []string{g.bind("s1"), g.bind("s2"), g.bind("s3")}, Token: token, Mute: i >= benchGossip,
			Dialect: slurm.Dialect{},
			Log:     slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
		cfg.Started = sync.OnceFunc(func() { <-joining })
		joining <- struct{}{}
		running.Go(func() {
			defer cfg.Started()
			if err := agent.Run(ctx, cfg); err != nil && !errors.Is(err, context.Canceled) {
				g.t.Errorf("member %s: %v", name, err)
			}
		})
	}
	g.t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := log.Close(); err != nil {
			g.t.Error(err)
		}
	})
}

// settles waits until a daemon does little, and tells how long after the beginning that was.
func (d *dev) settles(began time.Time) time.Duration {
	d.t.Helper()
	const window = 2 * time.Second
	for last := d.cpu(); time.Since(began) < settleTime; {
		time.Sleep(window) // the measure itself
		now := d.cpu()
		if float64(now-last) < leaderShare*float64(window) {
			break
		}
		last = now
	}
	return time.Since(began)
}

// idleCost is the daemon's share of a core, and how much this machine's network says a second.
func (d *dev) idleCost() (share, udp, tcp float64) {
	d.t.Helper()
	cpu, u, s := d.cpu(), counter(d.t, "Udp", "InDatagrams"), counter(d.t, "Tcp", "InSegs")
	began := time.Now()
	time.Sleep(idleTime) // the measure itself
	took := time.Since(began).Seconds()
	return (d.cpu() - cpu).Seconds() / took, float64(counter(d.t, "Udp", "InDatagrams")-u) / took, float64(counter(d.t, "Tcp", "InSegs")-s) / took
}

// cpu is the processor time that a daemon has taken.
func (d *dev) cpu() time.Duration {
	d.t.Helper()
	text := d.proc("stat")
	f := strings.Fields(text[strings.LastIndex(text, ")")+1:]) // from the third field on
	return time.Duration(count(f[11]+" "+f[12])) * clockTick
}

// memory is what a daemon has resident, in MiB.
func (d *dev) memory() int {
	d.t.Helper()
	_, text, _ := strings.Cut(d.proc("status"), "VmRSS:")
	return count(strings.Fields(text)[0]) >> 10
}

func (d *dev) proc(file string) string {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", d.cmd.Process.Pid, file))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// counter is one of the kernel's counters of this machine's network.
func counter(t *testing.T, proto, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	var head []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != proto+":" {
			continue
		}
		if head == nil {
			head = f
			continue
		}
		for i, h := range head {
			if h == name {
				return count(f[i])
			}
		}
	}
	t.Fatalf("the kernel does not count %s of %s", name, proto)
	return 0
}
