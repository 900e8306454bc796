package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/container/layers"
	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sys/unix"
)

// aged has an image be asked for so long ago.
func aged(t *testing.T, s *Store, name string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	if err := os.Chtimes(filepath.Join(s.imageDir(name), configName), at, at); err != nil {
		t.Fatal(err)
	}
}

// stored puts an image of so many bytes into the store, last used so long ago.
func stored(t *testing.T, s *Store, bytes int, ago time.Duration) string {
	t.Helper()
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a "+strings.Repeat("x", bytes))))
	got, err := s.Obtain(context.Background(), h.image, authn.DefaultKeychain)
	if err != nil {
		t.Fatal(err)
	}
	name := container.NameOf(got)
	aged(t, s, name, ago)
	return name
}

func names(t *testing.T, s *Store) (list []string) {
	t.Helper()
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		list = append(list, e.Name)
	}
	return list
}

// ageLayers has all layers be read last so long ago.
func ageLayers(t *testing.T, s *Store, age time.Duration) {
	t.Helper()
	dir, at := string(layers.In(s.Dir)), time.Now().Add(-age)
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := os.Chtimes(filepath.Join(dir, e.Name()), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPrune: what was longest not used goes, but for what is pinned, in use or just asked for.
func TestPrune(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits, Limit: 1 << 40, trusts: always}
	old := stored(t, s, 1000, 5*time.Hour)
	pinned := stored(t, s, 1001, 6*time.Hour)
	running := stored(t, s, 1002, 7*time.Hour)
	held := stored(t, s, 1003, 8*time.Hour)
	newer := stored(t, s, 1004, time.Hour)
	asked := stored(t, s, 1005, 0)
	e, err := s.entry(pinned)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pin(e, true); err != nil {
		t.Fatal(err)
	}
	image := container.Image{Root: filepath.Join(s.imageDir(running), rootName)}
	if err := image.Use(s.Dir, "job_1.step_0"); err != nil {
		t.Fatal(err)
	}
	named := container.Spec{Store: s.Dir}
	named.Name, named.Image = "work", "x"
	if err := named.Keep("job_2", "/", container.Image{Root: filepath.Join(s.imageDir(held), rootName)}); err != nil {
		t.Fatal(err)
	}
	// Layers go first: those of now stay, and count.
	before := names(t, s)
	ageLayers(t, s, layersKept/2)
	if _, err := s.Prune(7000, 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(string(layers.In(s.Dir))); len(left) > 0 || !slices.Equal(names(t, s), before) {
		t.Errorf("%d layers are left, and of %v %v", len(left), before, names(t, s))
	}
	if _, err := s.Prune(6000, 0); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s); slices.Contains(got, old) || len(got) != 5 {
		t.Errorf("one is too much, and %s is the oldest that may go: %v are left", old, got)
	}
	if _, err := s.Prune(0, 0); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, s), []string{asked, pinned, running, held}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v without %s", got, want, newer)
	}
	if e, err = s.entry(running); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(e); err == nil {
		t.Error("an image was removed under a step")
	}
	if err := container.Unuse(s.Dir, "job_1.step_0"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(container.JobDir(s.Dir, "job_2")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(0, 0); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, s), []string{asked, pinned}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestMakeRoom: an unpack removes what does not fit beside it, and what was left by processes that died.
func TestMakeRoom(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits, Limit: 3000, trusts: always}
	old := stored(t, s, 2000, time.Hour)
	left := s.imageDir(".sha256-dead.0011")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := s.lock("sha256-busy.0011")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	busy := s.imageDir(".sha256-busy.0011")
	if err := os.Mkdir(busy, 0o700); err != nil {
		t.Fatal(err)
	}
	now := stored(t, s, 2001, 0)
	if got := names(t, s); !slices.Equal(got, []string{now}) {
		t.Errorf("%v are left, want %s without %s", got, now, old)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what a dead process has left is there")
	}
	if _, err := os.Stat(busy); err != nil {
		t.Error("what somebody is at was removed: ", err)
	}
}

