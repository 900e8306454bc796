package usertoken

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dev.muster/agent/sparse"
	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

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
	// Note records a change in the audit trail that is not a command of the log.
	Note  func(context.Context, cluster.Identity, cluster.AuditNote)
	Leads func() bool
	// KnowsEnds reports whether the state has all tokens that were ended before this server started; nil: it has.
	KnowsEnds func() bool
	Moved     func() <-chan struct{} // closed when the state changes next
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
	refused sparse.Lines
}

// errToken refuses a token; why is told to the log alone.
var errToken = cluster.Errorf(cluster.Denied, cluster.ErrToken,
	"the token is not one that this cluster takes, or it has expired")

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

// The keys that sign users' tokens, and the tokens that were revoked.

// keyWait is how long the first key is waited for.
const keyWait = 10 * time.Second

// mayMake holds what AuthAltParameters says of tokens that people make; root is not held by it.
func (k *Issuer) mayMake(who api.Caller, life *time.Duration) error {
	if who.Operator() {
		return nil
	}
	if _, off := k.authAlt("disable_token_creation"); off {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"tokens are made by root alone here (AuthAltParameters=disable_token_creation)")
	}
	text, limited := k.authAlt("max_token_lifespan")
	if most, err := strconv.ParseInt(text, 10, 32); limited && err == nil && most > 0 {
		*life = min(*life, time.Duration(most)*time.Second)
	}
	return nil
}

// newUserKey is a key that nobody knows yet.
func newUserKey() cluster.UserKey {
	key := cluster.UserKey{ID: rand.Text()[:8], Secret: make([]byte, 32)}
	_, _ = rand.Read(key.Secret) // never fails
	return key
}

