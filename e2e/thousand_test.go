package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wide is the number of tasks of the steps of TestThousandTasks.
const wide = 1000

// TestThousandTasks runs steps of a thousand tasks on eight nodes of four clients: their output, labels and
// exit codes are whole, and they end when a task fails, when their user has enough, and when a node is lost.
func TestThousandTasks(t *testing.T) {
	g := newGroup(t)
	for i := range 4 {
		name := fmt.Sprintf("c%d", i+1)
		g.join(name, "s1", "--hollow", "2x128c256g", "--hollow-prefix", name+"-", "--hollow-exec")
	}
	g.wait("eight nodes", func() bool { return count(g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D")) == 8 })
	g.allLabelled()

	out, errs, code := g.srunWide("sh", "-c", "[ $SLURM_PROCID != 777 ] || exit 3")
	if code != 3 || out != "" || !strings.Contains(errs, "task 777: Exited with exit code 3") {
		t.Errorf("one of a thousand fails: %d, %q, %q", code, out, errs)
	}
	began := time.Now()
	_, errs, code = g.srunWide("-K", "sh", "-c", "[ $SLURM_PROCID != 500 ] || exit 7; exec sleep 600")
	if took := time.Since(began); code != 143 || took > patience(time.Minute) || !strings.Contains(errs, "task 500: Exited with exit code 7") {
		t.Errorf("one of a thousand fails and ends all: %d after %v, %q", code, took, errs)
	}

	run := g.beginWide()
	run.interrupt()
	if code := run.wait(); code != 130 || !strings.Contains(run.said(), "one more within 1 sec to abort") {
		t.Errorf("Ctrl-C twice: %d, %q", code, run.said())
	}
	run.allGone()
	g.drained("s1")

	run = g.beginWide()
	began = time.Now()
	g.at["c4"].kill() // and it does not come back
	code = run.wait()
	took := time.Since(began)
	if said := run.said(); code == 0 || took > patience(time.Minute) || !strings.Contains(said, "c4-002: tasks 896-999: lost contact") || strings.Contains(said, "no server leads") {
		t.Errorf("a step that lost two of its nodes: %d after %v, %q", code, took, said)
	}
	run.allGone("c4-001", "c4-002")
}

// allLabelled wants the labelled output of a thousand tasks whole.
func (g *group) allLabelled() {
	g.t.Helper()
	out, errs, code := g.srunWide("-l", "hostname")
	if code != 0 || errs != "" {
		g.t.Fatalf("a thousand tasks: %d, %q", code, errs)
	}
	seen, on := map[int]bool{}, map[string]int{}
	for line := range strings.Lines(out) {
		label, node, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		rank, err := strconv.Atoi(strings.TrimSpace(label))
		if err != nil || len(label) != 3 || seen[rank] || rank < 0 || rank >= wide {
			g.t.Fatalf("the label of %q", line)
		}
		seen[rank] = true
		on[node]++
	}
	if len(seen) != wide {
		g.t.Errorf("%d of %d tasks had output", len(seen), wide)
	}
	if len(on) != 8 {
		g.t.Errorf("they ran on %v, want eight nodes", on)
	}
}

func (g *group) srunWide(args ...string) (out, errs string, code int) {
	return g.run("s1", "srun", append([]string{"-N8", "-n" + strconv.Itoa(wide)}, args...)...)
}

// wideStep is an srun of a thousand tasks that wait.
type wideStep struct {
	g    *group
	cmd  *exec.Cmd
	errs *os.File
	pids map[string]string // process id → node
}

// beginWide starts a thousand tasks and returns once all run.
func (g *group) beginWide() *wideStep {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience(time.Minute))
	g.t.Cleanup(cancel)
	d := g.at["s1"]
	errs, err := os.Create(g.dir + "/errs")
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = errs.Close() })
	r := &wideStep{g: g, errs: errs, pids: map[string]string{},
		cmd: exec.CommandContext(ctx, filepath.Join(bin, "srun"), "-N8", "-n"+strconv.Itoa(wide),
			"sh", "-c", "echo $$ $SLURMD_NODENAME; exec sleep 600")}
	r.cmd.Env, r.cmd.Dir, r.cmd.Stderr = d.env, d.work, errs
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	for sc := bufio.NewScanner(out); len(r.pids) < wide && sc.Scan(); {
		pid, node, _ := strings.Cut(sc.Text(), " ")
		r.pids[pid] = node
	}
	if len(r.pids) < wide {
		g.t.Fatalf("%d of %d tasks began: %q", len(r.pids), wide, r.said())
	}
	return r
}

func (r *wideStep) signal(sig os.Signal) {
	r.g.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.g.t.Error(err)
	}
}

// interrupt is a user who wants srun to end by Ctrl-C: a second one counts within a second of the first, which a
// busy machine may miss, and a third would force the end. So each waits for what srun says of the one before.
func (r *wideStep) interrupt() {
	const first, second = "one more within 1 sec to abort", "sending Ctrl-C to StepId="
	for !strings.Contains(r.said(), second) {
		asked := strings.Count(r.said(), first)
		r.signal(syscall.SIGINT)
		r.g.wait("Ctrl-C to be told", func() bool {
			return strings.Contains(r.said(), second) || strings.Count(r.said(), first) > asked
		})
	}
}

// said is what srun has said so far.
func (r *wideStep) said() string { return r.g.read(r.g.t, "errs") }

// wait waits for srun's end and tells its exit code.
func (r *wideStep) wait() int {
	_ = r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

// allGone waits until no task is left but on nodes that nobody can reach.
func (r *wideStep) allGone(except ...string) {
	r.g.t.Helper()
	left := map[string]string{}
	for pid, node := range r.pids {
		if !slices.Contains(except, node) {
			left[pid] = node
		}
	}
	r.g.wait("all tasks to be gone", func() bool {
		for pid := range left {
			if _, err := os.Stat("/proc/" + pid); err != nil {
				delete(left, pid)
			}
		}
		return len(left) == 0
	})
}
