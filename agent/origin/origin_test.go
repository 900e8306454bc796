package origin

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOrigin believes headers of trusted proxies alone.
func TestOrigin(t *testing.T) {
	for _, c := range []struct {
		name, from, trusted, headers string
		secure, proxied              bool
		address                      string
	}{
		{
			"direct",
			"10.0.0.1:1", "", "",
			false, false, "10.0.0.1",
		},
		{
			"a caller's own headers",
			"10.0.0.1:1", "", "X-Forwarded-Proto: https|X-Forwarded-For: 1.2.3.4",
			false, true, "10.0.0.1",
		},
		{
			"another proxy",
			"10.0.0.1:1", "10.0.0.2", "X-Forwarded-Proto: https",
			false, true, "10.0.0.1",
		},
		{
			"a proxy",
			"10.0.0.1:1", "10.0.0.1", "X-Forwarded-Proto: https|X-Forwarded-For: 1.2.3.4",
			true, true, "1.2.3.4",
		},
		{
			"a network",
			"10.0.0.1:1", "10.0.0.0/8", "X-Forwarded-Proto: HTTPS",
			true, true, "10.0.0.1",
		},
		{
			"a proxy without TLS",
			"10.0.0.1:1", "10.0.0.1", "X-Forwarded-Proto: http|X-Forwarded-For: 1.2.3.4",
			false, true, "1.2.3.4",
		},
		{
			"forged before",
			"10.0.0.1:1", "10.0.0.1", "X-Forwarded-For: 6.6.6.6, 1.2.3.4",
			false, true, "1.2.3.4",
		},
		{
			"two lines",
			"10.0.0.1:1", "10.0.0.1", "X-Forwarded-For: 6.6.6.6|X-Forwarded-For: 1.2.3.4",
			false, true, "1.2.3.4",
		},
		{
			"two proxies",
			"10.0.0.1:1", "10.0.0.0/8", "X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.9",
			false, true, "1.2.3.4",
		},
		{
			"two protocols",
			"10.0.0.1:1", "10.0.0.1", "X-Forwarded-Proto: https|X-Forwarded-Proto: http",
			false, true, "10.0.0.1",
		},
		{
			"no address",
			"10.0.0.1:1", "10.0.0.1", "X-Forwarded-For: unknown",
			false, true, "10.0.0.1",
		},
		{
			"IPv6",
			"[::1]:1", "::1", "X-Forwarded-For: fe80::1",
			false, true, "fe80::1",
		},
		{
			"IPv4 in IPv6",
			"[::ffff:10.0.0.1]:1", "10.0.0.1", "X-Forwarded-Proto: https",
			true, true, "10.0.0.1",
		},
		{
			"Forwarded",
			"10.0.0.1:1", "", "Forwarded: proto=https",
			false, true, "10.0.0.1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "http://page/", nil)
			r.RemoteAddr = c.from
			for line := range strings.SplitSeq(c.headers, "|") {
				if name, value, ok := strings.Cut(line, ": "); ok {
					r.Header.Add(name, value)
				}
			}
			proxies, err := Parse(strings.Fields(c.trusted))
			if err != nil {
				t.Fatal(err)
			}
			o := Of(Marked(r, proxies))
			if o.Secure != c.secure || o.Proxied != c.proxied || o.Address.String() != c.address {
				t.Errorf("%+v", o)
			}
		})
	}
}
