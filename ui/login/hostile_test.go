package login

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dev.muster/agent/webpage"
)

// hostile is a provider that answers as a test wants it to.
type hostile struct {
	*httptest.Server
	mux *http.ServeMux
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{mux: http.NewServeMux()}
	h.Server = httptest.NewServer(h.mux)
	t.Cleanup(h.Close)
	h.mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": h.URL, "authorization_endpoint": h.URL + "/a",
			"token_endpoint": h.URL + "/t", "jwks_uri": h.URL + "/k"})
	})
	return h
}

// settings are those of a page that has a secret at the provider.
func (h *hostile) settings(t *testing.T) *webpage.Settings {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &webpage.Settings{URL: "https://page", OIDC: webpage.OIDC{Issuer: h.URL, Client: "page", SecretFile: secret}}
}

// login ends a login by a code that somebody has made up.
func (h *hostile) login(ctx context.Context, t *testing.T, p *Providers, s *webpage.Settings) error {
	t.Helper()
	_, f, err := p.Begin(s, "/", time.Now())
	if err != nil {
		t.Error(err)
		return nil
	}
	_, err = p.Finish(ctx, s, &f, url.Values{"state": {f.State}, "code": {"made-up"}}, time.Now())
	return err
}

// TestExchangesAtOnce: visitors who end logins by made-up codes have so many connections made to the provider.
func TestExchangesAtOnce(t *testing.T) {
	h := newHostile(t)
	var asked atomic.Int64
	under, answer := make(chan struct{}, maxExchanges), make(chan struct{})
	h.mux.HandleFunc("POST /t", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		under <- struct{}{}
		<-answer
		http.Error(w, "no", http.StatusBadRequest)
	})
	p, s := NewProviders(), h.settings(t)
	var wg sync.WaitGroup
	for range maxExchanges {
		wg.Go(func() {
			if h.login(t.Context(), t, p, s) == nil {
				t.Error("a made-up code opens a session")
			}
		})
	}
	for range maxExchanges {
		<-under
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	err := h.login(gone, t, p, s)
	if err == nil || !strings.Contains(err.Error(), "too many visitors") || asked.Load() != maxExchanges {
		t.Errorf("one more: %v, %d are asked about", err, asked.Load())
	}
	go func() {
		for range under { // each may ask twice
		}
	}()
	close(answer)
	wg.Wait()
	if err := h.login(t.Context(), t, p, s); err == nil || strings.Contains(err.Error(), "too many visitors") {
		t.Errorf("afterwards: %v", err)
	}
	close(under)
}

// TestSecretStays: the page's secret, and codes, go to no other address than that which the provider names.
func TestSecretStays(t *testing.T) {
	for _, code := range []int{http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			h, other := newHostile(t), newHostile(t)
			h.mux.HandleFunc("POST /t", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"/taken", code)
			})
			other.mux.HandleFunc("/taken", func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				t.Errorf("another host was asked: %s %q %s", r.Method, r.Header["Authorization"], body)
			})
			if err := h.login(t.Context(), t, NewProviders(), h.settings(t)); err == nil {
				t.Error("it opens a session")
			}
		})
	}
}

// TestStrangeProviders: what a provider answers neither reads this machine's files nor takes its memory.
func TestStrangeProviders(t *testing.T) {
	const discovery = "/.well-known/openid-configuration"
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		part := make([]byte, 1<<20)
		for range 64 {
			if _, err := z.Write(part); err != nil {
				return
			}
		}
		_ = z.Close()
	}
	var h *hostile
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		says   string
	}{
		{"gzip bomb", bomb, "more than 1048576 bytes"},
		{"a file", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "unsupported protocol scheme"},
		{"round and round", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, discovery, http.StatusFound)
		}, "sends a question on 5 times"},
		{"another issuer", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": h.URL + "/", "authorization_endpoint": h.URL})
		}, "did not match the issuer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h = &hostile{mux: http.NewServeMux()}
			h.Server = httptest.NewServer(h.mux)
			defer h.Close()
			h.mux.HandleFunc("GET "+discovery, c.answer)
			_, _, err := NewProviders().Begin(h.settings(t), "/", time.Now())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
