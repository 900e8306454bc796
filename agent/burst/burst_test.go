package burst

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// shell is a caller whose program is a shell script.
func shell(t *testing.T, script string) *Caller {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return &Caller{Program: []string{"/bin/sh", "-c", script}, Environ: []string{"PATH=/usr/bin:/bin"},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// TestCall: the process reads what is asked, finds the job's script in a file, and says what came of it.
func TestCall(t *testing.T) {
	c := shell(t, `read ask; echo "$ask" > "$TMPDIR/ask"
		file=$(sed 's/.*"job_script":"\([^"]*\)".*/\1/' "$TMPDIR/ask")
		printf '{"said":"%s"}' "$(cat "$file")"`)
	c.Environ = append(c.Environ, "TMPDIR="+os.Getenv("TMPDIR"))
	got, err := c.Call(t.Context(), api.BurstAsk{Call: cluster.CallSetup}, []byte("a job"), "")
	if err != nil || got.Said != "a job" {
		t.Errorf("%+v, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "muster-burst-*")); left != nil {
		t.Errorf("%v is left", left)
	}
}

// TestCallFails: a process that ends without a reply, or in the middle of one, has failed.
func TestCallFails(t *testing.T) {
	for _, row := range []struct{ name, script, want string }{
		{"exit", "read x; exit 3", "exit status 3"},
		{"no reply", "read x; echo hello", "standard output"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := shell(t, row.script).Call(t.Context(), api.BurstAsk{}, nil, ""); err == nil ||
				!strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
	if _, err := shell(t, "read x").Call(t.Context(), api.BurstAsk{}, nil, "no-such-user-here"); os.Getuid() == 0 &&
		(err == nil || !strings.Contains(err.Error(), "no-such-user-here")) {
		t.Errorf("got %v", err)
	}
}

// TestCallEnds: what a function has started ends with it when its time is over.
func TestCallEnds(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	c := shell(t, "read x; sleep 1000 & echo $! $$ > "+pids+".new; mv "+pids+".new "+pids+"; wait")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Call(ctx, api.BurstAsk{}, nil, "")
		done <- err
	}()
	var text []byte
	for end := time.Now().Add(20 * time.Second); text == nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		text, _ = os.ReadFile(pids)
	}
	late := errors.New("late")
	cancel(late)
	if err := <-done; !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
	for _, pid := range strings.Fields(string(text)) {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(state), ") Z ") {
			t.Errorf("process %s is there: %s", pid, state)
		}
	}
	if len(text) == 0 {
		t.Error("the function did not begin")
	}
}
