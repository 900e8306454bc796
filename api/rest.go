package api

import (
	"context"
	"fmt"
	"time"

	"dev.muster/cluster"
)

// MakeUserToken makes a token with which a user's programs speak to the REST interface.
var MakeUserToken = Endpoint[UserTokenRequest, UserTokenResponse]{"POST", "/v1/rest/token", User, false, ForOperators}

// Keys of users' tokens, and tokens that are ended before their time.
var (
	ListJWT   = Endpoint[Empty, JWTResponse]{"GET", "/v1/jwt", User, false, ForOperators}
	RotateJWT = Endpoint[JWTRotation, JWTResponse]{"POST", "/v1/jwt/rotate", User, true, ForAdministrators}
	EndJWT    = Endpoint[JWTEndRequest, JWTResponse]{"POST", "/v1/jwt/end", User, true, Named | ForOperators}
)

// CallByToken is a tunnel in which this contract is served in the name of a token's user. TokenCallPath is the same
// on the port of the page, for those who have no daemon beside them; there the token is a header.
const (
	CallByToken   = "/v1/jwt/call"
	TokenCallPath = "/muster/call"
	TokenProtocol = "muster-token"
)

// TokenQuery is the token of a tunnel.
type TokenQuery struct {
	Token string `json:"token" text:"16384"`
}

// reached begins the first line of such a tunnel.
const reached = "reached"

// Reached is the first line of a token's tunnel: as whom it is served.
func Reached(who cluster.Identity) string {
	return fmt.Sprintf("%s %d %d\n", reached, who.UID, who.GID)
}

// ReachedAs reads such a line; any other says why the tunnel leads nowhere.
func ReachedAs(line string) (uid, gid uint32, ok bool) {
	n, err := fmt.Sscanf(line, reached+" %d %d", &uid, &gid)
	return uid, gid, n == 2 && err == nil
}

// JWTRotation makes a new key of tokens.
type JWTRotation struct {
	Cut bool `json:"cut,omitempty"` // the tokens that there are end
}

// JWTEndRequest ends a user's tokens that were made so far, one token, or, of operators, everybody's.
type JWTEndRequest struct {
	User  string `json:"user,omitempty"`
	All   bool   `json:"all,omitempty"`
	Token string `json:"token,omitempty" text:"16384"` // the token, or of operators its id
}

// JWTResponse tells of keys and endings; what signs is not told.
type JWTResponse struct {
	Keys  []JWTKey            `json:"keys,omitempty"`
	Ended []cluster.JWTEnding `json:"ended,omitempty"`
	// File is the key that the configuration names in place of these.
	File  string `json:"file,omitempty"`
	Index uint64 `json:"index,omitempty"`
}

// JWTKey is a key without what signs.
type JWTKey struct {
	ID   string    `json:"id"`
	Made time.Time `json:"made"`
}

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

// RESTRequest is a request of the REST interface, whose caller is known.
type RESTRequest struct {
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
	// Direct answers calls without a connection. It may be nil.
	Direct Direct
	// Cluster is the name of the cluster, if it is known.
	Cluster string
}

// Direct answers calls of this process with the value that would travel, which others read too and nobody may change.
// known is false where the call must travel.
type Direct func(ctx context.Context, method, path string, q any) (v any, known bool, err error)
