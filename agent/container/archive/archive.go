// Package archive reads images from files: a layout of the OCI, which is a folder or an archive of one, and what docker
// save writes.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

const (
	indexFile = "index.json"    // of a layout
	savedFile = "manifest.json" // of docker save

	maxText    = 4 << 20 // of a file that is read at once
	maxMembers = 1 << 16 // of an archive
	maxLayers  = 1 << 10
	maxLinks   = 8
)

// files are those of a folder or of an archive.
type files interface {
	// open opens one by its name; there is none: fs.ErrNotExist.
	open(name string) (*io.SectionReader, error)
}

// opened are files that were opened; they stay open, since who may open them now need not be able to later.
type opened struct {
	list []*os.File
	id   []string
}

// add opens a file for good and notes which one it is: a file that is changed or replaced is another one, whatever its
// owner says of its times.
func (o *opened) add(name string) (*os.File, int64, error) {
	f, err := userfile.OpenRegular(name)
	if err != nil {
		return nil, 0, err
	}
	o.list = append(o.list, f)
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, 0, os.NewSyscallError("fstat", err)
	}
	o.id = append(o.id, fmt.Sprintf("%d %d %d.%d %d\n", st.Dev, st.Ino, st.Ctim.Sec, st.Ctim.Nsec, st.Size))
	return f, st.Size, nil
}

func (o *opened) close() {
	for _, f := range o.list {
		f.Close()
	}
}

// source names the files that were read, as they were.
func (o *opened) source() string {
	sum := sha256.New()
	for _, id := range o.id {
		io.WriteString(sum, id)
	}
	return "file:" + hex.EncodeToString(sum.Sum(nil))
}

// folder is a layout.
type folder struct {
	dir string
	*opened
}

func (d *folder) open(name string) (*io.SectionReader, error) {
	f, size, err := d.add(filepath.Join(d.dir, path.Clean("/"+name)))
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, size), nil
}

// member is a file of an archive, or a link to one.
type member struct {
	at, size int64
	link     string
}

// archive is a file with files in it.
type archive struct {
	f       *os.File
	members map[string]member
}

// openArchive finds what is in an archive. Its names are never looked up outside of it.
func openArchive(name string, o *opened) (*archive, error) {
	f, _, err := o.add(name)
	if err != nil {
		return nil, err
	}
	a := &archive{f: f, members: map[string]member{}}
	if err := a.scan(f); err != nil {
		return nil, err
	}
	return a, nil
}

// scan reads the archive's headers; r is not read ahead of them.
func (a *archive) scan(r io.ReadSeeker) error {
	tr := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return fmt.Errorf("it is no archive of an image (one that is packed is to be unpacked first): %w", err)
		case n >= maxMembers:
			return fmt.Errorf("it has more than %d files: an archive of an image has few", maxMembers)
		}
		at, err := r.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		m := member{at: at, size: h.Size}
		name := clean(h.Name)
		switch h.Typeflag {
		case tar.TypeSymlink:
			m = member{link: path.Join(path.Dir(name), h.Linkname)}
		case tar.TypeLink:
			m = member{link: clean(h.Linkname)}
		case tar.TypeReg:
		default:
			continue
		}
		a.members[name] = m
	}
}

func clean(name string) string { return path.Clean("/" + name)[1:] }

func (a *archive) open(name string) (*io.SectionReader, error) {
	name = clean(name)
	for range maxLinks {
		m, ok := a.members[name]
		switch {
		case !ok:
			return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
		case m.link == "":
			return io.NewSectionReader(a.f, m.at, m.size), nil
		}
		name = clean(m.link)
	}
	return nil, &os.PathError{Op: "open", Path: name, Err: unix.ELOOP}
}

// text is a whole small file.
func text(fs files, name string) ([]byte, error) {
	r, err := fs.open(name)
	if err != nil {
		return nil, err
	}
	if r.Size() > maxText {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, r.Size(), maxText)
	}
	return io.ReadAll(r)
}
