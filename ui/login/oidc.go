// Package login finds out who a visitor of the page is: by an OpenID provider, or by the name and the password of this
// machine. It knows nothing of pages and sessions.
package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/webpage"
	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Bounds of logins by a provider.
const (
	providerTime = 10 * time.Second // for one answer of it
	providerAge  = time.Hour        // after that it is asked again where it answers
	maxAnswer    = 1 << 20          // bytes of one answer
	// DonePath is where the provider sends visitors back to.
	DonePath = "/login/oidc/done"
	// maxExchanges bounds the codes about which the provider is asked at a time. Anybody can make up codes.
	maxExchanges = 64
	enterTime    = 2 * time.Second // for one of them to end: visitors who wait have connections of the page
	maxHops      = 5
)

// Flow is a login that has gone to the provider. It stays with the visitor's browser, signed, so that any server can
// end it; the provider sees no more of it than State, Nonce and a hash of Verifier.
type Flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	To       string    `json:"to"` // what the visitor asked for
	Until    time.Time `json:"until"`
}

// Visitor is who has logged in, as the provider says.
type Visitor struct {
	User   string
	Groups []string
	Token  string // the ID token, which names the session at the provider when that is to end
}

// Level is the AdminLevel that the groups give; "": none. decides is false where no groups were named.
func (v *Visitor) Level(s *webpage.Settings) (level string, decides bool) {
	in := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(v.Groups, n) })
	}
	switch decides = len(s.OIDC.Operators)+len(s.OIDC.Admins) > 0; {
	case in(s.OIDC.Admins):
		return "Administrator", decides
	case in(s.OIDC.Operators):
		return "Operator", decides
	}
	return "", decides
}

// Providers remember what providers tell of themselves.
type Providers struct {
	mu     sync.Mutex
	kept   map[string]*provider
	asking map[string]*inquiry
	used   used
	busy   chan struct{} // exchanges
}

// inquiry is one of a provider under way, for all whose logins need it.
type inquiry struct {
	done chan struct{}
	err  error
}

// NewProviders knows of none yet.
func NewProviders() *Providers {
	return &Providers{kept: map[string]*provider{}, asking: map[string]*inquiry{},
		busy: make(chan struct{}, maxExchanges)}
}

// provider is one, and how to ask it.
type provider struct {
	*oidc.Provider
	http *http.Client
	at   time.Time
}

// clientOf asks a provider, whose certificate may be of an authority of the site's own.
func clientOf(o *webpage.OIDC) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if o.Authority != "" {
		text, err := os.ReadFile(o.Authority)
		if err != nil {
			return nil, fmt.Errorf("OIDCAuthority: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OIDCAuthority: %s has no certificate", o.Authority)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{Transport: bounded{t}, Timeout: providerTime, CheckRedirect: stay}, nil
}

// stay lets a provider send questions on, as to another path, but not what has the page's secret and a visitor's code.
func stay(_ *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return errors.New("the provider sends a code on to another address")
	case len(via) >= maxHops:
		return fmt.Errorf("the provider sends a question on %d times", maxHops)
	}
	return nil
}

// bounded cuts off answers that are too long: who reads them keeps all of them in memory.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(q *http.Request) (*http.Response, error) {
	r, err := b.RoundTripper.RoundTrip(q)
	if err == nil {
		r.Body = &cut{r.Body, maxAnswer + 1}
	}
	return r, err
}

// cut is an answer of which so many bytes may still come.
type cut struct {
	io.ReadCloser
	left int
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the provider's answer has more than %d bytes", maxAnswer)
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// get finds out where a provider is asked what, and by which keys it signs. Earlier answers are used while it does
// not answer; no other login waits for it.
func (p *Providers) get(o *webpage.OIDC, now time.Time) (*provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := o.Issuer + "\n" + o.Authority
	old, q := p.kept[key], p.asking[key]
	if old != nil && (q != nil || now.Sub(old.at) < providerAge) {
		return old, nil
	}
	if q != nil {
		p.mu.Unlock()
		<-q.done
		p.mu.Lock()
	} else {
		q = &inquiry{done: make(chan struct{})}
		p.asking[key] = q
		p.mu.Unlock()
		found, err := inquire(o, now)
		p.mu.Lock()
		if q.err = err; err == nil {
			p.kept[key] = found
		}
		delete(p.asking, key)
		close(q.done)
	}
	if p.kept[key] == nil {
		return nil, q.err
	}
	return p.kept[key], nil
}

// inquire asks a provider.
func inquire(o *webpage.OIDC, now time.Time) (*provider, error) {
	c, err := clientOf(o)
	if err != nil {
		return nil, err
	}
	// Not the visitor's context: keys are fetched with this one later.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), c), o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the provider %s: %w", o.Issuer, err)
	}
	return &provider{found, c, now}, nil
}

