package api

import (
	"context"
	"fmt"
	"time"

	"dev.muster/wire"

	"dev.muster/cluster"
)

// LoginResponse is a link that opens a session of the caller on the page, once.
type LoginResponse struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// InNameOf takes a call of the contract within this process in somebody's name, as the local socket would.
type InNameOf func(ctx context.Context, who Caller, method, path string, body []byte) (
	status int, reply []byte, err error)

// CallAs makes a call in somebody's name.
func CallAs[Q, R any](ctx context.Context, do InNameOf, who Caller, e Endpoint[Q, R], q Q) (R, error) {
	var r R
	body, err := wire.Marshal(q)
	if err != nil {
		return r, fmt.Errorf("encode request for %s: %w", e.Path, err)
	}
	status, reply, err := do(ctx, who, e.Method, e.Path, body)
	if err != nil {
		return r, err
	}
	err = answer(e.Method, e.Path, status, reply, &r)
	return r, err
}

// SessionEnd is a session of the page that is over before its time.
type SessionEnd struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until"` // when it would have ended
}

// LinkQuery asks the server that made a link to the page whom it lets in; Open uses it up.
type LinkQuery struct {
	Link string `json:"link"`
	Open bool   `json:"open,omitempty"`
}

// LinkResponse is whom it lets in, if it is good.
type LinkResponse struct {
	Good   bool             `json:"good"`
	Who    cluster.Identity `json:"who"`
	Groups []uint32         `json:"groups,omitempty"`
}

// The contract of the page.
var (
	CreateLogin = Endpoint[Empty, LoginResponse]{"POST", "/v1/ui/login", User, false, 0}
	EndSession  = Endpoint[SessionEnd, Empty]{"POST", "/v1/ui/end", Peer, false, 0}
	// LogOut records that a session of the caller has ended, so that all servers know it, also those that are down.
	LogOut   = Endpoint[SessionEnd, Empty]{"POST", "/v1/ui/logout", User, true, 0}
	OpenLink = Endpoint[LinkQuery, LinkResponse]{"POST", "/v1/ui/open", Peer, false, 0}
)
