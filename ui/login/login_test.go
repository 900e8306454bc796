package login

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/webpage"
)

// TestTries: five attempts are free, then one waits, longer each time; a right password makes an end of it, and others'
// failures from elsewhere do not lock a user out for long.
func TestTries(t *testing.T) {
	program := filepath.Join(t.TempDir(), "check")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nread -r p\n[ \"$p\" = right ]\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, s := NewPasswords(), &webpage.Settings{Password: program}
	now := time.Now()
	for range freeTries - 1 {
		p.failed(countedOf("c", ""), now)
	}
	for range freeTries + 20 {
		p.failed(countedOf("a", "10.0.0.1"), now)
	}
	for of, want := range map[[2]string]time.Duration{{"a", ""}: userWait, {"b", "10.0.0.1"}: addressWait,
		{"b", "10.0.0.2"}: 0, {"b", ""}: 0, {"c", ""}: 0} {
		if got := p.wait(countedOf(of[0], of[1]), now); got != want {
			t.Errorf("%s waits %v, want %v", of, got, want)
		}
	}
	if err := p.Check(context.Background(), s, "a", "right", "10.0.0.2"); err == nil ||
		!strings.Contains(err.Error(), "try again in 1m") {
		t.Errorf("an early attempt: %v", err)
	}
	if err := p.Check(context.Background(), s, "b", "right", "10.0.0.2"); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := p.Check(context.Background(), s, "-b", "right", "10.0.0.2"); err != ErrPassword {
		t.Errorf("an option as a name: %v", err)
	}
	p.failed(countedOf("d", ""), now.Add(2*forgetAfter))
	if len(p.tries) != 1 {
		t.Errorf("%d are remembered, of which one is fresh", len(p.tries))
	}
}

// TestTriesOfMany: neither another case of the name nor another address of the same network gives more attempts.
func TestTriesOfMany(t *testing.T) {
	p, now := NewPasswords(), time.Now()
	for range freeTries + 20 {
		p.failed(countedOf("alice", "2001:db8::1"), now)
	}
	for of, want := range map[[2]string]time.Duration{{"Alice", ""}: userWait, {"b", "2001:db8::2:3"}: addressWait,
		{"b", "2001:db8:0:1::1"}: 0, {"b", "::ffff:10.0.0.1"}: 0, {"b", "unknown"}: 0} {
		if got := p.wait(countedOf(of[0], of[1]), now); got != want {
			t.Errorf("%s waits %v, want %v", of, got, want)
		}
	}
}

// TestOnce: an answer of a provider is good once, soon, and for the browser that began.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, now := NewProviders(), time.Now()
		f := &Flow{State: "s", Until: now.Add(FlowLife)}
		if !p.used.first(f.State, now) || p.used.first(f.State, now) {
			t.Error("a state is not good once")
		}
		late := now.Add(FlowLife + time.Second)
		if _, err := p.Finish(context.Background(), &webpage.Settings{}, f, nil, late); err == nil ||
			!strings.Contains(err.Error(), "more than ten minutes") {
			t.Errorf("late: %v", err)
		}
		for _, state := range []string{"t", "u"} {
			p.used.first(state, late)
			late = late.Add(FlowLife + time.Second)
		}
		if n := len(p.used.fresh) + len(p.used.older); n != 2 {
			t.Errorf("%d states are remembered", n)
		}
	})
}

// TestLevel: the groups of a provider decide on the level where they are named.
func TestLevel(t *testing.T) {
	s := webpage.Read(map[string]string{
		"oidcoperators": "ops, more", "oidcadministrators": "admins", "statuspage": "Login",
		"pagepassword": "PAM", "pagecertificate": "no"})
	if !s.Closed || s.Password != "pam" || s.TLS() {
		t.Errorf("%+v", s)
	}
	for groups, want := range map[string]string{"more": "Operator", "ops admins": "Administrator", "users": ""} {
		v := Visitor{Groups: strings.Fields(groups)}
		if level, decides := v.Level(&s); level != want || !decides {
			t.Errorf("%s: %q, %v", groups, level, decides)
		}
	}
	if _, decides := (&Visitor{}).Level(&webpage.Settings{}); decides {
		t.Error("groups decide though none is named")
	}
}

