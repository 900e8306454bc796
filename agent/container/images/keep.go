package images

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/container/layers"
	"dev.muster/durable"
	"golang.org/x/sys/unix"
)

// Files of images that are kept, and for how long. In addition to an image's files for steps:
//
//	refs      the names that it was asked for by, one a line
//	size      bytes and files, as they were unpacked
//	pinned    is there for an image that only goes by its name
//	config    its time is that of the last use

const (
	refsName = "refs"
	sizeName = "size"
	pinName  = "pinned"
	// goneSuffix ends the name of an image that is being removed.
	goneSuffix = ".gone"
	// fresh is how long after it was asked for no image is removed: its step has not begun.
	fresh = 10 * time.Minute
	// minDigest is the number of digits that name an image.
	minDigest = 4
	// layersKept is how long a layer is kept that no other node has asked for.
	layersKept = time.Hour
	// maxImages bounds the images of a node: each fetch, of any user, lists them.
	maxImages = 1 << 10
	// prunedAtOnce bounds the images that a fetch removes because there are more.
	prunedAtOnce = 64
	// maxRefs and maxSources bound the lines of refs and of sources.
	maxRefs    = 64
	maxSources = 1 << 10
	// expansion is how many bytes an image is taken to become for a byte that is sent, with that one.
	expansion = 4
)

// Entry is an image of the store.
type Entry struct {
	Name   string // of its folder: sha256-DIGEST
	Refs   []string
	Bytes  int64
	Files  int
	Used   time.Time // the last time that it was asked for
	Pinned bool
	InUse  bool
}

// ErrNone is why nothing was done to an image.
var ErrNone = errors.New("there is no such image in the store: muster image ls")

// List is what the store has, the last used first.
func (s *Store) List() ([]Entry, error) {
	dirs, err := os.ReadDir(filepath.Join(s.Dir, "images"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	used, err := container.InUse(s.Dir)
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, d := range dirs {
		if strings.HasPrefix(d.Name(), ".") {
			continue
		}
		e, err := s.entry(d.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		e.InUse = used[e.Name]
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Name, b.Name)) })
	return list, nil
}

func (s *Store) entry(name string) (Entry, error) {
	dir := s.imageDir(name)
	info, err := os.Stat(filepath.Join(dir, configName))
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: name, Used: info.ModTime()}
	text, err := os.ReadFile(filepath.Join(dir, refsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, err
	}
	e.Refs = strings.Fields(string(text))
	_, err = os.Stat(filepath.Join(dir, pinName))
	e.Pinned = err == nil
	e.Bytes, e.Files, err = sizeOf(dir)
	return e, err
}

func (s *Store) imageDir(name string) string { return filepath.Join(s.Dir, "images", name) }

// sizeOf reads how large an image is. One of an earlier version is counted, once.
func sizeOf(dir string) (bytes int64, files int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, sizeName))
	if err == nil {
		_, err = fmt.Sscan(string(text), &bytes, &files)
		return bytes, files, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, err
	}
	err = filepath.WalkDir(filepath.Join(dir, rootName), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files++
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return bytes, files, writeSize(dir, bytes, files)
}

func writeSize(dir string, bytes int64, files int) error {
	return os.WriteFile(filepath.Join(dir, sizeName), []byte(fmt.Sprintln(bytes, files)), 0o600)
}

// touched says that an image was asked for as ref.
func touched(dir, ref string) error {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, configName), now, now); err != nil {
		return err
	}
	return addLine(filepath.Join(dir, refsName), container.PlainRef(ref), maxRefs)
}

