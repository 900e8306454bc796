package userfile

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The functions of this file act with the rights of the calling thread. Nothing in them may assume that these are a
// user's: they are root's for root's own jobs.

// Open opens a path without the links of /proc that lead to what a process has open (RESOLVE_NO_MAGICLINKS), and has
// the descriptor closed on exec. The error is the kernel's number.
func Open(path string, flags int) (int, error) { return resolve(path, flags, 0) }

// Stat looks at what a path leads to; it resolves the path as Open does.
func Stat(path string) (st unix.Stat_t, err error) {
	fd, err := Open(path, unix.O_PATH)
	if err == nil {
		err = unix.Fstat(fd, &st)
		unix.Close(fd)
	}
	return st, pathError("stat", path, err)
}

// examine opens a path without opening what it leads to (O_PATH), and calls do with what that is.
func examine(path string, do func(fd int, st *unix.Stat_t) error) error {
	fd, err := open(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	return do(fd, &st)
}

// ErrNotRegular says that a path leads to something else than a file.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file to read; it resolves the path as Open does, and refuses everything but regular files.
func OpenRegular(path string) (*os.File, error) {
	st, err := Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, pathError("open", path, ErrNotRegular)
	}
	fd, err := Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // another by now
		f.Close()
		return nil, pathError("open", path, cmp.Or(err, ErrNotRegular))
	}
	return f, nil
}

func resolve(path string, flags int, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // a rename went on at the same time
			return fd, err
		}
	}
}

// open is Open, with the mode of a file that it creates. A kernel before 5.6 follows all links: that gives nothing
// that is not the user's, because the process has no rights but the user's and nothing of others open.
func open(path string, flags int, mode uint32) (int, error) {
	fd, err := resolve(path, flags, mode)
	if err == unix.ENOSYS {
		return unix.Open(path, flags|unix.O_CLOEXEC, mode)
	}
	return fd, err
}

// standardStreams are names of this process's own streams, which are not the job's. As with slurmstepd, a job that is
// sent there has no output.
var standardStreams = []string{"/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2",
	"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"}

// instead returns the path that is opened in place of path.
func instead(path string) string {
	if slices.Contains(standardStreams, path) {
		return os.DevNull
	}
	return path
}

// enter is Enter.
func enter(dir string, umask uint32) (int, error) {
	unix.Umask(int(umask & 0o777))
	fd, err := goTo(dir)
	if err == nil {
		return fd, nil
	}
	other, _ := goTo("/tmp")
	return other, err
}

func goTo(dir string) (int, error) {
	fd, err := open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	return keepIf(fd, unix.Fchdir(fd))
}

// openOutput opens a file to write to, which it truncates unless keep is set.
func openOutput(path string, keep bool) (int, error) {
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND
	if !keep {
		flags |= unix.O_TRUNC
	}
	fd, err := openToWrite(path, flags)
	if err == unix.ENOENT && makeDirs(filepath.Dir(path)) == nil {
		fd, err = openToWrite(path, flags)
	}
	return fd, err
}

// openToWrite opens a file without waiting for anybody. A named pipe that nobody reads yet is opened for reading, too:
// so its task begins, waits when the pipe is full, and can be killed then.
func openToWrite(path string, flags int) (int, error) {
	path = instead(path)
	flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	if err := checkKind(path); err != nil && err != unix.ENOENT {
		return -1, err
	}
	fd, err := open(path, flags, 0o666)
	if err == unix.ENXIO {
		fd, err = open(path, flags&^unix.O_WRONLY|unix.O_RDWR, 0o666)
	}
	if err != nil {
		return -1, err
	}
	if fd, err = keepIf(fd, refuseKernel(fd)); err != nil {
		return -1, err
	}
	return accept(fd)
}

// kernelFiles are the file systems in which a write changes the kernel or another process. The supervisor writes some
// lines of its own to a job's output, as root: no such line may get there.
var kernelFiles = []int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
	unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.BPF_FS_MAGIC,
	unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC}

// refuseKernel refuses a descriptor of such a file system.
func refuseKernel(fd int) error {
	var fs unix.Statfs_t
	err := unix.Fstatfs(fd, &fs)
	if err == nil && slices.Contains(kernelFiles, int64(fs.Type)) {
		return unix.EACCES
	}
	return err
}

// checkKind looks at a file before it is opened, because opening a device has effects.
func checkKind(path string) error {
	return examine(path, func(_ int, st *unix.Stat_t) error { return allow(st) })
}

// accept checks the kind of what was opened, and has it block from now on.
func accept(fd int) (int, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil {
		err = allow(&st)
	}
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	return keepIf(fd, err)
}

// keepIf returns a descriptor, or closes it if there is an error.
func keepIf(fd int, err error) (int, error) {
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// devices are character devices by their numbers, as devices.txt of the kernel lists them.
type devices struct{ major, first, last uint32 }

// plainDevices keep nothing and lead nowhere, or are terminals.
var plainDevices = []devices{
	{1, 3, 3},           // null
	{1, 5, 5},           // zero
	{1, 7, 9},           // full, random, urandom
	{4, 0, 255},         // terminals of the machine
	{5, 0, 0},           // the controlling terminal (ENXIO: the process has none)
	{136, 0, 1<<20 - 1}, // pseudo terminals
}

func (d devices) has(number uint64) bool {
	minor := unix.Minor(number)
	return unix.Major(number) == d.major && d.first <= minor && minor <= d.last
}

// allow refuses what is neither a file, a folder, a named pipe, a terminal nor /dev/null and the like. Devices are
// for the job itself to open: it runs inside the fence of its job, and this process does not.
func allow(st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFIFO:
		return nil
	case unix.S_IFDIR:
		return unix.EISDIR
	case unix.S_IFSOCK:
		return unix.ENXIO
	case unix.S_IFCHR:
		if slices.ContainsFunc(plainDevices, func(d devices) bool { return d.has(st.Rdev) }) {
			return nil
		}
	}
	return unix.EPERM
}

