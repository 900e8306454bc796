package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// TestPrivateFolderOfOthers has a user make the folder of a job to come, with a link to a folder of root's in it.
func TestPrivateFolderOfOthers(t *testing.T) {
	base, victim := t.TempDir(), t.TempDir()
	if err := os.Chmod(victim, 0o700); err != nil {
		t.Fatal(err)
	}
	p := &step.Private{Base: base, Dirs: []string{"/tmp"}}
	top := filepath.Join(base, "job_1.0@n1")
	put := func(mode os.FileMode) {
		t.Helper()
		if err := os.Mkdir(top, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(top, mode); err != nil {
			t.Fatal(err)
		}
	}
	put(0o755)
	if err := os.Symlink(victim, step.SeenAs(top, "/tmp")); err != nil {
		t.Fatal(err)
	}
	if _, err := folders(p, top); err == nil {
		t.Error("a folder that others can enter is taken")
	}
	if info, err := os.Stat(victim); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder that the link leads to: %v, %v", info.Mode(), err)
	}
	if err := os.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	put(0o700)
	fds, err := folders(p, top)
	if err != nil {
		t.Errorf("the folder of an earlier step is refused: %v", err)
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	if os.Getuid() != 0 {
		t.Skip("not root: no folder can be another user's")
	}
	if err := os.Chown(top, 2001, 2001); err != nil {
		t.Fatal(err)
	}
	fds, err = folders(p, top)
	if err != nil {
		t.Errorf("another user's folder keeps the job from starting: %v", err)
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	var st unix.Stat_t
	if err := unix.Lstat(top, &st); err != nil || st.Uid != 0 || st.Mode&0o777 != 0o700 {
		t.Errorf("the job's folder is user %d's, %o, %v", st.Uid, st.Mode, err)
	}
	if aside, _ := filepath.Glob(top + ".of-user-2001-*"); len(aside) != 1 {
		t.Errorf("the user's folder is not aside: %v", aside)
	}
	for mode, want := range map[os.FileMode]bool{0o777: false, 0o777 | os.ModeSticky: true, 0o755: true} {
		if err := os.Chmod(base, mode); err != nil {
			t.Fatal(err)
		}
		fds, err := folders(p, top)
		for _, fd := range fds {
			unix.Close(fd)
		}
		if (err == nil) != want {
			t.Errorf("BasePath with the mode %v: %v", mode, err)
		}
	}
}
