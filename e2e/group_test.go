package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// group is a cluster of several processes on loopback addresses of their own, by name. Jobs and
// front-ends work in its folder.
type group struct {
	t      *testing.T
	dir    string
	at     map[string]*dev
	joins  map[string]string // role → token
	number int
	hosts  *hosts         // nil: loopback addresses
	before int            // of the hosts, how many are not the group's, ahead of its own
	paged  bool           // servers on hosts show the page, too
	order  map[string]int // name → number of its host
	// program is what members run that are added; "" for the one that is tested.
	program string
}

// groups makes addresses unique in this process; the process id makes them unique on the machine.
var groups atomic.Int32

// newGroup makes the first server, s1.
func newGroup(t *testing.T, args ...string) *group { t.Helper(); return newGroupOn(t, nil, args...) }

func newGroupOn(t *testing.T, h *hosts, args ...string) *group {
	t.Helper()
	return newGroupOf(t, "", h, args...)
}

func newGroupOf(t *testing.T, program string, h *hosts, args ...string) *group {
	t.Helper()
	return (&group{t: t, hosts: h, program: program}).begin(args...)
}

// begin makes the first server of a group of which it is known where it is.
func (g *group) begin(args ...string) *group {
	g.t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		g.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		g.t.Fatal(err)
	}
	g.dir, g.number = dir, int(groups.Add(1))
	g.at, g.joins, g.order = map[string]*dev{}, map[string]string{}, map[string]int{}
	g.t.Cleanup(g.cleanup)
	g.add("s1", "server", args...)
	g.wait("the first server to lead", func() bool { return g.leader("s1") == "s1" })
	for role, more := range map[string][]string{"server": nil, "node": {"--hollow"}, "login": nil} {
		g.joins[role] = g.must("s1", "muster", append([]string{
			"token", "create", "--role", role, "--uses", "200",
		}, more...)...)
	}
	return g
}

// addr is where the n-th member listens.
func (g *group) addr(n int) string {
	if g.hosts != nil {
		return fmt.Sprintf("10.77.0.%d:7440", g.before+n)
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+pid>>8%250, pid%256, n, 7440+g.number)
}

// pageAt is where the n-th member shows the page.
func (g *group) pageAt(n int) string {
	host, _, _ := net.SplitHostPort(g.addr(n))
	return fmt.Sprintf("%s:%d", host, 9000+g.number)
}

// add starts a member that is new.
func (g *group) add(name, mode string, args ...string) *dev {
	g.t.Helper()
	d := g.enrol(name, mode, args...)
	g.start(name)
	return d
}

// enrol makes a member that is still to be started.
func (g *group) enrol(name, mode string, args ...string) *dev {
	g.t.Helper()
	dir := filepath.Join(g.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		g.t.Fatal(err)
	}
	own := []string{"--node", name, "--bind", g.addr(len(g.at) + 1)}
	shows := g.hosts == nil || g.paged // on loopback, addresses are those of other groups too
	if mode == "server" && shows && !slices.Contains(args, "--http") {
		own = append(own, "--http", g.pageAt(len(g.at)+1))
	}
	d := newDev(g.t, dir, mode, append(own, args...))
	d.work = g.dir
	d.exe = filepath.Join(dir, "muster") // its own, which can be replaced alone
	install(g.t, cmp.Or(g.program, filepath.Join(bin, "muster")), d.exe)
	g.at[name] = d
	g.order[name] = len(g.at)
	if g.hosts != nil {
		g.hosts.mount(dir)
		d.inside = []string{"ip", "netns", "exec", g.hosts.name(g.host(name))}
	}
	return d
}

