package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

var (
	chaosHang = flag.Bool("chaos-hang", false,
		"TestChaos has members hang, wait for their disks, hear in part, run out of files and be wrong about the time; none is killed")
	chaosLoad = flag.Int("chaos-load", 0, "how many processes are busy beside TestChaos all the time")
)

// chaosFault is one thing that is done to members, and undone.
type chaosFault struct {
	name string
	do   func()
}

// hangs are the faults of members that live and do not do their work.
func (c *chaos) hangs(leader, server, client string) (list []chaosFault) {
	stopped := func(who, name string, d time.Duration) {
		list = append(list, chaosFault{fmt.Sprintf("%s stopped for %v", who, d), func() { c.stopped(name, d) }})
	}
	stopped("client", client, 5*time.Second)
	stopped("client", client, 15*time.Second)
	for _, d := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
		stopped("leader", leader, d)
		stopped("server", server, d)
	}
	for _, m := range [][2]string{{"leader", leader}, {"server", server}, {"client", client}} {
		who, name := m[0], m[1]
		list = append(list, chaosFault{who + " without files", func() { c.starve(name) }})
		if *setClocks {
			list = append(list, chaosFault{who + " wrong about the time", func() { c.jump(name) }})
		}
	}
	if c.hosts == nil {
		return list
	}
	for _, other := range append(c.others(leader), client) {
		list = append(list, chaosFault{
			"half-open between the leader and another", func() { c.halfOpen(leader, other) },
		})
	}
	if c.hosts.block {
		list = append(list, chaosFault{
			"disk of the leader hangs", func() { c.diskHangs(leader) },
		}, chaosFault{"disk of a server hangs", func() { c.diskHangs(server) }},
			chaosFault{
				"disk of the leader slow", func() { c.diskSlow(leader) },
			}, chaosFault{"disk of a server slow", func() { c.diskSlow(server) }})
	}
	return list
}

// stopped has a member do nothing; a client that does nothing for long is given up, as one that is away.
func (c *chaos) stopped(name string, d time.Duration) {
	from := time.Now()
	_ = c.at[name].cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = c.at[name].cmd.Process.Signal(syscall.SIGCONT)
	if strings.HasPrefix(name, "c") && d >= silentTime {
		c.aways = append(c.aways, away{name, from, time.Now()})
	}
}

// starve leaves a member no room for one more open file.
func (c *chaos) starve(name string) {
	pid := c.at[name].cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		c.t.Error(err)
		return
	}
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		c.t.Error(err)
		return
	}
	few := unix.Rlimit{Cur: uint64(len(open)), Max: old.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		c.t.Error(err)
	}
	c.pause(4000)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil); err != nil {
		c.t.Error(err)
	}
}

// jump sets a member's clock, there and back.
func (c *chaos) jump(name string) {
	c.at[name].setClock(c.pick(2*clockOff+1) - clockOff)
	c.pause(2000)
	c.at[name].setClock(0)
}

// halfOpen has two members lose each other's packets without a word for a while.
func (c *chaos) halfOpen(a, b string) {
	c.hosts.part(c.host(a), c.host(b))
	c.pause(6000)
	c.hosts.join(c.host(a), c.host(b))
}

// diskHangs has who writes on a member's disk wait for some seconds.
func (c *chaos) diskHangs(name string) {
	c.hosts.freeze(c.at[name].dir)
	c.pause(8000)
	c.hosts.thaw(c.at[name].dir)
}

// diskSlow has a disk stand still most of the time, for some seconds.
func (c *chaos) diskSlow(name string) {
	for range 20 {
		c.hosts.freeze(c.at[name].dir)
		c.pause(300)
		c.hosts.thaw(c.at[name].dir)
		c.pause(30)
	}
}

// well waits until all servers follow one leader, all nodes are heard of, and a job has run; it tells how long that
// took.
func (c *chaos) well() time.Duration {
	begin := time.Now()
	c.wait("three servers that agree", func() bool {
		l := c.leader("s1")
		return l != "" && l == c.leader("s2") && l == c.leader("s3")
	})
	c.wait("all nodes to be heard of", func() bool {
		out, _, rc := c.run("s1", "sinfo", "-hN", "-o", "%T")
		return rc == 0 && strings.Count(out, "\n") >= 2*c.clients-1 && !strings.Contains(out, "*") && !strings.Contains(out, "down")
	})
	c.wait("a job to run", func() bool {
		_, _, rc := c.run("s1", "sbatch", "-W", "-t", "1", "-o", "/dev/null", "--wrap", "true")
		return rc == 0
	})
	return time.Since(begin)
}

// TestClockLaunch sets the leader's clock back, has it start a job whose node is slow to confirm, and sets the
// clock right: by the wall clock the launch timeout is over, but the node has not had it. The job runs once. See
// make chaos-hang.
func TestClockLaunch(t *testing.T) {
	if !*setClocks {
		t.Skip("see make chaos-hang")
	}
	g := newGroup(t)
	g.join("c1", "s1", "--hollow", "1x8c16g", "--hollow-prefix", "c1-", "--hollow-exec")
	g.wait("the node", func() bool { return g.must("s1", "sinfo", "-hN", "-t", "idle", "-o", "%N") != "" })
	time.Sleep(cluster.DefaultConfig().LaunchTimeout + time.Second) // what this leader has known the node for
	g.at["s1"].setClock(-24)
	time.Sleep(200 * time.Millisecond) // the daemon looks at that every 20 ms
	client := g.at["c1"].pause()
	id := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap",
		"echo begin >> "+g.dir+"/run; sleep 1; echo end >> "+g.dir+"/run")
	g.wait("its start", func() bool { return g.must("s1", "squeue", "-h", "-j", id, "-o", "%N") != "" })
	g.at["s1"].setClock(0)
	time.Sleep(2 * time.Second) // in which the leader may take the launch back
	if err := client.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	g.wait("its end", func() bool { return g.must("s1", "squeue", "-h", "-j", id, "-o", "%i") == "" })
	if got := g.must("s1", "sacct", "-nXPD", "-j", id, "-o", "State"); got != "COMPLETED" {
		t.Errorf("its attempts: %q, want one that completed", got)
	}
	text, err := os.ReadFile(g.dir + "/run")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Fields(got)[0] != "begin" || len(strings.Fields(got)) != 2 {
		t.Errorf("it ran like this: %q", got)
	}
}
