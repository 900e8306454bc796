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

	"dev.muster/api"
)

// TestFailureLogged: a call that fails for a reason of its own is an error in the log, one whose caller has gone is not.
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
