package images

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dev.muster/agent/container/progress"
	"dev.muster/agent/userfile"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// testRegistry is a registry with one image, whose layers may be spoilt.
type testRegistry struct {
	image Remote
	blobs atomic.Int32
	deny  atomic.Bool
	gets  atomic.Int32                                                  // of manifests
	spoil atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // true: it has answered
}

func newRegistry(t *testing.T, img v1.Image) *testRegistry {
	t.Helper()
	h := &testRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.deny.Load() && r.URL.Path != "/v2/" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			h.gets.Add(1)
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			h.blobs.Add(1)
			if do := h.spoil.Load(); do != nil && (*do)(w, r) {
				return
			}
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	var err error
	if h.image, err = ParseRemote(strings.TrimPrefix(srv.URL, "http://") + "#lab/a:1"); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(h.image.Ref, img); err != nil {
		t.Fatal(err)
	}
	return h
}

func imageOf(t *testing.T, layers ...[]byte) v1.Image {
	t.Helper()
	img := empty.Image
	for _, text := range layers {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		l, err := tarball.LayerFromOpener(open)
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// always takes every registry for one that means the same to all users.
func always(string) bool { return true }

// obtain takes the registry for one whose name means the same to all users.
func obtain(s *Store, h *testRegistry) (string, error) {
	if s.trusts == nil {
		s.trusts = always
	}
	got, err := s.Obtain(context.Background(), h.image, authn.DefaultKeychain)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(got.Root, "etc/a"))
	return string(text), err
}

// TestStoreOnce: many that want one image unpack it once, and one of another registry is not
// believed before it shows its layers.
func TestStoreOnce(t *testing.T) {
	img := imageOf(t, layerOf(t, "f etc/a x"), layerOf(t, "f etc/a y"))
	h, s := newRegistry(t, img), &Store{Dir: t.TempDir(), Limits: DefaultLimits, trusts: always}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if text, err := obtain(s, h); err != nil || text != "y" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	wait.Wait()
	if n := h.blobs.Load(); n != 3 {
		t.Errorf("%d were fetched, want 2 layers and the configuration", n)
	}
	other := newRegistry(t, img)
	bad := func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusNotFound)
		return true
	}
	other.spoil.Store(&bad)
	if _, err := obtain(s, other); err == nil {
		t.Error("a registry without the layers is believed")
	}
	other.spoil.Store(nil)
	if _, err := obtain(s, other); err != nil {
		t.Error(err)
	}
	n := other.blobs.Load()
	if _, err := obtain(s, other); err != nil || other.blobs.Load() != n {
		t.Errorf("%v, %d fetched", err, other.blobs.Load()-n)
	}
}

// TestStoreIndex: of an image of several machines this one's is taken, and known again without being fetched.
func TestStoreIndex(t *testing.T) {
	mine, other := imageOf(t, layerOf(t, "f etc/a mine")), imageOf(t, layerOf(t, "f etc/a other"))
	h, s := newRegistry(t, other), &Store{Dir: t.TempDir(), Limits: DefaultLimits}
	on := func(img v1.Image, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		}
	}
	index := mutate.AppendManifests(empty.Index, on(other, "mips"), on(mine, runtime.GOARCH))
	if err := remote.WriteIndex(h.image.Ref, index); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if text, err := obtain(s, h); err != nil || text != "mine" {
			t.Fatal(text, err)
		}
	}
	if n := h.gets.Load(); n != 2 {
		t.Errorf("%d manifests were fetched, want the index and the image", n)
	}
	// The tag means something else now.
	if err := remote.Write(h.image.Ref, other); err != nil {
		t.Fatal(err)
	}
	if text, err := obtain(s, h); err != nil || text != "other" {
		t.Fatal(text, err)
	}
}

