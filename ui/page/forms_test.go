package page

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/session"
	"dev.muster/api"
)

// posts are the paths of all forms, as the files of this package register them.
func posts(t *testing.T) (list []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			word, _ := strconv.Unquote(text.Value)
			method, path, ok := strings.Cut(word, " ")
			if ok && slices.Contains([]string{"POST", "PUT", "DELETE", "PATCH"}, method) {
				list = append(list, path)
			}
			return true
		})
	}
	return list
}

// forged is a request that must do nothing.
type forged struct {
	name, token, site string
	cookie            *http.Cookie
	get               bool
}

// send sends it to a form.
func (f *forged) send(h http.Handler, path string) *httptest.ResponseRecorder {
	fields := url.Values{"csrf": {f.token}, "reason": {"10"}, "do": {"cancel"}, "job": {"1"}, "script": {"#!/bin/sh\n"}}
	r := httptest.NewRequest("POST", path, strings.NewReader(fields.Encode()))
	if f.get {
		r = httptest.NewRequest("GET", path+"?"+fields.Encode(), nil)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if f.site != "" {
		r.Header.Set("Sec-Fetch-Site", f.site)
	}
	if f.cookie != nil {
		r.AddCookie(f.cookie)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestForgedForms: no form does anything without a session, by the token of another session, or from another site; and
// nothing is done by an address that is only opened.
func TestForgedForms(t *testing.T) {
	s, _ := pageServer(t, 1, 2)
	asked := 0
	s.Call = func(context.Context, api.Caller, string, string, []byte) (int, []byte, error) {
		asked++
		return http.StatusOK, []byte("{}"), nil
	}
	h := s.handler()
	begin := func(uid uint32) (token string, cookie *http.Cookie) {
		who := session.Begin(session.Session{UID: uid, GID: uid, User: "u"}, time.Now())
		value, err := s.Sessions.Seal(&who)
		if err != nil {
			t.Fatal(err)
		}
		return s.Sessions.CSRF(&who), &http.Cookie{Name: "muster", Value: value}
	}
	own, cookie := begin(0)
	again, _ := begin(0)
	other, _ := begin(1)
	for _, path := range formPaths(t) {
		for _, f := range []forged{
			{name: "no session", token: own},
			{name: "no token", cookie: cookie},
			{name: "another user's token", token: other, cookie: cookie},
			{name: "another session's token", token: again, cookie: cookie},
			{name: "half a token", token: own[:len(own)/2], cookie: cookie},
			{name: "another site", token: own, site: "cross-site", cookie: cookie},
			{name: "another host of the site", token: own, site: "same-site", cookie: cookie},
			{name: "only opened", token: own, cookie: cookie, get: true},
		} {
			if strings.HasPrefix(path, "/login") && f.site == "" {
				continue // it needs no session
			}
			t.Run(path+" "+f.name, func(t *testing.T) {
				w := f.send(h, path)
				if !f.get && w.Code != http.StatusForbidden {
					t.Errorf("answered %d", w.Code)
				}
				for _, header := range guard {
					if w.Header().Get(header[0]) != header[1] {
						t.Errorf("%s: %q", header[0], w.Header().Get(header[0]))
					}
				}
			})
		}
	}
	if asked > 0 || s.Sessions.Read(cookie.Value, time.Now()) == nil {
		t.Errorf("%d things were done, or the session has ended", asked)
	}
	for _, path := range formPaths(t) { // what is refused above can be done
		f := forged{token: own, cookie: cookie}
		if w := f.send(h, path); path != "/login" && w.Code == http.StatusForbidden {
			t.Errorf("%s by the session itself: %d", path, w.Code)
		}
		own, cookie = begin(0) // one may have logged out
	}
	if want := len(actions()) + 1; asked != want {
		t.Errorf("%d things were done by the session itself, want %d", asked, want)
	}
}

// formPaths are an address of each form.
func formPaths(t *testing.T) []string {
	t.Helper()
	list := posts(t)
	slices.Sort(list)
	known := []string{"", "", "/login", "/login/password", "/queue/act", "/submit", "/submit/check"}
	if !slices.Equal(list, known) {
		t.Errorf("there are forms at %q, want %q", list, known)
	}
	list = append(list[2:], logoutPath) // the two that have no name there, and those of actions
	for _, a := range actions() {
		of := map[string]string{"jobs": "1", "nodes": "n00001"}[a.kind]
		list = append(list, "/"+a.kind+"/"+of+"/"+a.name)
	}
	return list
}
