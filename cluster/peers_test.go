package cluster

import (
	"bytes"
	"strings"
	"testing"
)

// TestPeers: operators make and remove peers; a snapshot keeps them.
func TestPeers(t *testing.T) {
	w := newWorld(t, 1)
	hash := strings.Repeat("0a", 32)
	for _, bad := range []PeerCluster{
		{}, {Name: "all"}, {Name: "a,b"}, {Name: w.s.config.ClusterName}, {Name: "b", Accept: "x"},
	} {
		w.refused(root, &PeerPut{Peer: bad}, "")
	}
	w.refused(alice, &PeerPut{Peer: PeerCluster{Name: "b"}}, ErrAccess)
	w.ok(root, &PeerPut{Peer: PeerCluster{Name: "B", Accept: hash}})
	w.ok(sys, &PeerPut{Peer: PeerCluster{Name: "B", Accept: hash, URLs: "http://h:7480", Send: "s"}})
	var text bytes.Buffer
	if err := w.s.Snapshot().Encode(&text); err != nil {
		t.Fatal(err)
	}
	s, err := Decode(&text)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := s.PeerCluster("b"); !ok || p.Name != "B" || p.Send != "s" {
		t.Errorf("after a restart: %+v", p)
	}
	w.refused(alice, &PeerDrop{Name: "b"}, ErrAccess)
	w.ok(root, &PeerDrop{Name: "b"})
	w.refused(root, &PeerDrop{Name: "b"}, "")
}
