package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dev.muster/agent/container"
	"dev.muster/agent/container/archive"
	"dev.muster/agent/container/layers"
	"dev.muster/agent/container/progress"
	"dev.muster/agent/userfile"
	"dev.muster/durable"
	"dev.muster/wire"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// Store keeps images unpacked, each once, by the digest of its manifest. Only root gets to it by
// name.
//
//	images/sha256-DIGEST/root      the files
//	images/sha256-DIGEST/config    what the image says of its programs
//	images/sha256-DIGEST/sources   registries and repositories that all of it came from, one a line; with @UID
//	                               where the name of the registry means what that user has started
//	images/.sha256-DIGEST.SOURCE   one that is being unpacked, or was when its process died
//	names/sha256-DIGEST.SOURCE     which image that source's digest means here: it may be that of an index
//	locks/sha256-DIGEST.SOURCE    and how far who has it is (package progress)
//	layers                         what registries sent, for other nodes (package layers)
//	mnt                            where launchers mount; always empty outside of their namespaces
//	steps/STEP                     what a step writes into its container
//	uses, jobs                     who runs in an image (package container)
type Store struct {
	Dir    string
	Limits Limits // of one image
	Limit  int64  // bytes of all images; 0: half of the file system
	// Meter is told how far a fetch is; nil: nobody is.
	Meter *progress.Meter
	// Ask gets layers from other nodes; nil: there are none.
	Ask askFunc
	// As is for whom images are obtained.
	As userfile.Identity
	// trusts reports whether the name of a registry means the same to all users; nil: isShared does.
	trusts func(registry string) bool
}

const (
	rootName    = "root"
	configName  = "config"
	sourcesName = "sources"
)

// ready makes the store's folders.
func (s *Store) ready() error {
	for _, d := range []string{"images", "names", "locks", "mnt", "steps"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, d), 0o700); err != nil {
			return err
		}
	}
	return os.Chmod(s.Dir, 0o700)
}

// Obtain is the unpacked image, fetched if the store lacks it. The registry is asked each time:
// only by its answer is it known that this user may have the image, and what the tag means now.
func (s *Store) Obtain(ctx context.Context, image Remote, keys authn.Keychain) (container.Image, error) {
	if err := s.ready(); err != nil {
		return container.Image{}, fmt.Errorf("the node's store of images: %w", err)
	}
	trusts := s.trusts
	if trusts == nil {
		trusts = isShared
	}
	of := ""
	if !trusts(image.Ref.Context().RegistryStr()) { // it is known by its name and the user: each has to see its layers
		of = "@" + strconv.FormatUint(uint64(s.As.UID), 10)
	}
	for {
		p := newPuller(ctx, image, keys, s.As)
		p.meter, p.of = s.Meter, of
		if of == "" { // other nodes mean another registry by such a name
			p.shared(layers.In(s.Dir), s.Ask)
		}
		got, err := s.obtain(p)
		if err != nil && p.helped() && ctx.Err() == nil { // others may be at fault
			p = newPuller(ctx, image, keys, s.As)
			p.meter, p.of = s.Meter, of
			got, err = s.obtain(p)
		}
		if err != nil {
			return got, err
		}
		err = touched(filepath.Dir(got.Root), image.Ref.String())
		if !errors.Is(err, fs.ErrNotExist) { // or it was removed meanwhile, to make room
			return got, err
		}
	}
}

func (s *Store) obtain(p *puller) (got container.Image, err error) {
	source := p.source()
	asked, ok := p.known()
	if ok {
		if have, ok := s.recall(asked, source); ok {
			return have, nil
		}
	}
	img, digest, top, err := p.find(asked)
	if err != nil {
		return container.Image{}, err
	}
	if got, err = s.keep(p, img, digest); err == nil {
		err = durable.Swap(s.nameFile(top, source), []byte(fileOf(digest)), 0o600)
	}
	return got, err
}

// keep is the unpacked image, which is unpacked if the store lacks it.
func (s *Store) keep(p *puller, img v1.Image, digest v1.Hash) (container.Image, error) {
	name, source := fileOf(digest), p.source()
	// A lock for each source: a slow registry holds up nobody who has the image from another.
	work := name + "." + short(source)
	held, err := s.lock(work)
	if err != nil {
		return container.Image{}, fmt.Errorf("the node's store of images: %w", err)
	}
	defer unlock(held)
	dir := filepath.Join(s.Dir, "images", name)
	have, err := open(dir)
	switch {
	case err == nil && from(dir, source):
		return have, nil
	case err == nil: // another registry has it under the same digest: it must show that it has all of it
		if _, err := img.ConfigFile(); err != nil {
			return container.Image{}, p.explain(err)
		}
		if err := p.layers(img, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }); err != nil {
			return container.Image{}, err
		}
		return have, addSource(dir, source)
	case !errors.Is(err, fs.ErrNotExist):
		return container.Image{}, err
	}
	s.makeRoom(img)
	p.meter = s.Meter.And(int(held.Fd()))
	p.meter.Set(progress.State{}) // another's fetch, which was waited for, came to nothing
	if err := s.unpack(p, img, work, dir); err != nil {
		return container.Image{}, err
	}
	s.makeRoom(nil)
	return open(dir)
}

