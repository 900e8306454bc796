package supervisor

import (
	"errors"
	"os"
	"strings"
	"unsafe"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

func asErrno(err error, no *unix.Errno) bool { return errors.As(err, no) }

// strerror is the C library's text: Go's begins with a small letter.
func strerror(err error) string {
	var no unix.Errno
	text := err.Error()
	if asErrno(err, &no) {
		text = no.Error()
	}
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func splitEnv(b cluster.BlobText) []string {
	if len(b) == 0 {
		return nil
	}
	text := strings.TrimSuffix(string(b), "\x00")
	env := make([]string, 0, strings.Count(text, "\x00")+8)
	for v := range strings.SplitSeq(text, "\x00") {
		if v != "" {
			env = append(env, v)
		}
	}
	return env
}

// mergeEnv appends more to base. Of two values of a name the later stays, at the place of the first.
func mergeEnv(base []string, more ...string) []string {
	env := make([]string, 0, len(base)+len(more)+1)
	at := make(map[string]int, len(base)+len(more))
	for i := range len(base) + len(more) {
		v := ""
		if i < len(base) {
			v = base[i]
		} else {
			v = more[i-len(base)]
		}
		name, _, _ := strings.Cut(v, "=")
		if k, ok := at[name]; ok {
			env[k] = v
			continue
		}
		at[name] = len(env)
		env = append(env, v)
	}
	return env
}

func getenv(env []string, name string) string {
	for _, v := range env {
		if rest, ok := strings.CutPrefix(v, name); ok && strings.HasPrefix(rest, "=") {
			return rest[1:]
		}
	}
	return ""
}

// lookPath finds a program, with this thread's rights, and says it as Slurm does, which hands it to the program as its
// own name: one that begins with a dot behind the working directory, a bare one as execvp finds it. One that is
// nowhere in the path is looked for in the working directory.
func lookPath(name, path string) (string, error) {
	if strings.HasPrefix(name, ".") {
		if dir, err := unix.Getwd(); err == nil {
			return dir + "/" + name, nil
		}
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	if path == "" {
		path = "/bin:/usr/bin"
	}
	err := unix.ENOENT
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		p := dir + "/" + name
		var st unix.Stat_t
		if unix.Stat(p, &st) != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR {
			continue
		}
		if unix.Faccessat2(unix.AT_FDCWD, p, unix.X_OK, unix.AT_EACCESS) != nil {
			err = unix.EACCES
			continue
		}
		return p, nil
	}
	if err == unix.ENOENT && unix.Access(name, unix.F_OK) == nil {
		return name, nil
	}
	return "", &os.PathError{Op: "execve", Path: name, Err: err}
}

func setgroups(g []uint32) {
	var p unsafe.Pointer
	if len(g) > 0 {
		p = unsafe.Pointer(&g[0])
	}
	unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(g)), uintptr(p), 0)
}
