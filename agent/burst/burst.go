// Package burst stages files for jobs that ask for a burst buffer, by the site's script: Stages says which function is
// called with what, and Caller calls each in a process of its own, which is ended with all that it has started when its
// time is over, or when the server that called it is gone. It does not know when a stage is due: the state says that.
// Start with Stages.
package burst

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/wire"
)

// maxSaid bounds what a call returns and says.
const maxSaid = 64 << 10

// Caller calls functions of the script.
type Caller struct {
	// Program reads an api.BurstAsk in one line and writes an api.BurstReply.
	Program []string
	// Environ is its environment.
	Environ []string
	Log     *slog.Logger
}

// Call calls a function as a user of this machine, "" for who runs already, for a job with a script. Why the function
// failed is in the reply; an error is that it could not be called, or did not end in time.
func (c *Caller) Call(ctx context.Context, ask api.BurstAsk, script []byte, as string) (out api.BurstReply, err error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if err := users.RunAs(attr, as); err != nil {
		return out, err
	}
	dir, err := folder(attr.Credential, script)
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	ask.JobScript, ask.Paths = filepath.Join(dir, scriptName), filepath.Join(dir, "path")
	text, err := wire.Marshal(&ask)
	if err != nil {
		return out, err
	}
	cmd := exec.CommandContext(ctx, c.Program[0], c.Program[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", c.Environ, attr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	reply, said := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = reply, said
	in, err := cmd.StdinPipe() // held open: the process ends when nobody does
	if err != nil {
		return out, err
	}
	if err := cmd.Start(); err != nil {
		return out, err
	}
	_, failed := in.Write(append(text, '\n'))
	err = cmd.Wait()
	c.say(said.String())
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // what it left behind holds its output
		err = nil
	}
	return read(reply.Bytes(), cmp.Or(err, failed))
}

// read reads what the process has replied, if nothing has failed before.
func read(reply []byte, err error) (out api.BurstReply, _ error) {
	if err != nil {
		return out, fmt.Errorf("the script ended its process: %w", err)
	}
	if err := wire.Unmarshal(reply, &out); err != nil {
		return out, fmt.Errorf("the script wrote to its standard output, or ended its process: %w", err)
	}
	return out, nil
}

// say logs what the script has logged.
func (c *Caller) say(text string) {
	for line := range strings.Lines(text) {
		c.Log.Info("lua: " + strings.TrimRight(line, "\n"))
	}
}

// scriptName is the file of the job's script.
const scriptName = "script"

// folder makes one for a call, with the job's script in it, which a user alone may read.
func folder(as *syscall.Credential, script []byte) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "muster-burst-"); err != nil {
		return "", err
	}
	file := filepath.Join(dir, scriptName)
	err = os.WriteFile(file, script, 0o600)
	if as != nil {
		own := func(name string) error { return os.Lchown(name, int(as.Uid), int(as.Gid)) }
		err = errors.Join(err, own(file), own(dir)) // the folder last: its owner can replace the file by a link
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxSaid - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

var _ io.Writer = (*bounded)(nil)
