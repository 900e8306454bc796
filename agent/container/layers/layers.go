// Package layers keeps what registries sent of images, packed as it came, so that nodes get it from each
// other. A file can be read while it is written: a node that fetches a layer passes on at once what it
// has. The package knows nothing of registries (package images writes) nor of the network (package
// client sends).
//
//	KEY        a whole one: eight bytes that say its size, then its bytes
//	KEY.part   one that is being fetched, or whose process died; who writes it holds its lock
package layers

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// HeadSize is the length of what stands before the bytes of a layer: their number, big-endian.
	HeadSize   = 8
	partSuffix = ".part"
	// followEvery is how often a reader looks for more of a layer that is being fetched.
	followEvery = 5 * time.Millisecond
	// MaxSize is above any layer.
	MaxSize = 1 << 40
)

// The ends of a layer that is not had.
var (
	ErrNone   = errors.New("the layer is not here")
	ErrBusy   = errors.New("somebody fetches the layer already")
	ErrBroken = errors.New("whoever fetched the layer has given up")
	// ErrDigest is why a layer is thrown away.
	ErrDigest = errors.New("what came is not what its digest says")
)

// Folder is where a node keeps layers.
type Folder string

// In is the folder of layers in a store of images.
func In(store string) Folder { return Folder(filepath.Join(store, "layers")) }

// KeyOf names a layer of a source, which is a registry and a repository: what one source has is not given to who
// asks for it by another's name.
func KeyOf(source, digest string) string {
	sum := sha256.Sum256([]byte(source + "@" + digest))
	return hex.EncodeToString(sum[:])
}

// IsKey reports whether a text is one that KeyOf made.
func IsKey(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == hex.EncodedLen(sha256.Size)
}

func (f Folder) file(key string) string { return filepath.Join(string(f), key) }

// Reader reads a layer, head and all, from the first byte to the last; one that is still fetched as it comes.
type Reader struct {
	ctx context.Context
	f   *os.File
	at  int64
	end int64 // 0: not known yet
}

