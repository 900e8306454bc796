package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt trusts its file: where a page is not what it should be it panics, some of it in goroutines of its own,
// which nobody can recover from. So the file is walked before it is opened: every page that can be reached is one,
// is there, and has its keys in order. The following is the layout of bbolt's files of version 2
// (go.etcd.io/bbolt/internal/common), which is fixed.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	boltNoFree  = 0xffffffffffffffff // there is no page with the free ones
	pageHeader  = 16
	elemBytes   = 16
	bucketBytes = 16
	metaBytes   = 64 // without its sum
	branchPage  = 0x01
	leafPage    = 0x02
	bucketFlag  = 0x01
	maxPages    = 1 << 31
)

var native = binary.NativeEndian

// boltMeta is what the first two pages hold, of which the newer one counts.
type boltMeta struct {
	pageSize        uint32
	root, end, txid uint64
}

// boltFile is a walk through a file.
type boltFile struct {
	f    io.ReaderAt
	meta boltMeta
	seen []uint64 // a bit for each page
}

// checkStore looks whether a file can be opened by bbolt. One that is not there, or empty, can be.
func checkStore(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	b := &boltFile{f: f}
	if err := b.readMeta(); err != nil {
		return err
	}
	if need := int64(b.meta.end) * int64(b.meta.pageSize); info.Size() < need {
		return fmt.Errorf("it has %d bytes, and should have %d", info.Size(), need)
	}
	b.seen = make([]uint64, b.meta.end/64+1)
	return b.page(b.meta.root, nil, nil)
}

func (b *boltFile) readMeta() error {
	found := false
	for _, at := range []int64{0, int64(os.Getpagesize())} {
		if found && at != 0 {
			at = int64(b.meta.pageSize)
		}
		m, ok, err := metaAt(b.f, at)
		if err != nil {
			return err
		}
		if ok && (!found || m.txid > b.meta.txid) {
			b.meta, found = m, true
		}
	}
	if !found {
		return errors.New("neither of its first two pages is whole")
	}
	return nil
}

// metaAt reads one of the first two pages; ok is false if it is not whole.
func metaAt(f io.ReaderAt, at int64) (m boltMeta, ok bool, err error) {
	var p [pageHeader + metaBytes]byte
	if _, err := f.ReadAt(p[:], at); err != nil {
		if errors.Is(err, io.EOF) {
			return m, false, nil
		}
		return m, false, err
	}
	t := p[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(t[:metaBytes-8])
	if native.Uint32(t) != boltMagic || native.Uint32(t[4:]) != boltVersion || native.Uint64(t[metaBytes-8:]) != sum.Sum64() {
		return m, false, nil
	}
	m = boltMeta{
		pageSize: native.Uint32(t[8:]), root: native.Uint64(t[16:]), end: native.Uint64(t[40:]),
		txid: native.Uint64(t[48:]),
	}
	return m, m.pageSize >= 512 && m.end < maxPages, nil
}

// page looks at a page whose keys are not before low and before high (nil: no bound), and at all below it.
func (b *boltFile) page(id uint64, low, high []byte) error {
	text, err := b.read(id)
	if err != nil {
		return err
	}
	return b.elements(id, text, low, high)
}

// read reads a page with those that continue it.
func (b *boltFile) read(id uint64) ([]byte, error) {
	if id < 2 || id >= b.meta.end {
		return nil, fmt.Errorf("a page %d is named, of %d", id, b.meta.end)
	}
	size := int64(b.meta.pageSize)
	head := make([]byte, pageHeader)
	if _, err := b.f.ReadAt(head, int64(id)*size); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	more := uint64(native.Uint32(head[12:]))
	if own := native.Uint64(head); own != id || id+more >= b.meta.end {
		return nil, fmt.Errorf("page %d says that it is %d, with %d more", id, own, more)
	}
	for i := id; i <= id+more; i++ {
		if b.seen[i/64]&(1<<(i%64)) != 0 {
			return nil, fmt.Errorf("page %d belongs to two", i)
		}
		b.seen[i/64] |= 1 << (i % 64)
	}
	text := make([]byte, int64(more+1)*size)
	if _, err := b.f.ReadAt(text, int64(id)*size); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	return text, nil
}

// elements looks at what a page holds.
func (b *boltFile) elements(id uint64, text, low, high []byte) error {
	kind, count := native.Uint16(text[8:]), int(native.Uint16(text[10:]))
	if kind != branchPage && kind != leafPage || pageHeader+count*elemBytes > len(text) || kind == branchPage && count == 0 {
		return fmt.Errorf("page %d is of kind %#x with %d elements in %d bytes", id, kind, count, len(text))
	}
	keys := make([][]byte, count)
	for i := range count {
		at := pageHeader + i*elemBytes
		key, _, err := element(kind, text, at)
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		keys[i] = key
		if i > 0 && bytes.Compare(keys[i-1], key) >= 0 || low != nil && bytes.Compare(key, low) < 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return fmt.Errorf("page %d: its keys are not in order", id)
		}
	}
	for i := range count {
		below := high
		if i+1 < count {
			below = keys[i+1]
		}
		if err := b.below(id, kind, text, pageHeader+i*elemBytes, keys[i], below); err != nil {
			return err
		}
	}
	return nil
}

// element finds the key and the value of one, which lie behind it in the page.
func element(kind uint16, text []byte, at int) (key, value []byte, err error) {
	e := text[at:]
	pos, keyed, valued := native.Uint32(e), native.Uint32(e[4:]), uint32(0)
	if kind == leafPage {
		pos, keyed, valued = native.Uint32(e[4:]), native.Uint32(e[8:]), native.Uint32(e[12:])
	}
	from := int64(at) + int64(pos)
	to := from + int64(keyed) + int64(valued)
	if to > int64(len(text)) {
		return nil, nil, fmt.Errorf("an element of it ends at %d, and the page at %d", to, len(text))
	}
	return text[from : from+int64(keyed)], text[from+int64(keyed) : to], nil
}

// below looks at what an element leads to: the next page of a branch, or the pages of a bucket.
func (b *boltFile) below(id uint64, kind uint16, text []byte, at int, low, high []byte) error {
	e := text[at:]
	if kind == branchPage {
		return b.page(native.Uint64(e[8:]), low, high)
	}
	if native.Uint32(e)&bucketFlag == 0 {
		return nil
	}
	_, value, err := element(kind, text, at)
	if err != nil {
		return err
	}
	if len(value) < bucketBytes {
		return fmt.Errorf("page %d: a bucket of %d bytes", id, len(value))
	}
	if root := native.Uint64(value); root != 0 {
		return b.page(root, nil, nil)
	}
	inside := value[bucketBytes:]
	if len(inside) < pageHeader || native.Uint16(inside[8:]) != leafPage {
		return fmt.Errorf("page %d: a bucket inside it is not whole", id)
	}
	return b.elements(id, inside, nil, nil)
}
