package server

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"math/big"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Tokens of users are JSON web tokens as Slurm's are: HS256, with the claims sun, iat and exp. Their key is
// derived from the cluster's authority, so that every server takes the tokens of every other; jwt_key and jwks in
// AuthAltParameters name keys that somebody else has made.

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
	jwt.RegisteredClaims
}

// tokens makes and checks them for a server.
type tokens struct{ *Server }

// errToken refuses a token; why is told to the log alone.
var errToken = cluster.Errorf(cluster.Denied, cluster.ErrAccess,
	"the token is not one that this cluster takes, or it has expired")

// makeUserToken makes a token for the caller, or for somebody else if an operator asks.
func (k tokens) makeUserToken(_ context.Context, who api.Caller,
	q api.UserTokenRequest) (none api.UserTokenResponse, _ error) {
	own, err := k.userOf(who, who.UID)
	if err != nil {
		return none, err
	}
	name := own.name
	if q.User != "" && q.User != name {
		if err := k.mayMakeFor(who, q.User); err != nil {
			return none, err
		}
		name = q.User
	}
	now := time.Now()
	life := q.Lifespan
	if life <= 0 {
		life = userTokenLife
	}
	if who.Role == cluster.RoleNode { // which speaks for whoever runs a job there, and only as long
		life = min(life, userTokenLife)
	}
	expires := now.Add(min(life, userTokenMost))
	claims := tokenClaims{User: name, RegisteredClaims: jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(expires)}}
	key, err := k.hmacKey()
	if err != nil {
		return none, err
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key)
	if err != nil {
		return none, err
	}
	k.slog.Info("token made", "user", name, "by", who.UID, "expires", expires)
	return api.UserTokenResponse{Token: text, Expires: expires}, nil
}

// mayMakeFor refuses tokens for somebody else: those of root may be made by root alone, and nobody gets more
// rights by one.
func (k tokens) mayMakeFor(who api.Caller, name string) error {
	denied := cluster.Errorf(cluster.Denied, cluster.ErrAccess,
		"only operators may make tokens for others, and only root for root")
	level := k.privilege(who)
	if level == "" && !who.Operator() {
		return denied
	}
	u, err := user.Lookup(name)
	if err != nil {
		return cluster.Errorf(cluster.Invalid, cluster.ErrUser, "user %s does not exist on this server", name)
	}
	target := api.Caller{Identity: cluster.Identity{UID: number(u.Uid), User: u.Username}}
	above := target.Operator() || target.UID == uint32(os.Getuid()) ||
		level != "Administrator" && k.privilege(target) == "Administrator"
	if above && !who.Operator() {
		return denied
	}
	return nil
}

// authAlt is a value of AuthAltParameters, "" if it is not set.
func (k tokens) authAlt(name string) string {
	for word := range strings.SplitSeq(k.Snapshot().Config().Keys["authaltparameters"], ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(word), "="); strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// hmacKey is the key of HS256: the file that the configuration names, or the cluster's own.
func (k tokens) hmacKey() ([]byte, error) {
	file := k.authAlt("jwt_key")
	if file == "" {
		return k.sessions.mac("token", ""), nil
	}
	key, err := readKeys(file)
	if err == nil && len(key) < 32 {
		err = errors.New("it has less than 32 bytes")
	}
	if err != nil {
		return nil, cluster.Errorf(cluster.Unavailable, "",
			"the key of tokens (AuthAltParameters=jwt_key) can not be used: %v", err)
	}
	return key, nil
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

// keyOf finds the key that a token says it is signed with.
func (k tokens) keyOf(t *jwt.Token) (any, error) {
	if t.Method.Alg() == jwt.SigningMethodHS256.Alg() {
		return k.hmacKey()
	}
	file := k.authAlt("jwks")
	if file == "" {
		return nil, errors.New("AuthAltParameters names no jwks")
	}
	text, err := readKeys(file)
	if err != nil {
		return nil, err
	}
	kid, _ := t.Header["kid"].(string)
	return rsaKey(text, kid)
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

// TokenCaller says as whom a token lets somebody act. Who is root may name another user.
func TokenCaller(s *Server, token, named string) (api.Caller, error) {
	if len(token) > maxToken {
		return api.Caller{}, errToken
	}
	var claims tokenClaims
	_, err := jwt.ParseWithClaims(token, &claims, tokens{s}.keyOf, jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg(), jwt.SigningMethodRS256.Alg()}))
	if err == nil && claims.User == "" {
		err = errors.New("no claim sun")
	}
	if err != nil {
		s.slog.Info("token refused", "err", err)
		return api.Caller{}, errToken
	}
	if named != "" && subtle.ConstantTimeCompare([]byte(named), []byte(claims.User)) == 0 {
		if claims.User != "root" {
			s.slog.Info("token refused", "user", claims.User, "named", named)
			return api.Caller{}, errToken
		}
		claims.User = named
	}
	return userCaller(claims.User)
}

// userCaller is a user of this server as a caller.
func userCaller(name string) (api.Caller, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return api.Caller{}, cluster.Errorf(cluster.Denied, cluster.ErrUser,
			"user %s does not exist on this server", name)
	}
	uid := number(u.Uid)
	a, err := users.get(uid)
	return api.Caller{Groups: a.groups, Identity: cluster.Identity{UID: uid, GID: a.gid, User: a.name,
		Admin: uid == uint32(os.Getuid())}}, err
}