// config is the page as the provider knows it.
func (p *provider) config(s *webpage.Settings) (*oauth2.Config, error) {
	secret := ""
	if f := s.OIDC.SecretFile; f != "" {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("OIDCSecretFile: %w", err)
		}
		secret = strings.TrimSpace(string(text))
	}
	scopes := append([]string{oidc.ScopeOpenID}, s.OIDC.Scopes...)
	if len(s.OIDC.Scopes) == 0 {
		scopes = append(scopes, "profile")
	}
	return &oauth2.Config{ClientID: s.OIDC.Client, ClientSecret: secret, Endpoint: p.Endpoint(),
		RedirectURL: s.URL + DonePath, Scopes: scopes}, nil
}

// Begin sends a visitor to the provider.
func (p *Providers) Begin(s *webpage.Settings, to string, now time.Time) (at string, f Flow, err error) {
	_, cfg, err := p.configured(s, now)
	if err != nil {
		return "", f, err
	}
	f = Flow{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(),
		To: to, Until: now.Add(FlowLife)}
	return cfg.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), f, nil
}

// refusal says what is wrong with an answer of the provider before it is asked about it; "": nothing.
func (f *Flow) refusal(s *webpage.Settings, q url.Values, now time.Time) string {
	for _, x := range []struct {
		bad  bool
		text string
	}{
		{now.After(f.Until), "it took more than ten minutes at the provider"},
		{q.Get("state") != f.State, "the answer is not one to the login that this browser began (state)"},
		{q.Has("iss") && q.Get("iss") != s.OIDC.Issuer, "the answer is of another provider, " + q.Get("iss")},
		{q.Has("error"), "the provider says: " + strings.TrimSpace(q.Get("error")+" "+q.Get("error_description"))},
		{q.Get("code") == "", "the provider has sent no code"},
	} {
		if x.bad {
			return x.text
		}
	}
	return ""
}

// Finish finds out who has come back from the provider with q. Every refusal is a sentence for the visitor.
func (p *Providers) Finish(ctx context.Context, s *webpage.Settings, f *Flow, q url.Values, now time.Time) (v Visitor,
	err error) {
	if text := f.refusal(s, q, now); text != "" {
		return v, errors.New(text)
	}
	if !p.used.first(f.State, now) {
		return v, errors.New("this login was ended before; an answer of the provider is good once")
	}
	found, cfg, err := p.configured(s, now)
	if err != nil {
		return v, err
	}
	leave, err := p.enter(ctx)
	if err != nil {
		return v, err
	}
	defer leave()
	ctx = oidc.ClientContext(ctx, found.http)
	token, err := cfg.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return v, refusedCode(err)
	}
	c, err := found.claims(ctx, cfg, s, f, token)
	if err != nil {
		return v, err
	}
	if v, err = c.visitor(&s.OIDC); err == nil {
		v.Token, _ = token.Extra("id_token").(string)
	}
	return v, err
}

// enter waits until fewer codes are exchanged than may be at a time.
func (p *Providers) enter(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, enterTime)
	defer cancel()
	select {
	case p.busy <- struct{}{}:
		return func() { <-p.busy }, nil
	case <-ctx.Done():
		return nil, errors.New("too many visitors log in: try again in a minute")
	}
}

