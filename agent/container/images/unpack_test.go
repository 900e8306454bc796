package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"
)

// archive is a layer of entries: KIND NAME TEXT, where KIND is d, f, s (link), h (hard link), c, b
// or p.
func layerOf(t *testing.T, entries ...string) []byte {
	t.Helper()
	kinds := map[string]byte{"d": tar.TypeDir, "f": tar.TypeReg, "s": tar.TypeSymlink, "h": tar.TypeLink,
		"c": tar.TypeChar, "b": tar.TypeBlock, "p": tar.TypeFifo}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		f := strings.SplitN(e, " ", 3)
		h := tar.Header{Typeflag: kinds[f[0]], Name: f[1], Mode: 0o6755}
		text := ""
		if len(f) > 2 {
			text = f[2]
		}
		if f[0] == "f" {
			h.Size = int64(len(text))
		} else {
			h.Linkname = text
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Skip("no archive has such an entry: ", err)
		}
		if f[0] == "f" {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpackAll unpacks layers into a folder beside one that must stay as it is, and lists what is
// there.
func unpackAll(t *testing.T, l Limits, layers ...[]byte) (list string, err error) {
	t.Helper()
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
	u, err := newUnpacker(root, l)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	for _, text := range layers {
		if err = u.layer(bytes.NewReader(text)); err != nil {
			break
		}
	}
	if text, rerr := os.ReadFile(filepath.Join(out, "file")); string(text) != "safe" {
		t.Fatalf("outside of the image: %q %v", text, rerr)
	}
	if names, _ := os.ReadDir(out); len(names) != 1 {
		t.Fatalf("outside of the image: %v", names)
	}
	var got []string
	werr := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name := strings.TrimPrefix(p, root+"/")
		switch {
		case d.IsDir():
			name += "/"
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			name += ">" + to
		case !d.Type().IsRegular():
			t.Errorf("%s is %v", p, d.Type())
		default:
			text, _ := os.ReadFile(p)
			name += "=" + string(text[:min(len(text), 20)])
		}
		if info, _ := d.Info(); info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s is %v", p, info.Mode())
		}
		got = append(got, name)
		return nil
	})
	if werr != nil {
		t.Fatal(werr)
	}
	slices.Sort(got)
	return strings.Join(got, " "), err
}

func TestUnpack(t *testing.T) {
	l := func(entries ...string) []string { return entries }
	for _, c := range []struct {
		what   string
		layers [][]string
		want   string
		bad    string
	}{
		{"files", [][]string{l("d a", "f a/b x", "f ./c/d y", "s e a/b", "h f a/b")},
			"a/ a/b=x c/ c/d=y e>a/b f=x", ""},
		{"a later layer wins", [][]string{l("f a x", "d b", "f b/c x"), l("f a y", "f b z")}, "a=y b=z", ""},
		{"a folder over a file", [][]string{l("f a x"), l("d a", "f a/b y")}, "a/ a/b=y", ""},
		{"a file below a file", [][]string{l("f a x"), l("f a/b y")}, "a/ a/b=y", ""},
		{"whiteout", [][]string{l("f a x", "f d/b x"), l("f .wh.a ", "f d/.wh.b ", "f .wh.none ")}, "d/", ""},
		{"opaque", [][]string{l("f d/a x", "f d/b x"), l("f d/c y", "f d/.wh..wh..opq ", "f d/e z")},
			"d/ d/c=y d/e=z", ""},
		{"opaque root", [][]string{l("f a x"), l("f b y", "f .wh..wh..opq ")}, "b=y", ""},
		{"of aufs", [][]string{l("f a x", "f .wh..wh.plnk x")}, "a=x", ""},
		{"a hard link is cut before it is written", [][]string{l("f a x", "h b a"), l("f b y")}, "a=x b=y", ""},
		{"a link to itself", [][]string{l("f a x", "h a a")}, "a=x", ""},
		{"links in the way",
			[][]string{
				l("d usr", "d usr/lib", "s lib usr/lib", "s abs /usr", "f lib/x 1", "f abs/y 2", "f abs/lib/z 3"),
			},
			"abs>/usr lib>usr/lib usr/ usr/lib/ usr/lib/x=1 usr/lib/z=3 usr/y=2", ""},
		{"devices", [][]string{l("c dev/null", "b dev/sda", "p dev/pipe", "f a x")}, "a=x", ""},
		{"absolute", [][]string{l("f /etc/x 1")}, "etc/ etc/x=1", ""},

		{"dots", [][]string{l("f ../outside/file bad")}, "", "outside of itself"},
		{"dots inside", [][]string{l("f a/../../outside/file bad")}, "", "outside of itself"},
		{"a link out", [][]string{l("s a ../outside", "f a/file bad")}, "a>../outside outside/ outside/file=bad", ""},
		{"an absolute link out", [][]string{l("s a /outside", "f a/file bad")},
			"a>/outside outside/ outside/file=bad", ""},
		{"through a link of a link", [][]string{l("s a b", "s b ../../outside", "f a/file bad")},
			"a>b b>../../outside outside/ outside/file=bad", ""},
		{"links in a circle", [][]string{l("s a b", "s b a", "f a/x bad")}, "a>b b>a", "too many levels"},
		{"a file over a link", [][]string{l("s a ../outside/file", "f a good")}, "a=good", ""},
		{"a hard link out", [][]string{l("h a ../outside/file")}, "", "outside of itself"},
		{"a hard link through a link", [][]string{l("s d ../outside", "h a d/file")},
			"d>../outside outside/", "no such file"},
		{"a hard link to a link", [][]string{l("s l ../outside/file", "h a l", "f a good")},
			"a=good l>../outside/file", ""},
		{"whiteout of the root", [][]string{l("f a x"), l("f .wh. ")}, "a=x", "not the image's"},
		{"whiteout of dot", [][]string{l("f a x"), l("f .wh.. ")}, "a=x", "not the image's"},
		{"whiteout of dots", [][]string{l("f a x"), l("f d/.wh... ")}, "a=x d/", "not the image's"},
		{"whiteout through a link", [][]string{l("s a ../outside"), l("f a/.wh.file ")}, "a>../outside outside/", ""},
		{"opaque through a link", [][]string{l("s a ../outside"), l("f a/.wh..wh..opq ")}, "a>../outside outside/", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			var layers [][]byte
			for _, e := range c.layers {
				layers = append(layers, layerOf(t, e...))
			}
			got, err := unpackAll(t, DefaultLimits, layers...)
			if got != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%q, %v; want %q, %q", got, err, c.want, c.bad)
			}
		})
	}
}

