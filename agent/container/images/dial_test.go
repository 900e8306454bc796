package images

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"dev.muster/agent/userfile"
)

// TestConnectionsAreUsers: a connection to a registry, or to where that sends the helper, belongs to the user.
func TestConnectionsAreUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root connects as others")
	}
	const nobody = 65534
	token := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(ownerOf(t, r.RemoteAddr)))
	}))
	defer token.Close()
	registry := httptest.NewServer(http.RedirectHandler(token.URL, http.StatusFound))
	defer registry.Close()
	for as, want := range map[uint32]string{nobody: "65534", 0: "0"} {
		p := newPuller(context.Background(), Remote{}, nil, userfile.Identity{UID: as, GID: as, Groups: []uint32{as}})
		resp, err := (&http.Client{Transport: p.web}).Get(registry.URL)
		if err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 20)
		n, _ := resp.Body.Read(said)
		resp.Body.Close()
		if got := string(said[:n]); got != want {
			t.Errorf("the connection of user %d is user %q's", as, got)
		}
	}
	if os.Geteuid() != 0 {
		t.Error("the thread is not root's again")
	}
}

// ownerOf returns the user of the socket at a local IPv4 address.
func ownerOf(t *testing.T, address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Error(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Error(err)
	}
	suffix := ":" + strings.ToUpper(strconv.FormatInt(int64(n)+0x10000, 16)[1:])
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 7 && strings.HasSuffix(f[1], suffix) {
			return f[7]
		}
	}
	return "none"
}
