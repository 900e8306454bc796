package hooks

import (
	"net"
	"net/netip"
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
