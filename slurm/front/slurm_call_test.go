package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// slurmTool writes a command of Slurm.
func slurmTool(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// slurmSys is a user's shell, with a Slurm in a folder as a peer.
func slurmSys(t *testing.T, prog string, at cluster.SlurmPeer, env ...string) (slurmCaller, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	s := &Sys{Prog: prog, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: env,
		Getwd: func() (string, error) { return t.TempDir(), nil }, UID: uint32(os.Getuid())}
	s.foreign.peers = []api.PeerInfo{{Name: "old", Slurm: &at}}
	return slurmCaller{s}, &out
}

// TestRemoteLine: a shell reads each word as it was, whatever is in it.
func TestRemoteLine(t *testing.T) {
	words := []string{"a b", "it's", `"$HOME" \ ; rm -rf x`, "", "--wrap=echo `id`", "new\nline", "-n", "*"}
	line := RemoteLine(t.TempDir(), []string{"X=1 '2"}, append([]string{"printf", `%s\0`}, words...))
	got, err := exec.Command("sh", "-c", line).CombinedOutput()
	if err != nil || string(got) != strings.Join(words, "\x00")+"\x00" {
		t.Errorf("%v\n%s\n%q", err, line, got)
	}
}

// TestSlurmEnviron: variables of this cluster and of its jobs do not reach another cluster's commands.
func TestSlurmEnviron(t *testing.T) {
	for _, c := range []struct{ what, env, want string }{
		{"shell", "A=1 SLURM_CONF=/x SLURM_CLUSTERS=old SBATCH_CLUSTERS=a SLURM_JWT=t MUSTER_SOCKET=/s SQUEUE_FORMAT=%i " +
			"SLURM_PARTITION=p", "A=1 SQUEUE_FORMAT=%i SLURM_PARTITION=p"},
		{"job", "A=1 SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURMD_NODENAME=n SLURM_TIME_FORMAT=relative SBATCH_QOS=q",
			"A=1 SLURM_TIME_FORMAT=relative SBATCH_QOS=q"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := slurmEnviron(strings.Fields(c.env)); !slices.Equal(got, strings.Fields(c.want)) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestCallSlurm: a command gets the user's words, its output and code pass, and a silent one is ended.
func TestCallSlurm(t *testing.T) {
	dir := t.TempDir()
	slurmTool(t, dir, "squeue", `echo "$SLURM_CONF [$*]"; echo warn >&2; exit 3`)
	slurmTool(t, dir, "sinfo", `sleep 100 & wait`)
	slurmTool(t, dir, "sacct", `kill -9 $$`)
	at := cluster.SlurmPeer{Bin: dir, Conf: "/etc/old.conf"}
	for _, c := range []struct {
		prog, want string
		code       int
		err        error
	}{
		{"squeue", "/etc/old.conf [-o %i]\n", 3, nil},
		{"sinfo", "", 0, errSilent},
		{"sacct", "", 128 + 9, nil},
		{"sprio", "", 0, os.ErrNotExist},
	} {
		t.Run(c.prog, func(t *testing.T) {
			s, out := slurmSys(t, c.prog, at, "SLURM_CONF=/etc/new.conf", "PATH="+os.Getenv("PATH"))
			call := slurmCall{
				peer:  &s.foreign.peers[0],
				words: []string{"-o", "%i"},
				out:   out,
				errs:  &bytes.Buffer{},
				limit: time.Second,
			}
			code, err := s.runSlurm(&call)
			if code != c.code || !errors.Is(err, c.err) || out.String() != c.want {
				t.Errorf("%d, %v, %q", code, err, out)
			}
		})
	}
}

// TestCallSlurmBySSH: the words reach ssh as one quoted line behind the host.
func TestCallSlurmBySSH(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	slurmTool(t, dir, "ssh", `for last; do :; done; echo "$*" > `+dir+`/line; exec sh -c "$last"`)
	slurmTool(t, far, "sinfo", `echo "$SLURM_CONF $SINFO_FORMAT [$1]"`)
	at := cluster.SlurmPeer{Bin: far, Conf: "/etc/old.conf", Host: "login1"}
	s, out := slurmSys(t, "sinfo", at, "PATH="+dir+":"+os.Getenv("PATH"), "SINFO_FORMAT=%N '", "SINFO_$(id)=x")
	call := slurmCall{peer: &s.foreign.peers[0], words: []string{"a 'b"}, out: out, errs: out, limit: 10 * time.Second}
	if code, err := s.runSlurm(&call); code != 0 || err != nil || out.String() != "/etc/old.conf %N ' [a 'b]\n" {
		t.Errorf("%d, %v, %q", code, err, out)
	}
	line, err := os.ReadFile(filepath.Join(dir, "line"))
	if err != nil || !strings.HasPrefix(string(line), "-o BatchMode=yes -o ConnectTimeout=10 login1 -- exec env ") {
		t.Errorf("%v %s", err, line)
	}
}

// TestFindSlurm: root does not run what others may change or replace, and nobody muster in place of Slurm.
func TestFindSlurm(t *testing.T) {
	dir := t.TempDir()
	mine, ops, open := filepath.Join(dir, "mine"), filepath.Join(dir, "ops"), filepath.Join(dir, "open")
	for _, d := range []string{mine, ops, open, filepath.Join(ops, "bin")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	slurmTool(t, mine, "squeue", "")
	slurmTool(t, mine, "sprio", "")
	slurmTool(t, filepath.Join(ops, "bin"), "squeue", "")
	for link, to := range map[string]string{
		filepath.Join(mine, "sinfo"):  exe,
		filepath.Join(open, "squeue"): filepath.Join(mine, "squeue"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for file, mode := range map[string]os.FileMode{filepath.Join(mine, "sprio"): 0o777, open: 0o777} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	isRoot := os.Getuid() == 0
	if isRoot {
		if err := os.Chown(ops, 1234, 1234); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what, file, want, user string // errors for root and for users
	}{
		{"root's own", "mine/squeue", "", ""},
		{"muster", "mine/sinfo", "link to muster", "link to muster"},
		{"a file that all may write", "mine/sprio", "root does not run it", ""},
		{"an operator's folder above it", "ops/bin/squeue", "may change " + ops, ""},
		{"a link that others may move", "open/squeue", "", ""}, // root's program runs, whatever becomes of the link
		{"nothing", "mine/srun", "no such file", "no such file"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s, _ := slurmSys(t, "squeue", cluster.SlurmPeer{Bin: dir})
			want := c.user
			if isRoot {
				want = c.want
			}
			got, err := s.findSlurm(filepath.Join(dir, c.file))
			if text := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(text, want) && err != nil {
				t.Errorf("%s, %v; want %q", got, err, want)
			}
			if err == nil && isRoot && strings.Contains(got, "open") {
				t.Errorf("%s is run by its link", got)
			}
		})
	}
}

// TestOwnSlurm: a process that acts for somebody elsewhere starts nothing.
func TestOwnSlurm(t *testing.T) {
	for what, change := range map[string]func(*Sys){
		"for the REST interface": func(s *Sys) { s.NoFiles = true },
		"in a server":            func(s *Sys) { s.Direct = noDirect },
		"by a token":             func(s *Sys) { s.token = true },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			slurmTool(t, dir, "squeue", "touch "+dir+"/ran")
			slurmTool(t, dir, "sbatch", "touch "+dir+"/ran")
			s, out := slurmSys(t, "squeue", cluster.SlurmPeer{Bin: dir})
			s.foreign.words = func() (words, given []string) { return nil, nil }
			change(s.Sys)
			code := s.showSlurm(&s.foreign.peers[0])
			if code == 0 || !strings.Contains(out.String(), "on a login host") {
				t.Errorf("%d %s", code, out)
			}
			s.Prog = "sbatch"
			if code := s.submitSlurm(&s.foreign.peers[0], &Entry{}); code == 0 {
				t.Errorf("sbatch: %s", out)
			}
			if _, err := s.startsAt("old", "new", &Entry{}); err == nil {
				t.Error("a forecast was made")
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// TestNamedJobs: the line of a submitted job names the cluster, and no other line does.
func TestNamedJobs(t *testing.T) {
	for in, want := range map[string]string{
		"Submitted batch job 12\n": "Submitted batch job 12 on cluster old\n",
		"12\n":                     "12;old\n",
		"x\n12 y\n\n":              "x\n12 y\n\n",
		"no end":                   "no end",
		strings.Repeat("1", 600):   strings.Repeat("1", 600),
	} {
		var out bytes.Buffer
		w := &namedJobs{to: &out, cluster: "old"}
		for _, b := range []byte(in) {
			if n, err := w.Write([]byte{b}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if w.flush(); out.String() != want {
			t.Errorf("%q: %q", in, out.String())
		}
	}
}

// TestReadForecast: the start is read of Slurm's line; other lines are the reason.
func TestReadForecast(t *testing.T) {
	at, err := readForecast("old", "sbatch: Job 5 to start at 2026-11-29T12:00:00 using 1 processors on nodes n\n", 0)
	if err != nil || !at.Equal(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("%v %v", at, err)
	}
	for _, text := range []string{"", "x\nallocation failure: \x1b[2JNo", "sbatch: Job 5 to start at never using"} {
		if _, err := readForecast("old", text, 1); err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestChoose: the earliest start wins, this cluster where it hardly matters, and one that hangs is left out with a note.
func TestChoose(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	slurmTest := func(at time.Time) string {
		return `[ "$TZ$1$2" = UTC0--test-only-n1 ] || exit 9; echo "sbatch: Job 5 to start at ` +
			at.Format("2006-01-02T15:04:05") + ` using 1 processors on nodes n1 in partition p" >&2`
	}
	for _, c := range []struct {
		what, script string
		near         error
		want, says   string
	}{
		{"both at once", slurmTest(now), nil, "new", ""},
		{"earlier by a second", slurmTest(now.Add(-time.Second)), nil, "new", ""},
		{"earlier", slurmTest(now.Add(-time.Hour)), nil, "old", ""},
		{"later", slurmTest(now.Add(time.Hour)), nil, "new", ""},
		{"refused here", slurmTest(now.Add(time.Hour)), errors.New("no"), "old", ""},
		{"refused there", "echo 'allocation failure: no' >&2; exit 1", nil, "new", ""},
		{"refused by both", "echo 'allocation failure: none' >&2; exit 1", errors.New("no"), "", "cluster old: allocation failure: none"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			slurmTool(t, dir, "sbatch", c.script)
			s, _ := slurmSys(t, "sbatch", cluster.SlurmPeer{Bin: dir}, "PATH="+os.Getenv("PATH"))
			s.Dial = nil
			job := Entry{Words: []string{"-n1"}, Starts: func(*Sys) (time.Time, error) { return now, c.near }}
			best, why := s.choose([]string{"old", "new"}, "new", &job)
			if best != c.want || c.says != "" && !strings.Contains(why.Error(), c.says) {
				t.Errorf("%q, %v", best, why)
			}
		})
	}
}

func noDirect(context.Context, string, string, any) (any, bool, error) { return nil, false, nil }
