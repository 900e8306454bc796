package step

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGroupsOfTheDead: a supervisor removes the empty groups that others left when they were killed, and nothing of
// those that live.
func TestGroupsOfTheDead(t *testing.T) {
	needControl(t, memoryControl)
	id := ID{Job: 7, Attempt: 1, Node: "n1"}
	begin := func() (*cgroups, *group) {
		c := openCgroups(t.TempDir())
		g, err := c.create(id, &Fence{MemMB: 100})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			g.closeFD()
			c.release()
			c.removeDead(c.base)
		})
		return c, g
	}
	dead, _ := begin()
	dead.release()
	living, own := begin()
	busy, in := begin() // its supervisor was killed; the next takes its processes over
	busy.release()
	if err := writeControl(in.dir+"/cgroup.procs", "0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writeControl(filepath.Dir(busy.base)+"/cgroup.procs", "0") })

	newRig(t)

	there := func(dir string) bool { return unix.Access(dir, unix.F_OK) == nil }
	if there(dead.base) {
		t.Error("what the dead left is there yet")
	}
	for name, old := range dead.old {
		if there(old) {
			t.Errorf("of controller %s, too: %s", name, old)
		}
	}
	if !there(own.dir) || !there(in.dir) {
		t.Errorf("of the living %s: %v, %s: %v", own.dir, there(own.dir), in.dir, there(in.dir))
	}
	for name, old := range living.old {
		if _, err := os.Stat(old); err != nil {
			t.Errorf("of the living, of controller %s: %v", name, err)
		}
	}
}
