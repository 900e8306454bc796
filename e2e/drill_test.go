package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	drillRounds = flag.Int("drill", 3, "how often TestDrill kills the daemon")
	drillSubmit = flag.Int("drill-submit", 300, "how many acknowledged submissions TestDrillSubmit counts")
	drillSeed   = flag.Uint64("drill-seed", 1, "seed of TestDrill")
)

// drillJob makes the options and the script of a job: a plain one, one with steps in turn, or a gang of two
// nodes. Whatever it is, the file run.TOKEN holds "begin" and "end" once each when it ran exactly once.
func drillJob(token, code, ms int) (args []string, script string) {
	work := fmt.Sprintf("sleep 0.%03d", ms)
	switch token % 5 {
	case 3:
		work = fmt.Sprintf("srun %s; srun -n2 true", work)
	case 4:
		args = []string{"-N2"}
		work = fmt.Sprintf("srun sh -c '%s; echo rank >>ranks.%d'", work, token)
	}
	return args, fmt.Sprintf("echo begin >>run.%d; %s; echo end >>run.%d; exit %d", token, work, token, code)
}

// TestDrill kills the daemon again and again while jobs are submitted and run; every fourth time the
// supervisor too. Afterwards every acknowledged job has run exactly once and its exit code is in the
// history. When the supervisor dies too, two kinds of job may be NODE_FAIL: those in the middle of their launch,
// which cannot be told from jobs that ran, and those that end while nothing of muster lives: the kernel tells
// an exit code to a living parent only.
func TestDrill(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	rnd := rand.New(rand.NewPCG(*drillSeed, 0))
	want := map[string]int{} // acknowledged job → exit code
	var mu sync.Mutex
	token := 0
	for round := range *drillRounds {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					mu.Lock()
					token++
					tok, code, ms := token, rnd.IntN(4), rnd.IntN(300)
					mu.Unlock()
					args, script := drillJob(tok, code, ms)
					args = append(args, "--parsable", "--no-requeue", "-o", fmt.Sprintf("out.%d", tok),
						"--wrap", script)
					out, _, rc := d.run("sbatch", args...)
					if rc == 0 {
						mu.Lock()
						want[strings.TrimSpace(out)+" "+fmt.Sprint(tok)] = code
						mu.Unlock()
					} else {
						time.Sleep(20 * time.Millisecond) // the daemon is away
					}
				}
			})
		}
		mu.Lock()
		pause := time.Duration(200+rnd.IntN(600)) * time.Millisecond
		mu.Unlock()
		time.Sleep(pause) // load for a while: the length is the drill's own choice
		d.kill()
		if round%4 == 3 && kernelTellsExits() {
			d.killSupervisor()
		}
		d.start()
		close(stop)
		wg.Wait()
		d.wait(fmt.Sprintf("the daemon of round %d", round),
			func() bool { _, _, rc := d.run("squeue", "-h"); return rc == 0 })
	}
	d.wait("all jobs to end", func() bool { out, _, rc := d.run("squeue", "-h"); return rc == 0 && out == "" })
	lost, twice, wrong, failed, unseen := 0, 0, 0, 0, 0
	for key, code := range want {
		id, tok, _ := strings.Cut(key, " ")
		b, _ := os.ReadFile(d.dir + "/run." + tok)
		if *drillRounds > 3 && d.must("sacct", "-nXP", "-j", id, "-o", "State") == "NODE_FAIL" {
			failed++
			if string(b) == "begin\nend\n" {
				unseen++
			}
			continue
		}
		switch string(b) {
		case "begin\nend\n":
		case "":
			lost++
			t.Errorf("job %s never ran", id)
		default:
			twice++
			t.Errorf("job %s ran like this: %q", id, b)
		}
		if n, _ := strconv.Atoi(tok); n%5 == 4 {
			if ranks, _ := os.ReadFile(d.dir + "/ranks." + tok); string(ranks) != "rank\nrank\n" {
				twice++
				out, _ := os.ReadFile(d.dir + "/out." + tok)
				t.Errorf("the gang of job %s ran like this: %q\n%s", id, ranks, out)
			}
		}
		got := d.must("sacct", "-nXP", "-j", id, "-o", "ExitCode")
		if got != fmt.Sprintf("%d:0", code) {
			wrong++
			t.Errorf("job %s: exit code %q in history, want %d:0 (%s)", id, got, code,
				d.must("sacct", "-nXP", "-j", id, "-o", "State"))
		}
	}
	t.Logf("%d kills, %d jobs acknowledged, %d lost, %d not run once, %d wrong exit codes, %d failed with the supervisor, %d of them at their end",
		*drillRounds, len(want), lost, twice, wrong, failed, unseen)
	if failed > len(want)/100 {
		t.Errorf("%d jobs of %d failed with the supervisor", failed, len(want))
	}
}

// TestDrillSubmit kills the daemon in the midst of submissions: what was acknowledged is in the queue.
func TestDrillSubmit(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	var mu sync.Mutex
	acked := map[string]bool{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if out, _, rc := d.run("sbatch", "--parsable", "-H", "--wrap", "true"); rc == 0 {
					mu.Lock()
					acked[strings.TrimSpace(out)] = true
					mu.Unlock()
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(acked) }
	kills := 0
	for last := 0; last < *drillSubmit; kills++ {
		// Kill soon after an acknowledgement: what was not durable then is what a crash would lose.
		d.wait("acknowledged submissions", func() bool { return count() >= last+min(100, *drillSubmit/3) })
		d.kill()
		last = count()
		d.start()
	}
	close(stop)
	wg.Wait()
	d.wait("the daemon", func() bool { _, _, rc := d.run("squeue", "-h"); return rc == 0 })
	queued := map[string]bool{}
	for id := range strings.Lines(d.must("squeue", "-h", "-o", "%i")) {
		queued[strings.TrimSpace(id)] = true
	}
	lost := 0
	for id := range acked {
		if !queued[id] {
			lost++
			t.Errorf("job %s was acknowledged and is not in the queue", id)
		}
	}
	if len(queued) != len(acked) {
		t.Errorf("%d jobs are in the queue, %d were acknowledged: a submission was made twice, or its answer lost",
			len(queued), len(acked))
	}
	t.Logf("%d kills, %d submissions acknowledged, %d lost, %d in the queue", kills, len(acked), lost, len(queued))
}