// WriterTime is how long a task waits for somebody to write into the named pipe that is its input.
const WriterTime = 5 * time.Second

// writerPause is how often it is looked for a writer.
const writerPause = 20 * time.Millisecond

// errNoWriter says why a task whose input is a named pipe did not start.
var errNoWriter = errors.New("nobody writes into this pipe")

// openInput opens a file to read from.
func openInput(path string) (int, error) {
	path = instead(path)
	if err := checkKind(path); err != nil && err != unix.EISDIR {
		return -1, err
	}
	fd, err := open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if fd, err = keepIf(fd, unix.Fstat(fd, &st)); err != nil {
		return -1, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR: // as in Slurm, the program's own reads say that it is one
		return fd, unix.SetNonblock(fd, false)
	case unix.S_IFIFO:
		if !hasWriter(fd) {
			return keepIf(fd, errNoWriter)
		}
	}
	return accept(fd)
}

// hasWriter waits until somebody has a named pipe open to write into.
func hasWriter(fd int) bool {
	var p [2]int
	if unix.Pipe2(p[:], unix.O_CLOEXEC) != nil {
		return false
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	for end := time.Now().Add(WriterTime); time.Now().Before(end); time.Sleep(writerPause) {
		// tee takes nothing away; without writers it says that this is the end.
		n, err := unix.Tee(fd, p[1], 1, unix.SPLICE_F_NONBLOCK)
		if n > 0 || err == unix.EAGAIN {
			return true
		}
	}
	return false
}

// makeDirs creates a folder and those above it. It resolves each name as open does.
func makeDirs(dir string) error {
	if fd, err := open(dir, unix.O_PATH|unix.O_DIRECTORY, 0); err != unix.ENOENT {
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	above := filepath.Dir(dir)
	if above == dir {
		return unix.ENOENT
	}
	if err := makeDirs(above); err != nil {
		return err
	}
	parent, err := open(above, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	if err := unix.Mkdirat(parent, filepath.Base(dir), 0o777); err != unix.EEXIST {
		return err
	}
	return nil
}

// usualPath is the search path of programs whose environment has no PATH.
const usualPath = "/bin:/usr/bin"

// findProgram finds a program, and words it as Slurm does, which hands it to the program as its own name: one that
// begins with a dot behind the working directory, a bare one as execvp finds it. One that is nowhere in the path is
// looked for in the working directory.
func findProgram(name, path string) (string, error) {
	if strings.HasPrefix(name, ".") {
		if dir, err := unix.Getwd(); err == nil {
			name = dir + "/" + name
		}
	}
	if strings.Contains(name, "/") {
		if err := isProgram(name); err == unix.ELOOP {
			return "", err
		}
		return name, nil // execve words the other errors
	}
	if path == "" {
		path = usualPath
	}
	err := error(unix.ENOENT)
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		p := dir + "/" + name
		switch isProgram(p) { // the kernel takes no path of PATH_MAX bytes, so the answer is short
		case nil:
			return p, nil
		case errNoProgram:
			err = unix.EACCES
		}
	}
	if err == unix.ENOENT && isProgram(name) != unix.ENOENT {
		return name, nil
	}
	return "", err
}

// Reasons why an existing path is not a program.
var (
	errFolder    = errors.New("is a folder")
	errNoProgram = errors.New("may not be executed")
)

// isProgram returns nil if path can be executed, else errNoProgram, errFolder or the error of resolving it.
func isProgram(path string) error {
	return hide(examine(path, func(fd int, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return errFolder
		}
		err := unix.Faccessat2(fd, "", unix.X_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
		if err == unix.ENOSYS || err == unix.EINVAL {
			err = unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, 0)
		}
		if err != nil {
			return errNoProgram
		}
		return nil
	}))
}

// hide reports a folder that may not be entered as one without the file, as execvp does.
func hide(err error) error {
	switch err {
	case unix.EACCES, unix.ENOTDIR:
		return unix.ENOENT
	}
	return err
}

// interpreterRead is how much of a script the kernel reads.
const interpreterRead = 256

// interpreter returns what the first line of a script names, if it is a file that may be read.
func interpreter(name string) string {
	isFile := examine(name, func(_ int, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return ErrNotRegular
		}
		return nil
	})
	if isFile != nil {
		return ""
	}
	fd, err := open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	head := make([]byte, interpreterRead)
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	line, isScript := strings.CutPrefix(line, "#!")
	if !isScript {
		return ""
	}
	return append(strings.Fields(line), "")[0]
}

// say writes a text, unless nobody takes it: a named pipe may be full, and a terminal stopped.
func say(fd int, text string) error {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(ready, 0); err != nil || n == 0 {
		return unix.EAGAIN
	}
	_, err := unix.Write(fd, []byte(text[:min(len(text), longestSay)]))
	return err
}

// longestSay is what a pipe takes whole, in bytes (PIPE_BUF).
const longestSay = 4096
