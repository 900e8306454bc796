// Command compare runs one list of commands against a real Slurm and against muster and prints
// where they differ. e2e/compare/run.sh brings both up and calls it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// side is one implementation: an environment in which the commands are found.
type side struct {
	name string
	dir  string // its scratch folders; both sides' have names of the same length
	env  []string
	base int    // the next job id
	own  string // its own version, as --version tells it last
}

func main() {
	list := flag.String("commands", "e2e/compare/commands.txt", "the list of commands")
	known := flag.String("known", "e2e/compare/known.txt", "the list of known differences")
	prelude := flag.String("prelude", "e2e/compare/prelude.sh", "shell functions for the commands")
	only := flag.String("only", "", "run only commands with this text, or these numbers with blanks between")
	limit := flag.Duration("limit", time.Minute, "bound on one command")
	dir := flag.String("dir", "", "scratch folder (must be readable by all)")
	slurmPath := flag.String("slurm-path", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PATH with Slurm's commands")
	slurmConf := flag.String("slurm-conf", "", "slurm.conf of the reference")
	bin := flag.String("bin", "bin", "folder with muster's commands")
	socket := flag.String("socket", "", "muster's socket")
	show := flag.Bool("show", false, "print what the commands did too")
	flag.Parse()
	pre, err := filepath.Abs(*prelude)
	check(err)
	cmds, err := readCommands(*list)
	check(err)
	reasons, err := readKnown(*known)
	check(err)
	common := []string{
		"HOME=" + *dir, "LANG=C.UTF-8", "TZ=UTC", "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
		"BASH_ENV=" + pre,
	}
	sides := []*side{
		{
			name: "slurm", dir: *dir + "/s",
			env: append([]string{"PATH=" + *slurmPath, "SLURM_CONF=" + *slurmConf}, common...),
		},
		{
			name: "muster", dir: *dir + "/m",
			env: append([]string{"PATH=" + *bin + ":" + *slurmPath, "MUSTER_SOCKET=" + *socket}, common...),
		},
	}
	check(sameIDs(sides))
	results := make([][]outcome, len(sides))
	picked := pick(cmds, *only)
	var wait sync.WaitGroup
	for i, s := range sides {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for _, c := range picked {
				results[i] = append(results[i], s.do(c, *limit))
			}
		}()
	}
	wait.Wait()
	if !report(picked, results, reasons, *show, *only == "") {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
}

// pick selects commands by numbers or by a part of their text.
func pick(cmds []command, only string) (out []command) {
	want := map[int]bool{}
	for _, f := range strings.Fields(only) {
		if n, err := strconv.Atoi(f); err == nil {
			want[n] = true
		}
	}
	for _, c := range cmds {
		if only == "" || want[c.number] || len(want) == 0 && strings.Contains(c.text, only) {
			out = append(out, c)
		}
	}
	return out
}

// sameIDs brings both sides to job ids of the same length, high enough to be told from other numbers.
func sameIDs(sides []*side) error {
	top := 0
	for _, s := range sides {
		s.idle(noEnd) // a run before this one may have been stopped
		id, err := s.nextID()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.base, top = id, max(top, id)
		out, _, _ := s.shell("sinfo --version", "/", 20*time.Second)
		if words := strings.Fields(out); len(words) > 1 {
			s.own = strings.Trim(words[len(words)-1], "()")
		}
	}
	for _, s := range sides {
		if len(strconv.Itoa(s.base)) != len(strconv.Itoa(top)) {
			return fmt.Errorf("job ids of %s start at %d, the others at %d: start muster with FirstJobId",
				s.name, s.base, top)
		}
	}
	return nil
}

// nextID burns one job id and returns the one after it.
func (s *side) nextID() (int, error) {
	out, errs, code := s.shell("sbatch --parsable -H -o /dev/null --wrap true", "/", 20*time.Second)
	id, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("sbatch: exit code %s: %s%s", code, out, errs)
	}
	s.shell("scancel "+strconv.Itoa(id), "/", 20*time.Second)
	return id + 1, nil
}

// idle ends everything that is left of a command, and what one has made that was stopped in its middle.
func (s *side) idle(code string) {
	line := "restore"
	if strings.HasPrefix(code, noEnd) {
		line = "stopped=yes restore"
	}
	s.shell(line, "/", 40*time.Second)
}

// noEnd begins the exit code of a command that was stopped.
const noEnd = "no end in "

// do runs one command in a fresh folder and replaces what varies.
func (s *side) do(c command, limit time.Duration) outcome {
	dir := fmt.Sprintf("%s/%03d", s.dir, c.number)
	_ = os.RemoveAll(dir)
	check(os.MkdirAll(dir, 0o777))
	check(os.Chmod(dir, 0o777))
	var o outcome
	o.stdout, o.stderr, o.code = s.shell(c.text, dir, limit)
	s.idle(o.code)
	end, err := s.nextID()
	if err != nil {
		fmt.Fprintf(os.Stderr, "compare: %s after %d: %v\n", s.name, c.number, err)
		end = s.base + 1000
	}
	r := replacer{base: s.base, end: end, dir: dir, own: s.own}
	o.stdout, o.stderr = r.replace(o.stdout), r.replace(o.stderr)
	s.base = end
	return o
}

// shell runs a line of bash in a process group of its own, which is ended with it.
func (s *side) shell(line, dir string, limit time.Duration) (stdout, stderr, code string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "-c", line)
	var o, e bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(s.env, "PWD="+dir), &o, &e
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var x *exec.ExitError
	switch {
	case ctx.Err() != nil:
		code = noEnd + limit.String()
	case errors.As(err, &x):
		code = strconv.Itoa(x.ExitCode())
	case err != nil:
		code = err.Error()
	default:
		code = "0"
	}
	return o.String(), e.String(), code
}
