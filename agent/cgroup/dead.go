package cgroup

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// What a supervisor that was killed leaves behind when no other takes its folder over: empty
// groups, which nobody removes.

// ownGroup is what the groups of a supervisor's folder are called, as cgroupName makes it.
var ownGroup = regexp.MustCompile(`^muster\.[0-9a-f]{12}$`)

// hold marks the groups as those of a process that lives, until release or its end.
func (c *Groups) hold() error {
	f, err := lockGroup(c.base, unix.LOCK_SH)
	c.held = f
	return err
}

func (c *Groups) Release() {
	c.held.Close()
	c.held = nil
}

// lockGroup locks the directory of a supervisor's groups; it fails where another process has a lock
// that excludes this one.
func lockGroup(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// SweepDead removes the groups beside ours that no supervisor holds and no process is in.
func (c *Groups) SweepDead() {
	root := filepath.Dir(c.base)
	entries, _ := os.ReadDir(root) // of what can not be read nothing is removed
	for _, e := range entries {
		if dir := filepath.Join(root, e.Name()); ownGroup.MatchString(e.Name()) && dir != c.base {
			c.removeDead(dir)
		}
	}
}

// removeDead removes the groups below a directory, and those of cgroup v1 of the same name, if
// nobody lives there.
func (c *Groups) removeDead(dir string) {
	lock, err := lockGroup(dir, unix.LOCK_EX)
	if err != nil {
		return
	}
	defer lock.Close()
	events, err := os.ReadFile(dir + "/cgroup.events")
	if err != nil || !strings.Contains(string(events), "populated 0") {
		return
	}
	removeTree(dir)
	for _, old := range c.old {
		removeTree(filepath.Join(filepath.Dir(old), filepath.Base(dir)))
	}
}

// removeTree removes a directory of groups, the deepest first; those that processes are in stay.
func removeTree(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeTree(filepath.Join(dir, e.Name()))
		}
	}
	_ = unix.Rmdir(dir)
}
