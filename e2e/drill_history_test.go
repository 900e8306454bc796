package e2e

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads the file of history that a kill leaves
)

var drillHistory = flag.Int("drill-history", 10, "how often TestDrillHistory kills the server")

// historyLoad submits arrays of three tasks, which exit with their numbers, the first after a second, until it is
// stopped.
type historyLoad struct {
	mu    sync.Mutex
	acked []string      // job IDs that sbatch printed
	told  chan struct{} // has one when there are more of them
	stop  chan struct{}
	wg    sync.WaitGroup
}

func newHistoryLoad(d *dev) *historyLoad {
	l := &historyLoad{told: make(chan struct{}, 1), stop: make(chan struct{})}
	for range 2 {
		l.wg.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				out, _, rc := d.run("sbatch", "--parsable", "--no-requeue", "-o", "/dev/null",
					"--array=0-2", "--wrap",
					"[ $SLURM_ARRAY_TASK_ID = 0 ] && sleep 1; exit $SLURM_ARRAY_TASK_ID")
				if rc != 0 { // the server is away
					time.Sleep(10 * time.Millisecond)
					continue
				}
				l.mu.Lock()
				l.acked = append(l.acked, strings.TrimSpace(out))
				l.mu.Unlock()
				select {
				case l.told <- struct{}{}:
				default:
				}
			}
		})
	}
	return l
}

func (l *historyLoad) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked[:len(l.acked):len(l.acked)]
}

// missing counts the jobs that the file of history, as a kill left it, does not have.
func (d *dev) missing(ids []string) (n int) {
	d.t.Helper()
	dir := d.t.TempDir() // a copy: to open it is to repair it
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(d.dir + "/d/acct/history.db" + suffix)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "copy.db"+suffix), data, 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			d.t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "copy.db"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	for _, id := range ids {
		var there int
		if err := db.QueryRow("SELECT count(*) FROM job WHERE job = ?1 OR array = ?1", id).Scan(&there); err != nil {
			d.t.Fatalf("history after a kill: %v", err)
		}
		if there == 0 {
			n++
		}
	}
	return n
}

// TestDrillHistory kills the server again and again just after it acknowledged jobs, when the log has them and the
// file of history has not. At the end each of them is in sacct once, with its state and its steps, and what sreport
// and sshare sum up is what the rows have.
func TestDrillHistory(t *testing.T) {
	t.Parallel()
	file := confFile(t, "ClusterName=drill", "PriorityType=priority/multifactor", "PriorityDecayHalfLife=0", "PriorityUsageResetPeriod=NONE", "PriorityCalcPeriod=0:01", "AccountingStorageEnforce=associations",
		"PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00")
	d := startDev(t, "--hollow", "4x32c64g", "--hollow-exec", "--conf", file, "--snapshot-every", "500")
	r := rand.New(rand.NewPCG(*drillSeed, 7))
	load := newHistoryLoad(d)
	behind := 0
	for range *drillHistory {
		select { // the last of the round before may have left one
		case <-load.told:
		default:
		}
		select {
		case <-load.told:
		case <-time.After(time.Minute):
			t.Fatal("nothing was acknowledged for a minute")
		}
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // the moment is the drill's own choice
		acked := load.ids()
		d.kill()
		if d.missing(acked[max(0, len(acked)-50):]) > 0 {
			behind++
		}
		d.start()
	}
	close(load.stop)
	load.wg.Wait()
	d.wait("all jobs to end", func() bool { out, _, rc := d.run("squeue", "-h"); return rc == 0 && out == "" })
	checkRecords(t, d, load.ids())
	checkSums(t, d)
	t.Logf("%d kills, %d of them with acknowledged jobs that the file did not have yet; %d jobs",
		*drillHistory, behind, 3*len(load.ids()))
	if *drillHistory >= 10 && behind == 0 {
		t.Error("no kill fell between the log and the file: the drill drills nothing")
	}
}

// checkRecords wants three tasks of each array in sacct, once, with the states their exit codes give and a batch
// step each.
func checkRecords(t *testing.T, d *dev, arrays []string) {
	t.Helper()
	rows := map[string][]string{}
	for line := range strings.Lines(d.must("sacct", "-nPD", "-S", "now-1hours", "-o", "JobID,State,ExitCode") + "\n") {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), "|")
		rows[id] = append(rows[id], rest)
	}
	var faults []string
	for _, a := range arrays {
		for code, want := range []string{"COMPLETED|0:0", "FAILED|1:0", "FAILED|2:0"} {
			for _, step := range []string{"", ".batch"} {
				id := fmt.Sprintf("%s_%d%s", a, code, step)
				if got := rows[id]; len(got) != 1 || got[0] != want {
					faults = append(faults, fmt.Sprintf("%s: %q, want one of %q", id, got, want))
				}
				delete(rows, id)
			}
		}
	}
	for id := range rows { // an answer may be lost with the server: then the job is there, and nobody waits for it
		if _, _, task := strings.Cut(id, "_"); !task {
			faults = append(faults, fmt.Sprintf("%s is no task of an array: %q", id, rows[id]))
		}
	}
	if len(faults) > 0 {
		t.Errorf("%d faults in history, first:\n%s", len(faults), strings.Join(faults[:min(len(faults), 10)], "\n"))
	}
}

// checkSums wants the CPU-seconds of sacct's rows in sreport and in sshare.
func checkSums(t *testing.T, d *dev) {
	t.Helper()
	rows := 0
	for text := range strings.Lines(d.must("sacct", "-nPXD", "-S", "now-1hours", "-o", "cputimeraw") + "\n") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			t.Fatalf("sacct -o cputimeraw: %q", text)
		}
		rows += n
	}
	want := strconv.Itoa(rows)
	if got := d.must("sreport", "-nP", "-t", "Seconds", "cluster", "UserUtilizationByAccount", "start=now-1hour", "end=now+1hour", "format=used"); got != want || rows == 0 {
		t.Errorf("sreport sums up %q CPU-seconds, sacct's rows have %s", got, want)
	}
	d.wait("sshare to have the "+want+" CPU-seconds of sacct's rows", func() bool {
		return d.must("sshare", "-nPU", "-u", "root", "-o", "rawusage") == want
	})
}
