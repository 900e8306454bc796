// Package bandwidth measures the bandwidth between pairs of nodes. A lead, the command of the operator, exchanges lines
// of JSON with a peer on each node through the standard streams of a step. Peers transfer data directly to each other,
// by TCP or by ib_write_bw, and only with partners that know the secret of this test.
package bandwidth

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"dev.muster/wire"
)

// The tools that measure.
const (
	TCP = "tcp"
	IB  = "ib_write_bw"
)

// Bounds of a test. A peer refuses to do more than these, whoever asks it.
const (
	maxLine      = 8 << 20 // bytes of one message
	maxSeconds   = 60      // of one transfer
	maxStreams   = 64      // of one transfer
	maxRails     = 64
	maxNodes     = 16384
	maxPhases    = 10_000
	maxErrorText = 512
	// handshakeTime bounds the time until a connection has shown that it knows the secret.
	handshakeTime = 2 * time.Second
	dialTime      = 3 * time.Second
	// graceTime is how much longer than the transfer itself its end may take.
	graceTime = 3 * time.Second
	// toolTime is how much longer than its load ib_write_bw may take.
	toolTime = 15 * time.Second
	// peerTime bounds the life of a peer that has no lead anymore.
	peerTime = 30 * time.Minute
)

// Port is an active InfiniBand or RoCE port.
type Port struct {
	Device string  `json:"device"`
	Port   int     `json:"port"`
	Gbits  float64 `json:"gbits"` // of its link
}

// hello is what a peer says first.
type hello struct {
	Node  string            `json:"node"`
	Job   uint64            `json:"job,omitempty"`
	Port  int               `json:"port"`            // where it listens
	Addrs map[string]string `json:"addrs,omitempty"` // the first address of each network interface
	Ports []Port            `json:"ports,omitempty"`
	Tool  bool              `json:"tool,omitempty"` // ib_write_bw is installed
}

// result is what came of one transfer. The node that sends the data reports it.
type result struct {
	Phase int     `json:"phase"`
	To    int     `json:"to"`
	Rail  int     `json:"rail"`
	Gbits float64 `json:"gbits,omitempty"`
	Err   string  `json:"err,omitempty"`
}

// news is a message of a peer.
type news struct {
	Hello  *hello  `json:"hello,omitempty"`
	Result *result `json:"result,omitempty"`
}

// start tells peers about the test.
type start struct {
	Secret  []byte   `json:"secret"`
	Nodes   []string `json:"nodes"`
	Rails   []string `json:"rails"` // an interface, DEVICE:PORT, or "" for the address by which muster knows the node
	Tool    string   `json:"tool"`
	Addrs   []string `json:"addrs"` // of each node with each rail: that of node n and rail r is n*len(Rails)+r
	Seconds float64  `json:"seconds"`
	Streams int      `json:"streams"`
}

// phase has pairs of nodes transfer data, from the first to the second.
type phase struct {
	Phase int      `json:"phase"`
	Pairs [][2]int `json:"pairs"`
}

// order is a message of the lead, to all peers.
type order struct {
	Start *start `json:"start,omitempty"`
	Phase *phase `json:"phase,omitempty"`
	End   bool   `json:"end,omitempty"`
}

// check refuses what a peer does not do.
func (s *start) check() error {
	nodes, rails := len(s.Nodes), len(s.Rails)
	for _, b := range []struct {
		what               string
		value, least, most float64
	}{
		{"bytes of the secret", float64(len(s.Secret)), secretLen, secretLen},
		{"nodes", float64(nodes), 2, maxNodes},
		{"rails", float64(rails), 1, maxRails},
		{"addresses", float64(len(s.Addrs)), float64(nodes * rails), float64(nodes * rails)},
		{"seconds", s.Seconds, 0.01, maxSeconds},
		{"streams", float64(s.Streams), 1, maxStreams},
	} {
		if !(b.value >= b.least && b.value <= b.most) { // not a number is neither
			return fmt.Errorf("%s: %v; want %v to %v", b.what, b.value, b.least, b.most)
		}
	}
	if s.Tool != TCP && s.Tool != IB {
		return fmt.Errorf("unknown tool: %q", s.Tool)
	}
	return nil
}

// send writes one message as a line.
func send(w io.Writer, v any) error {
	b, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// lines reads messages of at most maxLine bytes each.
func lines(r io.Reader) *bufio.Scanner {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	return in
}

// duration makes a duration of seconds.
func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// cut shortens a text of an error for a message.
func cut(text string) string { return text[:min(len(text), maxErrorText)] }

var errEnded = errors.New("the test has ended")
