package agent

import (
	"fmt"
	"path/filepath"
	"testing"

	"dev.muster/api"
)

// TestMadeUpServers: whoever has a key of the gossip can make up servers. A member keeps few of them, and those that a
// server names all the same.
func TestMadeUpServers(t *testing.T) {
	f, err := openFleet(filepath.Join(t.TempDir(), "servers"), nil, []string{"10.0.0.1:7400"})
	if err != nil {
		t.Fatal(err)
	}
	var many []string
	for i := range 1 << 16 {
		many = append(many, fmt.Sprintf("192.0.2.1:%d", i))
	}
	if err := f.add(many); err != nil {
		t.Fatal(err)
	}
	if list := f.list(); len(list) != maxHeard || list[0] != "10.0.0.1:7400" {
		t.Errorf("%d servers, %s first", len(list), list[0])
	}
	if err := f.learn([]api.Server{{Addr: "10.0.0.1:7400"}, {Addr: "10.0.0.2:7400"}}); err != nil {
		t.Fatal(err)
	}
	if list := f.list(); len(list) != 2 {
		t.Errorf("after a server has told: %v", list)
	}
}
