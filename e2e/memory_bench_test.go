package e2e

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var memoryTasks = flag.Int("memory", 0, "tasks of the array of TestGroupMemory; 0: it does not run")

// Bars of one server of three, in MiB.
const (
	groupMemoryPeak = 300 // while an array of 50,000 runs
	groupMemoryRest = 250 // a minute after: 100 and 3 kB for each kept record
)

// TestGroupMemory measures what three servers have resident while a large array runs, and a minute after. See make
// memory.
func TestGroupMemory(t *testing.T) {
	if *memoryTasks == 0 {
		t.Skip("see make memory")
	}
	g := fullGroup(t, 0)
	g.join("c1", "s1", "--hollow", "64x64c256g", "--hollow-time", "10ms")
	g.wait("nodes",
		func() bool { return strings.TrimSpace(g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D")) == "64" })
	servers := []string{"s1", "s2", "s3"}
	idle, peak, spent := map[string]int{}, map[string]int{}, map[string]time.Duration{}
	for _, s := range servers {
		idle[s], spent[s] = g.at[s].memory(), g.at[s].cpu()
	}
	began := time.Now()
	id := g.must("s1", "sbatch", "--parsable", "-n1", "-o", "/dev/null",
		"--array=1-"+strconv.Itoa(*memoryTasks), "--wrap", "true")
	left := -1
	for left != 0 {
		for range 10 {
			for _, s := range servers {
				peak[s] = max(peak[s], g.at[s].memory())
			}
			time.Sleep(200 * time.Millisecond) // between two measurements
		}
		left = len(strings.Fields(g.must("s1", "squeue", "-h", "-j", id, "-o", "%i")))
	}
	took := time.Since(began)
	time.Sleep(time.Minute) // what the bar allows
	for _, s := range servers {
		rest := g.at[s].memory()
		each := (g.at[s].cpu() - spent[s]) / time.Duration(*memoryTasks)
		t.Logf("%s: %d MB idle, %d at most, %d a minute after %d tasks, which took %v and %v of CPU each",
			s, idle[s], peak[s], rest, *memoryTasks, took.Round(time.Second), each.Round(time.Microsecond))
		if peak[s] > groupMemoryPeak || rest > groupMemoryRest {
			t.Errorf("%s has more than %d MB, or more than %d afterwards", s, groupMemoryPeak, groupMemoryRest)
		}
	}
	if slices.Max([]int{peak["s1"], peak["s2"], peak["s3"]}) == 0 {
		t.Error("nothing was measured")
	}
}
