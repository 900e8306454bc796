package agent

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestPeerTellsLines: a peer tells where it answers and by which token. Neither adds a line to the request of a tunnel.
func TestPeerTellsLines(t *testing.T) {
	for name, told := range map[string]struct{ at, token string }{
		"path":  {"http://127.0.0.1:7480/a%20HTTP/1.1%0d%0aX-Muster-User:%20root%0d%0a%0d%0a", "peer.x"},
		"token": {"http://127.0.0.1:7480", "peer.x\r\nX-Muster-User: root\r\n\r\nGET / HTTP/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent bytes.Buffer
			if err := askTunnel(&sent, told.at, told.token, "alpha", "bob"); err != nil {
				return // refused
			}
			head, rest, _ := strings.Cut(sent.String(), "\r\n\r\n")
			if rest != "" || strings.Contains(head, "\nX-Muster-User: root") {
				t.Errorf("the request is\n%s", sent.String())
			}
		})
	}
}

// TestPeerSpeaksWithoutEnd: a peer whose answer does not end takes no more of this server's memory than its bound.
func TestPeerSpeaksWithoutEnd(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sent := make(chan int, 1)
	go func() { // ends when the other side has enough
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		n, _ := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n")
		line := "X-Long: " + strings.Repeat("x", 1<<16) + "\r\n"
		for n < 64<<20 {
			k, err := io.WriteString(conn, line)
			if n += k; err != nil {
				break
			}
		}
		sent <- n
	}()
	p := &cluster.PeerCluster{URLs: "http://" + ln.Addr().String(), Send: "peer.x"}
	if conn, err := dialPeer(context.Background(), p, "alpha", "bob"); err == nil {
		conn.Close()
		t.Error("the answer is taken")
	}
	if n := <-sent; n >= 64<<20 {
		t.Errorf("%d bytes of an answer were read", n)
	}
}