// ObtainFile is the unpacked image of an archive, which was opened with the user's rights.
func (s *Store) ObtainFile(ctx context.Context, a *archive.Image, ref string) (got container.Image, err error) {
	if err := s.ready(); err != nil {
		return got, fmt.Errorf("the node's store of images: %w", err)
	}
	digest, err := a.Digest()
	if err != nil {
		return got, err
	}
	for {
		p := newPuller(ctx, Remote{}, nil, s.As)
		p.file, p.meter = a.Source, s.Meter
		if got, err = s.keep(p, a, digest); err != nil {
			return got, err
		}
		err = touched(filepath.Dir(got.Root), ref)
		if !errors.Is(err, fs.ErrNotExist) { // or it was removed meanwhile, to make room
			return got, err
		}
	}
}

// makeRoom removes images that were long not used for one that is to be unpacked. An image is worth more
// than the bound: whether it fits is found out when it is written.
func (s *Store) makeRoom(img v1.Image) {
	var need int64
	if img != nil {
		layers, _ := img.Layers() // unpack tells what is wrong with them
		need = expansion * layersSize(layers)
	}
	_, err := s.Prune(max(s.limit()-need, 0), keepFree+need)
	if err := errors.Join(s.sweep(sweptAtOnce), err); err != nil {
		fmt.Fprintln(os.Stderr, "muster: no room is made for images:", err)
	}
}

func fileOf(h v1.Hash) string { return h.Algorithm + "-" + h.Hex }

// recall finds an image by what the registry calls it. The registry must be one that all of it came
// from.
func (s *Store) recall(asked v1.Hash, source string) (container.Image, bool) {
	name, err := os.ReadFile(s.nameFile(asked, source))
	if err != nil {
		return container.Image{}, false
	}
	dir := filepath.Join(s.Dir, "images", filepath.Base(string(name)))
	have, err := open(dir)
	return have, err == nil && from(dir, source)
}

// nameFile says which image a digest means. Each source has its own: what one says is not believed
// of another's.
func (s *Store) nameFile(digest v1.Hash, source string) string {
	return filepath.Join(s.Dir, "names", fileOf(digest)+"."+short(source))
}

// short names a source in a file name.
func short(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:8])
}

// lock waits until nobody else unpacks the image, and tells meanwhile how far that one is. The lock ends with its
// process, or when the file is closed.
func (s *Store) lock(name string) (*os.File, error) {
	return s.lockBy(name, func(fd int) error {
		err := flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			stop := s.Meter.Follow(fd)
			err = flock(fd, unix.LOCK_EX)
			stop()
		}
		return err
	})
}

// lockNow is lock that does not wait: unix.EWOULDBLOCK says that somebody else has it.
func (s *Store) lockNow(name string) (*os.File, error) {
	return s.lockBy(name, func(fd int) error { return flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
}

// lockBy locks the file of a name, which may be removed by unlock meanwhile.
func (s *Store) lockBy(name string, lock func(fd int) error) (*os.File, error) {
	path := filepath.Join(s.Dir, "locks", name)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(int(f.Fd())); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		here, herr := f.Stat()
		there, err := os.Stat(path)
		if errors.Join(herr, err) == nil && os.SameFile(here, there) {
			return f, nil
		}
		f.Close()
	}
}

// unlock gives a lock back, and removes its file: users may have images fetched by as many names as they like.
func unlock(f *os.File) {
	_ = os.Remove(f.Name())
	f.Close()
}

func flock(fd, how int) (err error) {
	for {
		if err = unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// unpack fetches an image and puts it into the store when it is whole and on the disk.
func (s *Store) unpack(p *puller, img v1.Image, work, dir string) (err error) {
	tmp := filepath.Join(s.Dir, "images", "."+work)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	root := filepath.Join(tmp, rootName)
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return p.explain(err)
	}
	cfg := container.Config{Env: file.Config.Env, Entrypoint: file.Config.Entrypoint, WorkDir: file.Config.WorkingDir}
	u, err := newUnpacker(root, s.Limits)
	if err != nil {
		return err
	}
	defer u.close()
	u.packed = p.packed(img)
	if err := p.layers(img, u.layer); err != nil {
		return err
	}
	text, err := wire.Marshal(&cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, configName), text, 0o600); err != nil {
		return err
	}
	if err := addSource(tmp, p.source()); err != nil {
		return err
	}
	if err := writeSize(tmp, s.Limits.Bytes-u.left.Bytes, s.Limits.Files-u.left.Files); err != nil {
		return err
	}
	if err := syncAll(tmp); err != nil {
		return err
	}
	err = durable.Rename(tmp, dir)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) { // from another source meanwhile
		return errors.Join(os.RemoveAll(tmp), addSource(dir, p.source()))
	}
	return err
}

// syncAll has all of a folder's file system on the disk: after a power failure no image lacks
// files.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// open reads what the store has of an image.
func open(dir string) (container.Image, error) {
	text, err := os.ReadFile(filepath.Join(dir, configName))
	if err != nil {
		return container.Image{}, err
	}
	out := container.Image{Root: filepath.Join(dir, rootName)}
	if err := wire.Unmarshal(text, &out.Config); err != nil {
		return container.Image{}, fmt.Errorf("read %s: %w", dir, err)
	}
	return out, nil
}

func from(dir, source string) bool {
	text, err := os.ReadFile(filepath.Join(dir, sourcesName))
	return err == nil && slices.Contains(strings.Fields(string(text)), source)
}

func addSource(dir, source string) error {
	return addLine(filepath.Join(dir, sourcesName), source, maxSources)
}
