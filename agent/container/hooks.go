package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dev.muster/agent/container/enroot"
	"golang.org/x/sys/unix"
)

// Additions of a node's enroot files to a container: variables, mounts, and programs that run before the container
// is entered, as the user, and may add to both.

// get is a variable of the job's.
func (b *build) get(name string) string {
	if b.env == nil {
		b.env = make(map[string]string, len(b.Env))
		for _, v := range slices.Backward(b.Env) {
			name, value, _ := strings.Cut(v, "=")
			b.env[name] = value
		}
	}
	return b.env[name]
}

// environ reads what the image says, and adds the site's variables to its own.
func environ(b *build) error {
	b.config.Env = slices.Clone(b.config.Env)
	if b.Image.Root == "" && !b.Image.Told {
		b.readConfig()
	}
	if err := checkVariables(b.config.Env); err != nil {
		return err
	}
	more, err := expandAll(b)
	if err != nil {
		return err
	}
	b.config.Env = merge(b.config.Env, more...)
	return checkVariables(b.config.Env)
}

// expandAll returns the variables of the site's and the user's files.
func expandAll(b *build) ([]string, error) {
	list := b.Spec.site().Environ
	if err := checkVariables(list); err != nil {
		return nil, err
	}
	var all []string
	sum := 0
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		value, err := enroot.Expand(strings.Trim(value, `"'`), maxVariable, b.get)
		if err != nil {
			return nil, fmt.Errorf("the variable %.64s of the container: %w", name, err)
		}
		all = append(all, name+"="+value)
		if sum += len(value); sum > maxEnviron {
			return nil, checkVariables(all)
		}
	}
	return all, nil
}

func (s *Spec) site() *enroot.Site {
	if s.Site == nil {
		return &enroot.Site{}
	}
	return s.Site
}

// openSite opens the mounts that the site asks for, with the user's rights.
func openSite(b *build) error {
	site := b.Spec.site()
	if site.Error != "" {
		return errors.New(site.Error)
	}
	for i := range site.Mounts {
		if err := openSiteMount(b, &site.Mounts[i], true); err != nil {
			return err
		}
	}
	return nil
}

// siteFlags are the attributes of a site's mount, by its options.
var siteFlags = map[string]uint64{"ro": still, "nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV,
	"noexec": unix.MOUNT_ATTR_NOEXEC, "noatime": unix.MOUNT_ATTR_NOATIME}

// openSiteMount opens a mount of a .fstab; deep: with what is mounted below it.
func openSiteMount(b *build, m *enroot.Mount, deep bool) error {
	fail := func(err error) error {
		if m.Has("nofail") {
			return nil
		}
		return fmt.Errorf("%s: %w", m.Where, err)
	}
	target, err := enroot.Expand(m.Target, maxPath, b.get)
	if err != nil {
		return fail(fmt.Errorf("the target: %w", err))
	}
	s := source{target: filepath.Clean("/" + target), site: m}
	for option, attr := range siteFlags {
		if m.Has(option) {
			s.attr |= attr
		}
	}
	if m.Has("private") || m.Has("rprivate") {
		s.spread = unix.MS_PRIVATE
	}
	if s.target == "/" {
		return fail(errors.New("nothing is mounted at /: that is the image"))
	}
	if err := roomForMount(b); err != nil {
		return fmt.Errorf("%s: %w", m.Where, err)
	}
	if m.Type == "tmpfs" {
		b.extra = append(b.extra, s)
		return nil
	}
	path, err := enroot.Expand(m.Source, maxPath, b.get)
	if err != nil {
		return fail(fmt.Errorf("the source: %w", err))
	}
	if !filepath.IsAbs(path) {
		return fail(fmt.Errorf("%q does not begin with /", path))
	}
	fd, _, err := openReadable(b, path)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	if !deep && hasStore(b, fd) {
		return fail(fmt.Errorf("%s has the store of images below it: a hook cannot mount it", path))
	}
	if err := b.clone(fd, path, &s, true); err != nil {
		return fail(err)
	}
	b.extra = append(b.extra, s)
	return nil
}

// hasStore reports whether the store, where the image is mounted, is below a folder.
func hasStore(b *build, dir int) bool {
	real, err := os.Readlink(fdName(dir))
	store, serr := filepath.EvalSymlinks(b.Spec.Store)
	return errors.Join(err, serr) != nil || real == "/" || strings.HasPrefix(store+"/", real+"/")
}

// attachSite mounts what the site asked for.
func attachSite(b *build) error {
	for _, s := range b.extra {
		err := attachExtra(b, s)
		if err != nil && !s.site.Has("nofail") {
			return fmt.Errorf("%s: %w", s.site.Where, err)
		}
	}
	return nil
}

func attachExtra(b *build, s source) error {
	if s.site.Type != "tmpfs" {
		return b.attach(s)
	}
	mode, size := "1777", ""
	for _, f := range s.site.Flags {
		switch name, value, _ := strings.Cut(f, "="); name {
		case "mode":
			mode = value
		case "size":
			size = value
		}
	}
	return b.empty(s.target, mode, size)
}

