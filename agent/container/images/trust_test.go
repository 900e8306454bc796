package images

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"dev.muster/agent/userfile"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestLoopbackShowsItsLayers has one user fetch an image from a registry of the node itself. Another user then
// listens at that port, knows the digest and has nothing else, or has all but a layer.
func TestLoopbackShowsItsLayers(t *testing.T) {
	var handler atomic.Pointer[http.Handler]
	set := func(h http.Handler) { handler.Store(&h) }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	alice := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	set(alice)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	image, err := ParseRemote("localhost:"+port+"#team/secret:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img := imageOf(t, layerOf(t, "f etc/a secret"))
	if err := remote.Write(image.Ref, img); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits, As: userfile.Identity{UID: 1001}}
	get := func() (string, error) {
		got, err := s.Obtain(context.Background(), image, authn.DefaultKeychain)
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(got.Root + "/etc/a")
		return string(text), err
	}
	if text, err := get(); err != nil || text != "secret" {
		t.Fatalf("%q, %v", text, err)
	}
	var fetched atomic.Int32
	set(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			fetched.Add(1)
		}
		alice.ServeHTTP(w, r)
	}))
	if text, err := get(); err != nil || text != "secret" || fetched.Load() > 0 {
		t.Errorf("for the same user: %q, %v, %d fetched", text, err, fetched.Load())
	}
	s.As.UID = 1002
	for what, blobs := range map[string]bool{"the digest alone": false, "the manifest": true} {
		t.Run(what, func(t *testing.T) {
			set(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				manifest := strings.Contains(r.URL.Path, "/manifests/")
				switch {
				case r.URL.Path == "/v2/", manifest && blobs:
					alice.ServeHTTP(w, r)
				case manifest && r.Method == http.MethodHead:
					w.Header().Set("Docker-Content-Digest", digest.String())
					w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
					w.Header().Set("Content-Length", "400")
				default:
					http.Error(w, "no", http.StatusNotFound)
				}
			}))
			if text, err := get(); err == nil {
				t.Errorf("%q was given to a user without access", text)
			}
		})
	}
	set(alice)
	if text, err := get(); err != nil || text != "secret" {
		t.Errorf("a user who has all layers: %q, %v", text, err)
	}
}

// TestIsShared lists names that mean another registry on each node, or whatever its users start there.
func TestIsShared(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for registry, want := range map[string]bool{
		"nvcr.io": true, "192.0.2.5:5000": true, "hub.lab.example:443": true,
		"localhost": false, "localhost:5000": false, "127.0.0.1:5000": false, "127.3.2.1": false,
		"[::1]:5000": false, "localhost.:5000": false, "LOCALHOST:5000": false, "a.localhost:80": false,
		"127.1:5000": false, "0x7f000001:80": false, "2130706433:80": false, "0.0.0.0:5000": false, "0:80": false,
		"[::]:5000": false, "[::ffff:127.0.0.1]:5000": false, "169.254.1.2:80": false, "[fe80::1]:80": false,
		host + ":5000": false, "hub:5000": false, "hub.local:5000": false, "localhost.localdomain:80": false,
		"resolves.example:80": false, "own.example": false, "elsewhere.example": true, "unknown.example": true,
	} {
		lookup := func(name string) []net.IP {
			return map[string][]net.IP{
				"resolves.example": {net.ParseIP("192.0.2.5"), net.ParseIP("127.0.0.1")},
				"own.example":      {net.ParseIP("192.0.2.77")}, "elsewhere.example": {net.ParseIP("192.0.2.78")},
			}[name]
		}
		own := []net.IP{net.ParseIP("192.0.2.77")}
		if got := isSharedAs(registry, lookup, own); got != want {
			t.Errorf("%s: %v", registry, got)
		}
	}
}
