package api

import (
	"fmt"
	"time"

	"dev.muster/wire"
)

// LoginResponse is a link that opens a session of the caller on the page, once.
type LoginResponse struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// CallAs makes a call in a user's name within this process: do takes it as the local socket would.
func CallAs[Q, R any](do func(method, path string, body []byte) (status int, reply []byte, err error), e Endpoint[Q, R], q Q) (R, error) {
	var r R
	body, err := wire.Marshal(q)
	if err != nil {
		return r, fmt.Errorf("encode request for %s: %w", e.Path, err)
	}
	status, reply, err := do(e.Method, e.Path, body)
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

// The contract of the page.
var (
	CreateLogin = Endpoint[Empty, LoginResponse]{"POST", "/v1/ui/login", User, false, 0}
	EndSession  = Endpoint[SessionEnd, Empty]{"POST", "/v1/ui/end", Peer, false, 0}
)
