package cgroup

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// A supervisor that was killed leaves groups behind when no other takes its folder over: empty
// groups, which nobody removes.

// ownGroup is what the groups of a supervisor's folder are called, as cgroupName makes it.
var ownGroup = regexp.MustCompile(`^muster\.[0-9a-f]{12}$`)

// SweepDead removes the groups beside ours that no supervisor holds and no process is in.
func (c *Groups) SweepDead() {
	root := filepath.Dir(c.base)
	entries, _ := os.ReadDir(root) // of what cannot be read nothing is removed
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
