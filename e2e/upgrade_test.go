package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dev.muster/agent/history"
	"dev.muster/cluster"
)

// nextVersion is what the new program calls itself.
const nextVersion = "9.9.9-next"

// versions are the programs of all members, as one of them tells.
func (g *group) versions(at string) map[string]string {
	out, _, _ := g.run(at, "muster", "node", "list")
	versions := map[string]string{}
	for line := range strings.Lines(out) {
		if w := strings.Fields(line); len(w) > 4 && g.at[w[0]] != nil {
			versions[w[0]] = w[3]
		}
	}
	return versions
}

// upgrade replaces the program of one member and restarts its daemon, as docs/upkeep.md says.
func (g *group) upgrade(name, program string) {
	g.t.Helper()
	d := g.at[name]
	install(g.t, program, d.exe+".new")
	if err := os.Rename(d.exe+".new", d.exe); err != nil {
		g.t.Fatal(err)
	}
	d.stop()
	g.start(name)
}

// submitter submits jobs one after the other, by whichever server answers, until it is told to stop.
type submitter struct {
	g     *group
	pause sync.Mutex // held while one is submitted
	stop  chan struct{}
	done  sync.WaitGroup
	taken []string // names of the jobs that were taken, in each of which something was written once
}

func startSubmitter(g *group) *submitter {
	s := &submitter{g: g, stop: make(chan struct{})}
	s.done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-s.stop:
				return
			default:
			}
			at, name := fmt.Sprintf("s%d", n%3+1), fmt.Sprintf("up%d", n)
			s.pause.Lock()
			_, _, code := g.run(at, "sbatch", "-J", name, "-o", "/dev/null", "--wrap", "echo ran >>"+name+"; sleep 0.1")
			s.pause.Unlock()
			if code == 0 {
				s.taken = append(s.taken, name)
			}
		}
	})
	return s
}

// end stops the submitter and tells what was taken.
func (s *submitter) end() []string {
	close(s.stop)
	s.done.Wait()
	return s.taken
}

// TestRollingUpgrade replaces the program of a whole cluster while it works: two followers, the leader, then the
// compute nodes.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	rollingUpgrade(t, "", "FFLcc")
}

// TestUpgradeOrders upgrades a cluster from an older program, in each order of servers and clients: servers of both
// versions have the same state at each moment, and what only the newer knows is refused until all have it.
func TestUpgradeOrders(t *testing.T) {
	if *previousProgram == "" {
		t.Skip("give -previous=FILE, a program built from an older commit; see make upgrade")
	}
	for _, order := range []string{"FFLcc", "LFFcc", "ccFFL", "ccLFF", "FcLcF", "LcFcF"} {
		t.Run(order, func(t *testing.T) { rollingUpgrade(t, *previousProgram, order) })
	}
}

// inOrder are the members of a group of three servers and two clients, in an order: of F each is a server that
// follows when all have the old program, L the one that leads, and c a client.
func (g *group) inOrder(order string) (out []string) {
	leader, clients := g.awaitLeader("s1"), []string{"c1", "c2"}
	followers := g.others(leader)
	for _, c := range order {
		switch c {
		case 'L':
			out = append(out, leader)
		case 'F':
			out, followers = append(out, followers[0]), followers[1:]
		default:
			out, clients = append(out, clients[0]), clients[1:]
		}
	}
	return out
}

// sameState wants servers to have the same state, byte by byte, at one index of the log.
func (g *group) sameState(servers ...string) {
	g.t.Helper()
	var heads []history.ArchiveHead
	g.wait("servers to save one moment", func() bool {
		heads = nil
		for _, s := range servers {
			heads = append(heads, g.saved(s))
		}
		return !slices.ContainsFunc(heads, func(h history.ArchiveHead) bool { return h.Index != heads[0].Index })
	})
	first := heads[0]
	for i, h := range heads {
		if h.Server != servers[i] {
			g.t.Errorf("%s saved the state of %s", servers[i], h.Server)
		}
		if h.State != first.State {
			g.t.Errorf("at index %d %s (%s) has a state of %v, %s (%s) of %v",
				h.Index, h.Server, h.Version, h.State, first.Server, first.Version, first.State)
		}
	}
}

// saved saves a server's state and tells what is in the file.
func (g *group) saved(at string) (head history.ArchiveHead) {
	g.t.Helper()
	file := g.dir + "/state." + at
	if err := os.RemoveAll(file); err != nil {
		g.t.Fatal(err)
	}
	g.must(at, "muster", "snapshot", "save", file)
	f, err := os.Open(file)
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(&head); err != nil {
		g.t.Fatal(err)
	}
	return head
}

// checkLevel tries something that began at the first level: mixed says that some servers have the older program, of
// whose level was is. Until all have the newer one it is refused, where it is above that, and people are told of
// the upgrade.
func (g *group) checkLevel(was int, mixed bool) {
	g.t.Helper()
	leader := g.awaitLeader("s1")
	if g.versions(leader)[leader] != nextVersion {
		return
	}
	change := func() (string, int) {
		_, errs, code := g.run(leader, "scontrol", "update", "nodename=c1-001", "activefeatures=x")
		return errs, code
	}
	g.must(leader, "scontrol", "update", "nodename=c1-001", "availablefeatures=x,y")
	told := func() bool {
		return strings.Contains(g.must(leader, "muster", "server", "members"), "an upgrade is under way")
	}
	if mixed {
		if errs, code := change(); was < cluster.First && (code == 0 || !strings.Contains(errs, "upgrade them all")) {
			g.t.Errorf("what not all servers know: exit code %d, %s", code, errs)
		}
		if !told() {
			g.t.Error("muster server members does not tell of the upgrade")
		}
		return
	}
	g.wait("the level to be raised", func() bool { _, code := change(); return code == 0 && !told() })
}

