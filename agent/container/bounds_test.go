package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// TestPlaceMoves: the user exchanges the place of a file system in memory while it is mounted. The container takes
// no file system of the node for its own: it would make mount points in it with the rights of root.
func TestPlaceMoves(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	const tries = 400
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the user enters it
		t.Fatal(err)
	}
	link, other := filepath.Join(dir, "link"), filepath.Join(dir, "other")
	for _, name := range []string{"a", "b"} {
		for i := range tries {
			if err := os.MkdirAll(filepath.Join(dir, name, fmt.Sprint(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(os.Symlink("a", link), os.Symlink("b", other)); err != nil {
		t.Fatal(err)
	}
	over, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-over:
				stopped <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
				stopped <- err
				return
			}
		}
	}()
	b := &build{Maker: &Maker{AsUser: asNobody}, own: map[uint64]bool{}}
	var node unix.Stat_t
	err := unix.Stat(dir, &node)
	err = errors.Join(err, withMounts(func() error {
		for i := range tries {
			if err := b.empty(filepath.Join(link, fmt.Sprint(i)), "1777", ""); err != nil {
				return err
			}
		}
		return nil
	}))
	close(over)
	if err := errors.Join(err, <-stopped); err != nil {
		t.Fatal(err)
	}
	if b.own[node.Dev] {
		t.Error("the file system of the node is taken for the container's own")
	}
}

// TestClosedTarget: a mount point below a folder that the user has mounted, but may not enter, is refused in the same
// words whether it exists or not.
func TestClosedTarget(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	b := &build{Maker: &Maker{AsUser: asNobody}, own: map[uint64]bool{}}
	err := withMounts(func() error {
		err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"),
			os.Mkdir(closed, 0o700), os.WriteFile(filepath.Join(closed, "there"), nil, 0o644))
		if err != nil {
			return err
		}
		for _, name := range []string{"there", "missing"} {
			_, err := b.target(filepath.Join(closed, name), false)
			if want := fmt.Sprintf("open %s/%s: permission denied", closed, name); fmt.Sprint(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asNobody does something with the rights of a user.
func asNobody(do func() error) error {
	return userfile.Act(userfile.Identity{UID: 65534, GID: 65534}, do)
}

// withMounts does something in /proc, on a thread with mounts of its own that ends with them.
func withMounts(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
			unix.Chdir("/proc"))
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// TestOwnBounds: what users write into files of enroot takes the supervisor little memory and few descriptors, for
// it launches the steps of all users.
func TestOwnBounds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	const env, fstab = "environ.d/a.env", "mounts.d/a.fstab"
	large := strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		files map[string]string
		more  int // files beside them
		want  string
	}{
		"usual":       {map[string]string{env: "A=$LARGE\nB=${A}b\n", fstab: "/etc /a none ro\n"}, 0, ""},
		"long value":  {map[string]string{env: "A=" + strings.Repeat("$LARGE", 2)}, 0, "A of the container: it is longer than 131072 bytes"},
		"many values": {map[string]string{env: lines("A%d=$LARGE\n", 100)}, 0, "take more than 6291456 bytes"},
		"variables":   {map[string]string{env: lines("A%d=\n", maxVariables+1)}, 0, "more than 16384 variables"},
		"two files":   {map[string]string{env: "A=" + strings.Repeat(large, 6), fstab: "#" + strings.Repeat(large, 6)}, 0, "more than 1048576 bytes"},
		"mounts":      {map[string]string{fstab: strings.Repeat("/etc /a none\n", maxMounts+1)}, 0, "more than 512 mounts"},
		"no mounts":   {map[string]string{fstab: strings.Repeat("/none /a none nofail\n", 2*maxMounts)}, 0, ""},
		"unreadable":  {map[string]string{fstab: strings.Repeat("/etc/shadow /a none nofail\n", 2*maxMounts)}, 0, ""},
		"long path":   {map[string]string{fstab: "/$LARGE /a none\n"}, 0, "longer than 4096 bytes"},
		"long target": {map[string]string{fstab: "/etc /$LARGE none\n"}, 0, "longer than 4096 bytes"},
		"names":       {map[string]string{env: "A=1\n"}, maxOwnNames, "more than 1024 names"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the user enters it
				t.Fatal(err)
			}
			for _, d := range []string{"environ.d", "mounts.d"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for f, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.more {
				if err := os.WriteFile(filepath.Join(dir, "environ.d", fmt.Sprint(i)), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b := &build{Maker: &Maker{Spec: &Spec{}, Env: []string{"ENROOT_CONFIG_PATH=" + dir, "LARGE=" + large},
				AsUser: asNobody}, own: map[uint64]bool{}}
			defer b.close()
			err := withMounts(func() error {
				for _, do := range []func(*build) error{readOwn, openSite, environ} {
					if err := do(b); err != nil {
						return err
					}
				}
				return nil
			})
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%.200s, want %q", got, c.want)
			}
			if n := len(b.fds); n > 2*maxMounts {
				t.Errorf("%d descriptors are held", n)
			}
		})
	}
}

// lines repeats a format that takes the line's number.
func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ base, more, want string }{
		{"", "", "[]"},
		{"A=1 B=2", "", "[A=1 B=2]"},
		{"A=1 B=2", "B=3 C=4 C=5", "[A=1 B=3 C=5]"},
		{"A=1 A=2 AB=3", "A=4", "[A=4 A=2 AB=3]"},
	} {
		base := strings.Fields(c.base)
		if got := fmt.Sprint(merge(base, strings.Fields(c.more)...)); got != c.want {
			t.Errorf("%s with %s: %s, want %s", c.base, c.more, got, c.want)
		}
		if got := strings.Join(base, " "); got != c.base {
			t.Errorf("%s became %s", c.base, got)
		}
	}
}