// install gives a program another name. The system may forbid links to files of others: then it points there.
func install(t *testing.T, program, as string) {
	t.Helper()
	if err := os.Link(program, as); err != nil {
		err = os.Symlink(program, as)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// start starts a member again and waits until it takes calls.
func (g *group) start(name string) {
	g.t.Helper()
	g.at[name].start()
	g.answers(name)
}

func (g *group) answers(name string) {
	g.t.Helper()
	g.wait("the socket of "+name, func() bool {
		c, err := net.Dial("unix", g.at[name].dir+"/s")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// join starts a member that joins by s1, or by the server that is given: a server, or a client that is hollow
// nodes which execute.
func (g *group) join(name, by string, args ...string) *dev {
	g.t.Helper()
	mode, role := "server", "server"
	if len(args) > 0 && args[0] == "--hollow" {
		mode, role = "client", "node"
	}
	return g.add(name, mode, append([]string{"--join", g.bind(by), "--token", g.joins[role]}, args...)...)
}

// host is the number of a member's host.
func (g *group) host(name string) int { return g.before + g.order[name] }

func (g *group) bind(name string) string { return g.at[name].args[3] }

// fullGroup makes a cluster of three servers and so many clients of two nodes each, c1-001, c1-002, c2-001, …
func fullGroup(t *testing.T, clients int, args ...string) *group {
	t.Helper()
	return fullGroupOn(t, nil, clients, args...)
}

func fullGroupOn(t *testing.T, h *hosts, clients int, args ...string) *group {
	t.Helper()
	return newGroupOn(t, h, args...).fill(clients, args...)
}

// fill adds two servers and so many clients.
func (g *group) fill(clients int, args ...string) *group {
	g.t.Helper()
	g.join("s2", "s1", args...)
	g.join("s3", "s2", args...)
	for i := range clients {
		name := fmt.Sprintf("c%d", i+1)
		g.join(name, "s1", "--hollow", "2x8c16g", "--hollow-prefix", name+"-", "--hollow-exec")
		g.wait("its nodes", func() bool { // one client after the other: that is the order of nodes, and so of ranks
			out, _, _ := g.run("s1", "sinfo", "-hN", "-t", "idle", "-o", "%N")
			return strings.Count(out, "\n") == 2*(i+1)
		})
	}
	g.wait("three voters", func() bool { return g.voters("s1") == 3 })
	return g
}

var keepFailed = flag.String("keep", "", "folder to which the members' data goes when a test of a group fails")

func (g *group) cleanup() {
	if g.t.Failed() {
		for name, d := range g.at {
			if log, err := os.ReadFile(d.dir + "/log"); err == nil {
				g.t.Logf("log of %s (end):\n%s", name, log[max(0, len(log)-3000):])
			}
		}
	}
	var wg sync.WaitGroup
	for _, d := range g.at {
		d.noPanic()
		wg.Go(func() {
			d.stop()
			if g.t.Failed() && *keepFailed != "" {
				if out, err := exec.Command("cp", "-a", d.dir, *keepFailed).CombinedOutput(); err != nil {
					g.t.Logf("keep %s: %v\n%s", d.dir, err, out)
				}
			}
			if g.hosts != nil {
				g.hosts.unmount(d.dir)
			}
		})
	}
	wg.Wait()
	_ = os.RemoveAll(g.dir)
}

func (g *group) run(at, name string, args ...string) (out, errs string, code int) {
	return g.at[at].run(name, args...)
}

func (g *group) must(at, name string, args ...string) string {
	g.t.Helper()
	return g.at[at].must(name, args...)
}

func (g *group) wait(what string, ok func() bool) {
	g.t.Helper()
	g.at["s1"].wait(what, ok)
}

// members is what a member says of the group: server → state.
func (g *group) members(at string) map[string]string {
	out, _, _ := g.run(at, "muster", "server", "members")
	states := map[string]string{}
	for line := range strings.Lines(out) {
		if w := strings.Fields(line); len(w) > 3 && w[0] != "SERVER" && g.at[w[0]] != nil {
			states[w[0]] = strings.Join(w[3:], " ")
		}
	}
	return states
}

func (g *group) voters(at string) (n int) {
	for _, state := range g.members(at) {
		if state == "leads" || state == "follows" {
			n++
		}
	}
	return n
}

// leader is who leads, as a member says; "" for nobody.
func (g *group) leader(at string) string {
	for name, state := range g.members(at) {
		if state == "leads" {
			return name
		}
	}
	return ""
}

// awaitLeader waits until a member knows a leader.
func (g *group) awaitLeader(at string) (name string) {
	g.t.Helper()
	g.wait("a leader", func() bool { name = g.leader(at); return name != "" })
	return name
}

// others are the servers but one.
func (g *group) others(than string) (names []string) {
	for _, n := range []string{"s1", "s2", "s3"} {
		if n != than {
			names = append(names, n)
		}
	}
	return names
}

// drained waits until no job is in the queue.
func (g *group) drained(at string) {
	g.t.Helper()
	left := ""
	defer func() {
		if left != "" {
			g.t.Logf("still in the queue of %s:\n%s", at, left)
		}
	}()
	g.wait("all jobs to end", func() bool {
		out, _, rc := g.run(at, "squeue", "-h", "-o", "%i %T %r %S %N %k")
		left = out
		return rc == 0 && out == ""
	})
}

const sacctAll = "JobID,JobName,State,ExitCode,NodeList,Start,End"

// sameHistory wants every server to tell the same of all jobs, and so many of them.
func (g *group) sameHistory(want int, servers ...string) {
	g.t.Helper()
	first := ""
	for _, s := range servers {
		g.drained(s) // its replica may be a moment behind
		out := g.must(s, "sacct", "-nXPa", "-S", "now-1hours", "-o", sacctAll)
		if n := strings.Count(out, "\n") + 1; n != want {
			g.t.Fatalf("%s tells of %d jobs, want %d:\n%s", s, n, want, out)
		}
		if first != "" && out != first {
			g.t.Fatalf("%s tells another history than %s:\n%s\n---\n%s", s, servers[0], out, first)
		}
		first = out
	}
}

// submitUntil submits until it is answered, and tells how long that took.
func (g *group) submitUntil(at string, args ...string) (id string, took time.Duration) {
	g.t.Helper()
	begin := time.Now()
	g.wait("sbatch to be answered", func() bool {
		out, _, rc := g.run(at, "sbatch", append([]string{"--parsable"}, args...)...)
		id = strings.TrimSpace(out)
		return rc == 0
	})
	return id, time.Since(begin)
}

// TestGroup is the life of a group of servers: joining, working through each, losing one after
// another, moving the lead, leaving, and a late server that has the whole past.
func TestGroup(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	jobs := 0
	submit := func(at string) {
		t.Helper()
		jobs++
		g.must(at, "sbatch", "-o", "/dev/null", "--wrap", fmt.Sprintf("echo run >>once.%d; exit %d", jobs, jobs%3))
	}
	for range 3 {
		for _, s := range []string{"s1", "s2", "s3"} {
			submit(s)
		}
	}
	g.drained("s2")
	g.sameHistory(jobs, "s1", "s2", "s3")
	for _, s := range []string{"s1", "s2", "s3"} { // who has written reads it on the same server
		id := g.must(s, "sbatch", "--parsable", "-H", "--wrap", "true")
		if out := g.must(s, "squeue", "-h", "-o", "%i %r"); out != id+" JobHeldUser" {
			t.Errorf("%s took job %s and shows %q", s, id, out)
		}
		g.must(s, "scancel", id)
		jobs++
	}

	g.must("s1", "sbatch", "-H", "--wrap", "true") // survives what follows
	jobs++
	leader := g.awaitLeader("s1")
	rest := g.others(leader)
	g.at[leader].kill()
	_, took := g.submitUntil(rest[0], "-o", "/dev/null", "--wrap", "true")
	jobs++
	t.Logf("the leader was killed: the next sbatch was answered after %v", took)
	if took > patience(5*time.Second) {
		t.Errorf("the next sbatch was answered only after %v", took)
	}
	submit(rest[1])
	if out := g.must(rest[1], "squeue", "-h", "-t", "PD", "-o", "%r"); !strings.Contains(out, "JobHeldUser") {
		t.Errorf("the held job is lost: %q", out)
	}
	g.start(leader)
	g.wait("the old leader to follow", func() bool { return g.members(leader)[leader] == "follows" })

	leader = g.awaitLeader("s1")
	follower := g.others(leader)[0]
	g.at[follower].kill()
	submit(leader)
	g.start(follower)
	g.wait("the follower to be back", func() bool { return g.leader(follower) != "" })
	submit(follower)

	g.must(follower, "muster", "server", "transfer", follower)
	g.wait("the lead to move", func() bool { return g.leader(leader) == follower })
	submit(leader)
	g.must(leader, "scancel", "-t", "PD", "--state=PD", "-u", "root")
	g.drained(leader)
	g.sameHistory(jobs, "s1", "s2", "s3")

	g.must("s1", "muster", "server", "leave", "s3")
	g.wait("two servers", func() bool { return len(g.members("s1")) == 2 })
	g.at["s3"].stop()
	submit("s2")
	g.drained("s1")
	g.join("s4", "s2", "--and-client")
	g.wait("the late server to vote", func() bool { return g.members("s4")["s4"] == "follows" })
	g.sameHistory(jobs, "s1", "s2", "s4")
	for _, lead := range []string{"s4", "s1"} { // a server that runs jobs too, leading or not
		g.must("s1", "muster", "server", "transfer", lead)
		g.wait("the lead to move", func() bool { return g.leader("s4") == lead })
		g.must("s4", "sbatch", "-W", "-w", "s4", "-o", "/dev/null", "--wrap", "true")
	}
	for i := 1; i <= 9; i++ {
		if b, _ := os.ReadFile(fmt.Sprintf("%s/once.%d", g.dir, i)); string(b) != "run\n" {
			t.Errorf("job %d ran like this: %q", i, b)
		}
	}
}

// TestLateServer joins a server when the log no longer begins at the beginning, and keeps another away
// for so long: both get the state in one piece, and the past from another server.
func TestLateServer(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "--snapshot-every", "20")
	g.join("c1", "s1", "--hollow", "2x8c16g", "--hollow-exec")
	g.join("s2", "s1", "--snapshot-every", "20")
	g.join("s3", "s1", "--snapshot-every", "20")
	g.wait("three voters", func() bool { return g.voters("s1") == 3 })
	jobs := 0
	work := func() {
		t.Helper()
		for range 12 {
			jobs++
			g.must("s1", "sbatch", "-o", "/dev/null", "--wrap", "exit 3")
		}
		g.drained("s1")
	}
	compact := func() {
		t.Helper()
		count := func() int { list, _ := filepath.Glob(g.dir + "/s1/d/raft/snapshots/*/state.bin"); return len(list) }
		newest := func() string {
			list, _ := filepath.Glob(g.dir + "/s1/d/raft/snapshots/*")
			return strings.Join(list, " ")
		}
		for begin := newest(); count() == 0 || newest() == begin; {
			work()
		}
	}
	work()
	g.at["s3"].kill()
	compact()
	compact()
	g.start("s3")
	g.join("s4", "s2", "--snapshot-every", "20")
	g.must("s3", "sacct", "-nX")
	g.wait("the late server to vote", func() bool { return g.members("s4")["s4"] == "follows" })
	work()
	g.wait("all to know the end", func() bool { out, _, _ := g.run("s3", "squeue", "-h"); return out == "" })
	g.sameHistory(jobs, "s1", "s2", "s3", "s4")
	for _, s := range []string{"s3", "s4"} {
		if log := g.at[s].read("log"); !strings.Contains(log, "history is whole") {
			t.Errorf("%s did not fetch the past:\n%s", s, log)
		}
	}
}

// TestNoQuorum: with two of three servers dead the third answers what it knows, says how old that is, and
// promises nothing; so it does if it starts alone. Jobs run on, and when the others are back everything
// arrives once.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	done := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 5")
	g.drained("s1")
	running := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap",
		"echo begin >>long; until [ -e go ]; do sleep 0.05; done; echo end >>long; exit 6")
	g.wait("the job to run", func() bool { b, _ := os.ReadFile(g.dir + "/long"); return len(b) > 0 })
	leader := g.awaitLeader("s1")
	rest := g.others(leader)
	last := rest[0]
	g.wait("the last to know", func() bool { return g.must(last, "squeue", "-h", "-o", "%i %T") == running+" RUNNING" })
	g.at[leader].kill()
	g.at[rest[1]].kill()

	reads := func(what string) {
		t.Helper()
		for _, tc := range []struct {
			args []string
			want string
		}{
			{[]string{"squeue", "-h", "-o", "%i %T"}, running + " RUNNING"},
			{[]string{"sinfo", "-h", "-o", "%D"}, "2"},
			{[]string{"sacct", "-nXP", "-j", done, "-o", "State,ExitCode"}, "FAILED|5:0"},
			{[]string{"muster", "server", "members"}, ""},
		} {
			begin := time.Now()
			out, errs, rc := g.run(last, tc.args[0], tc.args[1:]...)
			if took := time.Since(begin); rc != 0 || tc.want != "" && strings.TrimSpace(out) != tc.want || took > patience(3*time.Second) {
				t.Errorf("%s: %v after %v: %d, %s%s, want %s", what, tc.args, took, rc, out, errs, tc.want)
			}
		}
		g.wait("the age of answers", func() bool {
			out, _, _ := g.run(last, "muster", "server", "members")
			return strings.Contains(out, "no leader for")
		})
	}
	begin := time.Now()
	refused := make(chan string)
	go func() {
		_, errs, rc := g.run(last, "sbatch", "--wrap", "true")
		refused <- fmt.Sprint(rc, " ", errs)
	}()
	reads("alone")
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.wait("the job to end", func() bool { b, _ := os.ReadFile(g.dir + "/long"); return string(b) == "begin\nend\n" })
	if text := <-refused; strings.HasPrefix(text, "0") || time.Since(begin) > 25*time.Second {
		t.Errorf("sbatch without a quorum said %q after %v", text, time.Since(begin))
	} else {
		t.Logf("sbatch without a quorum said %q after %v", text, time.Since(begin))
	}
	g.at[last].kill()
	g.start(last)
	reads("started alone")

	g.start(leader)
	g.start(rest[1])
	g.drained(last)
	g.sameHistory(2, "s1", "s2", "s3")
	if got := g.must(last, "sacct", "-nXP", "-j", running, "-o", "State,ExitCode"); got != "FAILED|6:0" {
		t.Errorf("the job that ran on: %s", got)
	}
}

// TestSnapshot saves a cluster while it works, loses it, and restores it: its state, its history and its
// members are there again, and the work goes on.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.join("c1", "s1", "--hollow", "2x8c16g", "--hollow-exec")
	g.wait("the nodes", func() bool { return strings.Count(g.must("s1", "sinfo", "-hN", "-t", "idle"), "\n") == 1 })
	for i := range 5 {
		g.must("s1", "sbatch", "-o", "/dev/null", "--wrap", fmt.Sprintf("exit %d", i))
	}
	g.drained("s1")
	held := g.must("s1", "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "exit 7")
	long := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap",
		"echo begin >>long; until [ -e go ]; do sleep 0.05; done; echo end >>long")
	g.wait("the job to run", func() bool { b, _ := os.ReadFile(g.dir + "/long"); return len(b) > 0 })
	queue, past := g.must("s1", "squeue", "-h", "-o", "%i %T"), g.must("s1", "sacct", "-nXPa", "-S",
		"now-1hours", "-o", sacctAll)

	file := g.dir + "/saved"
	g.must("s1", "muster", "snapshot", "save", file)
	if out := g.must("s1", "muster", "snapshot", "inspect", file); !strings.Contains(out, "1 pending, 1 running") || !strings.Contains(out, "1 servers, 1 compute nodes") {
		t.Errorf("inspect says\n%s", out)
	}
	if _, errs, rc := g.at["s1"].as(1, "muster", "snapshot", "save", g.dir+"/none"); rc == 0 || !strings.Contains(errs, "only an operator") {
		t.Errorf("a user saves the cluster: %d, %s", rc, errs)
	}
	g.must("s1", "sbatch", "-H", "-J", "later", "--wrap", "true")
	if _, errs, rc := g.run("s1", "muster", "snapshot", "restore", "--data", g.dir+"/s1/d", file); rc == 0 || !strings.Contains(errs, "is not empty") {
		t.Errorf("a data folder is overwritten: %d, %s", rc, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(file+".bad", text, 0o600); err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]string{
		file + ".bad": "damaged", g.dir + "/long": "no file of muster snapshot save",
	} {
		if _, errs, rc := g.run("s1", "muster", "snapshot", "restore", "--data", g.dir+"/x", bad); rc == 0 || !strings.Contains(errs, want) {
			t.Errorf("restore of %s: %d, %s", bad, rc, errs)
		}
	}

	g.at["s1"].kill()
	if err := os.RemoveAll(g.dir + "/s1/d"); err != nil {
		t.Fatal(err)
	}
	g.must("s1", "muster", "snapshot", "restore", "--data", g.dir+"/s1/d", "--node", "s1", file)
	g.start("s1")
	g.wait("the restored server to lead", func() bool { return g.leader("s1") == "s1" })
	if got := g.must("s1", "squeue", "-h", "-o", "%i %T"); got != queue {
		t.Errorf("the queue was\n%s\nand is\n%s", queue, got)
	}
	if got := g.must("s1", "sacct", "-nXPa", "-S", "now-1hours", "-o", sacctAll); got != past {
		t.Errorf("the history was\n%s\nand is\n%s", past, got)
	}
	g.must("s1", "scontrol", "release", held)
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.drained("s1")
	g.join("s2", "s1")
	g.wait("a second server to vote", func() bool { return g.members("s2")["s2"] == "follows" })
	g.sameHistory(7, "s1", "s2")
	if got := g.must("s2", "sacct", "-nXP", "-j", held+","+long, "-o", "State,ExitCode"); got != "FAILED|7:0\nCOMPLETED|0:0" {
		t.Errorf("the jobs that went on: %s", got)
	}
	if b, _ := os.ReadFile(g.dir + "/long"); string(b) != "begin\nend\n" {
		t.Errorf("the job that ran on: %q", b)
	}
}

// TestBrokenHistory: a server that starts with a file of history that is damaged or gone gets the past from another
// one and then tells what the others tell. The damaged file stays beside it, and the log says so.
func TestBrokenHistory(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1, "--snapshot-every", "20")
	compacted := func(s string) bool {
		list, _ := filepath.Glob(g.dir + "/" + s + "/d/raft/snapshots/*/state.bin")
		return len(list) > 0
	}
	for !compacted("s2") || !compacted("s3") { // else the log alone brings everything again
		for range 10 {
			g.must("s1", "sbatch", "-o", "/dev/null", "--wrap", "exit 3")
		}
		g.drained("s1")
	}
	file := func(s string) string { return g.dir + "/" + s + "/d/acct/history.db" }
	all := func(s string) string {
		return g.must(s, "sacct", "-nPa", "-S", "now-1hours", "-o", sacctAll)
	}
	for i, c := range []struct {
		name  string
		spoil func(file string) error
		aside bool
	}{
		{"deleted", func(f string) error { return errors.Join(os.Remove(f), os.Remove(f+"-wal")) }, false},
		{"head overwritten", func(f string) error { return overwrite(f, 0, 100) }, true},
		{"middle overwritten", func(f string) error { return overwrite(f, 4096, 1<<20) }, true},
		{"a page overwritten", func(f string) error {
			data, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			return overwrite(f, int64(bytes.LastIndex(data, []byte("exit 3"))&^4095), 64)
		}, true},
		{"cut", func(f string) error { return os.Truncate(f, 10_000) }, true},
	} {
		s := []string{"s2", "s3"}[i%2]
		g.drained(s)
		g.at[s].stop() // the file has all by then, and the log beside it is empty
		if err := c.spoil(file(s)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		before := len(g.at[s].read("log"))
		g.start(s)
		g.must("s1", "sbatch", "-o", "/dev/null", "--wrap", "exit 4") // life goes on meanwhile
		log := ""
		g.wait(s+" to have the past again: "+c.name, func() bool {
			log = g.at[s].read("log")[before:]
			return strings.Contains(log, "history is whole")
		})
		g.drained("s1")
		g.drained(s)
		if got, want := all(s), all("s1"); got != want {
			t.Errorf("%s: %s tells\n%s\nthe others\n%s", c.name, s, got, want)
		}
		list, _ := filepath.Glob(file(s) + ".damaged-*")
		if told := strings.Contains(log, "the history file was damaged"); told != c.aside || (len(list) > 0) != c.aside {
			t.Errorf("%s: set aside %v, the log says so: %v\n%s", c.name, list, told, log)
		}
		for _, f := range list {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// overwrite writes rubbish into a file, up to its end.
func overwrite(file string, from, n int64) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(min(n, info.Size()-from))), from)
	}
	return errors.Join(err, f.Close())
}
