package agent

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"dev.muster/api"
)

// answerBook keeps an answer that goes to this process itself.
type answerBook struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answerBook) Header() http.Header         { return a.header }
func (a *answerBook) WriteHeader(status int)      { a.status = status }
func (a *answerBook) Write(b []byte) (int, error) { return a.body.Write(b) }

// callAs makes a call in somebody's name, as if it had come over the local socket: it is answered here, or carried
// to the leader or to the node where the job runs.
func (h *handler) callAs(ctx context.Context, who api.Caller, method, path string, body []byte) (int, []byte, error) {
	if who.Origin == "" && !who.System {
		who.Origin = pageOrigin(ctx)
	}
	ctx = context.WithValue(ctx, callerKey{}, caller{Caller: who})
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if method == http.MethodGet && len(body) > 0 {
		r.URL.RawQuery = url.Values{"q": {string(body)}}.Encode()
	}
	out := &answerBook{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(out, r)
	return out.status, out.body.Bytes(), nil
}
