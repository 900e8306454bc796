package packaging

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Paths that a server answers without TLS, and the beginning of the programs' names.
const (
	ScriptPath   = "/install.sh"
	downloadPath = "/download/"
	programName  = "muster-linux-"
)

// Limits of downloads.
const (
	maxDownloads = 128              // programs under way
	busyWait     = 10 * time.Second // for one of them to end
	maxHost      = 255
)

// architectures are those of which there are programs.
var architectures = []string{"amd64", "arm64"}

// self is the program that runs, even when its file was replaced.
const self = "/proc/self/exe"

// Depot gives the install script and the programs to whom asks: exactly those paths, nothing else.
type Depot struct {
	dir  string // with the programs of other architectures
	log  *slog.Logger
	room chan struct{}
	wait time.Duration

	mu   sync.Mutex
	sums map[string]summed
}

// summed is a file's SHA-256 as long as the file stays as it was.
type summed struct {
	size  int64
	mtime time.Time
	sum   string
}

// NewDepot serves the program that runs, and those of other architectures in a folder, muster-linux-ARCH.
func NewDepot(dir string, log *slog.Logger) *Depot {
	return &Depot{
		dir: dir, log: log, room: make(chan struct{}, maxDownloads), wait: busyWait,
		sums: map[string]summed{},
	}
}

// ServeHTTP answers anybody: what is here is no secret, and what callers send is only compared.
func (d *Depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	arch, program := strings.CutPrefix(r.URL.Path, downloadPath+programName)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
	case r.URL.RawPath+r.URL.Opaque+r.URL.Host != "":
		http.NotFound(w, r)
	case r.URL.Path == ScriptPath:
		d.script(w, r)
	case program && slices.Contains(architectures, arch):
		d.program(w, r, arch)
	default:
		http.NotFound(w, r)
	}
}

// script is made for the address by which the caller knows this server.
func (d *Depot) script(w http.ResponseWriter, r *http.Request) {
	host, err := callerHost(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := d.Script(host)
	if err != nil {
		d.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/x-shellscript; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
}

// hostLetters are those of names and addresses.
const hostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]"

// callerHost is HOST:PORT out of a Host header. It becomes a part of a shell script.
func callerHost(text string) (string, error) {
	bad := fmt.Errorf("the Host header is no address")
	if len(text) > maxHost || strings.Trim(text, hostLetters) != "" {
		return "", bad
	}
	if _, _, err := net.SplitHostPort(text); err != nil {
		text = net.JoinHostPort(strings.Trim(text, "[]"), "80")
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || port == "" || strings.HasPrefix(host, "-") {
		return "", bad
	}
	return text, nil
}

// Script is the install script for those who reach this server at HOST:PORT; it holds the checksums of the programs.
func (d *Depot) Script(host string) (string, error) {
	var sums []string
	for _, arch := range architectures {
		f, err := d.open(arch)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		sum, err := d.sum(arch, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		sums = append(sums, arch+" "+sum)
	}
	return strings.NewReplacer("@SERVER@", host, "@SUMS@", strings.Join(sums, "\n")).Replace(script), nil
}

func (d *Depot) program(w http.ResponseWriter, r *http.Request, arch string) {
	timer := time.NewTimer(d.wait)
	defer timer.Stop()
	select {
	case d.room <- struct{}{}:
		defer func() { <-d.room }()
	case <-timer.C:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many downloads at once, try again", http.StatusServiceUnavailable)
		return
	case <-r.Context().Done():
		return
	}
	f, err := d.open(arch)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "this server has no program for "+arch, http.StatusNotFound)
		return
	}
	if err != nil {
		d.fail(w, err)
		return
	}
	defer f.Close()
	sum, err := d.sum(arch, f)
	if err != nil {
		d.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+sum+`"`)
	http.ServeContent(w, r, "", time.Time{}, f)
}

func (d *Depot) fail(w http.ResponseWriter, err error) {
	d.log.Error("the installer could not be served", "err", err)
	http.Error(w, "this server cannot serve it; its log says why", http.StatusInternalServerError)
}

// open opens the program for an architecture: a plain file, which no link leads out of the folder.
func (d *Depot) open(arch string) (*os.File, error) {
	if arch == runtime.GOARCH {
		return os.Open(self)
	}
	if _, err := os.Lstat(d.dir); err != nil {
		return nil, err
	}
	f, err := os.OpenInRoot(d.dir, programName+arch)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", filepath.Join(d.dir, programName+arch))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sum is the SHA-256 of an open program, which is read again if it is another than before.
func (d *Depot) sum(arch string, f *os.File) (string, error) {
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.sums[arch]; ok && s.size == st.Size() && s.mtime.Equal(st.ModTime()) {
		return s.sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	s := summed{size: st.Size(), mtime: st.ModTime(), sum: hex.EncodeToString(h.Sum(nil))}
	d.sums[arch] = s
	return s.sum, nil
}