// Leave is where a visitor is sent to end the session at the provider, too, and to come back then (OpenID Connect
// RP-Initiated Logout 1.0); "": the provider has no such place, or the site wants none of it. idToken may be "".
func (p *Providers) Leave(s *webpage.Settings, idToken string, now time.Time) (at string, err error) {
	if s.OIDC.Issuer == "" || s.OIDC.Stay {
		return "", nil
	}
	found, err := p.get(&s.OIDC, now)
	if err != nil {
		return "", err
	}
	var tells struct {
		End string `json:"end_session_endpoint"`
	}
	if err := found.Claims(&tells); err != nil || tells.End == "" {
		return "", err
	}
	u, err := url.Parse(tells.End)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("the provider's end_session_endpoint is not a URL: %q", tells.End)
	}
	q := u.Query()
	q.Set("client_id", s.OIDC.Client)
	q.Set("post_logout_redirect_uri", s.URL+"/")
	if idToken != "" {
		q.Set("id_token_hint", idToken)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// configured is the provider, and the page as it knows it.
func (p *Providers) configured(s *webpage.Settings, now time.Time) (*provider, *oauth2.Config, error) {
	found, err := p.get(&s.OIDC, now)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := found.config(s)
	return found, cfg, err
}

// refusedCode words why a provider gives no token.
func refusedCode(err error) error {
	if e := (*oauth2.RetrieveError)(nil); errors.As(err, &e) && e.ErrorCode != "" {
		return fmt.Errorf("the provider does not take the code (was it used before?): %s",
			strings.TrimSpace(e.ErrorCode+" "+e.ErrorDescription))
	}
	return fmt.Errorf("the provider gives no token: %w", err)
}

// claims are what the provider says of a visitor.
type claims map[string]any

// claims checks the token of a visitor, and asks for what it leaves out.
func (p *provider) claims(ctx context.Context, cfg *oauth2.Config, s *webpage.Settings, f *Flow,
	t *oauth2.Token) (claims, error) {
	raw, ok := t.Extra("id_token").(string)
	if !ok {
		return nil, errors.New("the provider has sent no ID token: is the scope openid allowed there?")
	}
	id, err := p.Verifier(&oidc.Config{ClientID: s.OIDC.Client}).Verify(ctx, raw)
	if err != nil {
		return nil, refusedToken(err)
	}
	if id.Nonce != f.Nonce {
		return nil, errors.New("the ID token is not one for the login that this browser began (nonce)")
	}
	c := claims{}
	if err := id.Claims(&c); err != nil {
		return nil, fmt.Errorf("cannot read the ID token: %w", err)
	}
	known := c[s.OIDC.UserClaim] != nil && (s.OIDC.GroupClaim == "" || c[s.OIDC.GroupClaim] != nil)
	if known || p.UserInfoEndpoint() == "" {
		return c, nil
	}
	rest, err := p.userInfo(ctx, cfg, id.Subject, t)
	maps.Copy(rest, c) // what is signed goes before
	return rest, err
}

// userInfo asks the provider for what an ID token leaves out.
func (p *provider) userInfo(ctx context.Context, cfg *oauth2.Config, subject string, t *oauth2.Token) (claims, error) {
	rest := claims{}
	more, err := p.UserInfo(ctx, cfg.TokenSource(ctx, t))
	if err == nil {
		err = more.Claims(&rest)
	}
	if err != nil {
		return rest, fmt.Errorf("the provider does not say who this is: %w", err)
	}
	if more.Subject != subject {
		return rest, errors.New("the provider speaks of two users at once")
	}
	return rest, nil
}

// refusedToken words why a token is not believed.
func refusedToken(err error) error {
	if e := (*oidc.TokenExpiredError)(nil); errors.As(err, &e) {
		return fmt.Errorf("the ID token has expired, at %s: are the clocks here and at the provider right?",
			e.Expiry.Format(time.RFC3339))
	}
	for part, text := range map[string]string{
		"expected audience":          "the ID token is for another program than this page (audience)",
		"different provider":         "the ID token is of another provider (issuer)",
		"signature algorithm":        "the ID token is not signed in a way that is taken here (algorithm)",
		"failed to verify signature": "the ID token is not signed by the provider (signature)",
	} {
		if strings.Contains(err.Error(), part) {
			return errors.New(text)
		}
	}
	return fmt.Errorf("the ID token is not believed: %w", err)
}

// visitor takes the name and the groups out of claims.
func (c claims) visitor(o *webpage.OIDC) (v Visitor, err error) {
	name, ok := c[o.UserClaim].(string)
	if !ok || name == "" {
		return v, fmt.Errorf("the provider does not say %s, which is to be the user name (OIDCUserClaim)",
			o.UserClaim)
	}
	if o.UserClaim == "email" && c["email_verified"] != true {
		return v, errors.New("the provider has not verified the e-mail address that is to be the user name")
	}
	v.User = name
	v.Groups = words(c[o.GroupClaim])
	return v, nil
}

// words are those of a claim that is a list, or a text of several.
func words(claim any) (out []string) {
	switch list := claim.(type) {
	case []any:
		for _, g := range list {
			out = append(out, fmt.Sprint(g))
		}
	case string:
		out = webpage.Split(list)
	}
	return out
}
