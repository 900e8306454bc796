package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var submissions = flag.Int("submissions", 400, "how many jobs TestSubmissionsTold submits while the lead changes")

// toldJob is what a caller was told of one.
type toldJob struct {
	id, errs string // the job, or why there is none
}

// doubt is how sbatch says that it does not know, and what names the submission then.
var doubt = regexp.MustCompile(`may have been submitted.*MUSTER_SUBMIT_KEY=(\S+)`)

// TestSubmissionsTold: whatever becomes of the servers, sbatch tells what is so. A user who was given a number has that
// job and no other, one who was refused has none, and one who was told of a doubt finds out by submitting again.
func TestSubmissionsTold(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	rnd := rand.New(rand.NewPCG(1, 0))
	var mu sync.Mutex
	told := map[string]toldJob{} // by the job's name
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := range *submissions / 8 {
				name := fmt.Sprintf("t%d-%d", c, i)
				out, errs, rc := g.run(fmt.Sprintf("s%d", 1+(c+i)%3), "sbatch", "--parsable", "-H", "-J",
					name, "--wrap", "true")
				s := toldJob{id: strings.TrimSpace(out)}
				if rc != 0 {
					s.id, s.errs = "", errs
				}
				mu.Lock()
				told[name] = s
				mu.Unlock()
			}
		})
	}
	changes := 0
	var changer sync.WaitGroup
	changer.Go(func() { changes = g.changeLeads(stop, rnd) })
	callers.Wait()
	close(stop)
	changer.Wait()
	g.wait("three servers that agree", func() bool {
		return g.leader("s1") != "" && g.leader("s1") == g.leader("s2") && g.leader("s2") == g.leader("s3")
	})
	sure, refused, unsure := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(told)) {
		s := told[name]
		key := doubt.FindStringSubmatch(s.errs)
		switch {
		case s.id != "":
			sure++
		case key != nil:
			unsure++
			s.id = g.again(key[1], name)
			told[name] = s
		default:
			refused++
			if strings.Contains(s.errs, "denied") || strings.Contains(s.errs, "context canceled") {
				t.Errorf("%s: refused for what is no reason: %s", name, s.errs)
			}
		}
	}
	g.compareQueue(told)
	t.Logf("%d submissions under %d changes: %d answered, %d refused, %d in doubt", len(told), changes,
		sure, refused, unsure)
	if refused > *submissions/4 {
		t.Errorf("%d of %d were refused", refused, *submissions)
	}
}

// again makes a submission of which nobody knew once more, twice, and tells its job.
func (g *group) again(key, name string) (id string) {
	g.t.Helper()
	for i := range 2 {
		g.at["s1"].env = append(g.at["s1"].env, "MUSTER_SUBMIT_KEY="+key)
		out := g.must("s1", "sbatch", "--parsable", "-H", "-J", name, "--wrap", "true")
		g.at["s1"].env = slices.DeleteFunc(g.at["s1"].env,
			func(e string) bool { return strings.HasPrefix(e, "MUSTER_SUBMIT_KEY=") })
		if i > 0 && out != id {
			g.t.Errorf("%s is job %s, and made again job %s", name, id, out)
		}
		id = out
	}
	return id
}

// compareQueue wants each server to have the jobs that callers were told of, and no others.
func (g *group) compareQueue(told map[string]toldJob) {
	g.t.Helper()
	want := map[string]string{}
	for name, s := range told {
		if s.id != "" {
			want[name] = s.id
		}
	}
	leader := g.awaitLeader("s1")
	list := func(server string) string { return g.must(server, "squeue", "-h", "-o", "%i %j") }
	for _, server := range []string{"s1", "s2", "s3"} {
		have := map[string]string{}
		g.wait(server+" to have what the leader has", func() bool { return list(server) == list(leader) })
		for line := range strings.Lines(list(server)) {
			id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if other := have[name]; other != "" {
				g.t.Errorf("%s: %s is job %s and job %s", server, name, other, id)
			}
			have[name] = id
		}
		for name := range told {
			if have[name] != want[name] {
				g.t.Errorf("%s: %s is job %q, its caller was told %q: %s", server, name, have[name],
					want[name], told[name].errs)
			}
		}
	}
}

// changeLeads has the lead change in one way after the other until stop is closed, and tells how often.
func (g *group) changeLeads(stop <-chan struct{}, rnd *rand.Rand) (n int) {
	for ; ; n++ {
		select {
		case <-stop:
			return n
		case <-time.After(time.Duration(200+rnd.IntN(300)) * time.Millisecond): // the pace is the test's own choice
		}
		name := fmt.Sprintf("s%d", 1+rnd.IntN(3))
		leader := g.leader(name)
		if leader == "" {
			continue
		}
		switch n % 5 {
		case 0:
			g.run(name, "muster", "server", "transfer")
		case 1:
			g.at[leader].stop() // as systemd does
			g.start(leader)
		case 2:
			g.at[leader].kill()
			g.start(leader)
		case 3:
			other := g.others(leader)[rnd.IntN(2)]
			g.at[other].stop()
			g.start(other)
		case 4:
			_ = g.at[leader].cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(500+rnd.IntN(1500)) * time.Millisecond)
			_ = g.at[leader].cmd.Process.Signal(syscall.SIGCONT)
		}
	}
}
