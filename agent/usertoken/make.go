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
// state (cluster/jwt.go), so that every server takes the tokens of every other; a token names its key by kid. One that
// names none was signed before there were any, by a key that is derived from the cluster's authority. jwt_key and
// jwks in AuthAltParameters name keys that somebody else has made.

// Make makes a token for the caller, or for somebody else (mayMakeFor).
func (k *Issuer) Make(ctx context.Context, who api.Caller,
	q api.UserTokenRequest) (none api.UserTokenResponse, _ error) {
	own, err := k.AccountOf(who, who.UID)
	if err != nil {
		return none, err
	}
	name := own.Name
	if q.User != "" && q.User != name {
		if err := k.mayMakeFor(who, name, q.User); err != nil {
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
	k.Note(ctx, who.Identity, cluster.AuditNote{
		Action: "token create", Object: "token " + id + " of " + name,
		New: "expires=" + expires.UTC().Format(time.RFC3339),
	})
	k.Log.Info("token made", "user", name, "by", who.UID, "id", id, "key", key.ID, "expires", expires)
	return api.UserTokenResponse{Token: text, Expires: expires}, nil
}

// mayMakeFor refuses tokens for somebody else: root and SlurmUser make them, as in Slurm. With operator_tokens in
// AuthAltParameters operators of the books do so, too. Those of root are made by root alone, and nobody gets more
// rights by one.
func (k *Issuer) mayMakeFor(who api.Caller, own, name string) error {
	if who.Operator() {
		return nil
	}
	level := k.Level(who)
	_, deputies := k.authAlt("operator_tokens")
	if !k.isSlurmUser(who, own) && (level == "" || !deputies) {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"only root and SlurmUser make tokens for others (AuthAltParameters=operator_tokens lets operators do so)")
	}
	uid, err := users.IDByName.Get(name)
	if err != nil {
		return cluster.Errorf(cluster.Invalid, cluster.ErrUser, "user %s does not exist on this server", name)
	}
	target := api.Caller{Identity: cluster.Identity{UID: uid, User: name}}
	if target.Operator() || uid == uint32(os.Getuid()) ||
		level != "Administrator" && k.Level(target) == "Administrator" {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"a token for %s would give more rights than yours: root makes it", name)
	}
	return nil
}

// isSlurmUser reports whether the caller is the user of the servers' programs. A compute node vouches for its users
// only as far as their jobs go, so that one's word is not enough.
func (k *Issuer) isSlurmUser(who api.Caller, own string) bool {
	user := k.Snapshot().Config().ServerUser
	return user != "" && user == own && who.Role != cluster.RoleNode
}
