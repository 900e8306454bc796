package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	stallRounds = flag.Int("stall", 0,
		"how many rounds of each stall TestStalls goes through, at full length; 0: a short one of each")
	stallLoad = flag.Int("stall-load", 0, "how many processes are busy beside TestStalls all the time")
	stallKind = flag.String("stall-kind", "", "which stall alone TestStalls goes through")
)

// A cluster of stallClients clients, each of two nodes, runs so many jobs while its leader stalls.
const (
	stallClients = 3
	stallJobs    = 24
	stallShort   = 8 * time.Second // twice as long as a node may be silent
)

// Numbers of fs.h for freezing a file system.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// stall is one way in which a leader does not do its work though its host is there.
type stall struct {
	name  string
	lasts time.Duration
	begin func(leader string)
	end   func(leader string)
}

// staller is a cluster whose leader stalls again and again.
type staller struct {
	*group
	hosts *hosts
	jobs  []string
	asks  int
}

// disk gives a member's data a disk of its own that can hang: a file system in a file.
func (h *hosts) blockDisk(dir string) error {
	image, data := dir+"/disk", dir+"/d"
	if err := os.Mkdir(data, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, 4<<30); err != nil {
		return err
	}
	for _, c := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, data}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(c, " "), err, out)
		}
	}
	return nil
}

// freeze has whoever writes on a member's disk wait until thaw.
func (h *hosts) freeze(dir string) { h.fsControl(dir, fiFreeze) }
func (h *hosts) thaw(dir string)   { h.fsControl(dir, fiThaw) }

func (h *hosts) fsControl(dir string, what uint) {
	f, err := os.Open(dir + "/d")
	if err != nil {
		h.t.Error(err)
		return
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), what, 0); err != nil {
		h.t.Errorf("disk of %s: %v", dir, err)
	}
}

// part has two hosts lose each other's packets without a word, as a broken switch does; join ends that.
func (h *hosts) part(a, b int) { h.neighbours("replace", a, b) }
func (h *hosts) join(a, b int) { h.neighbours("del", a, b) }

func (h *hosts) neighbours(what string, a, b int) {
	for _, way := range [][2]int{{a, b}, {b, a}} {
		args := []string{"-n", h.name(way[0]), "neigh", what, fmt.Sprintf("10.77.0.%d", way[1]), "dev", "eth0"}
		if what == "replace" {
			args = append(args, "lladdr", "02:00:00:00:00:99", "nud", "permanent")
		}
		if err := ip(args...); err != nil {
			h.t.Error(err)
		}
	}
}

// TestStalls: while the leader is stopped, loses a part of the network or waits for its disk, no node that is well is
// given up, and no job is lost or runs twice.
func TestStalls(t *testing.T) {
	t.Parallel()
	s := newStaller(t)
	for range *stallLoad {
		burn(t)
	}
	for _, kind := range s.stalls() {
		if *stallKind == "" || strings.HasPrefix(kind.name, *stallKind) {
			s.rounds(kind)
		}
	}
	s.finish()
}

func newStaller(t *testing.T) *staller {
	t.Helper()
	h, err := newHosts(t, 3+stallClients)
	if err != nil {
		t.Logf("no part of the network is cut, no disk hangs: %v", err)
		h = nil
	}
	if h != nil && os.Getenv(withinEnv) == "" {
		h.block = true
	}
	conf := writeFile(t, "slurm.conf",
		"ClusterName=stall\nPartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:4\n")
	s := &staller{group: fullGroupOn(t, h, stallClients, "--conf", conf), hosts: h}
	for i := range stallJobs {
		again := []string{"--requeue", "--no-requeue"}[i%2]
		script := fmt.Sprintf("echo begin >>run.%d; until [ -e go ]; do sleep 0.5; done; echo end >>run.%d", i, i)
		s.jobs = append(s.jobs, s.must("s1", "sbatch", "--parsable", "-c2", again, "-o", "/dev/null", "--wrap", script))
	}
	s.wait("all jobs to run", func() bool {
		list, _ := filepath.Glob(s.dir + "/run.*")
		return len(list) == stallJobs
	})
	return s
}

