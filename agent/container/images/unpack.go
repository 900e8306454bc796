package images

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"dev.muster/agent/container/layers"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// Limits bound what an image may become on the node's disk.
type Limits struct {
	Files int
	Bytes int64
	// Any is how many bytes an image may have in any case; beyond that at most Ratio for each byte that is packed.
	// 0: Bytes alone counts.
	Any   int64
	Ratio int64
}

// DefaultLimits are above any image that is of use, and below what would fill a node.
var DefaultLimits = Limits{Files: 2 << 20, Bytes: 64 << 30, Any: 1 << 30, Ratio: 20}

// limitsOf are the default limits with the site's on the bytes of an image; 0: the site has none.
func limitsOf(most int64) Limits {
	l := DefaultLimits
	if most > 0 {
		l.Bytes = most
	}
	return l
}

const (
	// keepFree is how much of the file system an unpack leaves to others, in bytes.
	keepFree = layers.KeepFree
	// fileBytes is what a file or folder takes at least, in bytes.
	fileBytes = 4 << 10
	maxPath   = 4096
	maxLinks  = 40 // of one path, as the kernel follows
)

// whiteout begins the name of what a layer takes away of those below it; opaque is the file by
// which all of a folder goes.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	reserved = ".wh..wh."
)

// unpacker writes layers, lowest first, below a folder that nothing of it can leave: each parent is
// looked up by us, link by link, with links seen from the folder, and what is left to os is done
// through os.Root.
type unpacker struct {
	root  *os.Root
	left  Limits
	wrote int64
	// packed returns how many bytes were read of the packed image, which an honest one has as a whole; nil: unknown.
	packed func() int64
	fresh  map[string]bool // what this layer has made; its opaque folders keep that
	room   layers.Room

	dir, real string // the last parent, and what it was found to be
}

func newUnpacker(dir string, l Limits) (*unpacker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	u := &unpacker{root: root, left: l, room: layers.Room{On: top}}
	if err := u.room.TakeFiles(); err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

func (u *unpacker) close() {
	u.room.On.Close()
	u.root.Close()
}

// layer applies one layer, packed or not.
func (u *unpacker) layer(packed io.Reader) error {
	plain, done, err := unpacked(packed)
	if err != nil {
		return err
	}
	defer done()
	u.fresh = map[string]bool{}
	tr := tar.NewReader(plain)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return fmt.Errorf("the layer is no archive of files: %w", err)
		}
		if err := u.entry(h, tr); err != nil {
			return err
		}
	}
	// The digest is checked at the end of what was sent, which may be behind that of the archive.
	if err := u.rest(plain); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, packed)
	return err
}

