package cluster

import (
	"iter"
	"strings"
	"time"
)

// A peer is another cluster with which this one has exchanged tokens. Questions to a peer are asked in the name
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
	// Slurm says how users reach a cluster that runs Slurm; nil: the peer runs muster.
	Slurm *SlurmPeer `json:"slurm,omitempty"`
}

// SlurmPeer says how the commands of users call those of a running Slurm. Only their own processes use it: servers and
// nodes never start a program because of it.
type SlurmPeer struct {
	Bin  string `json:"bin"`            // folder of Slurm's commands, an absolute path
	Conf string `json:"conf,omitempty"` // SLURM_CONF for them; empty: their default
	Host string `json:"host,omitempty"` // where they are called, by ssh: [USER@]HOST; empty: on the host of the user
}

// maxPeerText bounds the texts of a peer, in bytes.
const maxPeerText = 4096

// maxPeerWord bounds the name and the host of a Slurm, in bytes.
const maxPeerWord = 255

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
		checkSlurmPeer(t, &p),
	); err != nil {
		return nil, err
	}
	p.Made = t.at
	p.By = t.by.UID
	putValue(t, t.clusters, name, &p)
	return nil, nil
}

// checkSlurmPeer refuses a peer that takes the place of one of the other kind, and values of a Slurm that could be read
// as an option or as more than one word.
func checkSlurmPeer(t *tx, p *PeerCluster) error {
	old, known := t.PeerCluster(p.Name)
	if known && (old.Slurm == nil) != (p.Slurm == nil) {
		return Errorf(Conflict, "", "%s is a peer of another kind already: remove it first (muster peer rm %s)",
			old.Name, old.Name)
	}
	s := p.Slurm
	if s == nil {
		return nil
	}
	return firstError(
		refuseIf(p.Accept+p.Send+p.URLs != "" || p.Root,
			Invalid, "", "cluster %s runs Slurm, which has no tokens, addresses and rights of muster", p.Name),
		refuseIf(!isPeerWord(p.Name, ""),
			Invalid, "", "%q cannot be the name of a cluster: want letters, digits, _, - and .", p.Name),
		refuseIf(!isPeerPath(s.Bin),
			Invalid, "", "bin: %q is not the folder of Slurm's commands: want an absolute path, such as /opt/slurm/bin",
			s.Bin),
		refuseIf(s.Conf != "" && !isPeerPath(s.Conf),
			Invalid, "", "conf: %q is not a slurm.conf: want an absolute path, such as /etc/slurm/slurm.conf", s.Conf),
		refuseIf(s.Host != "" && !isPeerWord(s.Host, "@:"),
			Invalid, "", "via: %q is not a host: want HOST or USER@HOST", s.Host),
	)
}

// peerLetters are the characters of the name and host of a Slurm.
const peerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

// isPeerWord reports whether text has only letters, digits and a few signs, and does not begin like an option.
func isPeerWord(text, more string) bool {
	isBad := func(r rune) bool { return !strings.ContainsRune(peerLetters+more, r) }
	return text != "" && len(text) <= maxPeerWord && text[0] != '-' && !strings.ContainsFunc(text, isBad)
}

// isPeerPath reports whether text is an absolute path without control characters.
func isPeerPath(text string) bool {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	return strings.HasPrefix(text, "/") && len(text) <= maxPeerText && !strings.ContainsFunc(text, isControl)
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