// TestUnpackBounds: images that are larger than they say, or than a node can bear.
func TestUnpackBounds(t *testing.T) {
	lies := layerOf(t, "f a "+strings.Repeat("x", 4096))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(layerOf(t, "f zeros "+strings.Repeat("\x00", 8<<20))); err != nil {
		t.Fatal(err)
	}
	z.Close()
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("f d%d/f x", i))
	}
	few := Limits{Files: 1000, Bytes: 1 << 20}
	for _, c := range []struct {
		what  string
		layer []byte
		l     Limits
		bad   string
	}{
		{"shorter than its header says", lies[:2048], few, "EOF"},
		{"a bomb", bomb.Bytes(), few, "too large"},
		{"many files", layerOf(t, many...), few, "too many files"},
		{"folders that no entry names", layerOf(t, "f "+strings.Repeat("d/", 1500)+"f x"), few, "too many files"},
		{"no archive", []byte(strings.Repeat("no archive ", 200)), few, "no archive"},
		{"broken gzip", bomb.Bytes()[:bomb.Len()/2], Limits{Files: 10, Bytes: 1 << 30}, "EOF"},
		{"broken zstd", []byte("\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff"), few, ""},
		{"a long name", layerOf(t, "f "+strings.Repeat("n/", 3000)+"n x"), few, "no path"},
	} {
		_, err := unpackAll(t, c.l, c.layer)
		if err == nil || !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v, want %q", c.what, err, c.bad)
		}
	}
}

// TestUnpackRoom: files without bytes leave some of a small file system to others, too.
func TestUnpackRoom(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf("f %d ", i))
	}
	u, err := newUnpacker(dir, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	if err := u.layer(bytes.NewReader(layerOf(t, many...))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("20,000 files: %v", err)
	}
}

// FuzzUnpack: whatever is sent, nothing is written outside.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte("f a x\ns b ../outside\nf b/file bad\nf .wh.a \nh c b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var entries []string
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			kind, name, ok := strings.Cut(line, " ")
			if ok && len(kind) == 1 && strings.Contains("dfshcbp", kind) && name != "" && !strings.ContainsRune(name, 0) {
				entries = append(entries, line)
			}
		}
		if len(entries) > 0 {
			// It checks what lies outside.
			_, _ = unpackAll(t, Limits{Files: 100, Bytes: 1 << 16}, layerOf(t, entries...))
		}
	})
}
