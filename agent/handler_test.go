package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"dev.muster/agent/server"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestFailureLogged: a call that fails for a reason of its own is an error in the log, one whose caller has gone is
// not.
func TestFailureLogged(t *testing.T) {
	for name, gone := range map[string]bool{"it failed": false, "the caller has gone": true} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			mux := api.NewMux()
			ctx, hangUp := context.WithCancel(context.WithValue(context.Background(), callerKey{}, caller{}))
			defer hangUp()
			ask := api.Endpoint[struct{}, struct{}]{Method: "GET", Path: "/v1/answer", Access: api.User}
			api.Handle(mux, ask, func(ctx context.Context, _ api.Caller, q struct{}) (struct{}, error) {
				if gone {
					hangUp()
					return q, fmt.Errorf("wait for news: %w", ctx.Err())
				}
				return q, errors.New("the disk is full")
			})
			h := &handler{mux: mux, log: slog.New(slog.NewTextHandler(&log, nil)), ctx: context.Background()}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, ask.Method, ask.Path, nil))
			if said := strings.Contains(log.String(), "level=ERROR"); said == gone {
				t.Errorf("the log: %q", log.String())
			}
		})
	}
}

// TestVerdict: what is said of a call at last depends on its earlier tries.
func TestVerdict(t *testing.T) {
	lost := cluster.Errorf(cluster.Unavailable, cluster.ErrUncertain, "the lead was lost: check whether it was carried out")
	for _, c := range []struct {
		name, method string
		err          error
		doubt        bool
		want         string
	}{
		{"nobody leads", "POST", server.NoLeader(), false, "nothing was done"},
		{"nobody leads any more", "POST", server.NoLeader(), true, "check whether it was carried out"},
		{"a read", "GET", server.NoLeader(), true, "nothing was done"},
		{"the leader is away", "GET", fmt.Errorf("%w: refused", api.ErrUnreachable), true, "no server leads now"},
		{"not sent", "POST", fmt.Errorf("%w: %w", api.ErrUnreachable, api.ErrNotSent), false, "no server leads now"},
		{"it is uncertain itself", "POST", lost, true, "the lead was lost: check whether it was carried out"},
		{"refused", "POST", cluster.Errorf(cluster.Denied, "", "not yours"), true, "not yours"},
		{
			"not sent at last", "POST", fmt.Errorf("%w: %w", api.ErrUnreachable, api.ErrNotSent), true,
			"check whether it was carried out",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &call{r: httptest.NewRequest(c.method, "/v1/x", nil)}
			if got := k.verdict(c.err, c.doubt).Error(); !strings.Contains(got, c.want) || strings.Count(got, "check whether") > 1 {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