// signer is the key that signs: the file that the configuration names, else the newest of the state. The leader
// makes the first one, when it is asked for.
func (k *Issuer) signer(ctx context.Context) (cluster.UserKey, error) {
	if file, ok := k.authAlt("jwt_key"); ok {
		secret, err := fileKey(file)
		return cluster.UserKey{Secret: secret}, err
	}
	snap := k.Snapshot()
	switch keys := snap.UserTokens().Keys; {
	case len(keys) > 0:
		return keys[0], nil
	case !k.Leads():
		return cluster.UserKey{}, api.ErrElsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	first := &cluster.JWTKey{Key: newUserKey(), First: true}
	if _, err := k.Propose(ctx, cluster.Identity{System: true}, first); err != nil {
		return cluster.UserKey{}, err
	}
	return k.Snapshot().UserTokens().Keys[0], nil
}

// fileKey is a shared key of HS256.
func fileKey(file string) ([]byte, error) {
	key, err := readKeys(file)
	if err == nil && len(key) < 32 {
		err = errors.New("it has less than 32 bytes")
	}
	if err != nil {
		return nil, cluster.Errorf(cluster.Unavailable, "",
			"the key of tokens (AuthAltParameters=jwt_key) cannot be used: %v", err)
	}
	return key, nil
}

// keyOf finds the key that a token says it is signed with.
func (k *Issuer) keyOf(t *jwt.Token) (any, error) {
	kid, _ := t.Header["kid"].(string)
	if t.Method.Alg() == jwt.SigningMethodHS256.Alg() {
		return k.secretOf(kid)
	}
	file, ok := k.authAlt("jwks")
	if !ok {
		return nil, errors.New("AuthAltParameters names no jwks")
	}
	text, err := readKeys(file)
	if err != nil {
		return nil, err
	}
	return rsaKey(text, kid)
}

// secretOf is the key of HS256 of an id. The configuration's file is in the place of all of them.
func (k *Issuer) secretOf(kid string) ([]byte, error) {
	if file, ok := k.authAlt("jwt_key"); ok {
		return fileKey(file)
	}
	if kid == "" {
		return k.Derived(), nil
	}
	key, ok := k.awaitKey(kid)
	if !ok {
		return nil, errors.New("its key is gone, or never was")
	}
	return key.Secret, nil
}

// A key that another server has made may still be on its way here when the first token that it has signed is shown.
const (
	keyOnWay = time.Second
	keyWaits = 32 // at a time: anybody may show tokens of keys that never were
)

// awaitKey finds a key, which it waits for where this server does not lead.
func (k *Issuer) awaitKey(id string) (*cluster.UserKey, bool) {
	key, ok := k.Snapshot().UserTokens().Key(id)
	if ok || k.Leads() {
		return key, ok
	}
	if k.waiting.Add(1) > keyWaits {
		k.waiting.Add(-1)
		return nil, false
	}
	defer k.waiting.Add(-1)
	for limit := time.After(keyOnWay); ; {
		moved := k.Moved()
		if key, ok = k.Snapshot().UserTokens().Key(id); ok {
			return key, true
		}
		select {
		case <-moved:
		case <-limit:
			return nil, false
		}
	}
}

// shown tells of keys and endings: operators of all, others of their own.
func (k *Issuer) shown(who api.Caller, rights api.Rights) (out api.JWTResponse) {
	all := k.Actor(who, rights).Operator()
	u := k.Snapshot().UserTokens()
	own, _ := k.AccountOf(who, who.UID)
	for _, key := range u.Keys {
		out.Keys = append(out.Keys, api.JWTKey{ID: key.ID, Made: key.Made})
	}
	for _, e := range u.Ended {
		if all || e.User == "" || e.User == own.Name {
			out.Ended = append(out.Ended, e)
		}
	}
	out.File, _ = k.authAlt("jwt_key")
	return out
}

// List tells of the keys that sign, and of what was ended.
func (k *Issuer) List(_ context.Context, who api.Caller, _ api.Empty) (api.JWTResponse, error) {
	return k.shown(who, api.ListJWT.Rights), nil
}

// Rotate has another key sign from now on.
func (k *Issuer) Rotate(ctx context.Context, who api.Caller, q api.JWTRotation) (none api.JWTResponse, _ error) {
	if file, ok := k.authAlt("jwt_key"); ok && !q.Cut {
		return none, cluster.Errorf(cluster.Conflict, "",
			"the key of tokens is the file %s (AuthAltParameters=jwt_key): write another one, on all servers", file)
	}
	key := newUserKey()
	by := k.Actor(who, api.RotateJWT.Rights)
	index, err := k.Propose(ctx, by, &cluster.JWTKey{Key: key, Cut: q.Cut})
	if err != nil {
		return none, err
	}
	k.Log.Info("the key of tokens was rotated", "key", key.ID, "cut", q.Cut, "by", who.UID)
	out := k.shown(who, api.RotateJWT.Rights)
	out.Index = index
	return out, nil
}

// End ends tokens. Without a user or a token they are the caller's own.
func (k *Issuer) End(ctx context.Context, who api.Caller, q api.JWTEndRequest) (none api.JWTResponse, _ error) {
	by := k.Actor(who, api.EndJWT.Rights)
	own, err := k.AccountOf(who, who.UID)
	if err != nil {
		return none, err
	}
	by.User = own.Name
	cmd := &cluster.JWTEnd{User: q.User}
	switch {
	case q.Token != "":
		if cmd, err = k.endOf(by, q); err != nil {
			return none, err
		}
	case q.User == "" && !q.All:
		cmd.User = own.Name
	case q.User != "" && q.All:
		return none, cluster.Errorf(cluster.Invalid, "", "either a user's tokens are ended, or everybody's")
	}
	index, err := k.Propose(ctx, by, cmd)
	if err != nil {
		return none, err
	}
	k.Log.Info("tokens ended", "user", cmd.User, "id", cmd.Token, "by", who.UID)
	return api.JWTResponse{Index: index}, nil
}

// endOf ends one token: its text says whose it is, and nobody needs to have made it. With an id an operator says
// whose it is; when it ends by itself nobody knows then.
func (k *Issuer) endOf(by cluster.Identity, q api.JWTEndRequest) (*cluster.JWTEnd, error) {
	if !strings.Contains(q.Token, ".") {
		if !by.Operator() || q.User == "" {
			return nil, cluster.Errorf(cluster.Invalid, "",
				"an id alone is enough for operators only, with its user; who has the token shows that")
		}
		return &cluster.JWTEnd{User: q.User, Token: q.Token, Until: time.Now().Add(userTokenMost)}, nil
	}
	claims, err := k.read(q.Token)
	if err != nil {
		return nil, errToken
	}
	if claims.ID == "" {
		return nil, cluster.Errorf(cluster.Invalid, "",
			"the token has no id (jti), so it cannot be told from others: end all of %s", claims.User)
	}
	return &cluster.JWTEnd{User: claims.User, Token: claims.ID, Until: claims.ExpiresAt.Time}, nil
}

// claimOf is a claim of a token that was checked.
func claimOf(token, name string) (string, error) {
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return "", err
	}
	user, _ := claims[name].(string)
	return user, nil
}

