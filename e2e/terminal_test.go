package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminal uses srun --pty as a person does, in a real terminal (tmux): its size, a change of
// its size, Ctrl-C, job control by Ctrl-Z, and the exit code.
func TestTerminal(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed; make needs installs it")
	}
	d := startDev(t)
	mux := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-S", filepath.Join(d.dir, "tmux"), "-f", "/dev/null"}, args...)...)
		cmd.Env, cmd.Dir = append(d.env, "TERM=xterm", "LC_ALL=C.UTF-8"), d.dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	typed := func(text string) { mux("send-keys", "-l", text); mux("send-keys", "Enter") }
	shows := func(text string) {
		t.Helper()
		var seen string
		defer func() {
			if t.Failed() {
				t.Logf("the terminal shows:\n%s", strings.TrimSpace(seen))
			}
		}()
		d.wait(text, func() bool { seen = mux("capture-pane", "-p", "-S", "-"); return strings.Contains(seen, text) })
	}
	mux("new-session", "-d", "-x", "90", "-y", "30", "bash --norc --noprofile")
	t.Cleanup(func() { mux("kill-server") })
	typed("srun -n1 --pty bash --norc --noprofile")
	typed("echo job-$((6*7)) $SLURM_JOB_NUM_NODES; tty; stty size")
	shows("job-42 1")
	shows("/dev/pts/")
	shows("30 90")
	mux("resize-window", "-x", "71", "-y", "23")
	typed("until [ \"$(stty size)\" = '23 71' ]; do :; done; echo resized-$((6*7))")
	shows("resized-42")
	typed("sh -c 'touch waiting; exec sleep 1000'")
	d.wait("the sleep", func() bool { _, err := os.Stat(filepath.Join(d.dir, "waiting")); return err == nil })
	mux("send-keys", "C-c")
	typed("echo interrupted-$?")
	shows("interrupted-130")
	typed("sh -c 'touch again; exec sleep 1000'")
	d.wait("the second sleep", func() bool { _, err := os.Stat(filepath.Join(d.dir, "again")); return err == nil })
	mux("send-keys", "C-z")
	shows("Stopped")
	typed("kill -9 %1; exec sh -c 'exit 7'")
	foreground := func(program string) {
		t.Helper()
		d.wait(program+" in the foreground", func() bool {
			return strings.TrimSpace(mux("display-message", "-p", "#{pane_current_command}")) == program
		})
	}
	foreground("bash") // outside
	typed("echo code-$?")
	shows("code-7")
	typed("srun sh -c 'echo beside-$((6*7))' & wait $!; echo waited-$?") // in the background it reads nothing, and is not stopped
	shows("beside-42")
	shows("waited-0")
	typed("srun tr a-z A-Z &")
	d.wait("its step", func() bool { return strings.Contains(d.must("squeue", "-h", "-s", "-o", "%j"), "tr") })
	typed("fg; echo after-$((6*7))")
	foreground("srun") // before, the shell takes what is typed
	typed("for the step")
	mux("send-keys", "C-d")
	shows("after-42")
	if !strings.Contains(mux("capture-pane", "-p", "-S", "-"), "FOR THE STEP") {
		t.Error("in the foreground again its input did not reach the step")
	}
	typed("srun -n3 --pty sh -c 'echo rank$SLURM_PROCID-$((6*7)) of $SLURM_PTY_WIN_ROW; sleep .2'; echo three-$((6*7))")
	shows("three-42")
	shows("rank0-42 of 23")
	seen := mux("capture-pane", "-p", "-S", "-")
	if strings.Contains(seen, "rank1-42") || strings.Contains(seen, "rank2-42") {
		t.Errorf("of three tasks one has the terminal: %s", seen)
	}
	d.wait("the jobs' end", func() bool { return d.must("squeue", "-h") == "" })
}
