package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/agent/container"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// bombOf is an image of a few layers, each with a file of zeros, packed.
func bombOf(t *testing.T, layers int, size int64) v1.Image {
	t.Helper()
	img := empty.Image
	for i := range layers {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(z)
		name := fmt.Sprintf("zeros%d", i)
		err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = io.CopyN(w, zeros{}, size)
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.Bytes())), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// TestBombs are images that unpack to far more than they are packed. They are refused in time, and nothing is left.
func TestBombs(t *testing.T) {
	const mib = 1 << 20
	limits := Limits{Files: 100, Bytes: 64 * mib, Any: 8 * mib, Ratio: 20}
	for what, c := range map[string]struct {
		layers int
		size   int64
		bad    string
	}{
		"no bomb":      {1, 7 * mib, ""},
		"one layer":    {1, 24 * mib, "20 times"},
		"three layers": {3, 3 * mib, "20 times"},
	} {
		img := bombOf(t, c.layers, c.size)
		check := func(t *testing.T, s *Store, err error) {
			t.Helper()
			if (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%v, want %q", err, c.bad)
			}
			if left, _ := filepath.Glob(filepath.Join(s.Dir, "images", "*")); err != nil && len(left) > 0 {
				t.Errorf("%q is left", left)
			}
			if left, _ := filepath.Glob(filepath.Join(s.Dir, "images", ".*", "*")); err != nil && len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		}
		t.Run("registry, "+what, func(t *testing.T) {
			s := &Store{Dir: t.TempDir(), Limits: limits, trusts: always}
			_, err := s.Obtain(context.Background(), newRegistry(t, img).image, authn.DefaultKeychain)
			check(t, s, err)
		})
		t.Run("archive, "+what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "image.tar")
			tag, err := name.NewTag("lab/a:1")
			if err == nil {
				err = tarball.WriteToFile(file, tag, img)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := &Store{Dir: t.TempDir(), Limits: limits}
			q := container.Request{
				File: &container.File{Path: file}, Image: file,
				UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
			}
			_, err = ofFile(s, &q)
			check(t, s, err)
		})
	}
}

// TestUnpackBySize refuses an image of more bytes than the site allows, however well it was packed.
func TestUnpackBySize(t *testing.T) {
	l := Limits{Files: 10, Bytes: 1 << 20, Any: 1 << 30, Ratio: 20}
	if _, err := unpackAll(t, l, layerOf(t, "f a "+strings.Repeat("x", 2<<20))); err == nil ||
		!strings.Contains(err.Error(), "--image-size") {
		t.Error(err)
	}
}
