// Package usertoken makes and checks the tokens by which users' programs are known. It knows nothing of how they
// travel, nor of the tokens by which nodes join (agent/trust). Start with Issuer.
package usertoken

import (
	"context"
	"crypto/rand"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Tokens of users are JSON web tokens as Slurm's are: HS256, with the claims sun, iat and exp. Their keys are in the
// state (cluster/jwt.go), so that every server takes the tokens of every other; a token names its key by kid. What
// names none was signed before there were any, by a key that is derived from the cluster's authority. jwt_key and
// jwks in AuthAltParameters name keys that somebody else has made.

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
