package agent

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"

	"dev.muster/agent/origin"
	"dev.muster/agent/trust"
	"dev.muster/cluster"
)

// Where calls come from, as the audit trail shows it. Each way into the process has its form: host:NAME for a local
// socket, host:NAME@ADDRESS for another member, page:ADDRESS, token:ID@ADDRESS, cluster:NAME@ADDRESS.

// here is the origin of a call on the local socket.
func (h *handler) here() string {
	if h.gateway != nil && h.gateway.ring != nil {
		return "host:" + h.gateway.ring.Credentials().Name
	}
	return "host:" + hostName()
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// hostOf is an address without its port.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

// vouchedOrigin is the origin of a call that a member vouches for. A server knows where its callers come from; of
// another member only its own name is believed.
func vouchedOrigin(a *trust.Assertion, role cluster.Role, addr string) string {
	if role == cluster.RoleServer && a.Origin != "" {
		return a.Origin
	}
	return "host:" + cmp.Or(a.Via, a.By) + "@" + addr
}

// visitorAddress is the address of a caller of the page's port.
func visitorAddress(r *http.Request) string {
	if at := origin.Of(r).Address; at.IsValid() {
		return at.String()
	}
	return cmp.Or(hostOf(r.RemoteAddr), "unknown")
}

// pageOrigin is the origin of a call that a page makes while it answers a visitor.
func pageOrigin(ctx context.Context) string {
	if o, ok := origin.In(ctx); ok && o.Address.IsValid() {
		return "page:" + o.Address.String()
	}
	return "page"
}