// readTokens are those whose signatures were found good lately, with what they were signed by: a client shows the same
// token again and again. Whether it still counts is asked each time.
type readTokens struct {
	mu   sync.Mutex
	kept map[string]readToken
}

type readToken struct {
	claims tokenClaims
	kid    string
	field  string // the claim that says whose it is
	secret []byte
}

// maxReadTokens bounds how many are kept.
const maxReadTokens = 1024

func (r *readTokens) get(token string) (readToken, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.kept[token]
	return t, ok
}

func (r *readTokens) put(token string, t readToken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxReadTokens || r.kept == nil {
		r.kept = map[string]readToken{}
	}
	r.kept[token] = t
}

// read says what a token claims, if it is good now.
func (k *Issuer) read(token string) (tokenClaims, error) {
	if k.KnowsEnds != nil && !k.KnowsEnds() {
		return tokenClaims{}, errors.New("no leader has answered since this server started: it may have been ended")
	}
	if t, ok := k.good.get(token); ok {
		secret, err := k.secretOf(t.kid)
		field, _ := k.authAlt("userclaimfield")
		same := err == nil && field == t.field && subtle.ConstantTimeCompare(secret, t.secret) == 1
		if same && time.Now().Before(t.claims.ExpiresAt.Time) && !k.over(&t.claims) {
			return t.claims, nil
		}
	}
	return k.check(token)
}

func (k *Issuer) over(c *tokenClaims) bool {
	return k.Snapshot().UserTokens().Over(c.User, c.ID, c.made())
}

// check checks a token and what it claims.
func (k *Issuer) check(token string) (claims tokenClaims, err error) {
	parsed, err := jwt.ParseWithClaims(token, &claims, k.keyOf, jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg(), jwt.SigningMethodRS256.Alg()}))
	field, named := k.authAlt("userclaimfield")
	if err == nil && named {
		claims.User, err = claimOf(token, field)
	}
	switch {
	case err != nil:
	case claims.User == "":
		err = errors.New("no claim says whose it is")
	case k.over(&claims):
		err = errors.New("it was ended")
	case parsed.Method.Alg() == jwt.SigningMethodHS256.Alg():
		kid, _ := parsed.Header["kid"].(string)
		if secret, err := k.secretOf(kid); err == nil {
			k.good.put(token, readToken{claims, kid, field, secret})
		}
	}
	return claims, err
}

// errNoToken refuses a call without a token.
var errNoToken = cluster.Errorf(cluster.Denied, cluster.ErrAccess,
	"a token is needed: scontrol token prints one")

// Caller returns the user that a token, sent from an address, stands for. A token of root may name another user.
func (k *Issuer) Caller(token, named, from string) (api.Caller, error) {
	if token == "" {
		k.tell(from, "err", "no token")
		return api.Caller{}, errNoToken
	}
	if len(token) > maxToken {
		return k.refuse(from, "bytes", len(token))
	}
	claims, err := k.read(token)
	if err != nil {
		return k.refuse(from, "err", err)
	}
	if named != "" && subtle.ConstantTimeCompare([]byte(named), []byte(claims.User)) == 0 {
		if claims.User != "root" {
			return k.refuse(from, "user", claims.User, "named", named)
		}
		claims.User = named
	}
	who, err := users.Caller(claims.User)
	who.Origin = "token:" + claims.ID
	return who, err
}

// refuse counts a bad token and tells the log why; who has shown it learns nothing.
func (k *Issuer) refuse(from string, why ...any) (api.Caller, error) {
	k.Refused()
	k.tell(from, why...)
	return api.Caller{}, errToken
}

// tell writes a line about a refusal, unless there were too many recently.
func (k *Issuer) tell(from string, why ...any) {
	k.refused.Say(k.Log.Info, "token refused", append([]any{"from", from}, why...)...)
}
