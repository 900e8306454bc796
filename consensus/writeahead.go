package consensus

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"dev.muster/durable"
)

// Bounds of what is written ahead.
const (
	aheadBytes   = 1 << 20
	aheadEntries = 512
	saltBytes    = 8
	fileHeader   = 8 + saltBytes + 4 // what it is, the salt of its frames, sum
	frameHeader  = saltBytes + 4 + 4 // salt, length, sum
)

// aheadMagic is how the file begins. Its last byte is the version of what follows.
var aheadMagic = []byte("muster\x00\x01")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type salt [saltBytes]byte

// writeAhead is the file of a log with another one before it, which takes the latest entries by one write and one
// sync; bbolt waits twice for the disk, for pages and for what names them. A checkpoint puts what was written ahead
// into the file behind, all of it at once: when it is much, before anything is deleted, and in the end.
//
// The file is a row of frames: salt, length, sum, entries. Those count whose salt is the one that the file names. A
// checkpoint names none, and the frames after it have another one, which nobody can guess: what is left of older
// frames, and may hold anything that users wrote, is never taken for one. Only the last frame may be torn, as each was
// on the disk before the next began.
type writeAhead struct {
	diskStore
	path string

	writing sync.Mutex // one writes at a time
	f       *os.File
	end     int64
	salt    salt
	void    bool // the file names no salt
	failed  bool // the last write did: what it left is not known

	mu   sync.RWMutex
	tail []raft.Log // what is not in the file behind
}

// openAhead puts what an earlier process has written ahead into the file behind, and begins again. Where needed is
// set the file must be there.
func openAhead(behind diskStore, path string, needed bool) (*writeAhead, error) {
	w := &writeAhead{diskStore: behind, path: path}
	if err := w.recover(needed); err != nil {
		return nil, err
	}
	// Not only allotted: a sync would have to note that blocks are in use now.
	if err := durable.WriteFile(path, append(headerOf(salt{}), make([]byte, aheadBytes)...), 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	w.f = f
	w.end = fileHeader
	w.void = true
	return w, nil
}

// recover reads what an earlier process has written ahead.
func (w *writeAhead) recover(needed bool) error {
	text, err := os.ReadFile(w.path)
	if errors.Is(err, os.ErrNotExist) && !needed {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	entries, err := readFrames(text)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, w.path, err)
	}
	if len(entries) == 0 {
		return nil
	}
	last, err := w.diskStore.LastIndex()
	if err != nil {
		return err
	}
	if first := entries[0].Index; last != 0 && first > last+1 {
		return fmt.Errorf("%w: %s begins with entry %d, and the file behind it ends with %d", ErrDamaged, w.path,
			first, last)
	}
	return w.diskStore.StoreLogs(pointers(entries))
}

