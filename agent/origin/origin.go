// Package origin knows where a call to the page's port comes from: from the connection, or from a proxy that the site
// trusts. Headers that others send are not believed. Start with Marked.
package origin

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Origin is where a call comes from.
type Origin struct {
	// Secure: the visitor came by TLS, here or at a trusted proxy.
	Secure bool
	// Proxied: the call has headers of a proxy, trusted or not, so the visitor may be on another machine.
	Proxied bool
	// Address is the visitor's, as far as it is known: that of the connection, or what a trusted proxy says.
	Address netip.Addr
}

type key struct{}

// Marked notes where a call comes from; Of returns it. Proxies are those that are trusted.
func Marked(r *http.Request, proxies []netip.Prefix) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key{}, find(r, proxies)))
}

// In returns where the call comes from that a context belongs to; false if the call was not marked.
func In(ctx context.Context) (Origin, bool) {
	o, ok := ctx.Value(key{}).(Origin)
	return o, ok
}

// Of returns where a call comes from. No proxy is trusted unless the call was marked.
func Of(r *http.Request) Origin {
	if o, ok := r.Context().Value(key{}).(Origin); ok {
		return o
	}
	return find(r, nil)
}

func find(r *http.Request, proxies []netip.Prefix) Origin {
	o := Origin{Secure: r.TLS != nil, Proxied: proxied(r.Header)}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		o.Address = at.Addr().Unmap().WithZone("")
	}
	if !trusted(o.Address, proxies) {
		return o
	}
	proto := r.Header.Values("X-Forwarded-Proto")
	o.Secure = o.Secure || len(proto) == 1 && strings.EqualFold(strings.TrimSpace(proto[0]), "https")
	o.Address = visitor(r.Header.Values("X-Forwarded-For"), o.Address, proxies)
	return o
}

// proxied reports whether a header says that a proxy has sent the call.
func proxied(h http.Header) bool {
	return h.Get("Forwarded")+h.Get("X-Forwarded-For")+h.Get("X-Forwarded-Proto")+h.Get("X-Forwarded-Host") != ""
}

func trusted(at netip.Addr, proxies []netip.Prefix) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(at) })
}

// visitor returns the address that the first trusted proxy has seen. Each proxy appends the address of its caller, so
// the list is read from its end; what an untrusted caller wrote before that is not believed.
func visitor(lists []string, at netip.Addr, proxies []netip.Prefix) netip.Addr {
	words := strings.Split(strings.Join(lists, ","), ",")
	for i := len(words) - 1; i >= 0; i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(words[i]))
		if err != nil {
			return at
		}
		if at = next.Unmap().WithZone(""); !trusted(at, proxies) {
			return at
		}
	}
	return at
}

// Parse reads a list of addresses and networks: 10.0.0.7, 10.1.0.0/16, fd00::/8.
func Parse(words []string) (list []netip.Prefix, err error) {
	for _, w := range words {
		p, err := netip.ParsePrefix(w)
		if err != nil {
			at, err := netip.ParseAddr(w)
			if err != nil {
				return nil, err
			}
			p = netip.PrefixFrom(at, at.BitLen())
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
