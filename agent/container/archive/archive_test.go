package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// tarOf is an archive of files by name.
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		h := tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			h.Size, h.Typeflag, h.Linkname, text = 0, tar.TypeSymlink, to, ""
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func image(t testing.TB, word string) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(tarOf(t, "a="+word), types.DockerUncompressedLayer),
		static.NewLayer(tarOf(t, "b="+word), types.DockerUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.Config(img, v1.Config{Env: []string{"WORD=" + word}}); err != nil {
		t.Fatal(err)
	}
	return img
}

// told is what an image says of itself, and the first file of each of its layers.
func told(img v1.Image) (string, error) {
	cfg, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	out := fmt.Sprint(cfg.Config.Env)
	list, err := img.Layers()
	if err != nil {
		return "", err
	}
	for _, l := range list {
		rc, err := l.Compressed()
		if err != nil {
			return "", err
		}
		all, err := io.ReadAll(rc)
		if err != nil {
			return "", err
		}
		tr := tar.NewReader(bytes.NewReader(all))
		h, err := tr.Next()
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			return "", err
		}
		out += " " + h.Name + "=" + string(text)
	}
	return out, nil
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	oci := filepath.Join(dir, "oci")
	at, err := layout.Write(oci, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		if err := at.AppendImage(image(t, word),
			layout.WithAnnotations(map[string]string{refName: "lab/x:" + word})); err != nil {
			t.Fatal(err)
		}
	}
	packed := filepath.Join(dir, "oci.tar")
	if out, err := exec.Command("tar", "-C", oci, "-cf", packed, ".").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	docker := filepath.Join(dir, "docker.tar")
	ref, err := name.NewTag("lab/x:one")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(docker, ref, image(t, "one")); err != nil {
		t.Fatal(err)
	}
	const one = "[WORD=one] a=one b=one"
	for _, c := range []struct{ path, tag, want string }{
		{oci, "one", one}, {oci, "lab/x:one", one}, {packed, "one", one}, {packed, "two", "[WORD=two] a=two b=two"},
		{docker, "", one}, {docker, "one", one},
		{oci, "", "oci: it has several images: name one by oci:PATH:TAG of lab/x:one, lab/x:two"},
		{oci, "three", "oci: it has no image three for linux/"},
		{docker, "two", "docker.tar: 0 images of it are meant: name one by docker-archive:PATH:TAG of lab/x:one"},
		{dir, "", "index.json: no such file"},
	} {
		img, err := Open(c.path, c.tag)
		got := ""
		if err == nil {
			if got, err = told(img); err == nil && !strings.HasPrefix(img.Source, "file:") {
				t.Errorf("%s: %s", c.path, img.Source)
			}
			img.Close()
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s %s: %q, want %q", c.path, c.tag, got, c.want)
		}
	}
	before, err := Open(oci, "one")
	if err != nil {
		t.Fatal(err)
	}
	before.Close()
	list, err := before.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := list[1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(oci, "blobs", "sha256", digest.Hex)
	if err := os.WriteFile(blob, tarOf(t, "b=lie"), 0o644); err != nil {
		t.Fatal(err)
	}
	after, err := Open(oci, "one")
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if after.Source == before.Source {
		t.Error("a file that was changed is taken for the same")
	}
	if _, err := told(after); err == nil || !strings.Contains(err.Error(), "the layer is not what its digest") {
		t.Errorf("a layer that lies: %v", err)
	}
	if err := os.Remove(blob); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(oci, "one"); err == nil {
		t.Error("a layer is missing, and nobody says so")
	}
}

// TestBad: an archive whose names lead elsewhere has nothing of there.
func TestBad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tar")
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"no archive": {[]byte(strings.Repeat("x", 2000)), "it is no archive of an image"},
		"nothing":    {tarOf(t, "a=b"), "it has neither index.json nor manifest.json"},
		"a link out": {tarOf(t, "manifest.json=->/etc/passwd"), "open etc/passwd: file does not exist"},
		"a circle":   {tarOf(t, "manifest.json=->x", "x=->manifest.json"), "too many levels"},
		"a path out": {tarOf(t, `manifest.json=[{"Config":"/etc/passwd","Layers":[]}]`),
			"open etc/passwd: file does not exist"},
		"no config": {tarOf(t, `manifest.json=[{"Config":"c","Layers":["a","b"]}]`, "c={}"),
			"manifest.json has 2 layers and c 0"},
		"a digest": {tarOf(t,
			`index.json={"manifests":[{"digest":"sha256:../../../../etc/passwd","mediaType":"x"}]}`), "read its index"},
	} {
		if err := os.WriteFile(file, c.text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzOpen: whatever a user's archive has in it, it is opened or refused.
func FuzzOpen(f *testing.F) {
	f.Add(tarOf(f, `manifest.json=[{"Config":"c","Layers":["a"]}]`,
		`c={"rootfs":{"diff_ids":["sha256:`+strings.Repeat("0", 64)+`"]}}`, "a=->b", "b=x"))
	f.Add(tarOf(f, `index.json={"manifests":[{"digest":"sha256:`+strings.Repeat("0", 64)+`"}]}`, "oci-layout={}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "x.tar")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		img, err := Open(file, "")
		if err != nil {
			return
		}
		defer img.Close()
		_, _ = told(img)
	})
}
