package agent

import (
	"net/http"
	"time"
)

// Agents' tools (the Model Context Protocol) are on the port of the page, too. This package finds out who asks, by the
// same tokens as the REST interface; cfg.Web.Tools, which main hands in, does the rest.

// toolsPath is where they are.
const toolsPath = "/mcp"

// toolsTime bounds an answer: a tool waits at most 50 seconds for changes.
const toolsTime = 2 * time.Minute

// serveTools answers an agent's request. A page of another site cannot make one: it has no token, and its origin is
// refused before that is looked at.
func (x *rest) serveTools(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if x.cfg.Web.Tools == nil {
		http.NotFound(w, r)
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		http.Error(w, "requests from pages of other sites are refused", http.StatusForbidden)
		return
	}
	who, err := x.byToken(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
		http.Error(w, "Authentication failure: scontrol token prints a token, for the header Authorization: Bearer",
			http.StatusUnauthorized)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(toolsTime))
	x.cfg.Web.Tools(w, r, x.request(r, who))
}
