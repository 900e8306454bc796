package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// File is a dump: plain, or compressed by gzip or zstd.
type File struct {
	Path string
	// Unzstd starts what unpacks a file that zstd compressed; its tables would cost every program a part of its start.
	Unzstd func(path string) (io.ReadCloser, error)
}

// Open opens a dump at an offset of its plain text.
func (d *File) Open(offset int64) (io.ReadCloser, error) {
	f, err := os.Open(d.Path)
	if err != nil {
		return nil, err
	}
	r, err := d.plain(f, offset)
	if err != nil {
		err = errors.Join(fmt.Errorf("%s: %w", d.Path, err), f.Close())
	}
	return r, err
}

// opened is a text and what is to be closed with it.
type opened struct {
	io.Reader
	end []io.Closer
}

// Close closes the text and its file.
func (o *opened) Close() (err error) {
	for _, end := range o.end {
		err = errors.Join(err, end.Close())
	}
	return err
}

// These are how compressed files begin.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// plain returns the plain text of a file behind an offset.
func (d *File) plain(f *os.File, offset int64) (io.ReadCloser, error) {
	head := make([]byte, len(zstdMagic))
	_, _ = f.ReadAt(head, 0) // a short file is plain; other errors come again
	o := &opened{Reader: f, end: []io.Closer{f}}
	var err error
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		o.Reader, err = gzip.NewReader(bufio.NewReaderSize(f, bufferSize))
	case string(head) == zstdMagic:
		var z io.ReadCloser
		z, err = d.Unzstd(d.Path)
		o.Reader = z
		o.end = append(o.end, z)
	default:
		_, err = f.Seek(offset, io.SeekStart)
		return o, err
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, o.Reader, offset)
	}
	return o, err
}

// Contents is what a dump holds.
type Contents struct {
	File   *File
	Tables []*Table
	Size   int64 // of its plain text
	byName map[string]*Table
}

// Scan reads a dump to its end. visit gets the rows of the tables that keep wants; those of the others are counted.
// tell hears after each of them how many bytes are read.
func Scan(d *File, keep func(*Table) bool, visit func(*Row) error, tell func(int64)) (*Contents, error) {
	in, err := d.Open(0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r := NewReader(in, keep)
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return &Contents{File: d, Tables: r.list, Size: r.Offset(), byName: r.tables}, nil
		}
		if err == nil {
			err = visit(row)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Path, err)
		}
		tell(r.Offset())
	}
}

// Table finds a table by its name, nil if the dump has none.
func (c *Contents) Table(name string) *Table {
	return c.byName[strings.ToLower(name)]
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
	in, err := c.File.Open(t.Offset)
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
	if err != nil {
		err = fmt.Errorf("table %s: %d rows are missing: %w", r.table.Name, r.left+1, err)
	}
	return row, err
}

// Offset returns how many bytes of the text are read.
func (r *Rows) Offset() int64 { return r.r.Offset() }

// Close closes the rows.
func (r *Rows) Close() error { return r.file.Close() }
