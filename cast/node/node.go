// Package node is the process that puts files on a node, or takes some from there, as the user of a
// job: muster internal cast. Package cast defines the messages.
package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"dev.muster/cast"
	"golang.org/x/sys/unix"
)

// readSize is how much is read at once.
const readSize = 256 << 10

// process is one on a node. Descriptor 0 brings orders, answers go to 1.
type process struct {
	in  *bufio.Reader
	out io.Writer
	// ready starts the step's tasks; nil: there are none.
	ready func() error
}

// Main is the process. It ends with its input; what is not complete then is gone. ready, if there is
// one, is called when the step's tasks may start.
func Main(ready func() error) int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() { // ends with the process
		<-ended
		os.Stdin.Close() // a read that waits is not woken by that: so the half file goes here
		remove()
		os.Exit(1)
	}()
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	p := &process{in: bufio.NewReaderSize(os.Stdin, readSize), out: os.Stdout, ready: ready}
	err := p.serve()
	remove()
	if err != nil {
		return 1
	}
	return 0
}

// serve does what it is told until nobody tells any more.
func (p *process) serve() error {
	for {
		var o cast.Order
		err := cast.ReadLine(p.in, &o)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if o.Go {
			return p.start()
		}
		if err := p.obey(&o); err != nil {
			return err
		}
	}
}

func (p *process) start() error {
	if p.ready == nil {
		return nil
	}
	return p.ready()
}

// order is one that names a path.
type order struct {
	path func(*cast.Order) string
	do   func(*process, string) error
}

// orders are those that need no more than the path.
var orders = [...]order{
	{func(o *cast.Order) string { return o.Get }, (*process).get},
	{func(o *cast.Order) string { return o.List }, (*process).list},
	{func(o *cast.Order) string { return o.Dir }, (*process).mkdir},
	{func(o *cast.Order) string { return o.Remove }, (*process).remove},
}

// obey does one order. An error ends the process: the other side has been told, or is gone.
func (p *process) obey(o *cast.Order) error {
	if o.Put != "" {
		return p.put(o)
	}
	for i := range orders {
		if path := orders[i].path(o); path != "" {
			return orders[i].do(p, path)
		}
	}
	return p.answer(cast.Answer{}, errors.New("an order that is not known here"))
}

// mkdir makes a folder. One that is there must be the user's alone: who else may write there could put another library
// in the place of one that comes.
func (p *process) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, os.ErrExist) {
		return p.answer(cast.Answer{}, err)
	}
	return p.answer(cast.Answer{}, ownFolder(path))
}

// ownFolder refuses what is no folder, or one in which other users may write.
func ownFolder(path string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	const kindAndOthers = syscall.S_IFMT | 0o022
	own := [...]uint32{syscall.S_IFDIR, uint32(os.Geteuid())}
	if own != [...]uint32{st.Mode & kindAndOthers, st.Uid} {
		return fmt.Errorf("%s is no folder that its user alone may write: remove it, or send to another place", path)
	}
	return nil
}

func (p *process) remove(path string) error { return p.answer(cast.Answer{}, os.Remove(path)) }

// answer tells what came of an order.
func (p *process) answer(a cast.Answer, err error) error {
	if err != nil {
		a.Error = err.Error()
		var no syscall.Errno
		if errors.As(err, &no) {
			a.Errno, a.Error = int(no), no.Error()
		}
	}
	line, err := cast.Line(a)
	if err == nil {
		_, err = p.out.Write(line)
	}
	return err
}

// put takes a file.
func (p *process) put(o *cast.Order) error {
	f, err := begin(o)
	if err := p.answer(cast.Answer{}, err); err != nil || f == nil {
		return err
	}
	defer f.drop()
	_, err = cast.ReadChunks(p.in, f)
	if err == nil {
		err = f.dress(o)
	}
	if err = errors.Join(err, p.answer(cast.Answer{}, err)); err != nil {
		return err // what else comes is of a file that is not taken
	}
	var then cast.Order
	if err := cast.ReadLine(p.in, &then); err != nil || !then.Commit {
		return errors.Join(err, errors.New("the file is not wanted"))
	}
	return p.answer(cast.Answer{}, f.name(o.Force))
}

