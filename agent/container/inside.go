package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Program is where muster's program is in a container, beside its names.
const Program = "/usr/local/bin/muster"

// ProgramDir is the folder of the names, which the container's PATH must have.
const ProgramDir = "/usr/local/bin"

// maxInside bounds what is read of a file in a container.
const maxInside = 4 << 20

// names puts muster's names beside it, so that a script in the container uses the cluster. Files of
// the image stay.
func (b *build) names() error {
	dir, err := b.target(filepath.Dir(Program), true)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for n := range strings.FieldsSeq(b.Spec.Names) {
		err := b.in(dir, func() error { return unix.Symlinkat(filepath.Base(Program), dir, n) })
		if err != nil && err != unix.EEXIST {
			return fmt.Errorf("make %s/%s: %w", ProgramDir, n, err)
		}
	}
	return nil
}

// read is a file of the container's, "" if the user may not read it or there is none.
func (b *build) read(path string) string {
	var text []byte
	err := b.AsUser(func() error {
		fd, err := openPath(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxInside {
			return errors.New("it is no small file")
		}
		text, err = io.ReadAll(io.LimitReader(f, maxInside))
		return err
	})
	if err != nil {
		return ""
	}
	return string(text)
}

// accounts has the container know its user and group by name.
func (b *build) accounts() error {
	uid, gid, s := fmt.Sprint(b.UID), fmt.Sprint(b.GID), b.Spec
	user := strings.Join([]string{s.User, "x", uid, gid, "", orElse(s.Home, "/"), orElse(s.Shell, "/bin/sh")}, ":")
	group := strings.Join([]string{orElse(s.Group, s.User), "x", gid, ""}, ":")
	if err := b.account("/etc/passwd", uid, user); err != nil {
		return err
	}
	return b.account("/etc/group", gid, group)
}

func orElse(text, other string) string {
	if text == "" || strings.ContainsAny(text, ":\n") {
		return other
	}
	return text
}

// account adds a line to a file of accounts that has none of the id.
func (b *build) account(path, id, line string) error {
	text := b.read(path)
	for l := range strings.Lines(text) {
		if f := strings.Split(l, ":"); len(f) > 2 && f[2] == id {
			return nil
		}
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return b.replace(path, text+line+"\n")
}

// replace writes a file of the container's again.
func (b *build) replace(path, text string) error {
	dir, err := b.target(filepath.Dir(path), true)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	base := filepath.Base(path)
	err = b.in(dir, func() error {
		if err := unix.Unlinkat(dir, base, 0); err != nil && err != unix.ENOENT {
			return err
		}
		fd, err := unix.Openat(dir, base, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), path)
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// rcDir is the line of enroot's /etc/rc that says where the programs of an image begin.
var rcDir = regexp.MustCompile(`(?m)^\s*cd\s+"([^"]+)"`)

// readConfig reads what enroot writes into an image that it has made from one of a registry.
func (b *build) readConfig() {
	for l := range strings.Lines(b.read("/etc/environment")) {
		name, value, ok := strings.Cut(strings.TrimSpace(l), "=")
		if !ok || name == "" || strings.HasPrefix(name, "#") || strings.ContainsAny(name, " \t") {
			continue
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		b.config.Env = append(b.config.Env, name+"="+value)
	}
	rc := b.read("/etc/rc")
	if rc == "" {
		return
	}
	b.config.Entrypoint = []string{"/bin/sh", "/etc/rc"}
	if m := rcDir.FindStringSubmatch(rc); m != nil {
		b.config.WorkDir = m[1]
	}
}

// Login is what stands for the user's login environment in a container, which may have no such shell.
func (s *Spec) Login() []byte {
	var b []byte
	for _, v := range []string{"USER=" + s.User, "LOGNAME=" + s.User, "HOME=" + orElse(s.Home, "/"),
		"SHELL=" + orElse(s.Shell, "/bin/sh"), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} {
		b = append(append(b, v...), 0)
	}
	return b
}

// EnterDir makes a folder of the container this thread's directory.
func EnterDir(path string) error {
	fd, err := openPath(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchdir(fd)
}

// Environ is a task's environment in the container: the image's variables win over the job's, but
// for those in keep.
func (c *Config) Environ(job, keep []string) []string {
	var own []string
	kept, jobs := setOf(keep), namesOf(job)
	for _, v := range c.Env {
		name, _, _ := strings.Cut(v, "=")
		if !kept[name] || !jobs[name] {
			own = append(own, v)
		}
	}
	out, owns := make([]string, 0, len(job)+len(own)), namesOf(own)
	for _, v := range job {
		if name, _, _ := strings.Cut(v, "="); !owns[name] {
			out = append(out, v)
		}
	}
	out = c.afterHooks(append(out, own...))
	for i, v := range out {
		if list, ok := strings.CutPrefix(v, "PATH="); ok && !slices.Contains(strings.Split(list, ":"), ProgramDir) {
			out[i] = v + ":" + ProgramDir
		}
	}
	return out
}

// afterHooks has an environment be as hooks have left it.
func (c *Config) afterHooks(env []string) []string {
	dropped := setOf(c.dropped)
	env = slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return dropped[name]
	})
	return merge(env, c.hooked...)
}

// rc is what enroot makes of an image's entry point and folder.
func (c *Config) rc() string {
	dir := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(orElse(c.WorkDir, "/"))
	text := fmt.Sprintf("mkdir -p \"%s\" 2>/dev/null\ncd \"%[1]s\" && unset OLDPWD || exit 1\n", dir)
	var words []string
	for _, w := range c.Entrypoint {
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return text + strings.Join(append(append([]string{"exec"}, words...), `"$@"`), " ") + "\n"
}
