package e2e

import (
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var benchGang = flag.Int("bench-gang", 0, "how many clients TestBenchGang starts steps on; 0: none")

const (
	gangRuns = 10
	gangSkew = 50 * time.Millisecond // from the first node's word to begin to the last one's
)

// TestBenchGang starts steps of a task a node on many clients of one hollow node each, and tells how far
// apart they begin. Where steps are durations, that is the protocol's doing; where they
// are programs, all nodes start theirs on this machine's few processors, which takes at least as long as
// so many program starts of one process do. See make bench-gang.
func TestBenchGang(t *testing.T) {
	if *benchGang == 0 {
		t.Skip("see make bench-gang")
	}
	n := *benchGang
	t.Run("durations", func(t *testing.T) {
		word, _, _ := gang(t, n)
		t.Logf("from the first to the last of %d nodes' word to begin: p50 %v, worst %v of %d", n,
			half(word), word[len(word)-1], gangRuns)
		if w := half(word); w > gangSkew {
			t.Errorf("the nodes hear up to %v apart that they are to begin, want %v", w, gangSkew)
		}
	})
	t.Run("programs", func(t *testing.T) {
		word, tasks, whole := gang(t, n, "--hollow-exec")
		var alone []time.Duration
		for range gangRuns {
			alone = append(alone, spread(t, dates(t, n), n))
		}
		t.Logf("\n"+`srun of a program on each of %d nodes, p50 of %d
from the first to the last node's word to begin    %v
from the first to the last program's begin         %v
the same of %d programs started by one process     %v
srun, from begin to end                            %v`, n, gangRuns, half(word), half(tasks), n, half(alone), half(whole))
	})
}

func half(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2].Round(time.Millisecond)
}

// gang runs srun on n clients, and returns how far apart they heard that they were to begin and, if they
// run programs, how far apart these began, and how long srun took.
func gang(t *testing.T, n int, args ...string) (word, tasks, whole []time.Duration) {
	g := newGroup(t)
	var names []string
	for i := range n {
		prefix := fmt.Sprintf("c%d-", i+1)
		names = append(names, prefix+"001") // like its node, as a compute node is
		g.join(names[i], "s1", append([]string{
			"--hollow", "1x4c8g", "--hollow-prefix", prefix, "--hollow-time", "10ms", "--log-level",
			"debug",
		}, args...)...)
	}
	g.wait("all nodes", func() bool { return count(g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D")) == n })
	for range gangRuns {
		before := g.starts(names)
		began := time.Now()
		out, errs, code := g.run("s1", "srun", "-N"+strconv.Itoa(n), "date", "+%s%N") // a duration has no output to attach to
		whole = append(whole, time.Since(began))
		if len(args) > 0 {
			if code != 0 {
				t.Fatalf("srun: %d, %s", code, errs)
			}
			tasks = append(tasks, spread(t, strings.Fields(out), n))
		}
		word = append(word, spread(t, newest(before, g.starts(names)), n))
	}
	return word, tasks, whole
}

var startLine = regexp.MustCompile(`(?m)^time=(\S+) level=DEBUG msg="parts of a step begin"`)

// starts are the times at which each client began parts of steps, as its log says.
func (g *group) starts(names []string) map[string][]string {
	out := map[string][]string{}
	for _, name := range names {
		for _, m := range startLine.FindAllStringSubmatch(g.at[name].read("log"), -1) {
			out[name] = append(out[name], m[1])
		}
	}
	return out
}

// newest are the times that came after others, in nanoseconds.
func newest(before, after map[string][]string) (out []string) {
	for name, all := range after {
		for _, text := range all[len(before[name]):] {
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				out = append(out, strconv.FormatInt(at.UnixNano(), 10))
			}
		}
	}
	return out
}

// spread is how far apart times are, given in nanoseconds.
func spread(t *testing.T, times []string, n int) time.Duration {
	t.Helper()
	var at []int
	for _, text := range times {
		v, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, v)
	}
	if len(at) != n {
		t.Fatalf("%d times, want %d: %v", len(at), n, times)
	}
	return time.Duration(slices.Max(at) - slices.Min(at))
}

// dates starts programs that tell when they began, as many at once as there may be.
func dates(t *testing.T, n int) []string {
	t.Helper()
	out := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			text, err := exec.Command("date", "+%s%N").Output()
			if err != nil {
				t.Error(err)
			}
			out[i] = strings.TrimSpace(string(text))
		})
	}
	wg.Wait()
	return out
}
