package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	chaosTime = flag.Duration("chaos", 2*time.Minute, "how long TestChaos breaks things")
	chaosSeed = flag.Uint64("chaos-seed", 0, "seed of TestChaos; 0: another one each time")
)

// clockOff is by how many seconds a clock goes wrong: no more than two members may differ by.
const clockOff = 25

// A client is down after silentTime; a machine that does everything at once may need a while to be heard.
// For awayTime clients are cut off on purpose: their jobs run on, and are lost to the servers.
const (
	silentTime = 10 * time.Second
	awayTime   = 13 * time.Second
	jobsAtOnce = 2 * 8 // of one client: its nodes have so many CPUs
)

const allClients = "c1- c2- c3-"

// away is when a client was cut off for so long that its jobs were given up.
type away struct {
	client   string
	from, to time.Time
}

// gaveUp reports whether a client of these nodes was away at a time that a wrong clock tells.
func (c *chaos) gaveUp(nodes, from, to string) bool {
	begin, err1 := time.ParseInLocation("2006-01-02T15:04:05", from, time.Local)
	end, err2 := time.ParseInLocation("2006-01-02T15:04:05", to, time.Local)
	if err1 != nil || err2 != nil {
		return false
	}
	return slices.ContainsFunc(c.aways, func(a away) bool {
		from := a.from.Add(-clockOff * time.Second)
		to := a.to.Add((clockOff + 5) * time.Second)
		return strings.Contains(nodes, a.client+"-") && from.Before(end) && to.After(begin)
	})
}

// chaosJob is what is known of one submission.
type chaosJob struct {
	token, code int
	held        bool // submitted on hold
	tried       bool // scancel was called; it may have done its work without saying so
	canceled    bool // and was acknowledged
	again       bool // submitted with --requeue
	requeues    int  // tried
}

// name is that under which the history has it.
func (j *chaosJob) name() string { return fmt.Sprintf("token%d", j.token) }

// chaos is the callers' record of what they were told.
type chaos struct {
	*group
	hosts   *hosts
	clients int
	mu      sync.Mutex
	rnd     *rand.Rand
	token   int
	jobs    map[string]*chaosJob // acknowledged, by id
	unsaid  []*chaosJob          // submissions without an acknowledgement
	faults  map[string]int
	story   []string
	aways   []away
	worst   time.Duration // from when a fault of -chaos-hang was over until all was well
}

// TestChaos submits, cancels and requeues through all servers while servers and clients are killed and cut
// off. Each acknowledged command has happened, once.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	const clients = 3
	c := &chaos{
		clients: clients, rnd: rand.New(rand.NewPCG(seed, 0)), jobs: map[string]*chaosJob{},
		faults: map[string]int{},
	}
	h, err := newHosts(t, 3+clients)
	if err != nil {
		t.Logf("no partitions are tried: %v", err)
		h = nil
	}
	switch {
	case h != nil && *chaosHang:
		h.block = true
	case h != nil:
		h.disk = "256m"
	}
	c.hosts = h
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	text := fmt.Sprintf("ClusterName=chaos\nPartitionName=main Nodes=ALL Default=YES\nSlurmdTimeout=%d\n",
		int(silentTime.Seconds()))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.group = fullGroupOn(t, h, clients, "--conf", conf)
	for range *chaosLoad {
		burn(t)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { c.call(stop) })
	}
	for end := time.Now().Add(*chaosTime); time.Now().Before(end); {
		c.breakSomething()
	}
	close(stop)
	wg.Wait()
	c.wait("three servers that agree", func() bool {
		return c.leader("s1") != "" && c.leader("s1") == c.leader("s2") && c.leader("s2") == c.leader("s3")
	})
	leader := c.leader("s1") // it knows all that was acknowledged
	for line := range strings.Lines(c.must(leader, "squeue", "-h", "-t", "PD", "-o", "%i %r %j %V")) {
		f := strings.Fields(line)
		if id := f[0]; f[1] == "JobHeldUser" { // nobody was told of it
			if j := c.jobs[id]; j != nil {
				c.tell(id, j, "was canceled and is on hold, as "+f[2]+" of "+f[3], "")
			}
			c.must(leader, "scancel", id)
		}
	}
	for _, s := range []string{"s1", "s2", "s3"} {
		c.drained(s)
	}
	c.check()
}

