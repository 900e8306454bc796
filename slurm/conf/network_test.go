package conf

import (
	"net/netip"
	"testing"
)

// knownNetwork is what net/netip says of a word.
func knownNetwork(word string) bool {
	_, network := netip.ParsePrefix(word)
	_, address := netip.ParseAddr(word)
	return network == nil || address == nil
}

// TestNetworks: what isNetwork takes is what the servers can parse.
func TestNetworks(t *testing.T) {
	for _, word := range []string{"10.0.0.7", "10.1.0.0/16", "0.0.0.0/0", "255.255.255.255/32", "::", "::/0", "fd00::/8", "::1",
		"1:2:3:4:5:6:7:8", "1::8/128", "1:2:3:4:5:6:7::", "", "proxy1", "10.0.0", "10.0.0.256", "10.0.0.01", "10.0.0.1/33",
		"10.0.0.1/", "10.0.0.1/08", "10.0.0.1/+8", "1.2.3.4.5", "fd00::/129", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
		":::", ":1", "1:", "g::1", "12345::", "1:2:3:4:5:6:7:8::", "::1/-1", "+1::", "a", "1/2", "/8", "::/", "1..2.3"} {
		if got, want := isNetwork(word), knownNetwork(word); got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

// FuzzNetworks: the servers can parse every word that isNetwork accepts.
func FuzzNetworks(f *testing.F) {
	for _, word := range []string{"10.0.0.7/8", "fd00::1/64", "::"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if isNetwork(word) && !knownNetwork(word) {
			t.Errorf("%q is taken", word)
		}
	})
}