// TestClaims: the name is taken from the claim that is named, an e-mail address if it was verified.
func TestClaims(t *testing.T) {
	o := &webpage.OIDC{UserClaim: "email", GroupClaim: "g"}
	if _, err := (claims{"email": "a@b"}).visitor(o); err == nil {
		t.Error("an address that was not verified is taken")
	}
	v, err := claims{"email": "a", "email_verified": true, "g": []any{"x", "y"}}.visitor(o)
	if err != nil || v.User != "a" || strings.Join(v.Groups, " ") != "x y" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestTriesBothWays slows one password on many names from one address, and many addresses with one name; whoever fills
// the memory of attempts does not make it forget those who go on.
func TestTriesBothWays(t *testing.T) {
	now := time.Now()
	p := NewPasswords()
	for i := range freeTries {
		p.failed(countedOf(fmt.Sprint("name", i), "10.0.0.1"), now)
		p.failed(countedOf("alice", fmt.Sprint("10.0.1.", i)), now)
	}
	for _, c := range []struct {
		user, from string
		waits      bool
	}{{"bob", "10.0.0.1", true}, {"alice", "10.0.9.9", true}, {"bob", "10.0.9.9", false}} {
		if wait := p.wait(countedOf(c.user, c.from), now); (wait > 0) != c.waits {
			t.Errorf("%s from %s waits %v", c.user, c.from, wait)
		}
	}
	for i := range maxCounted {
		p.failed(countedOf(fmt.Sprint("other", i), ""), now.Add(time.Second))
		if i%1000 == 0 {
			p.failed(countedOf("carol", "10.0.0.3"), now.Add(time.Duration(i)*time.Millisecond))
		}
	}
	if p.wait(countedOf("carol", "10.0.9.9"), now.Add(20*time.Second)) <= 0 || len(p.tries) > maxCounted {
		t.Errorf("carol is forgotten; %d are counted", len(p.tries))
	}
}

// TestWrongPasswordsAtOnce: wrong passwords of others keep nobody waiting while their answers are held back.
func TestWrongPasswordsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begun := NewPasswords(), time.Now()
		var all sync.WaitGroup
		for i := range 5 * maxAtOnce {
			all.Go(func() {
				user := fmt.Sprint("-", i) // refused without a program
				if err := p.Check(t.Context(), &webpage.Settings{Password: "pam"}, user, "x", user); err != ErrPassword {
					t.Errorf("%s: %v", user, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took != failTime {
			t.Errorf("they took %v, not %v", took, failTime)
		}
	})
}

// TestLongAnswer: a provider that sends without end takes no memory of the server's.
func TestLongAnswer(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 64<<10)
		for sent.Load() < 64*maxAnswer {
			n, err := w.Write(part)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	o := webpage.OIDC{Issuer: s.URL, Client: "page"}
	_, _, err := NewProviders().Begin(&webpage.Settings{URL: "https://page", OIDC: o}, "/", time.Now())
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") || sent.Load() >= 64*maxAnswer {
		t.Errorf("%d bytes were taken: %v", sent.Load(), err)
	}
}

// TestSilentProvider: a provider that does not answer delays no logins but those that need it.
func TestSilentProvider(t *testing.T) {
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-answer
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	p := NewProviders()
	begin := func(issuer string) error {
		_, _, err := p.Begin(&webpage.Settings{URL: "https://page",
			OIDC: webpage.OIDC{Issuer: issuer, Client: "page"}}, "/", time.Now())
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- begin(s.URL) }()
	<-asked
	go func() { failed <- begin(s.URL) }()
	if err := begin("http://127.0.0.1:0"); err == nil {
		t.Error("a provider that is not there answers")
	}
	close(answer)
	for range cap(failed) {
		select {
		case err := <-failed:
			if err == nil {
				t.Error("a provider that is down answers")
			}
		case <-asked: // the second login came after the first had failed
			if err := <-failed; err == nil {
				t.Error("a provider that is down answers")
			}
		}
	}
}
