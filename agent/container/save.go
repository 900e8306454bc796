package container

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"dev.muster/agent/userfile"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// A container is saved as enroot does it: a squashfs whose files are root's, in which /etc/environment and
// /etc/rc say what the image says of its programs.

// saver packs what is the working directory into the file $1, with the options $2; the words behind them stay out.
// A file that is not whole never has its name.
const saver = `out=$1 part=$1.$$ how=$2; shift 2
trap 'rm -f "$part"' EXIT
mksquashfs . "$part" -noappend -all-root -no-progress -quiet $how -e "$@" &&
mv -f "$part" "$out"`

// squash are the options of mksquashfs where the site has none.
const squash = "-comp zstd -Xcompression-level 1"

// SaveCommand is what packs the container whose files are the working directory.
func (s *Spec) SaveCommand(dir string) []string {
	argv := []string{"/bin/sh", "-c", saver, "muster-save", s.savePath(dir),
		cmp.Or(strings.Join(s.site().Squash, " "), squash), strings.TrimPrefix(Program, "/")}
	for n := range strings.FieldsSeq(s.Names) {
		argv = append(argv, strings.TrimPrefix(filepath.Join(ProgramDir, n), "/"))
	}
	return argv
}

func (s *Spec) savePath(dir string) string {
	if filepath.IsAbs(s.Save) {
		return s.Save
	}
	return filepath.Join(dir, s.Save)
}

// CanSave says before a step begins why its container could not be saved. It is called with the user's
// rights on files.
func (s *Spec) CanSave(dir string) error {
	if _, err := exec.LookPath("mksquashfs"); err != nil {
		return errors.New("--container-save: this node has no mksquashfs: install squashfs-tools there")
	}
	path := s.savePath(dir)
	if st, err := userfile.Stat(path); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Errorf("--container-save: %s is a folder: name the file", path)
	}
	to := filepath.Dir(path)
	fd, err := userfile.Open(to, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Faccessat2(fd, "", unix.W_OK|unix.X_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	}
	if err != nil {
		return fmt.Errorf("--container-save: %w", &os.PathError{Op: "write to", Path: to, Err: err})
	}
	return nil
}

// Used is the image that a step runs in, as Use has written it down.
func Used(store, step string) (Image, error) {
	name, err := os.ReadFile(filepath.Join(store, usesName, step))
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, nil // a path of the user's
	}
	if err != nil {
		return Image{}, err
	}
	dir := filepath.Join(store, "images", filepath.Base(string(name)))
	text, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return Image{}, err
	}
	i := Image{Root: filepath.Join(dir, "root")}
	return i, wire.Unmarshal(text, &i.Config)
}

// Merged makes the container's files this thread's working directory, as its steps have left them.
// The thread must be about to end.
func (m *Maker) Merged() error {
	if os.Geteuid() != 0 {
		return errAsRoot
	}
	b := &build{Maker: m, proc: -1, top: -1, own: map[uint64]bool{}, config: m.Image.Config, again: true}
	defer b.close()
	for _, do := range []func() error{b.apart, b.stage, b.describe} {
		if err := do(); err != nil {
			return err
		}
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.keep(root)
	return errors.Join(unix.Fchdir(b.top), unix.Chroot("."), unix.Fchdir(root))
}

// describe writes into the image what readConfig reads.
func (b *build) describe() error {
	if b.Image.Root == "" {
		return nil // it says so already
	}
	have := b.read("/etc/environment")
	for _, v := range b.config.Env {
		if !strings.Contains(v, "\n") {
			have += v + "\n"
		}
	}
	if err := b.replace("/etc/environment", have); err != nil {
		return err
	}
	return b.replace("/etc/rc", b.config.rc())
}
