package hooks

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
)

// oneProgram is a dialect in which all hooks are one program.
type oneProgram struct {
	api.Dialect
	is cluster.Program
}

func (p oneProgram) HookProgram(*cluster.Hook, *cluster.Config) cluster.Program { return p.is }

// TestProgram: a program finds its file and a server, and why it failed is told with its own words.
func TestProgram(t *testing.T) {
	cfg := cluster.DefaultConfig()
	for name, c := range map[string]struct {
		is   cluster.Program
		want string // of the error; "": none
	}{
		"succeeds": {cluster.Program{
			Argv:    []string{"/bin/sh", "-c", `[ "$(cat "$TEXT")" = hello ] && [ "$MUSTER_SOCKET" = /run/m ]`},
			FileVar: "TEXT", File: []byte("hello"),
		}, ""},
		"has a file that is closed to others": {cluster.Program{
			Argv:    []string{"/bin/sh", "-c", `echo $(stat -c "%a %u" "$TEXT") for $(id -u); exit 1`},
			FileVar: "TEXT", File: []byte("hello"),
		}, fmt.Sprintf("/bin/sh: exit status 1: 600 %[1]d for %[1]d", os.Getuid())},
		"fails": {cluster.Program{Argv: []string{"/bin/sh", "-c", "echo no room; exit 3"}},
			"/bin/sh: exit status 3: no room"},
		"is none": {cluster.Program{}, "no program is configured for a hook of kind mail any more"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{Dialect: oneProgram{is: c.is}, Socket: "/run/m", Log: slog.New(slog.DiscardHandler)}
			got := ""
			if err := r.Program(t.Context(), &cluster.Hook{Kind: cluster.HookMail}, &cfg, false); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("error %q, want %q", got, c.want)
			}
		})
	}
}

// TestFileOfServerUser: the file of a program that runs as SlurmUser is that user's alone.
func TestFileOfServerUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root runs programs as another user")
	}
	cfg := cluster.DefaultConfig()
	cfg.ServerUser = "daemon"
	r := &Runner{Dialect: oneProgram{is: cluster.Program{
		Argv:    []string{"/bin/sh", "-c", `cat "$TEXT"; stat -c " %a %U" "$TEXT"; exit 1`},
		FileVar: "TEXT", File: []byte("hello"),
	}}, Log: slog.New(slog.DiscardHandler)}
	err := r.Program(t.Context(), &cluster.Hook{Kind: cluster.HookResume}, &cfg, false)
	if err == nil || !strings.HasSuffix(err.Error(), ": hello 600 daemon") {
		t.Errorf("%v", err)
	}
}

// TestProgramSaysMuch: what a program says, which may be a user's, does not fill the memory of the server.
func TestProgramSaysMuch(t *testing.T) {
	const much = 256 << 20
	cfg := cluster.DefaultConfig()
	is := cluster.Program{Argv: []string{"/bin/sh", "-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; exit 3", much)}}
	r := &Runner{Dialect: oneProgram{is: is}, Log: slog.New(slog.DiscardHandler)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := r.Program(t.Context(), &cluster.Hook{Kind: cluster.HookMail}, &cfg, false)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "exit status 3: xxx") || len(err.Error()) > 2*says {
		t.Errorf("a program that says much: %.200v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > much/16 {
		t.Errorf("the server took %d MB for what it says", took>>20)
	}
}

// TestLineOnce: a line that an earlier leader has added is not added again, another one is.
func TestLineOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct {
		line  string
		again bool
	}{{"job 1", false}, {"job 1", true}, {"job 2", true}, {"job", true}} {
		r := &Runner{Dialect: oneProgram{is: cluster.Program{Append: file, Line: c.line}}}
		if err := r.Program(t.Context(), &cluster.Hook{Kind: cluster.HookJobComp}, nil, c.again); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if want := "job 1 job 2 job"; err != nil || strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " ") != want {
		t.Errorf("the file has %q, %v; want %s", text, err, want)
	}
}

// TestTriggerOfOthers: a server that is not root's does not run users' programs with its own user's rights.
func TestTriggerOfOthers(t *testing.T) {
	if os.Getuid() == 0 {
		dir := t.TempDir()
		for d := dir; d != "/"; d = filepath.Dir(d) {
			if st, err := os.Stat(d); err == nil && st.Mode().Perm()&0o5 != 0o5 {
				if err := os.Chmod(d, st.Mode().Perm()|0o5); err != nil {
					t.Fatal(err)
				}
			}
		}
		text, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		exe := filepath.Join(dir, "test")
		if err := os.WriteFile(exe, text, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestTriggerOfOthers$")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r := &Runner{Dialect: oneProgram{is: cluster.Program{Argv: []string{"/bin/true"}}}, Log: slog.New(slog.DiscardHandler)}
	cfg := cluster.DefaultConfig()
	own := uint32(os.Getuid())
	for uid, want := range map[uint32]string{own: "", own + 1: "runs no programs of user"} {
		e := &cluster.Hook{Kind: cluster.HookTrigger, Trigger: &cluster.TriggerRun{UID: uid}}
		err := r.Program(t.Context(), e, &cfg, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("of user %d: %v", uid, err)
		}
	}
}

// TestTriggerIsPlain: the program of a user's trigger is not what the server is to the kernel where memory is short.
func TestTriggerIsPlain(t *testing.T) {
	const file = "/proc/self/oom_score_adj"
	was, err := os.ReadFile(file)
	if err == nil { // to be spared needs a capability, the opposite none
		err = os.WriteFile(file, []byte("500"), 0)
	}
	if err != nil || os.Getuid() != 0 {
		t.Skip("users' programs are run by root: ", err)
	}
	t.Cleanup(func() { _ = os.WriteFile(file, was, 0) })
	const nobody = 65534
	r := &Runner{Dialect: oneProgram{is: cluster.Program{Argv: []string{"/bin/sh", "-c", "cat " + file + "; exit 3"}}},
		Log: slog.New(slog.DiscardHandler)}
	cfg := cluster.DefaultConfig()
	e := &cluster.Hook{Kind: cluster.HookTrigger, Trigger: &cluster.TriggerRun{UID: nobody}}
	err = r.Program(t.Context(), e, &cfg, false)
	if want := "/bin/sh: exit status 3: 0"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
