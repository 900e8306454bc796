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

// noServers is a server that knows of no other.
type noServers struct{ Server }

func (noServers) Addresses() []string { return nil }

// TestReachable: users have a server call no metadata service, whose addresses are not all link-local.
func TestReachable(t *testing.T) {
	check := (&Runner{Server: noServers{}}).reachable(false)
	for address, want := range map[string]bool{
		"169.254.169.254:80": false, "[fd00:ec2::254]:80": false, "[::ffff:100.100.100.200]:80": false,
		"168.63.129.16:80": false, "127.0.0.1:80": false, "0.0.0.0:80": false, "[fe80::1%lo]:80": false,
		"192.0.2.7:443": true, "[2001:db8::7]:443": true, "[fd00:ec2::255]:443": true,
	} {
		if err := check("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want it reachable: %t", address, err, want)
		}
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
