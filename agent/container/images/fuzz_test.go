package images

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLayer: whatever a layer has in it, it is unpacked or refused, and nothing happens outside of the image. The
// second layer goes on top of the first.
func FuzzLayer(f *testing.F) {
	seed := func(lower, upper []byte) { f.Add(lower, upper) }
	t := &testing.T{}
	seed(layerOf(t, "d etc", "f etc/a x", "s link /etc", "h hard etc/a", "s up ../../outside", "f up/file y"),
		layerOf(t, "f etc/.wh.a", "f .wh..wh..opq", "f link/b z", "s etc /", "f etc/outside/file q",
			"d link", "s link/x ../.."))
	seed(layerOf(t, "s a b", "s b a", "f a/c x"), layerOf(t, "h up/../x etc", "f ./.wh.. x", "c null", "p pipe"))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		top := t.TempDir()
		root, out := filepath.Join(top, "root"), filepath.Join(top, "outside")
		for _, d := range []string{root, out} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(out, "file"), []byte("safe"), 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := newUnpacker(root, Limits{Files: 100, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer u.close()
		for _, text := range [][]byte{lower, upper} {
			if u.layer(bytes.NewReader(text)) != nil {
				break
			}
		}
		if text, err := os.ReadFile(filepath.Join(out, "file")); string(text) != "safe" {
			t.Fatalf("outside of the image: %q %v", text, err)
		}
		names := 0
		err = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if filepath.Dir(path) == top {
				names++
			}
			info, ierr := e.Info()
			if ierr == nil && info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSetuid|fs.ModeSetgid) != 0 {
				t.Errorf("%s is a %v", path, info.Mode())
			}
			return nil
		})
		if err != nil || names != 2 {
			t.Fatalf("beside the image: %d %v", names, err)
		}
	})
}
