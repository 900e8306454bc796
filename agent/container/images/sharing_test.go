package images

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dev.muster/agent/container/layers"
	"dev.muster/agent/userfile"
	"dev.muster/api"
	"github.com/google/go-containerregistry/pkg/authn"
)

// neighbour answers as the node's daemon does, from another node's store.
type neighbour struct {
	*Store
	asked atomic.Int32
	cut   int64                   // of each layer no more is sent; 0: all
	spoil func(p []byte, n int64) // what is sent
}

func (n *neighbour) ask(_ context.Context, q api.LayerRequest) (io.ReadCloser, error) {
	n.asked.Add(1)
	r, err := layers.In(n.Dir).Open(context.Background(), q.Key, q.From)
	if err != nil {
		return nil, err
	}
	if n.cut > 0 {
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r, n.cut), r}, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{&spoiling{r: r, do: n.spoil}, r}, nil
}

type spoiling struct {
	r  io.Reader
	n  int64
	do func([]byte, int64)
}

func (s *spoiling) Read(p []byte) (int, error) {
	k, err := s.r.Read(p)
	if s.do != nil {
		s.do(p[:k], s.n)
	}
	s.n += int64(k)
	return k, err
}

// share obtains an image with a neighbour's help; the registry is taken for one that all nodes know by its name.
func share(t *testing.T, s *Store, h *testRegistry, n *neighbour) (string, *puller, error) {
	t.Helper()
	if err := s.ready(); err != nil {
		t.Fatal(err)
	}
	p := newPuller(context.Background(), h.image, authn.DefaultKeychain, userfile.Identity{})
	p.shared(layers.In(s.Dir), nil)
	if n != nil {
		p.share.ask = n.ask
	}
	got, err := s.obtain(p)
	if err != nil {
		return "", p, err
	}
	text, err := os.ReadFile(filepath.Join(got.Root, "etc/a"))
	return string(text), p, err
}

// TestShare: a second node has the whole image from the first, and the registry is asked for nothing but
// whether the user may have it; what breaks off comes from the registry.
func TestShare(t *testing.T) {
	big := strings.Repeat("0123456789", 100_000)
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a x"), layerOf(t, "f etc/a "+big), layerOf(t, "f b y")))
	first := &neighbour{Store: &Store{Dir: t.TempDir(), Limits: DefaultLimits}}
	if text, _, err := share(t, first.Store, h, nil); err != nil || text != big {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	blobs, gets := h.blobs.Load(), h.gets.Load()
	second := &Store{Dir: t.TempDir(), Limits: DefaultLimits}
	if text, p, err := share(t, second, h, first); err != nil || text != big || !p.helped() {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	if h.blobs.Load() != blobs || h.gets.Load() != gets {
		t.Errorf("the registry was asked for %d blobs and %d manifests more", h.blobs.Load()-blobs, h.gets.Load()-gets)
	}
	if n := first.asked.Load(); n != 5 { // a manifest, a configuration, three layers
		t.Errorf("the other node was asked for %d things", n)
	}
	first.cut = 300
	third := &Store{Dir: t.TempDir(), Limits: DefaultLimits}
	if text, _, err := share(t, third, h, first); err != nil || text != big {
		t.Fatalf("a node that ends in the middle: %d bytes: %v", len(text), err)
	}
}

// TestShareBad: what a node sends is checked, and the registry is asked once more for what is wrong.
func TestShareBad(t *testing.T) {
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a x")))
	first := &neighbour{Store: &Store{Dir: t.TempDir(), Limits: DefaultLimits}}
	if _, _, err := share(t, first.Store, h, nil); err != nil {
		t.Fatal(err)
	}
	first.spoil = func(p []byte, n int64) {
		if at := layers.HeadSize - n; at >= 0 && at < int64(len(p)) {
			p[at] ^= 1
		}
	}
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits}
	if _, p, err := share(t, s, h, first); err == nil || !p.helped() {
		t.Error("what is wrong was taken, or others are not found at fault:", err)
	}
	s.Ask = first.ask
	if text, err := obtain(s, h); err != nil || text != "x" {
		t.Errorf("%q %v", text, err)
	}
	if list, _ := filepath.Glob(filepath.Join(string(layers.In(s.Dir)), "*.part")); len(list) > 0 {
		t.Error("parts are left:", list)
	}
}

// TestShareRight: who may not have the image is not given it, though another node has it.
func TestShareRight(t *testing.T) {
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a x")))
	first := &neighbour{Store: &Store{Dir: t.TempDir(), Limits: DefaultLimits}}
	if _, _, err := share(t, first.Store, h, nil); err != nil {
		t.Fatal(err)
	}
	h.deny.Store(true)
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits}
	if _, _, err := share(t, s, h, first); err == nil {
		t.Error("an image is given without the registry's leave")
	}
	if n := first.asked.Load(); n != 0 {
		t.Errorf("the other node was asked %d times", n)
	}
}

// TestShareTogether: many nodes in a row that begin at once; each has the image, and the registry sends each
// thing once.
func TestShareTogether(t *testing.T) {
	big := strings.Repeat("0123456789", 200_000)
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a x"), layerOf(t, "f etc/a "+big)))
	const nodes = 6
	var wait sync.WaitGroup
	row := make([]*neighbour, nodes)
	for i := range row {
		row[i] = &neighbour{Store: &Store{Dir: t.TempDir(), Limits: DefaultLimits}}
	}
	ready := make([]sync.Map, nodes)
	for i := range row {
		wait.Go(func() {
			before := &neighbour{Store: row[max(i-1, 0)].Store}
			n := &waiting{n: before, begun: &ready[max(i-1, 0)], mine: &ready[i], first: i == 0}
			if err := row[i].ready(); err != nil {
				t.Error(err)
			}
			p := newPuller(context.Background(), h.image, authn.DefaultKeychain, userfile.Identity{})
			p.shared(layers.In(row[i].Dir), nil)
			p.share.ask = n.ask
			if _, err := row[i].obtain(p); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if b, m := h.blobs.Load(), h.gets.Load(); b != 3 || m != 1 {
		t.Errorf("the registry was asked for %d blobs and %d manifests, want 3 and 1", b, m)
	}
}

// waiting is a neighbour that is asked once it has begun with what it is asked for.
type waiting struct {
	n           *neighbour
	begun, mine *sync.Map // key → chan struct{}
	first       bool
}

func (w *waiting) ask(ctx context.Context, q api.LayerRequest) (io.ReadCloser, error) {
	mine, _ := w.mine.LoadOrStore(q.Key, make(chan struct{}))
	close(mine.(chan struct{}))
	if w.first {
		return nil, errors.New("nobody has it")
	}
	before, _ := w.begun.LoadOrStore(q.Key, make(chan struct{}))
	<-before.(chan struct{})
	return w.n.ask(ctx, q)
}
