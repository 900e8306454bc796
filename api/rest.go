package api

import (
	"context"
	"io"
	"time"
)

// MakeUserToken makes a token with which a user's programs speak to the REST interface.
var MakeUserToken = Endpoint[UserTokenRequest, UserTokenResponse]{"POST", "/v1/rest/token", User, false, ForOperators}

// UserTokenRequest asks for a token.
type UserTokenRequest struct {
	User     string        `json:"user,omitempty"` // empty: who asks; operators may name others
	Lifespan time.Duration `json:"lifespan"`
}

// UserTokenResponse is the token.
type UserTokenResponse struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// DialectRequest is a request of the REST interface, whose caller is known.
type DialectRequest struct {
	Method, Path string
	Query        map[string][]string
	Body         []byte
	YAML         bool // the answer is to be YAML
	Who          Caller
	Host         string // where it came from
	// Dial reaches this daemon as the caller.
	Dial func(context.Context) (Conn, error)
	// Unchanged reports whether surely nothing has changed since a time; nil: nobody knows.
	Unchanged func(since time.Time) bool
	// Direct answers a call that reads, without a connection: with the value that would travel, which others read
	// too and nobody may change. known is false where the call must travel. It may be nil.
	Direct Direct
}

// Direct answers calls of this process that read.
type Direct func(ctx context.Context, method, path string, body []byte) (v any, known bool, err error)

// Dialect answers requests in the words of another program's REST interface: begin is called once, with the status
// and the type of what follows.
type Dialect func(q *DialectRequest, begin func(status int, mime string) io.Writer)
