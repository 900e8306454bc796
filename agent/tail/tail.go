// Package tail reads the end of a file that a job writes, with the rights of its user, and waits for more. It knows
// nothing of jobs: who calls says which file it is. Start with File.
package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Bounds of reading: the file may be a pipe, or on a file system that does not answer.
const (
	Bytes    = 64 << 10 // at most, of one reading
	readTime = 3 * time.Second
	tries    = 20 // for more to be written, Pause apart
	Pause    = 400 * time.Millisecond
)

// File is what is read.
type File struct {
	Spec *cluster.JobSpec // of the user whose rights count
	Path string           // as the user's program sees it
	Own  string           // the folder which lies there for the job alone, on this machine; "": it is the machine's own
	Rest string           // of Path, below Own
	Over <-chan struct{}  // closed once nobody writes it any more; nil: nobody says
}

// readScript prints the offset of a part of the file $1, and that part: from $2, or if that is negative the end,
// $3 bytes at most. If there is nothing it looks $4 times again, until its input ends, and prints nothing if there
// still is nothing.
const readScript = `s=$(stat -Lc %s -- "$1") || exit 1
f=$2
[ "$f" -ge 0 ] || f=$((s - $3))
[ "$f" -ge 0 ] && [ "$f" -le "$s" ] || f=0
n=$4
while [ "$n" -gt 0 ] && [ "$s" -eq "$f" ]; do
	n=$((n - 1))
	timeout "$5" head -c 1 >/dev/null 2>&1
	case $? in
	0) n=0 ;;
	124) ;;
	*) sleep "$5" ;;
	esac
	s=$(stat -Lc %s -- "$1") || exit 1
done
[ "$s" -ge "$f" ] || f=0
echo "$f"
[ "$4" -gt 0 ] && [ "$s" -eq "$f" ] || tail -c "+$((f + 1))" -- "$1" | head -c "$3"`

// Read reads Bytes at most, from an offset on or the end of the file, and says where that begins. With hold it waits
// for something to be written there.
func (w *File) Read(ctx context.Context, from *int64, hold bool) (text []byte, start int64, err error) {
	name := w.Path
	var own []*os.File
	if w.Own != "" { // users cannot get to it by its name
		dir, err := os.OpenFile(w.Own, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, 0, w.failed(err)
		}
		defer dir.Close()
		own = []*os.File{dir}
		name = "/proc/self/fd/3/" + w.Rest // the first of the files that are handed on
	}
	again, within := 0, readTime
	if hold {
		again = tries
		within = tries*Pause*5/4 + readTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd, err := w.command(ctx, name, from, again)
	if err != nil {
		return nil, 0, err
	}
	cmd.ExtraFiles = own
	if hold {
		end, err := w.endOf(ctx)
		if err != nil {
			return nil, 0, w.failed(err)
		}
		defer end.Close()
		cmd.Stdin = end
	}
	text, why, err := run(cmd)
	switch {
	case ctx.Err() != nil:
		return nil, 0, cluster.Errorf(cluster.Unavailable, "",
			"%s could not be read in %v: is it a pipe, or its file system away?", w.Path, readTime)
	case why != "":
		return nil, 0, cluster.Errorf(cluster.NotFound, "", "%s", strings.ReplaceAll(readError(why), name, w.Path))
	case err != nil:
		return nil, 0, w.failed(err)
	}
	first, text, _ := bytes.Cut(text, []byte{'\n'})
	if start, err = strconv.ParseInt(string(first), 10, 64); err != nil {
		return nil, 0, w.failed(err)
	}
	return text, start, nil
}

func (w *File) failed(err error) error { return fmt.Errorf("read %s: %w", w.Path, err) }

// command is the program that reads, as the user.
func (w *File) command(ctx context.Context, name string, from *int64, again int) (*exec.Cmd, error) {
	at := int64(-1)
	if from != nil {
		at = max(*from, 0)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", readScript, "sh", name, strconv.FormatInt(at, 10),
		strconv.Itoa(Bytes), strconv.Itoa(again), strconv.FormatFloat(Pause.Seconds(), 'f', -1, 64))
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // all of them end together
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	switch own := os.Getuid(); {
	case own == 0:
		cmd.SysProcAttr.Credential = step.Credential(w.Spec.UID, w.Spec.GID, w.Spec.Groups)
		step.Alone(cmd.SysProcAttr)
	case uint32(own) != w.Spec.UID:
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"the client of this node is not root's: it reads only files of user %d", own)
	}
	return cmd, nil
}

// run is what a command prints, and what it complains of.
func run(cmd *exec.Cmd) (text []byte, why string, err error) {
	var errs strings.Builder
	cmd.Stderr = &limited{&errs, 1 << 10}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	text, rerr := io.ReadAll(io.LimitReader(pipe, Bytes+32))
	err = cmd.Wait()
	return text, errs.String(), errors.Join(err, rerr)
}

// endOf is a pipe that ends once nobody writes the file any more.
func (w *File) endOf(ctx context.Context) (*os.File, error) {
	end, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		defer held.Close()
		select {
		case <-w.Over:
		case <-ctx.Done():
		}
	}()
	return end, nil
}

// readError is what the programs that read a file say of it, without their names.
func readError(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimPrefix(strings.TrimPrefix(line, "tail: "), "stat: ")
	return strings.TrimSpace(strings.Replace(line, "cannot statx", "cannot open", 1))
}

// limited writes no more than so many bytes and swallows the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if _, err := l.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}
