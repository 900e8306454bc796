// Package usertoken makes and checks the tokens by which users' programs are known. It knows nothing of how they
// travel, nor of the tokens by which nodes join (agent/trust). Start with Issuer.
package usertoken

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Tokens of users are JSON web tokens as Slurm's are: HS256, with the claims sun, iat and exp. Their keys are in the
// state (cluster/jwt.go), so that every server takes the tokens of every other; a token names its key by kid. What
// names none was signed before there were any, by a key that is derived from the cluster's authority. jwt_key and
// jwks in AuthAltParameters name keys that somebody else has made.

// Bounds of tokens.
const (
	userTokenLife = 30 * time.Minute
	userTokenMost = 100 * 365 * 24 * time.Hour
	maxToken      = 16 << 10
	maxKeys       = 1 << 20 // of a file of keys
)

// tokenClaims are those of a user's token.
type tokenClaims struct {
	User string `json:"sun"`
	// Milli is when it was made, in milliseconds since 1970: iat has seconds, and one may be ended and another one be
	// made within a second.
	Milli int64 `json:"iat_ms,omitempty"`
	jwt.RegisteredClaims
}

// made is when a token was made.
func (c *tokenClaims) made() time.Time {
	switch {
	case c.Milli > 0:
		return time.UnixMilli(c.Milli)
	case c.IssuedAt != nil:
		return c.IssuedAt.Time
	}
	return time.Time{}
}

// Issuer makes tokens for a server, and checks them.
type Issuer struct {
	Snapshot func() *cluster.Snapshot
	// Propose writes a command to the log and waits until the state here has it.
	Propose func(context.Context, cluster.Identity, cluster.Command) (index uint64, err error)
	Leads   func() bool
	Moved   func() <-chan struct{} // closed when the state changes next
	// AccountOf finds a user, as who vouches for the caller knows them.
	AccountOf func(who api.Caller, uid uint32) (users.Account, error)
	// Actor is as whom a call is logged; Level is the caller's AdminLevel, "" for none.
	Actor func(api.Caller, api.Rights) cluster.Identity
	Level func(api.Caller) string
	// Derived is the key of the cluster's authority, which signed before there were others.
	Derived func() []byte
	Refused func() // counts a token that was refused
	Log     *slog.Logger

	good    readTokens   // that were shown
	waiting atomic.Int32 // for keys
}

// errToken refuses a token; why is told to the log alone.
var errToken = cluster.Errorf(cluster.Denied, cluster.ErrToken,
	"the token is not one that this cluster takes, or it has expired")

// Make makes a token for the caller, or for somebody else if an operator asks.
func (k *Issuer) Make(ctx context.Context, who api.Caller,
	q api.UserTokenRequest) (none api.UserTokenResponse, _ error) {
	own, err := k.AccountOf(who, who.UID)
	if err != nil {
		return none, err
	}
	name := own.Name
	if q.User != "" && q.User != name {
		if err := k.mayMakeFor(who, q.User); err != nil {
			return none, err
		}
		name = q.User
	}
	key, err := k.signer(ctx)
	if err != nil {
		return none, err
	}
	now := time.Now()
	milli := now.UnixMilli()
	// another server's clock may have said from when on tokens are good
	if since := k.Snapshot().UserTokens().Since(name); !since.IsZero() {
		milli = max(milli, since.UnixMilli()+1)
	}
	life := q.Lifespan
	if life <= 0 {
		life = userTokenLife
	}
	if err := k.mayMake(who, &life); err != nil {
		return none, err
	}
	if who.Role == cluster.RoleNode { // which speaks for whoever runs a job there, and only as long
		life = min(life, userTokenLife)
	}
	expires := now.Add(min(life, userTokenMost))
	id := rand.Text()
	claims := jwt.MapClaims{"sun": name, "iat": now.Unix(), "iat_ms": milli, "exp": expires.Unix(), "jti": id}
	if field, ok := k.authAlt("userclaimfield"); ok {
		claims[field] = name
	}
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	if key.ID != "" {
		token.Header["kid"] = key.ID
	}
	text, err := token.SignedString(key.Secret)
	if err != nil {
		return none, err
	}
	k.Log.Info("token made", "user", name, "by", who.UID, "id", id, "key", key.ID, "expires", expires)
	return api.UserTokenResponse{Token: text, Expires: expires}, nil
}

// mayMakeFor refuses tokens for somebody else: those of root may be made by root alone, and nobody gets more
// rights by one.
func (k *Issuer) mayMakeFor(who api.Caller, name string) error {
	denied := cluster.Errorf(cluster.Denied, cluster.ErrAccess,
		"only operators may make tokens for others, and only root for root")
	level := k.Level(who)
	if level == "" && !who.Operator() {
		return denied
	}
	uid, err := users.IDByName.Get(name)
	if err != nil {
		return cluster.Errorf(cluster.Invalid, cluster.ErrUser, "user %s does not exist on this server", name)
	}
	target := api.Caller{Identity: cluster.Identity{UID: uid, User: name}}
	above := target.Operator() || target.UID == uint32(os.Getuid()) ||
		level != "Administrator" && k.Level(target) == "Administrator"
	if above && !who.Operator() {
		return denied
	}
	return nil
}

// authAlt is a value of AuthAltParameters, and whether the word is there.
func (k *Issuer) authAlt(name string) (value string, ok bool) {
	for word := range strings.SplitSeq(k.Snapshot().Config().Keys["authaltparameters"], ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(word), "="); strings.EqualFold(key, name) {
			return value, true
		}
	}
	return "", false
}

func readKeys(file string) ([]byte, error) {
	fi, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxKeys {
		return nil, errors.New("it is too large")
	}
	return os.ReadFile(file)
}

// rsaKey finds a key by its id in a JSON web key set.
func rsaKey(text []byte, kid string) (*rsa.PublicKey, error) {
	var set struct {
		Keys []struct {
			Kty string `json:"kty"`
			Kid string `json:"kid"`
			Alg string `json:"alg"`
			Use string `json:"use"`
			N   string `json:"n"`
			E   string `json:"e"`
		} `json:"keys"`
	}
	if err := wire.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	for _, key := range set.Keys {
		other := cmp.Or(key.Alg, "RS256") != "RS256" || cmp.Or(key.Use, "sig") != "sig"
		if key.Kty != "RSA" || key.Kid != kid || other {
			continue
		}
		n, err1 := base64.RawURLEncoding.DecodeString(strings.TrimRight(key.N, "="))
		e, err2 := base64.RawURLEncoding.DecodeString(strings.TrimRight(key.E, "="))
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, nil
	}
	return nil, errors.New("jwks has no such key")
}