func (c *chaos) pick(n int) int { c.mu.Lock(); defer c.mu.Unlock(); return c.rnd.IntN(n) }

func (c *chaos) server() string { return fmt.Sprintf("s%d", 1+c.pick(3)) }

// pause lasts so many milliseconds, more or less: the pace is the test's own choice.
func (c *chaos) pause(ms int) { time.Sleep(time.Duration(ms/2+c.pick(ms)) * time.Millisecond) }

// call submits jobs and changes them until stop.
func (c *chaos) call(stop chan struct{}) {
	var mine []int // tokens of jobs that should run, oldest first
	for {
		select {
		case <-stop:
			return
		default:
		}
		c.mu.Lock()
		c.token++
		j := &chaosJob{token: c.token, code: c.rnd.IntN(4), held: c.rnd.IntN(6) == 0}
		ms, at, what := c.rnd.IntN(300), fmt.Sprintf("s%d", 1+c.rnd.IntN(3)), c.rnd.IntN(8)
		c.mu.Unlock()
		args, script := drillJob(j.token, j.code, ms)
		again := "--no-requeue"
		if what == 1 {
			j.again, again = true, "--requeue"
		}
		args = append(args, "--parsable", again, "-J", j.name(), "-o", fmt.Sprintf("out.%d", j.token), "--wrap", script)
		if j.held {
			args = append([]string{"-H"}, args...)
		}
		out, _, rc := c.run(at, "sbatch", args...)
		id := strings.TrimSpace(out)
		if rc != 0 {
			c.mu.Lock()
			c.unsaid = append(c.unsaid, j)
			c.mu.Unlock()
			c.pause(50)
			continue
		}
		c.mu.Lock()
		c.jobs[id] = j
		c.mu.Unlock()
		if !j.held && what != 0 {
			if mine = append(mine, j.token); len(mine) > callerJobs {
				c.await(mine[0])
				mine = mine[1:]
			}
		}
		switch {
		case j.held: // some stay on hold until they are canceled
			for !j.canceled {
				j.tried = true
				_, _, rc := c.run(c.server(), "scancel", id)
				j.canceled = rc == 0
			}
		case what == 0:
			c.pause(100)
			j.tried = true
			_, _, rc := c.run(c.server(), "scancel", id)
			j.canceled = rc == 0
		case what == 1:
			c.pause(100)
			j.requeues++
			c.run(c.server(), "scontrol", "requeue", id)
		}
		c.pause(20)
	}
}

