package cluster

import (
	"cmp"
	"slices"
	"time"
)

// Users' programs show JSON web tokens (JWT). The keys that sign them are in the state, so that every server takes
// what another has signed and no file has to be copied; they leave the servers as little as the authority's key does.
// Which tokens were issued nobody keeps: a token is good until its end, unless it was ended before.

// UserKey signs tokens of users.
type UserKey struct {
	ID     string    `json:"id"`
	Secret []byte    `json:"secret"`
	Made   time.Time `json:"made"`
}

// UserTokens are the keys, the one that signs first, and the tokens that were ended before their time, in order of
// user and id.
type UserTokens struct {
	Keys  []UserKey   `json:"keys,omitempty"`
	Ended []JWTEnding `json:"ended,omitempty"`
}

// JWTEnding ends one token, or all that were made before a moment: a user's, or without a user everybody's.
type JWTEnding struct {
	User  string `json:"user,omitempty"`
	Token string `json:"token,omitempty"` // id
	// At is when it was ended: what was made later is good.
	At time.Time `json:"at,omitzero"`
	// Until is the end that the token has anyway.
	Until time.Time `json:"until,omitzero"`
}

// Bounds of keys and endings. A key that falls out ends the tokens which it has signed.
const (
	userKeyBytes = 32
	maxUserKeys  = 8
	maxEndings   = 10_000
	maxEndingsOf = 100 // of one user's tokens, one by one
)

func (e *JWTEnding) compare(o *JWTEnding) int {
	return cmp.Or(cmp.Compare(e.User, o.User), cmp.Compare(e.Token, o.Token))
}

// find is where the ending of a token, or of a user's, stands, and whether there is one.
func (u *UserTokens) find(user, token string) (int, bool) {
	return slices.BinarySearchFunc(u.Ended, JWTEnding{User: user, Token: token}, func(e, o JWTEnding) int {
		return e.compare(&o)
	})
}

// Key finds a key.
func (u *UserTokens) Key(id string) (*UserKey, bool) {
	i := slices.IndexFunc(u.Keys, func(k UserKey) bool { return k.ID == id })
	if i < 0 {
		return nil, false
	}
	return &u.Keys[i], true
}

// Since is the moment from which on tokens of a user are good; zero: all are.
func (u *UserTokens) Since(user string) (at time.Time) {
	for _, name := range [...]string{"", user} {
		if i, ok := u.find(name, ""); ok && u.Ended[i].At.After(at) {
			at = u.Ended[i].At
		}
	}
	return at
}

// Over reports whether a user's token, made at a moment, was ended.
func (u *UserTokens) Over(user, token string, made time.Time) bool {
	if _, one := u.find(user, token); one && token != "" {
		return true
	}
	return made.Before(u.Since(user))
}

// UserTokens are the keys of users' tokens, and the tokens that were ended; never nil.
func (b *books) UserTokens() *UserTokens {
	if b.tokensOfUsers == nil {
		return &UserTokens{}
	}
	return b.tokensOfUsers
}

func putUserTokens(t *tx, u *UserTokens) {
	keepOld(t, &t.tokensOfUsers)
	t.tokensOfUsers = u
}

// JWTKey adds the key that signs from now on.
type JWTKey struct {
	Key UserKey `json:"key"`
	// First is for a cluster without a key; two servers may want to make it at once.
	First bool `json:"first,omitempty"`
	// Cut ends all tokens that there are; else they live until their end.
	Cut bool `json:"cut,omitempty"`
}

func (*JWTKey) kind() string { return "jwt_key" }

func (c *JWTKey) apply(t *tx) (any, error) {
	old := t.UserTokens()
	_, twice := old.Key(c.Key.ID)
	switch {
	case !t.by.Operator() && !(c.First && t.by.System):
		return nil, Errorf(Denied, ErrAccess, "only an administrator rotates the key of tokens")
	case c.First && len(old.Keys) > 0:
		return nil, nil
	case c.Key.ID == "" || len(c.Key.Secret) != userKeyBytes || twice:
		return nil, Errorf(Invalid, "", "a key of tokens has an id of its own and %d bytes", userKeyBytes)
	}
	key := c.Key
	key.Made = t.at
	next := UserTokens{Keys: slices.Insert(slices.Clone(old.Keys), 0, key), Ended: old.Ended}
	next.Keys = next.Keys[:min(len(next.Keys), maxUserKeys)]
	if c.Cut {
		next.Keys = next.Keys[:1]
		next.Ended = []JWTEnding{{At: t.at}}
	}
	putUserTokens(t, &next)
	return nil, nil
}

// check refuses to end more of a user's tokens one by one than the user may: nobody else could end any.
func (c *JWTEnd) check(s *Snapshot) error {
	n := 0
	for _, e := range s.UserTokens().Ended {
		if e.User == c.User && e.Token != "" && e.Until.After(s.Now) {
			n++
		}
	}
	return refuseIf(c.Token != "" && n >= maxEndingsOf,
		Conflict, ErrTooBig, "%d tokens of user %s were ended one by one, the most: end all of them", n, c.User)
}

// JWTEnd ends tokens before their time: one, a user's that were made so far, or everybody's.
type JWTEnd struct {
	User  string    `json:"user,omitempty"`
	Token string    `json:"token,omitempty"`
	Until time.Time `json:"until,omitzero"` // the end that the token has
}

func (*JWTEnd) kind() string { return "jwt_end" }

func (c *JWTEnd) apply(t *tx) (any, error) {
	own := c.User != "" && t.by.User == c.User
	if err := firstError(
		refuseIf(!t.by.Operator() && !own,
			Denied, ErrAccess, "only operators end the tokens of others"),
		refuseIf(c.Token != "" && (c.User == "" || !c.Until.After(t.at)),
			Invalid, "", "token %s has no user, or has ended by itself", c.Token),
		refuseIf(len(c.User)+len(c.Token) > maxPeerText,
			Invalid, ErrTooBig, "the name is too long"),
	); err != nil {
		return nil, err
	}
	old := t.UserTokens()
	next := UserTokens{Keys: old.Keys}
	for _, e := range old.Ended { // what is covered, or has ended by itself, goes
		covered := c.Token == "" && (c.User == "" || c.User == e.User)
		if !covered && (e.Token == "" || e.Until.After(t.at)) {
			next.Ended = append(next.Ended, e)
		}
	}
	if len(next.Ended) >= maxEndings {
		return nil, Errorf(Conflict, ErrTooBig,
			"%d tokens were ended one by one: end all of a user's, or rotate the key", len(next.Ended))
	}
	one := JWTEnding{
		User:  c.User,
		Token: c.Token,
		At:    t.at,
		Until: c.Until,
	}
	i, there := next.find(one.User, one.Token)
	if !there {
		next.Ended = slices.Insert(next.Ended, i, one)
	}
	putUserTokens(t, &next)
	return nil, nil
}