// Open opens a layer, whole or not, from a byte on, the head's bytes counted. ErrNone says that it is not here.
func (f Folder) Open(ctx context.Context, key string, from int64) (*Reader, error) {
	r := &Reader{ctx: ctx, at: from}
	var err error
	for _, name := range []string{key, key + partSuffix, key} { // it may become whole in between
		if r.f, err = os.Open(f.file(name)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	now := time.Now()
	_ = os.Chtimes(f.file(key), now, now) // so that it stays; it may have gone, or not be whole
	return r, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		n, err := r.f.ReadAt(p, r.at)
		if n > 0 {
			r.at += int64(n)
			return n, nil
		}
		if errors.Is(err, io.EOF) {
			err = r.more()
		}
		if err != nil {
			return 0, err
		}
	}
}

// more waits for what is still to come; io.EOF says that nothing is.
func (r *Reader) more() error {
	err := r.readHead()
	switch {
	case err != nil:
		return err
	case r.end > 0 && r.at >= r.end:
		return io.EOF
	}
	return r.wait()
}

// Size waits until the layer's size is known. Reads from then on are behind the head.
func (r *Reader) Size() (int64, error) {
	for r.end == 0 {
		if err := r.look(); err != nil {
			return 0, err
		}
	}
	r.at = max(r.at, HeadSize)
	return r.end - HeadSize, nil
}

// look finds out whether more is to come, and waits a moment for it.
func (r *Reader) look() error {
	if err := r.readHead(); err != nil || r.end > 0 {
		return err
	}
	return r.wait()
}

// readHead learns how much there will be, once that is written.
func (r *Reader) readHead() (err error) {
	if r.end == 0 {
		r.end, err = endOf(r.f)
	}
	return err
}

// endOf is where a file's head says that it ends; 0 while there is no head.
func endOf(f *os.File) (int64, error) {
	var head [HeadSize]byte
	_, err := f.ReadAt(head[:], 0)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return endIn(head)
}

// endIn is where a layer with such a head ends.
func endIn(head [HeadSize]byte) (int64, error) {
	size := binary.BigEndian.Uint64(head[:])
	if size > MaxSize {
		return 0, fmt.Errorf("a layer of %d bytes is none", size)
	}
	return HeadSize + int64(size), nil
}

// wait waits for more to be written, while somebody writes.
func (r *Reader) wait() error {
	err := unix.Flock(int(r.f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil { // the writer has ended: the last it wrote may be there since we looked
		_ = unix.Flock(int(r.f.Fd()), unix.LOCK_UN)
		if info, err := r.f.Stat(); err == nil && info.Size() > r.at {
			return nil
		}
		return ErrBroken
	}
	t := time.NewTimer(followEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// Close implements io.Closer.
func (r *Reader) Close() error { return r.f.Close() }

// Meter knows how much of a layer has come, and how much it is, from the bytes as they come.
type Meter struct {
	At   int64 // bytes so far, the head's counted
	End  int64 // of all; 0: not known yet
	head []byte
}

// Note takes the next bytes. It returns those of them that are not the head's.
func (m *Meter) Note(p []byte) (body []byte, err error) {
	body = p
	if missing := HeadSize - int(m.At); missing > 0 {
		n := min(missing, len(p))
		m.head, body = append(m.head, p[:n]...), p[n:]
		if n == missing {
			if m.End, err = endIn([HeadSize]byte(m.head)); err != nil {
				return nil, err
			}
		}
	}
	if m.At += int64(len(p)); m.End > 0 && m.At > m.End {
		return nil, fmt.Errorf("more than %d bytes came: %w", m.End-HeadSize, ErrDigest)
	}
	return body, nil
}

// Whole reports whether all bytes have come.
func (m *Meter) Whole() bool { return m.End > 0 && m.At == m.End }

// Writer writes a layer that comes from wherever.
type Writer struct {
	Meter
	folder Folder
	key    string
	digest string
	f      *os.File
	sum    hash.Hash
	room   Room
}

// Create begins a layer, or goes on with one whose process died. Its digest is sha256:HEX. ErrBusy says that
// somebody else writes it, fs.ErrExist that it is whole.
func (f Folder) Create(key, digest string) (*Writer, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	if f.whole(key) {
		return nil, fs.ErrExist
	}
	file, err := os.OpenFile(f.file(key+partSuffix), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{folder: f, key: key, digest: digest, f: file, sum: sha256.New(), room: Room{On: file}}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && w.named() {
		return w, w.resume()
	}
	return nil, errors.Join(ErrBusy, err, file.Close())
}

// whole reports whether a layer is there as a whole. A layer that a crash of the machine has cut off is removed.
func (f Folder) whole(key string) bool {
	file, err := os.Open(f.file(key))
	if err != nil {
		return false
	}
	defer file.Close()
	end, err := endOf(file)
	size, serr := file.Seek(0, io.SeekEnd)
	if errors.Join(err, serr) == nil && size == end {
		return true
	}
	_ = os.Remove(f.file(key)) // else the new one takes its place
	return false
}

// named reports whether the file that is locked is still the one of its name.
func (w *Writer) named() bool {
	here, err := w.f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(w.f.Name())
	return err == nil && os.SameFile(here, there)
}

// resume takes over what another process left, if it is more than a head.
func (w *Writer) resume() error {
	_, err := io.Copy(writerFunc(w.count), io.NewSectionReader(w.f, 0, MaxSize))
	if err == nil && w.At > HeadSize {
		return nil
	}
	return w.restart()
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// restart forgets what there is.
func (w *Writer) restart() error {
	w.Meter, w.sum = Meter{}, sha256.New()
	return w.f.Truncate(0)
}

// Begin writes the head of a layer of which nothing is there.
func (w *Writer) Begin(size int64) error {
	_, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	return err
}

// Write adds bytes, of the head first.
func (w *Writer) Write(p []byte) (int, error) {
	_, err := w.count(p)
	if err = errors.Join(err, w.room.Take(int64(len(p)))); err != nil {
		return 0, err
	}
	return w.f.WriteAt(p, w.At-int64(len(p)))
}

// count takes bytes into the sum.
func (w *Writer) count(p []byte) (int, error) {
	body, err := w.Note(p)
	if err != nil {
		return 0, err
	}
	_, _ = w.sum.Write(body) // never fails
	return len(p), nil
}

// Finish gives a whole layer its name. One that is not what its digest says is removed.
func (w *Writer) Finish() error {
	defer w.f.Close()
	if got := "sha256:" + hex.EncodeToString(w.sum.Sum(nil)); got != w.digest {
		return errors.Join(ErrDigest, os.Remove(w.f.Name()))
	}
	return os.Rename(w.f.Name(), w.folder.file(w.key))
}

// Abandon leaves what there is to whoever tries again, but for nothing.
func (w *Writer) Abandon() error {
	var err error
	if w.At <= HeadSize {
		err = os.Remove(w.f.Name())
	}
	return errors.Join(err, w.f.Close())
}

// Prune removes layers that nobody has read since a time, and what dead processes left before it. It
// returns how many bytes are left.
func (f Folder) Prune(before time.Time) (left int64, err error) {
	list, err := filepath.Glob(f.file("*"))
	for _, path := range list {
		info, err := os.Stat(path)
		if err != nil {
			continue // it went meanwhile
		}
		if info.ModTime().Before(before) && removeUnwritten(path) {
			continue
		}
		left += info.Size()
	}
	return left, err
}

// removeUnwritten removes a file that nobody writes.
func removeUnwritten(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	unused := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	return unused && os.Remove(path) == nil
}