// TestStoreBad: what goes wrong leaves nothing that is taken for an image.
func TestStoreBad(t *testing.T) {
	img := imageOf(t, layerOf(t, "f etc/a "+strings.Repeat("x", 100_000)))
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	size, err := layers[0].Size()
	if err != nil {
		t.Fatal(err)
	}
	size &^= 1 // what is sent is of pairs
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	of := func(r *http.Request) bool { return strings.Contains(r.URL.Path, digest.Hex) }
	for what, c := range map[string]struct {
		do  func(http.ResponseWriter, *http.Request) bool
		bad string
	}{
		"another layer": {func(w http.ResponseWriter, r *http.Request) bool {
			if of(r) {
				_, _ = w.Write(bytes.Repeat([]byte{0x1f, 0x8b}, int(size/2)))
			}
			return of(r)
		}, "layer 1 of 1"},
		"cut off": {func(w http.ResponseWriter, r *http.Request) bool {
			if of(r) {
				w.Header().Set("Content-Length", fmt.Sprint(size))
				_, _ = w.Write([]byte("\x1f\x8b\x08"))
			}
			return of(r)
		}, "EOF"},
		"forbidden": {func(w http.ResponseWriter, r *http.Request) bool {
			if of(r) {
				w.WriteHeader(http.StatusForbidden)
			}
			return of(r)
		}, "403"},
	} {
		h, s := newRegistry(t, img), &Store{Dir: t.TempDir(), Limits: DefaultLimits, trusts: always}
		h.spoil.Store(&c.do)
		if _, err := obtain(s, h); err == nil || !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v, want %q", what, err, c.bad)
		}
		if left, _ := os.ReadDir(filepath.Join(s.Dir, "images")); len(left) != 0 {
			t.Errorf("%s leaves %v", what, left)
		}
		// A process that died in the middle left this.
		h.spoil.Store(nil)
		if _, err := obtain(s, h); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
	}
}

// TestStoreStall: a registry that sends nothing is given up.
func TestStoreStall(t *testing.T) {
	img := imageOf(t, layerOf(t, "f etc/a "+strings.Repeat("x", 100_000)))
	h := newRegistry(t, img)
	hang := make(chan struct{})
	defer close(hang)
	do := func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("\x1f\x8b\x08"))
		w.(http.Flusher).Flush()
		<-hang
		return true
	}
	p := newPuller(context.Background(), h.image, authn.DefaultKeychain, userfile.Identity{})
	p.stall = 50 * time.Millisecond
	got, _, _, err := p.find(v1.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.ConfigFile(); err != nil {
		t.Fatal(err)
	}
	h.spoil.Store(&do)
	err = p.layers(got, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
	if err == nil || !strings.Contains(err.Error(), "sent nothing") {
		t.Errorf("%v", err)
	}
}

// TestWaitTold: who waits for an image that another process fetches is told how far that is.
func TestWaitTold(t *testing.T) {
	img := imageOf(t, layerOf(t, "f etc/a "+strings.Repeat("x", 100_000)))
	list, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	rc, err := list[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := list[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	h, dir := newRegistry(t, img), t.TempDir()
	half, goOn := make(chan struct{}), make(chan struct{})
	slow := func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, digest.Hex) {
			return false
		}
		_, _ = w.Write(text[:len(text)/2])
		w.(http.Flusher).Flush()
		close(half)
		<-goOn
		_, _ = w.Write(text[len(text)/2:])
		return true
	}
	h.spoil.Store(&slow)
	var wait sync.WaitGroup
	get := func(s *Store) {
		if text, err := obtain(s, h); err != nil || len(text) != 100_000 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}
	wait.Go(func() { get(&Store{Dir: dir, Limits: DefaultLimits}) })
	<-half
	told := progress.New()
	wait.Go(func() { get(&Store{Dir: dir, Limits: DefaultLimits, Meter: told}) })
	want := progress.State{Done: int64(len(text) / 2), Total: int64(len(text))}
	for until := time.Now().Add(20 * time.Second); told.State() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Errorf("%+v is told, want %+v", told.State(), want)
			break
		}
	}
	close(goOn)
	wait.Wait()
	if want.Done = want.Total; told.State() != want {
		t.Errorf("%+v is told at the end, want %+v", told.State(), want)
	}
}
