package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/guests"
	"dev.muster/agent/users"
	"dev.muster/cluster"
)

// Bounds of programs.
const (
	mailLimit    = time.Minute     // one run of MailProg, or of the script of JobCompLoc
	says         = 1 << 10         // bytes of a program's output that are told of
	triggerLimit = 5 * time.Minute // of a trigger's program, as in Slurm
)

// Program runs a hook's program to its end, or adds its line to a file; again: an earlier leader may have done so. An
// error names the program and what it has said.
func (r *Runner) Program(term context.Context, e *cluster.Hook, cfg *cluster.Config, again bool) error {
	p := r.Dialect.HookProgram(e, cfg)
	if p.Append != "" {
		return appendLine(p.Append, p.Line, again)
	}
	argv := p.Argv
	if len(argv) == 0 || argv[0] == "" {
		return fmt.Errorf("no program is configured for a hook of kind %s any more", e.Kind)
	}
	file, err := textFile(p.File)
	if err != nil {
		return err
	}
	if file != "" {
		defer os.Remove(file)
	}
	ctx, cancel := term, context.CancelFunc(func() {})
	if limit := limitOf(e.Kind, cfg); limit > 0 {
		ctx, cancel = context.WithTimeout(term, limit)
	}
	defer cancel()
	cmd := r.command(ctx, &p, file)
	run := cmd.Run
	if e.Trigger != nil {
		run = func() error { return r.runUsers(ctx, cmd) }
		err = runAsUser(cmd.SysProcAttr, e.Trigger.UID)
	} else {
		err = users.RunAs(cmd.SysProcAttr, cfg.ServerUser)
	}
	if as := cmd.SysProcAttr.Credential; as != nil && file != "" && err == nil {
		err = os.Lchown(file, int(as.Uid), int(as.Gid))
	}
	if err != nil {
		return err
	}
	out := guests.KeepBeginning(says)
	cmd.Stdout, cmd.Stderr = out, out
	err = run()
	if text := strings.TrimSpace(out.String()); err != nil && text != "" {
		return fmt.Errorf("%s: %w: %s", argv[0], err, text)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // a program that it left behind holds its output
		return nil
	}
	return err
}

// runUsers runs the program of a user's trigger. Processes that it leaves behind may take as long as a program.
func (r *Runner) runUsers(ctx context.Context, cmd *exec.Cmd) error {
	g, err := r.Guests.Start(cmd, triggerLimit)
	if err != nil {
		return err
	}
	return g.Wait(ctx)
}

// limitOf is how long a hook's program may run; 0: as long as it wants.
func limitOf(kind cluster.HookKind, cfg *cluster.Config) time.Duration {
	switch kind {
	case cluster.HookTrigger:
		return triggerLimit
	case cluster.HookMail, cluster.HookJobComp, cluster.HookLead, cluster.HookFollow:
		return mailLimit
	case cluster.HookResume, cluster.HookResumeFail, cluster.HookSuspend:
		return cfg.LongestSwitch()
	}
	return cfg.PrologTimeout
}

// command is a hook's program, which ends with all that it has started when ctx does.
func (r *Runner) command(ctx context.Context, p *cluster.Program, file string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(ownFirst(p.Environ), "MUSTER_SOCKET="+r.Socket)
	if file != "" {
		cmd.Env = append(cmd.Env, p.FileVar+"="+file)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// appendLine adds a line to a file in one piece, making the file if need be; of one that may have been added
// before, the end of the file is looked through first.
func appendLine(file, line string, again bool) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if again {
		there, err := endsWith(f, line)
		if err != nil || there {
			return errors.Join(err, f.Close())
		}
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// fileEnd is how much of a file's end is looked through for a line: those of atOnce hooks fit many times.
const fileEnd = 1 << 20

// endsWith reports whether a line is at the end of a file.
func endsWith(f *os.File, line string) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	end, err := io.ReadAll(io.NewSectionReader(f, max(info.Size()-fileEnd, 0), fileEnd))
	return strings.Contains("\n"+string(end), "\n"+line+"\n"), err
}

// textFile makes a file that this process alone may read; "" for no text.
func textFile(text []byte) (string, error) {
	if len(text) == 0 {
		return "", nil
	}
	f, err := os.CreateTemp("", "muster-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// ownFirst puts the folder of this program, where the front-ends lie, first in PATH.
func ownFirst(environ []string) []string {
	exe, err := os.Executable()
	if err != nil {
		return environ
	}
	out := slices.Clone(environ)
	for i, v := range out {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			out[i] = "PATH=" + filepath.Dir(exe) + ":" + path
		}
	}
	return out
}

// runAsUser makes a process run as the user of a trigger, with the user's groups.
func runAsUser(attr *syscall.SysProcAttr, uid uint32) error {
	switch own := os.Getuid(); {
	case uid == 0 || uint32(own) == uid:
		return nil
	case own != 0:
		return errNotRoot(own, uid)
	}
	_, gid, groups, err := users.Lookup(uid)
	if err != nil {
		return err
	}
	attr.Credential = &syscall.Credential{Uid: uid, Gid: gid, Groups: groups}
	return nil
}

// errNotRoot is why a program of a user is not run: it would have the rights of the server's user.
func errNotRoot(own int, uid uint32) error {
	return fmt.Errorf("this server is user %d's, and runs no programs of user %d: have root start it", own, uid)
}