// addLine adds a line to a file that has none like it. Beyond most lines, the oldest go.
func addLine(file, line string, most int) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := strings.Fields(string(text))
	if slices.Contains(lines, line) {
		return nil
	}
	if len(lines) >= most {
		lines = append(lines[len(lines)-most+1:], line)
		return durable.Swap(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// Find is the image that is meant by the beginning of its digest, or by what it was asked for as.
func (s *Store) Find(what string) (Entry, error) {
	list, err := s.List()
	if err != nil {
		return Entry{}, err
	}
	digits := strings.TrimPrefix(what, "sha256:")
	match := func(e Entry) bool {
		_, hex, _ := strings.Cut(e.Name, "-")
		return len(digits) >= minDigest && strings.HasPrefix(hex, digits) || slices.Contains(e.Refs, what)
	}
	var found []Entry
	for _, e := range list {
		if match(e) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return Entry{}, fmt.Errorf("%s: %w", what, ErrNone)
	case 1:
		return found[0], nil
	}
	return Entry{}, fmt.Errorf("%s: %d images are called so: give more of the digest", what, len(found))
}

// Remove removes an image that is not in use.
func (s *Store) Remove(e Entry) error {
	used, err := container.InUse(s.Dir)
	if err != nil {
		return err
	}
	if used[e.Name] {
		return fmt.Errorf("%s: a job of this node runs in it", e.Name)
	}
	gone := s.imageDir("." + e.Name + goneSuffix)
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	if err := durable.Rename(s.imageDir(e.Name), gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// forget removes the names of images that are gone.
func (s *Store) forget() error {
	list, err := os.ReadDir(filepath.Join(s.Dir, "names"))
	for _, n := range list {
		file := filepath.Join(s.Dir, "names", n.Name())
		name, rerr := os.ReadFile(file)
		if rerr != nil {
			continue // it went meanwhile
		}
		if _, rerr = os.Stat(s.imageDir(filepath.Base(string(name)))); errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// Pin keeps an image from being removed to make room, or ends that.
func (s *Store) Pin(e Entry, on bool) error {
	file := filepath.Join(s.imageDir(e.Name), pinName)
	if on {
		return os.WriteFile(file, nil, 0o600)
	}
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// pruneLayers removes layers that no node has asked for lately, and if room is short all but those of
// now. It returns how many bytes are left.
func (s *Store) pruneLayers(limit, free int64) (int64, error) {
	kept := layers.In(s.Dir)
	left, err := kept.Prune(time.Now().Add(-layersKept))
	if err != nil || left <= limit && s.hasRoom(0, free) {
		return left, err
	}
	return kept.Prune(time.Now().Add(-fresh))
}

// Prune removes layers, then images, the longest unused first, until those that are left take no more than limit bytes
// and free bytes of the file system are free. Those that are pinned, in use or just asked for stay.
func (s *Store) Prune(limit, free int64) (removed []Entry, err error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	var total int64
	images, files := len(list), 0
	for _, e := range list {
		total += e.Bytes
		files += e.Files
	}
	left, err := s.pruneLayers(limit-total, free)
	if err != nil {
		return nil, err
	}
	total += left
	for _, e := range slices.Backward(list) {
		many := images > maxImages && len(removed) < prunedAtOnce
		if !many && total <= limit && s.hasRoom(files, free) {
			break
		}
		if e.Pinned || e.InUse || time.Since(e.Used) < fresh {
			continue
		}
		if err := s.Remove(e); err != nil {
			return removed, err
		}
		total -= e.Bytes
		files -= e.Files
		images--
		removed = append(removed, e)
	}
	if len(removed) > 0 {
		err = s.forget()
	}
	return removed, err
}

// hasRoom reports whether images of so many files leave room to others: so many bytes are free to root, and where the
// file system counts files, half of them are others' and some are free.
func (s *Store) hasRoom(files int, bytes int64) bool {
	var st unix.Statfs_t
	if unix.Statfs(s.Dir, &st) != nil {
		return false
	}
	return layers.Fits(&st, bytes) && (st.Files == 0 || uint64(files) <= st.Files/2)
}

// limit is how many bytes all images may take: half of the file system unless the node says otherwise.
func (s *Store) limit() int64 {
	var st unix.Statfs_t
	if s.Limit > 0 || unix.Statfs(s.Dir, &st) != nil {
		return s.Limit
	}
	return int64(st.Blocks) * st.Bsize / 2
}

// sweptAtOnce bounds what a fetch removes of what others have left behind: that may be very many files, and the step
// waits. Each fetch that may leave something removes so much first.
const sweptAtOnce = 4

// sweep removes what processes have left behind that died in the middle, so many of them at most: nobody holds the lock
// of the work.
func (s *Store) sweep(most int) error {
	left, err := filepath.Glob(filepath.Join(s.Dir, "images", ".*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if most == 0 {
			break
		}
		work := strings.TrimPrefix(filepath.Base(dir), ".")
		release, err := s.tryLock(work)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // somebody is at it
		}
		if err != nil {
			return err
		}
		most--
		err = os.RemoveAll(dir)
		release()
		if err != nil {
			return err
		}
	}
	return nil
}

// tryLock is lock for who does not wait.
func (s *Store) tryLock(name string) (release func(), err error) {
	f, err := s.lockNow(name)
	if err != nil {
		return nil, err
	}
	return func() { unlock(f) }, nil
}
