package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// issuer is a small OpenID provider that lets everybody in as one user. Its answers can be twisted.
type issuer struct {
	t    *testing.T
	url  string
	key  *rsa.PrivateKey
	user string

	mu     sync.Mutex
	codes  map[string]url.Values   // what was asked for, by code
	twist  func(jwt.MapClaims)     // changes what the next tokens say
	sign   func(*jwt.Token) string // nil: by the key
	groups []string
	about  string // whom it speaks of beside its tokens
}

const issuerClient = "muster-page"

func startIssuer(t *testing.T, user string) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, user: user, codes: map[string]url.Values{}, about: "1"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"issuer": i.url, "authorization_endpoint": i.url + "/authorize",
			"token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys", "userinfo_endpoint": i.url + "/userinfo",
			"end_session_endpoint":                  i.url + "/end?realm=a",
			"id_token_signing_alg_values_supported": []string{"RS256", "none", "HS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		enc := base64.RawURLEncoding.EncodeToString
		reply(w, 200, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "kid": "k", "use": "sig",
			"alg": "RS256", "n": enc(key.N.Bytes()), "e": enc(big.NewInt(int64(key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer x" {
			http.Error(w, "who asks?", http.StatusUnauthorized)
			return
		}
		reply(w, 200, map[string]any{"sub": i.about, "groups": i.groups})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("GET /end", i.end)
	mux.HandleFunc("POST /token", i.token)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// end ends a session that its token names, and sends the browser back.
func (i *issuer) end(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(q.Get("id_token_hint"), c, func(*jwt.Token) (any, error) { return &i.key.PublicKey, nil })
	if err != nil || c["aud"] != q.Get("client_id") || q.Get("realm") != "a" {
		http.Error(w, fmt.Sprint("whose session? ", err), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, q.Get("post_logout_redirect_uri"), http.StatusFound)
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// authorize sends the browser back with a code, as if the user had logged in.
func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	asked := q.Get("response_type") + " " + q.Get("client_id") + " " + q.Get("code_challenge_method")
	if asked != "code "+issuerClient+" S256" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "not as it should be: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := fmt.Sprintf("code-%d", len(i.codes))
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token gives what a code is good for, once, to who knows the verifier.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := r.PostFormValue("code")
	q, ok := i.codes[code]
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || q == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") ||
		r.PostFormValue("redirect_uri") != q.Get("redirect_uri") {
		reply(w, 400, map[string]string{"error": "invalid_grant", "error_description": "the code is not good"})
		return
	}
	i.codes[code] = nil
	c := jwt.MapClaims{"iss": i.url, "sub": "1", "aud": issuerClient, "nonce": q.Get("nonce"),
		"preferred_username": i.user, "groups": i.groups,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	if i.twist != nil {
		i.twist(c)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
	t.Header["kid"] = "k"
	text, err := t.SignedString(i.key)
	if i.sign != nil {
		text = i.sign(t)
	}
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	reply(w, 200, map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 60, "id_token": text})
}
