package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory of zstd.
const maxWindow = 64 << 20

// Open opens a dump: plain, or compressed by gzip or zstd, at an offset of its plain text.
func Open(path string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := plain(f, offset)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, nil
}

// opened is a text and what is to be closed with it.
type opened struct {
	io.Reader
	end []func() error
}

// Close closes the text and its file.
func (o *opened) Close() (err error) {
	for _, end := range o.end {
		err = errors.Join(err, end())
	}
	return err
}

// These are how compressed files begin.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// plain returns the plain text of a file behind an offset.
func plain(f *os.File, offset int64) (io.ReadCloser, error) {
	head := make([]byte, len(zstdMagic))
	_, _ = f.ReadAt(head, 0) // a short file is plain; other errors come again
	o := &opened{Reader: f, end: []func() error{f.Close}}
	var err error
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		o.Reader, err = gzip.NewReader(bufio.NewReaderSize(f, bufferSize))
	case string(head) == zstdMagic:
		err = o.unpackZstd(f)
	default:
		_, err = f.Seek(offset, io.SeekStart)
		return o, err
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, o.Reader, offset)
	}
	return o, err
}

func (o *opened) unpackZstd(f *os.File) error {
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	o.Reader = z
	o.end = append([]func() error{func() error { z.Close(); return nil }}, o.end...)
	return nil
}

// Contents is what a dump holds.
type Contents struct {
	Path   string
	Tables []*Table
	Size   int64 // of its plain text
}

// Scan reads a dump to its end. visit gets the rows of the tables that keep wants; those of the others are counted.
// tell hears after each of them how many bytes are read.
func Scan(path string, keep func(*Table) bool, visit func(*Row) error, tell func(int64)) (*Contents, error) {
	in, err := Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r := NewReader(in, keep)
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return &Contents{Path: path, Tables: r.list, Size: r.Offset()}, nil
		}
		if err == nil {
			err = visit(row)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		tell(r.Offset())
	}
}

// Table finds a table by its name, nil if the dump has none.
func (c *Contents) Table(name string) *Table {
	i := slices.IndexFunc(c.Tables, func(t *Table) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return c.Tables[i]
}

// Rows are the rows of one table, read on their own.
type Rows struct {
	table *Table
	left  int64
	file  io.Closer
	r     *Reader
}

// Rows opens the rows of a table.
func (c *Contents) Rows(t *Table) (*Rows, error) {
	in, err := Open(c.Path, t.Offset)
	if err != nil {
		return nil, err
	}
	return &Rows{table: t, left: t.Rows, file: in, r: newReaderAt(in, t.Offset, t)}, nil
}

// Next returns the next row, valid until the next call; io.EOF behind the last one.
func (r *Rows) Next() (*Row, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	r.left--
	row, err := r.r.Next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("table %s: rows are missing: the file has changed", r.table.Name)
	}
	return row, err
}

// Offset returns how many bytes of the text are read.
func (r *Rows) Offset() int64 { return r.r.Offset() }

// Close closes the rows.
func (r *Rows) Close() error { return r.file.Close() }
