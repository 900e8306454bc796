package forms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestWords: what was filled in becomes options, each in one word whatever it has; what was not is left out.
func TestWords(t *testing.T) {
	values := map[string]string{"name": "a b", "nodes": " 2 ", "time": "--hold", "qos": "", "other": "x"}
	got := Words(func(name string) string { return values[name] })
	if want := []string{"--job-name=a b", "--nodes=2", "--time=--hold"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Script("#!/bin/sh\r\ntrue"); got != "#!/bin/sh\ntrue\n" {
		t.Errorf("%q", got)
	}
}

// TestCommands: what sbatch and lint say is told apart; of a submission the number alone is waited for.
func TestCommands(t *testing.T) {
	program := filepath.Join(t.TempDir(), "muster")
	text := `#!/bin/sh
case "$1 $2" in
"sbatch --test-only")
	case $4 in
	--time=0) echo "sbatch: error: oh no" >&2; echo "sbatch: why: so" >&2; exit 1;;
	esac
	echo "sbatch: Job 7 to start at 2026-11-25T14:20:00 using 8 processors on nodes n[1-2] in partition p" >&2
	echo "sbatch: a note" >&2;;
"lint -") cat >/dev/null; echo "-:3: late"; echo "-: use --time"; echo "-: sbatch refuses it: oh no";;
"sbatch --parsable") echo "12;east"; exec sleep 1000;;
esac
`
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c, me := NewCommands(program, "/s", nil), User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	a := c.Try(context.Background(), me, []string{"--time=1"}, "x")
	if a.Starts.Format("15:04") != "14:20" || a.CPUs != 8 || a.Nodes != "n[1-2]" || a.Partition != "p" || a.Refused != "" {
		t.Errorf("%+v", a)
	}
	if want := []Note{{0, "a note"}, {3, "late"}, {0, "sbatch refuses it: oh no"}}; !slices.Equal(a.Notes, want) {
		t.Errorf("%+v, want %+v", a.Notes, want)
	}
	a = c.Try(context.Background(), me, []string{"--time=0"}, "x")
	if want := []Note{{3, "late"}}; a.Refused != "oh no\nwhy: so" || !a.Starts.IsZero() || !slices.Equal(a.Notes, want) {
		t.Errorf("%+v", a)
	}
	if a := c.Submit(context.Background(), me, nil, "x"); a.Job != "12" || a.Refused != "" {
		t.Errorf("%+v", a)
	}
	c.Program = "/nonexistent"
	if a := c.Submit(context.Background(), me, nil, "x"); a.Job != "" || !strings.Contains(a.Refused, "cannot run") {
		t.Errorf("%+v", a)
	}
}

// TestPerUser: each user has so many at a time, and others are not kept back by that.
func TestPerUser(t *testing.T) {
	p := NewPerUser(2)
	_, _ = p.Enter(1)
	leave, ok := p.Enter(1)
	if _, more := p.Enter(1); !ok || more {
		t.Error("a user has not two of them")
	}
	if _, other := p.Enter(2); !other {
		t.Error("another user has none")
	}
	if leave(); p.has[1] != 1 {
		t.Errorf("%v are left", p.has)
	}
}

// TestOwnCommands: a script of the form finds the srun of this cluster before any other.
func TestOwnCommands(t *testing.T) {
	cmd, err := NewCommands("/opt/cluster/bin/muster", "/s", nil).Command(context.Background(),
		User{UID: uint32(os.Getuid())}, []string{"sbatch"})
	if want := "PATH=/opt/cluster/bin:/usr/local/bin:/usr/bin:/bin"; err != nil || !slices.Contains(cmd.Env, want) {
		t.Errorf("%q, %v", cmd.Env, err)
	}
}

// TestCommandIsAlone: what else the user runs cannot trace a front-end of the page, which runs outside of the fences
// of the user's jobs where a server has jobs, too.
func TestCommandIsAlone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root's server runs front-ends of others")
	}
	const nobody = 65534
	ctx, cancel := context.WithCancel(t.Context())
	c := NewCommands("/bin/sh", "/s", nil)
	cmd, err := c.Command(ctx, User{UID: nobody, GID: nobody}, []string{"-c", "id -u; sleep 100 & wait"})
	if err != nil {
		t.Fatal(err)
	}
	out, g, err := c.begin(cmd, time.Now().Add(runTime))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer func() { cancel(); <-g.Over() }()
	uid := make([]byte, 16)
	if n, err := out.Read(uid); err != nil || strings.TrimSpace(string(uid[:n])) != "65534" {
		t.Fatalf("it runs as %q: %v", uid[:n], err)
	}
	other := exec.Command("cat", fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)) // as ptrace, it wants access
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if text, err := other.CombinedOutput(); err == nil {
		t.Errorf("another process of the user looks into it: %q", text)
	}
}

// TestCommandsAreBounded: a command that says things without end takes no memory of the server's, and what it leaves
// behind ends with it.
func TestCommandsAreBounded(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "muster")
	text := `#!/bin/sh
echo $$ > ` + dir + `/pid
case $4 in
--name=says) head -c 3000000 /dev/zero | tr '\0' x >&2; exit 1;;
--name=leaves) sleep 1000 >/dev/null 2>&1 & echo $! > ` + dir + `/left; echo 5;;
esac
`
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c, me := NewCommands(program, "/s", nil), User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if a := c.Submit(t.Context(), me, []string{"--name=says"}, "x"); len(a.Refused) != maxSaid {
		t.Errorf("%d bytes are kept", len(a.Refused))
	}
	if a := c.Submit(t.Context(), me, []string{"--name=leaves"}, "x"); a.Job != "5" {
		t.Errorf("%+v", a)
	}
	left, err := os.ReadFile(dir + "/left")
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(left))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("process %s lives", pid)
		}
	}
}

// TestFormsOfOthers: commands that wait for their users' files delay no other user's form, and those of one form have
// its time together.
func TestFormsOfOthers(t *testing.T) {
	const hangs = 20 // users
	dir := t.TempDir()
	program, pipe := filepath.Join(dir, "muster"), filepath.Join(dir, "pipe")
	text := "#!/bin/sh\ncase $* in *hang*) read x <" + pipe + ";; esac\necho 7\n"
	err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(program, []byte(text), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	c, me := NewCommands(program, "/s", nil), User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	c.users = NewPerUser(hangs * maxOfUser) // this process has one user
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range hangs * maxOfUser {
		all.Go(func() { c.Submit(ctx, me, []string{"--name=hang"}, "x") })
	}
	for end := time.Now().Add(20 * time.Second); len(c.busy) < hangs*maxOfUser; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d commands run", len(c.busy))
		}
	}
	other := *c
	other.users = NewPerUser(1)
	if a := other.Submit(t.Context(), me, []string{"--name=other"}, "x"); a.Job != "7" {
		t.Errorf("%+v", a)
	}
	cancel()
	all.Wait()
}

// TestFormHasAnEnd: the two commands of a form have one time together.
func TestFormHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCommands("/bin/true", "/s", nil)
		for range maxAtOnce {
			c.busy <- struct{}{}
		}
		begun := time.Now()
		a := c.Try(t.Context(), User{UID: uint32(os.Getuid())}, nil, "x")
		if took := time.Since(begun); took != runTime || !strings.Contains(a.Refused, "too many forms") {
			t.Errorf("%v: %+v", took, a)
		}
	})
}