// logLevel is the level of the group's log, as the page of s1 tells it; 0 where that tells none.
func (g *group) logLevel() int {
	g.t.Helper()
	answer, err := http.Get("http://" + g.pageAt(1) + "/metrics")
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nmuster_log_level{")
	_, value, found := strings.Cut(rest, "} ")
	if !found {
		return 0
	}
	return count(strings.Fields(value)[0])
}

// someServer reports whether one of some members is a server.
func someServer(members []string) bool {
	return slices.ContainsFunc(members, func(m string) bool { return m[0] == 's' })
}

// rollingUpgrade replaces the programs of a cluster's members in an order; old is the program that it has first, ""
// for this one. Running jobs go on under the same supervisors, jobs submitted meanwhile run once, and at each
// moment one sees who runs what.
func rollingUpgrade(t *testing.T, old, orderOf string) {
	g := newGroupOf(t, old, nil).fill(2)
	next := filepath.Join(g.dir, "next")
	if err := build(next, "-ldflags", "-X dev.muster/slurm/front.Version="+nextVersion); err != nil {
		t.Fatal(err)
	}

	const until = "until [ -e go ]; do sleep 0.05; done; "
	var long []string
	for i, node := range []string{"c1-001", "c2-002"} {
		long = append(long, g.must("s1", "sbatch", "--parsable", "-w", node, "-o", fmt.Sprintf("long%d", i), "--wrap",
			fmt.Sprintf("srun sh -c 'echo begin; %secho end; exit %d'", until, 3+i)))
	}
	gang := g.must("s1", "sbatch", "--parsable", "-N3", "-o", "gang",
		"--wrap", "srun -l sh -c 'echo begin; "+until+"echo end; exit 5'")
	type answer struct {
		out, errs string
		code      int
	}
	srun := make(chan answer, 1)
	go func() {
		out, errs, code := g.run("s2", "srun", "-N2", "-J", "front",
			"sh", "-c", "echo begin; touch front.$SLURM_NODEID; "+until+"echo end; exit 6")
		srun <- answer{out, errs, code}
	}()
	g.wait("all to run", func() bool {
		out, _, _ := g.run("s1", "squeue", "-h", "-s", "-o", "%i")
		_, err0 := os.Stat(g.dir + "/front.0")
		_, err1 := os.Stat(g.dir + "/front.1")
		return strings.Count(out, ".0\n") == 4 && err0 == nil && err1 == nil
	})
	clients := []string{"c1", "c2"}
	pids := map[string]int{}
	for _, c := range clients {
		pids[c] = g.at[c].supervisor()
	}

	wasLevel := g.logLevel()
	work := startSubmitter(g)
	order := g.inOrder(orderOf)
	for i, name := range order {
		g.upgrade(name, next)
		g.wait("all to tell that "+name+" runs the new program", func() bool {
			now := g.versions(order[0]) // the first that has it
			for k, member := range order {
				if (now[member] == nextVersion) != (k <= i) || now[member] == "" || now[member] == "-" {
					return false
				}
			}
			return true
		})
		g.wait("the group to be whole", func() bool { return g.leader("s1") != "" && g.voters("s1") == 3 })
		work.pause.Lock()
		g.sameState("s1", "s2", "s3")
		g.checkLevel(wasLevel, wasLevel < cluster.Newest && someServer(order[i+1:]))
		work.pause.Unlock()
	}
	if out := g.must("s3", "muster", "server", "members"); strings.Count(out, nextVersion) != 3 {
		t.Errorf("the servers' versions:\n%s", out)
	}
	taken := work.end()
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if a := <-srun; a.code != 6 || a.out != "begin\nbegin\nend\nend\n" {
		t.Errorf("srun that ran through all of it: exit code %d, %q, %s", a.code, a.out, a.errs)
	}
	g.drained("s1")

	for _, c := range clients {
		if pid := g.at[c].supervisor(); pid != pids[c] {
			t.Errorf("the supervisor of %s was process %d and is %d", c, pids[c], pid)
		}
		if log := g.at[c].read("log"); !strings.Contains(log, "the supervisor was upgraded in place") {
			t.Errorf("the supervisor of %s still runs the old program", c)
		}
	}
	for i, want := range map[string]string{long[0]: "3:0", long[1]: "4:0", gang: "5:0"} {
		expect(t, "exit code of job "+i, g.must("s1", "sacct", "-nXP", "-j", i, "-o", "State,ExitCode"), "FAILED|"+want)
	}
	for name, want := range map[string]string{
		"long0": "begin\nend\n",
		"long1": "begin\nend\n",
		"gang":  "0: begin\n0: end\n1: begin\n1: end\n2: begin\n2: end\n",
	} {
		var out string
		for _, l := range lines(g.read(t, name)) {
			if !strings.HasPrefix(l, "srun: ") {
				out += l
			}
		}
		expect(t, "output "+name, out, want)
	}
	if len(taken) < len(order) {
		t.Errorf("only %d jobs were taken during the upgrade", len(taken))
	}
	ran, err := filepath.Glob(g.dir + "/up*") // also where sbatch was not answered
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ran {
		expect(t, "runs of "+name, g.read(t, filepath.Base(name)), "ran\n")
	}
	states := g.must("s1", "sacct", "-nXPa", "-S", "now-1hours", "-o", "JobName,State")
	for _, name := range taken {
		expect(t, "runs of "+name, g.read(t, name), "ran\n")
		if !strings.Contains(states+"\n", name+"|COMPLETED\n") {
			t.Errorf("job %s did not complete", name)
		}
	}
	t.Logf("%d jobs were taken during the upgrade", len(taken))
	g.sameHistory(strings.Count(states, "\n")+1, "s1", "s2", "s3")
}
