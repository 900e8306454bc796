package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// around are the scripts around the task that this process becomes, or waits for.
type around struct{ step.Around }

// TaskMain is the process that step.Around's Command starts; it returns an exit code if it could not become the task.
func TaskMain(self, args []string) int {
	scripts, argv, err := step.ParseAround(args)
	a := &around{scripts}
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster:", err)
		return 1
	}
	if len(a.Epilogs) > 0 {
		return a.watch(self, argv)
	}
	env := os.Environ()
	if a.Login {
		if env, err = underLogin(env); err != nil {
			a.say("no login environment: %v", err)
			return 1
		}
	}
	env = mergeEnv(env, a.PIDEnv+"="+strconv.Itoa(os.Getpid()))
	for _, s := range a.Prologs {
		var code int
		if env, code = a.prolog(s, env, os.Stdout); code != 0 {
			return code
		}
	}
	path, err := ownProgram(argv[0], getenv(env, "PATH"))
	if err == nil {
		argv[0] = path
		err = syscall.Exec(path, argv, env)
	}
	err = &os.PathError{Op: "execve", Path: argv[0], Err: err}
	a.say("%s", startError(err, ownInterpreter))
	var no unix.Errno
	if asErrno(err, &no) {
		return int(no)
	}
	return 1
}

// ownProgram finds a program with the rights of this process.
func ownProgram(name, path string) (string, error) {
	results, err := userfile.Local{}.Do(userfile.Request{Op: userfile.Find, Path: name, Search: path})
	if err != nil {
		return "", err
	}
	return results[0].Text, results[0].Err
}

// ownInterpreter returns what the first line of a script names, as far as this process may read it.
func ownInterpreter(name string) string {
	results, err := userfile.Local{}.Do(userfile.Request{Op: userfile.Interpreter, Path: name})
	if err != nil {
		return ""
	}
	return results[0].Text
}

func (a *around) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "slurmstepd-%s: error: %s\n", a.Node, fmt.Sprintf(format, args...))
}

// prolog runs one script and does what its output asks for: "export NAME=value", "unset NAME" and
// "print text". Not zero is the exit code with which the task ends instead of being started.
func (a *around) prolog(s step.AroundScript, env []string, out io.Writer) ([]string, int) {
	what, name := "user task_prolog", "--task-prolog"
	if s.System {
		what, name = "system task_prolog", "TaskProlog"
	}
	fail := func(format string, args ...any) ([]string, int) {
		a.say(format, args...)
		a.say("%s did not exit normally. reason: Run command failed - configuration error", what)
		a.say("%s failed status=1", name)
		return env, 1
	}
	if !filepath.IsAbs(s.Path) {
		return fail("run_command: %s is not fully qualified pathname (%s)", what, s.Path)
	}
	if err := unix.Access(s.Path, unix.X_OK); err != nil {
		return fail("run_command: %s can not be executed (%s) %s", what, s.Path, strerror(err))
	}
	cmd := exec.Command(s.Path)
	cmd.Env = env
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fail("run_command: %s can not be executed (%s) %s", what, s.Path, strerror(err))
	}
	if err != nil {
		code := max(exit.ExitCode(), 1)
		a.say("%s failed status=%d", name, code)
		return env, code
	}
	return applyProlog(string(text), env, out), 0
}

// maxPrologLine is the length of a line of a prolog's output from which on it is left out.
const maxPrologLine = 64 << 10

// applyProlog does what a prolog's output asks for.
func applyProlog(text string, env []string, out io.Writer) []string {
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) >= maxPrologLine {
			continue
		}
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\r"), " ")
		switch verb {
		case "export":
			if name, _, ok := strings.Cut(rest, "="); ok && name != "" {
				env = mergeEnv(env, rest)
			}
		case "unset":
			kept := env[:0:0]
			for _, v := range env {
				if name, _, _ := strings.Cut(v, "="); name != rest {
					kept = append(kept, v)
				}
			}
			env = kept
		case "print":
			fmt.Fprintln(out, rest)
		}
	}
	return env
}

// watch runs the task as a child, then the epilogs, and ends as the task did.
func (a *around) watch(self, argv []string) int {
	inner := step.Around{Node: a.Node, PIDEnv: a.PIDEnv, Login: a.Login, Prologs: a.Prologs}
	line := inner.Command(self, argv)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_, terr := unix.IoctlGetTermios(0, unix.TCGETS)
	tty := terr == nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: tty}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	if err := cmd.Start(); err != nil {
		a.say("the task could not be started: %v", err)
		return 1
	}
	go func() { // ends with the process
		for sig := range signals {
			if sig != syscall.SIGCHLD && sig != syscall.SIGURG && sig != syscall.SIGPIPE {
				_ = syscall.Kill(-cmd.Process.Pid, sig.(syscall.Signal))
			}
		}
	}()
	err := cmd.Wait()
	for _, s := range a.Epilogs {
		a.epilog(s)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		sig := exit.Sys().(syscall.WaitStatus).Signal()
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		dieOf(sig)
	}
	return cmd.ProcessState.ExitCode()
}

// dieOf ends this process by a signal, as its child ended: with the kernel's default action, which
// the Go runtime does not restore for all of them.
func dieOf(sig syscall.Signal) {
	var action struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)),
		0, unsafe.Sizeof(action.mask), 0, 0)
	_ = syscall.Kill(os.Getpid(), sig)
	select {}
}

// epilogTime is how long a user's script may take after a task, as in Slurm; the site's own has no limit there.
const epilogTime = 5 * time.Second

// epilog runs one script; it changes nothing of how the task ended.
func (a *around) epilog(s step.AroundScript) {
	what := "user task_epilog"
	if s.System {
		what = "system task_epilog"
	}
	if unix.Access(s.Path, unix.R_OK|unix.X_OK) != nil {
		a.say("Could not run %s [%s]: access denied", what, s.Path)
		a.say("TaskEpilog failed status=-1")
		return
	}
	cmd := exec.Command(s.Path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	if err == nil {
		if !s.System {
			late := time.AfterFunc(epilogTime, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			defer late.Stop()
		}
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		a.say("TaskEpilog failed status=%d", int(exit.Sys().(syscall.WaitStatus)))
	case err != nil:
		a.say("Could not run %s [%s]: %v", what, s.Path, err)
	}
}
