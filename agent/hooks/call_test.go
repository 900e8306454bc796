package hooks

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOwnAddress: users have a server call none of this machine's addresses, whatever network they are of.
func TestOwnAddress(t *testing.T) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip(err)
	}
	for _, a := range list {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			t.Fatal(err)
		}
		if !ownAddress(p.Addr()) {
			t.Errorf("%s is not known as this machine's", p.Addr())
		}
	}
	if ownAddress(netip.MustParseAddr("192.0.2.7")) { // for documentation alone (RFC 5737)
		t.Error("192.0.2.7 is taken for this machine's")
	}
}

// TestCallSecrets: what fails names the host alone, since the path of a chat service's address is a secret.
func TestCallSecrets(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for _, c := range []struct {
		name, address, want string
	}{
		{"refused", "http://127.0.0.1:1/secret", "call 127.0.0.1:1: "},
		{"not found", web.URL + "/secret", "answered 404 Not Found"},
		{"no URL", "http://[::1/secret", "the URL cannot be parsed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := callOnce(t.Context(), http.DefaultClient, c.address, []byte("{}"))
			if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestReadChannel: the file of a channel is a regular file, or what reads like one at once.
func TestReadChannel(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ops")
	if err := os.WriteFile(file, []byte("slack+https://example.org/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if to, err := readChannel(file); err != nil || to.Form != "slack" || to.URL != "https://example.org/x" {
		t.Errorf("%+v %v", to, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{pipe, dir, filepath.Join(dir, "none")} {
		if to, err := readChannel(bad); err == nil {
			t.Errorf("%s: %+v", bad, to)
		}
	}
}