// breakSomething does one thing to one member or two, and undoes it.
func (c *chaos) breakSomething() {
	server, client := c.server(), fmt.Sprintf("c%d", 1+c.pick(c.clients))
	leader := c.leader(server)
	if leader == "" {
		leader = server
	}
	crash := func(name string) func() {
		return func() { c.at[name].kill(); c.pause(600); c.start(name) }
	}
	list := []chaosFault{
		{"leader killed", crash(leader)}, {"server killed", crash(server)}, {"client killed", crash(client)},
		{"leader and client killed", func() {
			c.at[leader].kill()
			c.at[client].kill()
			c.pause(300)
			c.start(client)
			c.start(leader)
		}},
		{"lead moved", func() { c.run(server, "muster", "server", "transfer") }},
	}
	if *setClocks {
		wrong := func(name string) func() {
			return func() {
				c.at[name].setClock(c.pick(2*clockOff+1) - clockOff)
				c.pause(2000)
				c.at[name].setClock(0)
			}
		}
		list = append(list, chaosFault{
			"clock of the leader set", wrong(leader),
		}, chaosFault{"clock of a server set", wrong(server)}, chaosFault{"clock of a client set", wrong(client)})
	}
	if c.hosts != nil {
		cut := func(name string, ms int) func() {
			return func() { c.hosts.cut(c.host(name)); c.pause(ms); c.hosts.heal(c.host(name)) }
		}
		other := c.others(leader)[c.pick(2)]
		mute := func(from, to string) func() {
			return func() {
				c.hosts.mute(c.host(from), c.host(to))
				c.pause(1000)
				c.hosts.unmute(c.host(from), c.host(to))
			}
		}
		full := func(name string) func() {
			return func() {
				c.hosts.fill(c.at[name].dir)
				c.pause(2000)
				c.hosts.free(c.at[name].dir)
				if c.at[name].ended() { // as systemd would
					c.faults["ended on a full disk"]++
					c.start(name)
				}
			}
		}
		list = append(list, chaosFault{
			"leader cut off", cut(leader, 1000),
		}, chaosFault{"server cut off", cut(server, 1000)}, chaosFault{"client cut off", cut(client, 1000)},
			chaosFault{"leader not heard by another", mute(leader, other)}, chaosFault{
				"leader does not hear another", mute(other, leader),
			},
			chaosFault{"client not heard by the leader", mute(client, leader)}, chaosFault{"client away", func() {
				a := away{client: client, from: time.Now()}
				c.hosts.cut(c.host(client))
				time.Sleep(awayTime)
				c.hosts.heal(c.host(client))
				a.to = time.Now()
				c.aways = append(c.aways, a)
			}}, chaosFault{"disk of the leader full", full(leader)}, chaosFault{"disk of a server full", full(server)})
	}
	if *chaosHang {
		list = c.hangs(leader, server, client)
	}
	f := list[c.pick(len(list))]
	c.faults[f.name]++
	begin := time.Now()
	f.do()
	if *chaosHang {
		c.worst = max(c.worst, c.well())
	}
	took := time.Since(begin).Round(time.Millisecond)
	c.story = append(c.story, fmt.Sprintf("%s %v: %s (leader %s, server %s, client %s)",
		begin.UTC().Format("15:04:05.000"), took, f.name, leader, server, client))
	c.pause(500)
}

// chaosRecord is what the history has of a job.
type chaosRecord struct{ id, name, state, exit, submit, end, nodes, line string }

// history is what all servers tell of the jobs, by id.
func (c *chaos) history() map[string]chaosRecord {
	told := ""
	for _, s := range []string{"s1", "s2", "s3"} {
		out := c.must(s, "sacct", "-nXPa", "-S", "now-1days", "-o",
			"JobID,JobName,State,ExitCode,Submit,Start,End,NodeList")
		if told != "" && out != told {
			c.t.Errorf("%s tells another history than the one before:\n%s", s, difference(told, out))
		}
		told = out
	}
	records := map[string]chaosRecord{}
	for line := range strings.Lines(told) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if _, twice := records[f[0]]; twice {
			c.t.Errorf("job %s is in the history twice", f[0])
		}
		submit, start, end := f[4], f[5], f[6]
		if later(submit, start) || later(start, end) {
			c.t.Errorf("job %s: times in a wrong order: %s", f[0], line)
		}
		records[f[0]] = chaosRecord{f[0], f[1], strings.Fields(f[2])[0], f[3], submit, end, f[7], line}
	}
	return records
}

// later reports whether a time is after another; words that stand for a time are neither.
func later(a, b string) bool { return a > b && a[0] == '2' && b[0] == '2' }

// ran is what a job has written of its beginnings and ends.
func (c *chaos) ran(j *chaosJob) string {
	b, _ := os.ReadFile(fmt.Sprintf("%s/run.%d", c.dir, j.token))
	return strings.ReplaceAll(string(b), "\n", " ")
}

// fault is what is wrong with what became of a job; empty: nothing.
func (c *chaos) fault(j *chaosJob, r chaosRecord) string {
	text := c.ran(j)
	begins, ends := strings.Count(text, "begin"), strings.Count(text, "end")
	most := 1 + j.requeues
	if j.again && c.gaveUp(allClients, r.submit, r.end) {
		most++
	}
	switch {
	case j.held && (r.state != "CANCELLED" || text != ""):
		return "was canceled on hold"
	case j.tried && r.state == "CANCELLED" && begins <= 1:
		return ""
	case r.state == "NODE_FAIL":
		if begins > most || (ends > 0 || *chaosHang) && !c.gaveUp(r.nodes, r.end, r.end) {
			return "failed with its node"
		}
	case r.exit != fmt.Sprintf("%d:0", j.code):
		return fmt.Sprintf("should have exit code %d", j.code)
	case begins < 1 || begins > most || ends < 1 || ends > begins:
		return "should have run once"
	}
	return ""
}

