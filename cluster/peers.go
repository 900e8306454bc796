package cluster

import (
	"iter"
	"strings"
	"time"
)

// A peer is another cluster with which this one has exchanged tokens. What is asked of a peer is asked in the name
// of the user who asks: the peer that shows a token vouches for its users. Root of a peer is root here only where
// that was said when its token was made.

// PeerCluster is one.
type PeerCluster struct {
	Name string `json:"name"`
	// URLs are where its servers answer, separated by commas; empty: it may ask, and cannot be asked.
	URLs string `json:"urls,omitempty"`
	// Send is the token that is shown there; it never leaves the servers.
	Send string `json:"send,omitempty"`
	// Accept is the SHA-256 in hex of the token that it shows here; empty: it may not ask.
	Accept string    `json:"accept,omitempty"`
	Root   bool      `json:"root,omitempty"` // its root, and who runs its daemons, are those users here
	Made   time.Time `json:"made"`
	By     uint32    `json:"by"`
}

// maxPeerText bounds the texts of a peer, in bytes.
const maxPeerText = 4096

// PeerCluster finds a peer by name, in any case of letters as Slurm has names of clusters.
func (b *books) PeerCluster(name string) (*PeerCluster, bool) {
	return b.clusters.Get(strings.ToLower(name))
}

// PeerClusters yields the peers by name.
func (b *books) PeerClusters() iter.Seq[*PeerCluster] { return valuesOf(b.clusters) }

// PeerPut makes a cluster a peer, or gives one that is a peer other tokens.
type PeerPut struct {
	Peer PeerCluster `json:"peer"`
}

func (*PeerPut) kind() string { return "peer_put" }

func (c *PeerPut) apply(t *tx) (any, error) {
	p := c.Peer
	name := strings.ToLower(p.Name)
	if err := firstError(
		refuseIf(!t.by.Operator() && !t.by.System,
			Denied, ErrAccess, "only an operator makes other clusters peers"),
		refuseIf(name == "" || name == "all" || strings.ContainsAny(name, ",;: \t\n"),
			Invalid, "", "%q cannot be the name of a cluster", p.Name),
		refuseIf(len(p.Name)+len(p.URLs)+len(p.Send) > maxPeerText,
			Invalid, "", "%q cannot be the name of a cluster", p.Name),
		refuseIf(name == strings.ToLower(t.config.ClusterName),
			Invalid, "",
			"%s is this cluster's own name: ClusterName in slurm.conf gives another", p.Name),
		refuseIf(p.Accept != "" && !isHash(p.Accept),
			Invalid, "", "the token of %s has no verifier", p.Name),
	); err != nil {
		return nil, err
	}
	p.Made = t.at
	p.By = t.by.UID
	putValue(t, t.clusters, name, &p)
	return nil, nil
}

// PeerDrop makes a peer a stranger: its token is worth nothing from now on.
type PeerDrop struct {
	Name string `json:"name"`
}

func (*PeerDrop) kind() string { return "peer_drop" }

func (c *PeerDrop) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrAccess, "only an operator removes peers")
	}
	if _, ok := t.PeerCluster(c.Name); !ok {
		return nil, Errorf(NotFound, "", "there is no peer %s; muster peer ls shows them", c.Name)
	}
	dropValue(t, t.clusters, strings.ToLower(c.Name))
	return nil, nil
}
