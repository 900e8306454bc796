// Package shell is a terminal in a job for somebody who sits at a browser: srun --overlap --pty as the user, on a
// pseudo terminal of this machine, which a WebSocket carries.
package shell

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"dev.muster/agent/guests"
	"dev.muster/ui/forms"
	"dev.muster/wire"
)

// Bounds of a terminal.
const (
	idleTime  = 30 * time.Minute // without a key
	lookEvery = 5 * time.Second  // whether the session and the browser are still there
	writeTime = 30 * time.Second // for a browser to take what the shell writes
	maxInput  = 64 << 10         // of one message
	maxSize   = 1000             // columns and rows
)

// Words are srun's for a shell in a job; on a node of it, if one is named. The scripts that srun runs here are the
// site's, or none: those of the user's own ~/.slurm/defaults would run on a server, outside of the job, also for steps
// that MPI_Comm_spawn asks for. The limits of this process are not for the shell.
func Words(job, node, prolog, epilog string) []string {
	words := []string{"srun", "--jobid=" + job, "--overlap", "--pty", "--nodes=1", "--ntasks=1", "--quiet",
		"--mpi=none", "--propagate=NONE", "--prolog=" + cmp.Or(prolog, "none"),
		"--epilog=" + cmp.Or(epilog, "none")}
	if node != "" {
		words = append(words, "--nodelist="+node)
	}
	return append(words, "bash")
}

// terminal is srun on a pseudo terminal.
type terminal struct {
	*os.File
	guest *guests.Guest // srun
}

// open starts a command on a pseudo terminal.
func open(ctx context.Context, c *forms.Commands, u forms.User, words []string, window []byte) (*terminal, error) {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	t := &terminal{File: os.NewFile(uintptr(m), "/dev/ptmx")}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return nil, errors.Join(os.NewSyscallError("unlock terminal", err), t.Close())
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(m), unix.TIOCGPTPEER, flags)
	if no != 0 {
		return nil, errors.Join(os.NewSyscallError("open terminal", no), t.Close())
	}
	far := os.NewFile(fd, "terminal")
	defer far.Close()
	t.resize(window)
	cmd, err := c.Command(ctx, u, words)
	if err == nil {
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
		cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = false, true, true
		_ = far.Chown(int(u.UID), -1) // not ours where the user is
		t.guest, err = c.Start(cmd)   // how it ends stands on the terminal
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// size is what a browser says of its window.
type size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// resize tells the terminal how large it is; srun hears of it by a signal.
func (t *terminal) resize(text []byte) {
	var s size
	if wire.Unmarshal(text, &s) != nil || s.Cols == 0 || s.Rows == 0 || max(s.Cols, s.Rows) > maxSize {
		return
	}
	if raw, err := t.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
		})
	}
}

// stop hangs up, and ends what does not mind.
func (t *terminal) stop() {
	_ = t.Close()
	select {
	case <-t.guest.Over():
	case <-time.After(2 * time.Second):
		_ = t.guest.Kill()
		<-t.guest.Over()
	}
}

// Serve runs a command for a browser until one of them has had enough; stays reports whether the visitor may still be
// here. Why it ended is told to the browser, and returned.
func Serve(ctx context.Context, ws *websocket.Conn, c *forms.Commands, u forms.User, words []string,
	stays func() bool) (why string) {
	defer func() { _ = ws.Close(websocket.StatusNormalClosure, why) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ws.SetReadLimit(maxInput)
	t, err := open(ctx, c, u, words, first(ws))
	if err != nil {
		return err.Error()
	}
	defer t.stop()
	idle := time.AfterFunc(idleTime, func() { cancel(errors.New("nothing was typed for half an hour")) })
	defer idle.Stop()
	// Not with ctx: the library cuts a connection whose context ends, and the browser is to hear why.
	go func() { cancel(t.take(ws, idle)) }()
	go func() { cancel(watch(ctx, ws, stays)) }()
	go func() { cancel(t.give(ws)) }()
	<-ctx.Done()
	return context.Cause(ctx).Error()
}

// first is what the browser says first: the size of its window, which srun is to begin with.
func first(ws *websocket.Conn) []byte {
	late, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	_, text, _ := ws.Read(late) // if there is none, the next word fails too
	return text
}

// take hands on what is typed.
func (t *terminal) take(ws *websocket.Conn, idle *time.Timer) error {
	for {
		kind, text, err := ws.Read(context.Background())
		if err != nil {
			return errors.New("the browser has gone")
		}
		idle.Reset(idleTime)
		if kind == websocket.MessageText {
			t.resize(text)
		} else if _, err := t.Write(text); err != nil {
			return errEnded
		}
	}
}

var errEnded = errors.New("the shell has ended")

// give hands on what is shown.
func (t *terminal) give(ws *websocket.Conn) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.Read(buf)
		if err != nil { // the other end is closed
			return errEnded
		}
		late, cancel := context.WithTimeout(context.Background(), writeTime)
		err = ws.Write(late, websocket.MessageBinary, buf[:n])
		cancel()
		if err != nil {
			return errors.New("the browser does not take what the shell writes")
		}
	}
}

// watch ends a terminal whose visitor has logged out or has gone without a word.
func watch(ctx context.Context, ws *websocket.Conn, stays func() bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if !stays() {
			return errors.New("the session is over")
		}
		late, cancel := context.WithTimeout(context.Background(), writeTime)
		err := ws.Ping(late)
		cancel()
		if err != nil {
			return errors.New("the browser has gone")
		}
	}
}