// burn keeps a process busy until the test ends.
func burn(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func (s *staller) signal(sig syscall.Signal) func(string) {
	return func(leader string) { _ = s.at[leader].cmd.Process.Signal(sig) }
}

// stalls are the ways that can be tried here.
func (s *staller) stalls() (list []stall) {
	stop, cont := s.signal(syscall.SIGSTOP), s.signal(syscall.SIGCONT)
	if *stallRounds == 0 {
		list = append(list, stall{"stopped", stallShort, stop, cont})
	} else {
		for _, d := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
			list = append(list, stall{fmt.Sprintf("stopped %v", d), d, stop, cont})
		}
	}
	if s.hosts == nil {
		return list
	}
	lasts := stallShort
	if *stallRounds > 0 {
		lasts = 15 * time.Second
	}
	servers := func(f func(a, b int)) func(string) {
		return func(leader string) {
			for _, o := range s.others(leader) {
				f(s.host(leader), s.host(o))
			}
		}
	}
	clients := func(f func(a, b int)) func(string) {
		return func(leader string) {
			for i := range stallClients {
				f(s.host(leader), s.host(fmt.Sprintf("c%d", i+1)))
			}
		}
	}
	list = append(list, stall{"cut off from servers", lasts, servers(s.hosts.part), servers(s.hosts.join)},
		stall{"cut off from nodes", lasts, clients(s.hosts.part), clients(s.hosts.join)})
	if s.hosts.block {
		list = append(list, stall{
			"disk hangs", lasts, func(l string) { s.hosts.freeze(s.at[l].dir) },
			func(l string) { s.hosts.thaw(s.at[l].dir) },
		})
	}
	return list
}

// rounds goes through one kind of stall so often, and tells the worst times.
func (s *staller) rounds(kind stall) {
	var worst, healed time.Duration
	n := max(*stallRounds, 1)
	for range n {
		served, whole := s.round(kind)
		worst, healed = max(worst, served), max(healed, whole)
		if s.t.Failed() {
			return
		}
	}
	s.t.Logf("%s for %v, %d rounds: jobs ran on all clients again after %v at most, and all servers agreed %v after it was over", kind.name, kind.lasts, n,
		worst.Round(10*time.Millisecond), healed.Round(10*time.Millisecond))
}

// round has the leader stall once. It tells after how long a job had run on each client, and how long after the end all
// servers agreed.
func (s *staller) round(kind stall) (served, whole time.Duration) {
	leader := s.agreed()
	begin := time.Now()
	kind.begin(leader)
	over := make(chan struct{})
	time.AfterFunc(kind.lasts, func() {
		kind.end(leader)
		close(over)
	})
	at := s.others(leader)[0]
	for i := range stallClients {
		s.asks++
		mark := fmt.Sprintf("mark.%d", s.asks)
		s.submitUntil(at, "-c1", "--oversubscribe", "-w", fmt.Sprintf("c%d-001", i+1), "-o", "/dev/null",
			"--wrap", "touch "+mark)
		s.wait("a job on "+mark, func() bool { _, err := os.Stat(s.dir + "/" + mark); return err == nil })
	}
	served = time.Since(begin)
	<-over
	s.agreed()
	whole = max(0, time.Since(begin)-kind.lasts)
	s.unharmed(kind)
	return served, whole
}

// agreed waits until all servers name one leader and nodes are up, and tells it.
func (s *staller) agreed() (leader string) {
	s.t.Helper()
	s.wait("three servers that agree", func() bool {
		leader = s.leader("s1")
		return leader != "" && leader == s.leader("s2") && leader == s.leader("s3")
	})
	s.wait("all nodes to be heard of", func() bool {
		out := s.must(leader, "sinfo", "-hN", "-o", "%T")
		return strings.Count(out, "\n") == 2*stallClients-1 && !strings.Contains(out, "*")
	})
	return leader
}

// unharmed looks whether every job is where it was, and no node was given up.
func (s *staller) unharmed(kind stall) {
	s.t.Helper()
	out := s.must("s1", "squeue", "-h", "-t", "all", "-j", strings.Join(s.jobs, ","), "-O",
		"JobID:10,State:14,RestartCnt:4")
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) != 3 || f[1] != "RUNNING" || f[2] != "0" {
			s.t.Errorf("%s: job %s", kind.name, strings.TrimSpace(line))
		}
	}
	for i := range stallJobs {
		if text := s.at["s1"].soFar(fmt.Sprintf("../run.%d", i)); text != "begin\n" {
			s.t.Errorf("%s: job %s ran like this: %q", kind.name, s.jobs[i], text)
		}
	}
	for _, name := range []string{"s1", "s2", "s3"} {
		for line := range strings.Lines(s.at[name].read("log")) {
			if strings.Contains(line, "nodes are lost") {
				s.t.Errorf("%s: %s says %s", kind.name, name, line)
			}
		}
	}
}

// finish lets all jobs end: each has run once.
func (s *staller) finish() {
	if s.t.Failed() {
		return
	}
	if err := os.WriteFile(s.dir+"/go", nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.drained("s1")
	out := s.must("s1", "sacct", "-nXP", "-j", strings.Join(s.jobs, ","), "-o", "State")
	if strings.Count(out, "COMPLETED") != stallJobs {
		s.t.Errorf("the jobs ended so:\n%s", out)
	}
	for i := range stallJobs {
		if text := s.at["s1"].soFar(fmt.Sprintf("../run.%d", i)); text != "begin\nend\n" {
			s.t.Errorf("job %s ran like this: %q", s.jobs[i], text)
		}
	}
}
