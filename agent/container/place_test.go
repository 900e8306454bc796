package container

import (
	"os"
	"strings"
	"testing"

	"dev.muster/agent/container/enroot"
)

// TestStore: the folder of images is not where others than root could put another in its place.
func TestStore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root keeps images")
	}
	dir, err := os.MkdirTemp("/root", "store")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(dir+"/etc", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/etc/enroot.conf", []byte("ENROOT_DATA_PATH "+dir+"/data\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o755: true, 0o777 | os.ModeSticky: true, 0o777: false, 0o775: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		s := enroot.Read(dir + "/etc")
		if got := StoreOf(s, "/usual"); (got == dir+"/data/muster") != ok || ok == (len(s.Notes()) > 0) {
			t.Errorf("%v: %s %q", mode, got, s.Notes())
		}
	}
	if err := os.Chown(dir+"/data", 1, 1); err != nil {
		t.Fatal(err)
	}
	s := enroot.Read(dir + "/etc")
	if got := StoreOf(s, "/usual"); got != "/usual" || !strings.Contains(s.Notes()[0], "is no folder of root's") {
		t.Errorf("a user's folder: %s %q", got, s.Notes())
	}
}