// hookFiles are what hooks write to: text files of the user's, in a folder that only root can rename.
type hookFiles struct{ dir, rootfs, environ, mounts, config string }

// runAllHooks runs the site's hooks, for whom the node's names are there.
func runAllHooks(b *build) error {
	list := b.Spec.site().Hooks
	if len(list) == 0 || b.Hook == nil {
		return nil
	}
	err := b.rootAt(b.top)
	if err == nil {
		err = runHooks(b, list)
	}
	return errors.Join(err, b.rootAt(b.root))
}

func runHooks(b *build, list []string) error {
	dir, err := os.MkdirTemp("", "muster-hooks-")
	if err != nil {
		return err
	}
	own := filepath.Join(dir, "files")
	h := hookFiles{dir: dir, rootfs: filepath.Join(dir, "rootfs"), environ: filepath.Join(own, "environ"),
		mounts: filepath.Join(own, "mounts"), config: filepath.Join(own, "config")}
	defer h.remove(own)
	env := b.config.Environ(b.Env, b.Spec.Env)
	if err := lay(b, h, own, env); err != nil {
		return err
	}
	if err := unix.Mount(fdName(b.root), h.rootfs, "", unix.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "mount", Path: h.rootfs, Err: err}
	}
	defer func() { _ = unix.Unmount(h.rootfs, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) }()
	given := merge(env, "ENROOT_PID="+strconv.Itoa(unix.Gettid()), "ENROOT_ROOTFS="+h.rootfs,
		"ENROOT_ENVIRON="+h.environ, "ENROOT_MOUNTS="+h.mounts, "ENROOT_CONFIG="+h.config, "ENROOT_WORKDIR="+own)
	for _, hook := range list {
		if err := b.Hook(hook, given); err != nil {
			return fmt.Errorf("the hook %s: %w", hook, err)
		}
	}
	return takeWritten(b, h, env)
}

// remove removes the files of hooks, but nothing below the root while that is still mounted. Files that the user has
// added disappear with their file system, however many there are.
func (h *hookFiles) remove(own string) {
	_ = unix.Unmount(own, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	_ = os.Remove(own)
	_ = os.Remove(h.rootfs)
	_ = os.Remove(h.dir)
}

// Limits on the files that hooks write outside the image. They are in memory, and charged to the job.
const (
	hookBytes = 1 << 30
	hookNodes = 64 << 10 // files and folders
)

// lay makes the files of hooks, in a file system of their own: the start of a step waits for their removal.
func lay(b *build, h hookFiles, own string, env []string) error {
	var lines []string
	for _, v := range env {
		if !strings.Contains(v, "\n") {
			lines = append(lines, v+"\n")
		}
	}
	if err := errors.Join(os.Chmod(h.dir, 0o755), os.Mkdir(h.rootfs, 0o755), os.Mkdir(own, 0o700)); err != nil {
		return err
	}
	options := fmt.Sprintf("mode=0700,size=%d,nr_inodes=%d", hookBytes, hookNodes)
	if err := unix.Mount("tmpfs", own, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return &os.PathError{Op: "mount", Path: own, Err: err}
	}
	texts := map[string]string{h.environ: strings.Join(lines, ""), h.mounts: "", h.config: b.config.rc()}
	for file, text := range texts {
		err := os.WriteFile(file, []byte(text), 0o600)
		if err = errors.Join(err, os.Chown(file, int(b.UID), int(b.GID))); err != nil {
			return err
		}
	}
	return os.Chown(own, int(b.UID), int(b.GID))
}

// takeWritten takes what hooks have written.
func takeWritten(b *build, h hookFiles, env []string) error {
	text, err := readHook(b, h.environ, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	if err := takeVariables(b, text, env); err != nil {
		return err
	}
	if text, err = readHook(b, h.mounts, unix.O_NOFOLLOW); err != nil {
		return err
	}
	return enroot.Lines("ENROOT_MOUNTS", []byte(text), func(where, line string) error {
		m, err := enroot.ParseMount(where, line)
		if err != nil {
			return err
		}
		return openSiteMount(b, &m, false)
	})
}

// takeVariables takes the variables that hooks have written. The thread that does so is charged to nobody: it looks
// each up once.
func takeVariables(b *build, text string, env []string) error {
	var lines []string
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok && name != "" {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	now := merge(nil, lines...)
	if err := checkVariables(now); err != nil {
		return fmt.Errorf("ENROOT_ENVIRON: %w", err)
	}
	given, left := setOf(env), namesOf(now)
	for _, v := range now {
		if !given[v] {
			b.config.hooked = append(b.config.hooked, v)
		}
	}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !strings.Contains(v, "\n") && !left[name] {
			b.config.dropped = append(b.config.dropped, name)
		}
	}
	return nil
}

// readHook reads a small file of the user's, opened with more flags.
func readHook(b *build, path string, flags int) (text string, err error) {
	fd, err := b.openFor(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|flags, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxInside {
		return "", fmt.Errorf("%s is no small file", path)
	}
	all, err := io.ReadAll(io.LimitReader(f, maxInside))
	return string(all), err
}
