package supervisor

import (
	"log/slog"
	"os"
	"sync"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// hostsFile is the /etc/hosts of hollow nodes: the machine's, and every node as 127.0.0.1.
// It only grows, in place, because namespaces have it mounted.
type hostsFile struct {
	path string

	mu   sync.Mutex
	f    *os.File
	have map[cluster.NodeName]bool
	once sync.Once
}

// add makes the names resolve in all namespaces made here.
func (h *hostsFile) add(names ...cluster.NodeName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.f == nil {
		if err := h.create(); err != nil {
			h.warn(err)
			return
		}
	}
	var b []byte
	for _, n := range names {
		if n != "" && !h.have[n] {
			h.have[n] = true
			b = append(b, "127.0.0.1 "+string(n)+"\n"...)
		}
	}
	if len(b) > 0 {
		h.f.Write(b)
	}
}

func (h *hostsFile) create() error {
	base, _ := os.ReadFile("/etc/hosts")
	if n := len(base); n > 0 && base[n-1] != '\n' {
		base = append(base, '\n')
	}
	os.Remove(h.path) // one still mounted by the jobs of an earlier supervisor stays theirs
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	f.Write(base)
	h.f, h.have = f, map[cluster.NodeName]bool{}
	return nil
}

func (h *hostsFile) warn(err error) {
	h.once.Do(func() { slog.Warn("hollow nodes keep the machine's host name", "err", err) })
}

// ownHost gives this thread, and so its children, a host name and hosts file of their own.
func (l *launcher) ownHost(name string) bool {
	h := l.sup.hosts
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWUTS | unix.CLONE_NEWNS); err != nil {
		h.warn(err)
		return false
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		h.warn(err)
	}
	err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
	if err == nil {
		err = unix.Mount(h.path, "/etc/hosts", "", unix.MS_BIND, "")
	}
	if err == nil {
		l.space, err = openSpace()
	}
	if err != nil {
		h.warn(err)
	}
	return true
}
