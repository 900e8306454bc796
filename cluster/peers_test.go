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

// TestSlurmPeers: operators name a running Slurm, with values that no shell and no option parser can misread.
func TestSlurmPeers(t *testing.T) {
	w := newWorld(t, 1)
	good := SlurmPeer{Bin: "/opt/slurm/bin", Conf: "/etc/slurm/slurm.conf", Host: "ann@login-1"}
	put := func(name string, change func(*SlurmPeer)) *PeerPut {
		s := good
		change(&s)
		return &PeerPut{Peer: PeerCluster{Name: name, Slurm: &s}}
	}
	same := func(*SlurmPeer) {}
	for _, c := range []struct {
		what, name string
		change     func(*SlurmPeer)
	}{
		{"name like an option", "-old", same},
		{"name with a blank", "o d", same},
		{"name with a quote", "o'd", same},
		{"relative folder", "old", func(s *SlurmPeer) { s.Bin = "bin" }},
		{"no folder", "old", func(s *SlurmPeer) { s.Bin = "" }},
		{"folder with a line break", "old", func(s *SlurmPeer) { s.Bin = "/a\nb" }},
		{"relative conf", "old", func(s *SlurmPeer) { s.Conf = "slurm.conf" }},
		{"host like an option", "old", func(s *SlurmPeer) { s.Host = "-oProxyCommand=x" }},
		{"host with a blank", "old", func(s *SlurmPeer) { s.Host = "a b" }},
		{"host without end", "old", func(s *SlurmPeer) { s.Host = strings.Repeat("a", 300) }},
	} {
		t.Run(c.what, func(t *testing.T) { w.refused(root, put(c.name, c.change), "") })
	}
	w.refused(alice, put("old", same), ErrAccess)
	w.ok(root, put("Old", same))
	if p, ok := w.s.PeerCluster("old"); !ok || *p.Slurm != good {
		t.Errorf("%+v", p)
	}
	hash := strings.Repeat("0a", 32)
	w.refused(root, &PeerPut{Peer: PeerCluster{Name: "old", Accept: hash}}, "")
	w.ok(root, &PeerPut{Peer: PeerCluster{Name: "beta", Accept: hash}})
	w.refused(root, put("beta", same), "")
	both := put("new", same)
	both.Peer.Send = "s"
	w.refused(root, both, "")
	w.ok(root, &PeerDrop{Name: "old"})
}