// StoreLog implements raft.LogStore.
func (w *writeAhead) StoreLog(e *raft.Log) error { return w.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements raft.LogStore. An entry that cannot be written ahead is written behind, after all that was.
func (w *writeAhead) StoreLogs(list []*raft.Log) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	frame := appendFrame(nil, list)
	if w.failed || w.end+int64(len(frame)) > fileHeader+aheadBytes || len(w.tail)+len(list) > aheadEntries {
		if err := w.checkpoint(); err != nil {
			return err
		}
	}
	follows, err := w.follows(list[0].Index)
	if err != nil {
		return err
	}
	if !follows || len(frame) > aheadBytes || len(list) > aheadEntries {
		if err := w.checkpoint(); err != nil {
			return err
		}
		return w.diskStore.StoreLogs(list)
	}
	if err := w.put(frame); err != nil {
		w.failed = true
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range list {
		w.tail = append(w.tail, *e)
	}
	return nil
}

// follows reports whether an entry is the next one. After a snapshot from another server it may be a later one.
func (w *writeAhead) follows(index uint64) (bool, error) {
	last, err := w.LastIndex()
	return last == 0 || index == last+1, err
}

// put writes a frame behind the others; the first one together with its salt.
func (w *writeAhead) put(frame []byte) error {
	text := frame
	at := w.end
	if w.void {
		_, _ = rand.Read(w.salt[:]) // never fails
		text = append(headerOf(w.salt), frame...)
		at = 0
	}
	seal(text[len(text)-len(frame):], w.salt)
	w.void = false
	w.end += int64(len(frame))
	return w.write(text, at)
}

// write writes to the file and waits until the disk has it.
func (w *writeAhead) write(text []byte, at int64) error {
	if _, err := w.f.WriteAt(text, at); err != nil {
		return err
	}
	for {
		if err := syscall.Fdatasync(int(w.f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// checkpoint puts all that was written ahead into the file behind, and voids it here. In between both have it, which
// is the same; so nothing may be deleted or overwritten behind before.
func (w *writeAhead) checkpoint() error {
	if n := len(w.tail); n > 0 {
		if err := w.diskStore.StoreLogs(pointers(w.tail)); err != nil {
			return err
		}
		w.mu.Lock()
		w.tail = nil
		w.mu.Unlock()
	}
	if w.void {
		return nil
	}
	if err := w.write(headerOf(salt{}), 0); err != nil {
		w.failed = true
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	w.end = fileHeader
	w.void = true
	w.failed = false
	return nil
}

// DeleteRange implements raft.LogStore.
func (w *writeAhead) DeleteRange(low, high uint64) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.checkpoint(); err != nil {
		return err
	}
	return w.diskStore.DeleteRange(low, high)
}

// GetLog implements raft.LogStore. An entry that is no longer in the tail is in the file behind already.
func (w *writeAhead) GetLog(index uint64, out *raft.Log) error {
	w.mu.RLock()
	if n := len(w.tail); n > 0 && index >= w.tail[0].Index && index <= w.tail[n-1].Index {
		*out = w.tail[index-w.tail[0].Index]
		w.mu.RUnlock()
		return nil
	}
	w.mu.RUnlock()
	return w.diskStore.GetLog(index, out)
}

// LastIndex implements raft.LogStore.
func (w *writeAhead) LastIndex() (uint64, error) {
	w.mu.RLock()
	if n := len(w.tail); n > 0 {
		defer w.mu.RUnlock()
		return w.tail[n-1].Index, nil
	}
	w.mu.RUnlock()
	return w.diskStore.LastIndex()
}

// FirstIndex implements raft.LogStore. The file behind is asked first: what leaves the tail is there by then.
func (w *writeAhead) FirstIndex() (uint64, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	first, err := w.diskStore.FirstIndex()
	if err != nil || first != 0 || len(w.tail) == 0 {
		return first, err
	}
	return w.tail[0].Index, nil
}

// close puts everything into the file behind, and closes this one. It may be deleted then.
func (w *writeAhead) close() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return errors.Join(w.checkpoint(), w.f.Close())
}

func pointers(list []raft.Log) []*raft.Log {
	out := make([]*raft.Log, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// appendFrame appends a frame without salt and sum.
func appendFrame(b []byte, list []*raft.Log) []byte {
	size := frameHeader
	for _, e := range list {
		size += 64 + len(e.Data) + len(e.Extensions)
	}
	at := len(b)
	b = append(slices.Grow(b, size), make([]byte, frameHeader)...)
	for _, e := range list {
		b = binary.AppendUvarint(b, e.Index)
		b = binary.AppendUvarint(b, e.Term)
		b = append(b, byte(e.Type))
		b = binary.AppendVarint(b, appendedAt(e))
		b = binary.AppendUvarint(b, uint64(len(e.Data)))
		b = append(b, e.Data...)
		b = binary.AppendUvarint(b, uint64(len(e.Extensions)))
		b = append(b, e.Extensions...)
	}
	binary.LittleEndian.PutUint32(b[at+saltBytes:], uint32(len(b)-at-frameHeader))
	return b
}

func appendedAt(e *raft.Log) int64 {
	if e.AppendedAt.IsZero() {
		return 0
	}
	return e.AppendedAt.UnixNano()
}

// headerOf is the beginning of a file whose frames have that salt; 0: none counts.
func headerOf(s salt) []byte {
	b := append(slices.Clone(aheadMagic), s[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// seal puts salt and sum into a frame.
func seal(frame []byte, s salt) {
	copy(frame, s[:])
	binary.LittleEndian.PutUint32(frame[saltBytes+4:], sumOf(frame))
}

// sumOf is the sum of a frame, by which its end is known to be on the disk.
func sumOf(frame []byte) uint32 {
	sum := crc32.Checksum(frame[:saltBytes+4], castagnoli)
	return crc32.Update(sum, castagnoli, frame[frameHeader:])
}

// readFrames reads the frames that a process has left. One that is torn was never acknowledged, and is the last one.
func readFrames(text []byte) ([]raft.Log, error) {
	var out []raft.Log
	if len(text) < fileHeader+aheadBytes {
		return nil, fmt.Errorf("it has %d bytes, and should have %d", len(text), fileHeader+aheadBytes)
	}
	s := salt(text[len(aheadMagic):])
	if !bytes.Equal(text[:fileHeader], headerOf(s)) {
		return nil, errors.New("its beginning is not what was written there")
	}
	if s == (salt{}) {
		return nil, nil
	}
	rest := text[fileHeader:]
	for frame := frameOf(rest, s); frame != nil; frame = frameOf(rest, s) {
		entries, err := readEntries(frame[frameHeader:])
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
		rest = rest[len(frame):]
	}
	if at := laterFrame(rest, s); at >= 0 {
		return nil, fmt.Errorf("a frame before byte %d is not whole", len(text)-len(rest)+at)
	}
	for i := 1; i < len(out); i++ {
		if out[i].Index != out[i-1].Index+1 {
			return nil, fmt.Errorf("entry %d follows %d", out[i].Index, out[i-1].Index)
		}
	}
	return out, nil
}

// frameOf is the frame with which text begins; nil if that is none, or not whole.
func frameOf(text []byte, s salt) []byte {
	if len(text) < frameHeader || !bytes.HasPrefix(text, s[:]) {
		return nil
	}
	n := uint64(frameHeader) + uint64(binary.LittleEndian.Uint32(text[saltBytes:]))
	if n > uint64(len(text)) {
		return nil
	}
	frame := text[:n]
	if binary.LittleEndian.Uint32(frame[saltBytes+4:]) != sumOf(frame) {
		return nil
	}
	return frame
}

// laterFrame is where in text a whole frame begins, behind one that is not; -1: nowhere.
func laterFrame(text []byte, s salt) int {
	for at := 1; at < len(text); at++ {
		next := bytes.Index(text[at:], s[:])
		if next < 0 {
			return -1
		}
		at += next
		if frameOf(text[at:], s) != nil {
			return at
		}
	}
	return -1
}

var errFrame = errors.New("a frame with the right sum holds no entries")

// readEntries reads what a frame holds.
func readEntries(b []byte) (out []raft.Log, err error) {
	r := bytes.NewReader(b)
	for r.Len() > 0 {
		e, err := readEntry(r)
		if err != nil {
			return nil, errFrame
		}
		out = append(out, e)
	}
	return out, nil
}

func readEntry(r *bytes.Reader) (e raft.Log, err error) {
	if e.Index, err = binary.ReadUvarint(r); err != nil {
		return e, err
	}
	if e.Term, err = binary.ReadUvarint(r); err != nil {
		return e, err
	}
	kind, err := r.ReadByte()
	if err != nil {
		return e, err
	}
	e.Type = raft.LogType(kind)
	at, err := binary.ReadVarint(r)
	if err != nil {
		return e, err
	}
	if at != 0 {
		e.AppendedAt = time.Unix(0, at)
	}
	if e.Data, err = readText(r); err != nil {
		return e, err
	}
	e.Extensions, err = readText(r)
	return e, err
}

func readText(r *bytes.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil || n > uint64(r.Len()) {
		return nil, errFrame
	}
	if n == 0 {
		return nil, nil
	}
	text := make([]byte, n)
	_, err = r.Read(text)
	return text, err
}