// TestImageCommands: muster image, word by word.
func TestImageCommands(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits, Limit: 1 << 40, trusts: always}
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a xyz")))
	ref := h.image.Ref.String()
	do := func(words ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := verbs[words[0]](s, &out, words[1:]); err != nil {
			return out.String() + "error: " + err.Error()
		}
		return out.String()
	}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"ls"}, "0 images, 0 B of 1 TiB\n"},
		{[]string{"pull", ref}, "3 B, "},
		{[]string{"ls"}, "-      " + ref + "\n1 images, 3 B of 1 TiB\n"},
		{[]string{"pin", ref}, ""},
		{[]string{"ls"}, "pinned"},
		{[]string{"rm", "none"}, "none: " + ErrNone.Error()},
		{[]string{"unpin", "none", ref}, "error: none"},
		{[]string{"rm"}, "error: name an image"},
		{[]string{"rm", ref}, ""},
		{[]string{"ls"}, "0 images"},
	} {
		if got := do(c.words...); !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

// TestSweepAtOnce: a step that fetches an image removes a few at most of those that others have not finished; muster
// image prune removes all.
func TestSweepAtOnce(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits}
	if err := s.ready(); err != nil {
		t.Fatal(err)
	}
	const others = sweptAtOnce + 3
	for i := range others {
		dir := filepath.Join(s.Dir, "images", fmt.Sprintf(".sha256-%d.source", i), "root", "folder")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	held, err := s.lock("sha256-0.source") // somebody unpacks it
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		left, err := filepath.Glob(filepath.Join(s.Dir, "images", ".*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	if s.makeRoom(nil); count() != others-sweptAtOnce {
		t.Errorf("%d of %d are left, want %d", count(), others, others-sweptAtOnce)
	}
	held.Close()
	if err := prune(s, io.Discard, nil); err != nil || count() != 0 {
		t.Errorf("%d are left: %v", count(), err)
	}
}

// TestManyImages: a user who has very many images fetched, by very many names, takes neither the files of the node's
// file system, nor the time of others' fetches, which list the images.
func TestManyImages(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Limits: DefaultLimits, Limit: 1 << 40, trusts: always}
	for i := range maxImages + 3 {
		s.put(t, fmt.Sprintf("sha256-%d", i), 0, time.Hour)
	}
	if n := s.left(t); n != maxImages {
		t.Errorf("%d images are left, want %d", n, maxImages)
	}

	s = &Store{Dir: t.TempDir(), Limits: DefaultLimits, Limit: 1 << 40, trusts: always}
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Files > 0 {
		s.put(t, "sha256-old", 1, time.Hour)
		s.put(t, "sha256-full", int(st.Files/2)+1, 0)
		if n := s.left(t); n != 1 {
			t.Errorf("%d images are left beside one that has half of all files", n-1)
		}
	}
	h := newRegistry(t, imageOf(t, layerOf(t, "f etc/a xyz")))
	got, err := s.Obtain(context.Background(), h.image, authn.DefaultKeychain)
	if err != nil {
		t.Fatal(err)
	}
	if locks, err := os.ReadDir(filepath.Join(s.Dir, "locks")); err != nil || len(locks) > 0 {
		t.Errorf("%v are left, %v", locks, err)
	}
	for i := range 2 * maxRefs {
		if err := touched(filepath.Dir(got.Root), fmt.Sprintf("/a path %d\n\x1b[2J", i)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := s.entry(container.NameOf(got))
	if err != nil {
		t.Fatal(err)
	}
	if last := e.Refs[len(e.Refs)-1]; len(e.Refs) != maxRefs || last != fmt.Sprintf("/a?path?%d??[2J", 2*maxRefs-1) {
		t.Errorf("%d names, the last %q", len(e.Refs), last)
	}
}

// put makes an image of so many files, last used so long ago, that a digest names.
func (s *Store) put(t *testing.T, name string, files int, ago time.Duration) {
	t.Helper()
	dir := s.imageDir(name)
	for _, err := range []error{s.ready(), os.MkdirAll(filepath.Join(dir, rootName), 0o700), writeSize(dir, 0, files),
		os.WriteFile(filepath.Join(dir, configName), []byte("{}"), 0o600),
		os.WriteFile(filepath.Join(s.Dir, "names", "sha256-by."+name), []byte(name), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	aged(t, s, name, ago)
}

// left counts the images that a fetch leaves. Each has its name still.
func (s *Store) left(t *testing.T) int {
	t.Helper()
	if _, err := s.Prune(s.limit(), 0); err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadDir(filepath.Join(s.Dir, "names"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(names(t, s)); n != len(known) {
		t.Errorf("%d images have %d names", n, len(known))
	}
	return len(known)
}

// TestLocksOfOne: of many that lock one name one after another, each has it alone, though its file is removed each time.
func TestLocksOfOne(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	if err := s.ready(); err != nil {
		t.Fatal(err)
	}
	const users, times = 16, 50
	var inside atomic.Int32
	done := make(chan error, users)
	use := func() error {
		f, err := s.lock("one")
		if err != nil {
			return err
		}
		defer unlock(f)
		if inside.Add(1) != 1 {
			return errors.New("two have the lock")
		}
		inside.Add(-1)
		return nil
	}
	for range users {
		go func() {
			var err error
			for range times {
				err = errors.Join(err, use())
			}
			done <- err
		}()
	}
	for range users {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