// tell says all that is known of a job that went wrong.
func (c *chaos) tell(id string, j *chaosJob, fault, line string) {
	attempts, _, _ := c.run("s1", "sacct", "-nXPD", "-j", id, "-o",
		"JobID,State,ExitCode,Start,End,NodeList,Verdict")
	c.t.Errorf("job %s (token %d, %d requeues, cancel tried %v, acknowledged %v): %s; it ran %q with output %q; "+
		"history: %sits attempts:\n%s", id, j.token, j.requeues, j.tried, j.canceled, fault, c.ran(j),
		c.output(j.token), line, attempts)
}

// check compares what the callers were told with the history and with what the jobs wrote.
func (c *chaos) check() {
	t := c.t
	records := c.history()
	lost, wrong, failed := 0, 0, 0
	for id, j := range c.jobs {
		r, there := records[id]
		if !there {
			lost++
			c.tell(id, j, "is not in the history", "")
			continue
		}
		if r.state == "NODE_FAIL" {
			failed++
		}
		if bad := c.fault(j, r); bad != "" {
			wrong++
			c.tell(id, j, bad, r.line)
		}
	}
	c.checkUnsaid(records)
	t.Logf("%d jobs acknowledged, %d submissions not, %d lost, %d wrong, %d failed with their node; faults: %v",
		len(c.jobs), len(c.unsaid), lost, wrong, failed, c.faults)
	if *chaosHang {
		t.Logf("all was well %v after a fault was over, at most", c.worst.Round(10*time.Millisecond))
	}
	if t.Failed() {
		t.Logf("what was done to it:\n%s", strings.Join(c.story, "\n"))
	}
	if most := jobsAtOnce*len(c.aways) + len(c.jobs)/100; failed > most {
		t.Errorf("%d jobs of %d failed with their nodes, and a client was away %d times", failed,
			len(c.jobs), len(c.aways))
	}
}

// checkUnsaid looks at what nobody was told of: each was submitted once, as it was asked for, or not at all. On hold
// they were canceled in the end.
func (c *chaos) checkUnsaid(records map[string]chaosRecord) {
	named := map[string][]chaosRecord{}
	for _, r := range records {
		named[r.name] = append(named[r.name], r)
	}
	for _, j := range c.unsaid {
		list := named[j.name()]
		if len(list) == 0 && c.ran(j) != "" {
			c.t.Errorf("token %d is in no history and ran %q", j.token, c.ran(j))
		}
		if len(list) > 1 {
			c.t.Errorf("token %d was submitted %d times: %v", j.token, len(list), list)
		}
		for _, r := range list {
			if bad := c.fault(j, r); bad != "" {
				c.tell(r.id, j, "nobody was told of it, and it "+bad, r.line)
			}
		}
	}
}

// difference lists the lines that only one of two texts has.
func difference(a, b string) string {
	var out strings.Builder
	for sign, pair := range map[string][2]string{"-": {a, b}, "+": {b, a}} {
		other := map[string]bool{}
		for line := range strings.Lines(pair[1]) {
			other[strings.TrimSpace(line)] = true
		}
		for line := range strings.Lines(pair[0]) {
			if line = strings.TrimSpace(line); !other[line] {
				fmt.Fprintln(&out, sign, line)
			}
		}
	}
	if out.Len() == 0 {
		return "the same lines in another order"
	}
	return out.String()
}

// callerJobs is how many jobs a caller has in the queue before it waits for the first of them, for a while: the
// machine may be slower than its callers.
const (
	callerJobs = 25
	waitsLong  = 2 * time.Second
)

// await waits until a job has run, or until that is taking long.
func (c *chaos) await(token int) {
	for end := time.Now().Add(waitsLong); time.Now().Before(end); c.pause(50) {
		b, _ := os.ReadFile(fmt.Sprintf("%s/run.%d", c.dir, token))
		if strings.Contains(string(b), "end") {
			return
		}
	}
}

func (c *chaos) output(token int) string {
	b, _ := os.ReadFile(fmt.Sprintf("%s/out.%d", c.dir, token))
	return string(b)
}