// get sends a file.
func (p *process) get(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return p.answer(cast.Answer{}, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil {
		err = regular(fi)
	}
	if err != nil {
		return p.answer(cast.Answer{}, err)
	}
	if err := p.answer(cast.Answer{About: about(fi)}, nil); err != nil {
		return err
	}
	return p.send(f)
}

// regular refuses what is not a file that can be sent.
func regular(fi os.FileInfo) error {
	switch {
	case fi.IsDir():
		return syscall.EISDIR
	case !fi.Mode().IsRegular():
		return errors.New("not a regular file")
	}
	return nil
}

// send sends what a file holds. Where it cannot be read the chunks end in the middle, which the other
// side sees.
func (p *process) send(f *os.File) error {
	var c cast.Chunks
	buf := make([]byte, readSize)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			_, werr := p.out.Write(append(c.Head(buf[:n]), buf[:n]...))
			err = errors.Join(err, werr)
		}
		if errors.Is(err, io.EOF) {
			_, err = p.out.Write(c.End())
			return err
		}
		if err != nil {
			return err
		}
	}
}

// about is what is told of a file.
func about(fi os.FileInfo) cast.About {
	a := cast.About{Mode: uint32(fi.Mode().Perm()), Size: fi.Size(), Modified: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		a.Accessed = st.Atim.Nano()
	}
	return a
}

// list tells what a folder holds.
func (p *process) list(path string) error {
	var a cast.Answer
	entries, err := os.ReadDir(path)
	if err != nil {
		return p.answer(a, err)
	}
	if fi, err := os.Stat(path); err == nil {
		a.About = about(fi)
	}
	for _, e := range entries {
		switch {
		case e.IsDir():
			a.Dirs = append(a.Dirs, e.Name())
		case e.Type().IsRegular():
			a.Files = append(a.Files, e.Name())
		}
	}
	return p.answer(a, nil)
}

// incoming is a file that has not got its name yet.
type incoming struct {
	*os.File
	to   string
	temp string // its name meanwhile; empty: it has none, and is gone with the process
}

// half is the name of a file that is to be removed if the process ends.
var half atomic.Pointer[string]

func remove() {
	if name := half.Swap(nil); name != nil {
		_ = os.Remove(*name)
	}
}

// begin opens a file to be. Nobody sees it by its name before it is complete.
func begin(o *cast.Order) (*incoming, error) {
	if err := free(o.Put, o.Force); err != nil {
		return nil, err
	}
	dir := filepath.Dir(o.Put)
	f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_WRONLY, 0o600)
	if err == nil {
		return &incoming{File: f, to: o.Put}, nil
	}
	if _, there := os.Stat(dir); there != nil || errors.Is(err, os.ErrPermission) {
		return nil, err
	}
	in := &incoming{to: o.Put, temp: beside(o.Put)} // a file system that has no files without a name
	in.File, err = os.OpenFile(in.temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	half.Store(&in.temp)
	return in, nil
}

// free reports whether a file may get a name.
func free(path string, force bool) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil && !force:
		return syscall.EEXIST
	case err == nil && fi.IsDir():
		return syscall.EISDIR
	}
	return err
}

// beside is a name that nobody else has.
func beside(path string) string {
	stamp := strconv.FormatInt(time.Now().UnixNano(), 36)
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.%s", filepath.Base(path), os.Getpid(), stamp))
}

// dress gives the file the mode and times that it shall have.
func (f *incoming) dress(o *cast.Order) error {
	if err := f.Chmod(os.FileMode(o.Mode) & os.ModePerm); err != nil {
		return err
	}
	if !o.Times {
		return nil
	}
	times := []unix.Timespec{unix.NsecToTimespec(o.Accessed), unix.NsecToTimespec(o.Modified)}
	return unix.UtimesNanoAt(unix.AT_FDCWD, f.own(), times, 0)
}

// own is a path to the file, whatever its name.
func (f *incoming) own() string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// name gives the file its name.
func (f *incoming) name(force bool) error {
	switch {
	case f.temp == "" && !force:
		return f.link(f.to)
	case f.temp == "":
		f.temp = beside(f.to)
		half.Store(&f.temp)
		if err := f.link(f.temp); err != nil {
			return err
		}
	}
	if force {
		return os.Rename(f.temp, f.to)
	}
	return os.Link(f.temp, f.to)
}

// link gives a file without a name one that nobody has.
func (f *incoming) link(to string) error {
	return unix.Linkat(unix.AT_FDCWD, f.own(), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
}

// drop lets go of the file: without its name it is gone.
func (f *incoming) drop() {
	f.Close()
	remove()
}
