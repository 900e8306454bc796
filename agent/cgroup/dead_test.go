package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGroupsOfTheDead: a supervisor removes the empty groups that others left when they were killed, and nothing of
// those that live.
func TestGroupsOfTheDead(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("controllers are root's to give")
	}
	first := openForTest(t)
	if !first.Has(Memory) {
		t.Skipf("this machine has no controller of memory for us: %s", first.Kind())
	}
	dead := first
	createForTest(t, dead)
	dead.Release()
	living := openForTest(t)
	own := createForTest(t, living)
	busy := openForTest(t) // its supervisor was killed; the next takes its processes over
	in := createForTest(t, busy)
	busy.Release()
	if err := Write(in.Dir+"/cgroup.procs", "0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Write(filepath.Dir(busy.base)+"/cgroup.procs", "0") })

	openForTest(t).SweepDead()

	if there(dead.base) {
		t.Error("what the dead left is there yet")
	}
	for name, old := range dead.old {
		if there(old) {
			t.Errorf("of controller %s, too: %s", name, old)
		}
	}
	if !there(own.Dir) || !there(in.Dir) {
		t.Errorf("of the living %s: %v, %s: %v", own.Dir, there(own.Dir), in.Dir, there(in.Dir))
	}
	for name, old := range living.old {
		if !there(old) {
			t.Errorf("of the living, of controller %s: %s is gone", name, old)
		}
	}
}

func there(dir string) bool { return unix.Access(dir, unix.F_OK) == nil }

// openForTest opens the groups of a folder that goes with the test, and they with it.
func openForTest(t *testing.T) *Groups {
	t.Helper()
	c := Open(t.TempDir())
	if c == nil {
		t.Skip("this machine has no cgroups for us")
	}
	t.Cleanup(func() {
		if c.held != nil {
			c.Release()
		}
		c.removeDead(c.base)
	})
	return c
}

func createForTest(t *testing.T, c *Groups) *Group {
	t.Helper()
	g, err := c.Create("job_7.1@n1", "step_0", &Fence{MemMB: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.CloseFD)
	return g
}
