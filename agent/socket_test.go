package agent

import (
	"os"
	"path/filepath"
	"testing"

	"dev.muster/agent/machine"
)

// TestCallers: nobody else calls a daemon of an ordinary user that runs jobs, as it would run theirs with that user's
// rights.
func TestCallers(t *testing.T) {
	hollow := []machine.Node{{}}
	for name, c := range map[string]struct {
		cfg  Config
		own  int
		want os.FileMode
	}{
		"root's":                   {Config{Server: true, Client: true}, 0, forAll},
		"muster dev of a user":     {Config{Server: true, Client: true}, 1000, forOwners},
		"a node of a user":         {Config{Client: true}, 1000, forOwners},
		"a server of a user":       {Config{Server: true}, 1000, forAll},
		"a login host of a user":   {Config{Client: true, Login: true}, 1000, forAll},
		"hollow nodes":             {Config{Client: true, Hollow: HollowConfig{Nodes: hollow}}, 1000, forAll},
		"hollow nodes with steps":  {Config{Client: true, Hollow: HollowConfig{Nodes: hollow, Exec: true}}, 1000, forOwners},
		"hollow nodes, all root's": {Config{Client: true, Hollow: HollowConfig{Nodes: hollow, Exec: true}}, 0, forAll},
	} {
		if got := c.cfg.callers(c.own); got != c.want {
			t.Errorf("%s: mode %o, want %o", name, got, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "s")
	ln, err := listen(path, forOwners)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != forOwners {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