// rest reads what is behind the archive's end. It is bounded as if it were written.
func (u *unpacker) rest(plain io.Reader) error {
	buf, left := make([]byte, 64<<10), u.left.Bytes
	defer func() { u.left.Bytes = left }()
	for {
		n, err := plain.Read(buf)
		if err := u.count(int64(n)); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// unpacked finds out how a layer is packed.
func unpacked(r io.Reader) (plain io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case len(magic) > 1 && magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(b, zstd.WithDecoderMaxMemory(128<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}

// entry does what one entry of the archive says.
func (u *unpacker) entry(h *tar.Header, body io.Reader) error {
	if err := u.countFile(); err != nil {
		return err
	}
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink:
	default: // devices, pipes, notes of the archiver: a container has the node's devices
		return nil
	}
	if name == "" {
		return nil // the folder itself
	}
	dir, base := path.Split(name)
	if dir, err = u.parent(path.Clean("/" + dir)[1:]); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	if strings.HasPrefix(base, whiteout) {
		err = u.whiteout(dir, base)
	} else {
		err = u.put(path.Join(dir, base), h, body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

// cleanName is an entry's name below the folder. One that would leave it is no mistake of an honest
// archiver.
func cleanName(name string) (string, error) {
	if len(name) > maxPath || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("an entry of the image has a name of %d bytes that is no path", len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("the image would write outside of itself: %q", name)
		}
	}
	return path.Clean("/" + name)[1:], nil
}

// parent is the folder that a name means, made if it is not there.
func (u *unpacker) parent(dir string) (string, error) {
	if dir == u.dir {
		return u.real, nil
	}
	real, err := u.resolve(dir)
	if err != nil {
		return "", err
	}
	u.dir, u.real = dir, real
	return real, nil
}

// resolve follows a folder's name from the top, links too: absolute ones begin at the top, and none
// gets above it.
func (u *unpacker) resolve(dir string) (string, error) {
	rest, at := strings.Split(dir, "/"), ""
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = strings.TrimPrefix(path.Dir("/"+at), "/")
			continue
		}
		next := path.Join(at, part)
		info, err := u.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := u.folder(next); err != nil {
				return "", err
			}
			u.fresh[next] = true
			at = next
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", unix.ELOOP
			}
			to, err := u.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if path.IsAbs(to) {
				at = ""
			}
			rest = append(strings.Split(to, "/"), rest...)
		case !info.IsDir(): // a later layer makes a folder of it
			if err := u.root.Remove(next); err != nil {
				return "", err
			}
			if err := u.folder(next); err != nil {
				return "", err
			}
			at = next
		default:
			at = next
		}
	}
	return at, nil
}

// folder makes a folder that no entry names. It counts as a file: the name of one entry may be that of 2000 folders.
func (u *unpacker) folder(name string) error {
	if err := u.countFile(); err != nil {
		return err
	}
	return u.root.Mkdir(name, 0o755)
}

// whiteout takes away what lower layers have.
func (u *unpacker) whiteout(dir, base string) error {
	u.dir, u.real = "", ""
	if base == opaque {
		return u.empty(dir)
	}
	name := strings.TrimPrefix(base, whiteout)
	if strings.HasPrefix(base, reserved) {
		return nil // of aufs
	}
	if name == "" || name == "." || name == ".." {
		return errors.New("it takes away what is not the image's")
	}
	err := u.root.RemoveAll(path.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// empty takes away all of a folder but what this layer has put there.
func (u *unpacker) empty(dir string) error {
	f, err := u.root.Open(path.Join(".", dir))
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return err
	}
	for _, n := range names {
		if full := path.Join(dir, n); !u.fresh[full] {
			if err := u.root.RemoveAll(full); err != nil {
				return err
			}
		}
	}
	return nil
}

// put makes one file, folder or link. All is root's: in the container it is seen as the user's.
func (u *unpacker) put(name string, h *tar.Header, body io.Reader) error {
	mode := fs.FileMode(h.Mode) & 0o777 // nothing is set-uid: no_new_privs would make it plain anyway
	if h.Typeflag == tar.TypeDir && h.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	there, err := u.root.Lstat(name)
	if err == nil && (h.Typeflag != tar.TypeDir || !there.IsDir()) {
		if h.Typeflag == tar.TypeLink {
			if same, _ := u.linked(h.Linkname); same == name {
				return nil // a link to itself
			}
		}
		u.dir, u.real = "", ""
		if err := u.root.RemoveAll(name); err != nil {
			return err
		}
		there = nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	u.fresh[name] = true
	switch h.Typeflag {
	case tar.TypeDir:
		if there == nil {
			if err := u.root.Mkdir(name, 0o755); err != nil {
				return err
			}
		}
		return u.root.Chmod(name, mode)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > maxPath {
			return errors.New("it is a link to nothing")
		}
		u.dir, u.real = "", ""
		return u.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		to, err := u.linked(h.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(to, name)
	}
	return u.file(name, mode, h, body)
}

// linked is the file that a hard link names.
func (u *unpacker) linked(name string) (string, error) {
	name, err := cleanName(name)
	if err != nil {
		return "", err
	}
	dir, base := path.Split(name)
	if dir, err = u.resolve(dir); err != nil {
		return "", err
	}
	return path.Join(dir, base), nil
}

func (u *unpacker) file(name string, mode fs.FileMode, h *tar.Header, body io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(&bounded{u, f}, body); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if h.ModTime.Unix() <= 0 {
		return f.Close()
	}
	if err := f.Close(); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime) // Python looks at it
}

// countFile takes note of a file, and refuses it beyond the limit.
func (u *unpacker) countFile() error {
	if u.left.Files--; u.left.Files < 0 {
		return errors.New("the image has too many files")
	}
	return u.room.Take(fileBytes)
}

// count takes note of bytes that are to be written, and refuses them beyond the limits.
func (u *unpacker) count(n int64) error {
	u.wrote += n
	if u.left.Bytes -= n; u.left.Bytes < 0 {
		return fmt.Errorf("the image is too large for a node: more than %s (--image-size)",
			sizeText(u.wrote+u.left.Bytes))
	}
	if u.left.Ratio == 0 || u.packed == nil || u.wrote <= u.left.Any {
		return nil
	}
	if packed := u.packed(); u.wrote > u.left.Ratio*packed {
		return fmt.Errorf("the image is refused: %s of it unpack to more than %s, and an image of more than %s "+
			"may have %d times its packed size", sizeText(packed), sizeText(u.wrote),
			sizeText(u.left.Any), u.left.Ratio)
	}
	return nil
}

// bounded counts what is written, and leaves the node some room.
type bounded struct {
	u *unpacker
	f *os.File
}

func (b *bounded) Write(p []byte) (int, error) {
	u := b.u
	if err := u.count(int64(len(p))); err != nil {
		return 0, err
	}
	if err := u.room.Take(int64(len(p))); err != nil {
		return 0, err
	}
	return b.f.Write(p)
}
