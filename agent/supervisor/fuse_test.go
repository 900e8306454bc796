package supervisor

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// Requests of the kernel to a file system of a user's (linux/fuse.h).
const (
	fuseLookup  = 1
	fuseForget  = 2
	fuseGetattr = 3
	fuseOpen    = 14
	fuseRead    = 15
	fuseInit    = 26
	fuseAccess  = 34
)

// deadFile is a file system of bob's with one file, prog, that anybody might execute. No read of it is ever answered.
type deadFile struct {
	dev   *os.File
	reads chan struct{} // one for each read that waits
}

// mountDeadFile mounts it, as fusermount does for an ordinary user.
func mountDeadFile(t *testing.T, at string) *deadFile {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("this machine does not mount FUSE file systems: ", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, bob, bob)
	if err := unix.Mount("bobs", at, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		t.Skip("this machine does not mount FUSE file systems: ", err)
	}
	f := &deadFile{dev: os.NewFile(uintptr(fd), "/dev/fuse"), reads: make(chan struct{}, 1000)}
	t.Cleanup(func() {
		_ = unix.Unmount(at, unix.MNT_DETACH|unix.MNT_FORCE)
		f.dev.Close()
	})
	go f.serve() // ends when it is unmounted
	return f
}

func (f *deadFile) serve() {
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(int(f.dev.Fd()), buf)
		if err == unix.EINTR || err == unix.ENOENT {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		no, out, answered := f.answer(binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint64(buf[16:]))
		if !answered {
			continue
		}
		head := binary.NativeEndian.AppendUint32(nil, uint32(16+len(out)))
		head = binary.NativeEndian.AppendUint32(head, uint32(-int32(no)))
		head = append(head, buf[8:16]...)
		if _, err := unix.Write(int(f.dev.Fd()), append(head, out...)); err != nil && err != unix.ENOENT {
			return
		}
	}
}

func (f *deadFile) answer(opcode uint32, node uint64) (no unix.Errno, out []byte, answered bool) {
	le := binary.NativeEndian
	attr := func(node uint64) []byte {
		mode := uint32(unix.S_IFDIR | 0o755)
		if node > 1 {
			mode = unix.S_IFREG | 0o755
		}
		b := le.AppendUint64(nil, node)
		b = le.AppendUint64(b, 4096)
		b = append(b, make([]byte, 4*8+3*4)...)
		for _, v := range []uint32{mode, 1, bob, bob, 0, 4096, 0} {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	switch opcode {
	case fuseInit:
		b := le.AppendUint32(nil, 7)
		b = le.AppendUint32(b, 31)
		return 0, append(b, make([]byte, 56)...), true
	case fuseLookup:
		b := le.AppendUint64(nil, 2)
		b = append(b, make([]byte, 32)...)
		return 0, append(b, attr(2)...), true
	case fuseGetattr:
		return 0, append(make([]byte, 16), attr(node)...), true
	case fuseOpen:
		return 0, make([]byte, 16), true
	case fuseAccess:
		return 0, nil, true
	case fuseForget:
		return 0, nil, false
	case fuseRead:
		f.reads <- struct{}{}
		return 0, nil, false
	}
	return unix.ENOSYS, nil, true
}

// TestDeadFileSystem: steps whose program lies on a file system that does not answer hold up nobody else's. Killed, they
// end as soon as the kernel gives up the file system; it waits for as long without looking at signals.
func TestDeadFileSystem(t *testing.T) {
	needControl(t) // without a group nobody knows the child that waits for the kernel, to kill it
	g := newRig(t)
	at := filepath.Join(g.own, "fuse")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	f := mountDeadFile(t, at)
	var dead []step.Spec
	for range 2 * launchThreads {
		dead = append(dead, g.asBob(func(sp *step.Spec) { sp.Tasks[0].Argv = []string{at + "/prog"} }))
	}
	g.start(dead...)
	<-f.reads // the kernel reads the program
	hers := g.spec("true")
	hers.UID, hers.GID = alice, alice
	if st := g.run(hers).Tasks[0]; st.Error != "" {
		t.Errorf("%+v", st)
	}
	for _, sp := range dead {
		if err := g.r.Signal(sp.ID, unix.SIGKILL, step.All); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Unmount(at, unix.MNT_FORCE); err != nil && err != unix.EBUSY {
		t.Fatal(err)
	}
	for _, sp := range dead {
		if st := g.await(sp.ID, isEnded).Tasks[0]; st.Exit.Signal != int(unix.SIGKILL) && st.Error == "" {
			t.Errorf("%+v", st)
		}
	}
}

// TestDeadHook: a hook of a user's own on a file system that does not answer does not stop the whole process, which the
// collector of garbage stops with the first thread that it cannot stop.
func TestDeadHook(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("hooks of users are run by root")
	}
	at := filepath.Join(t.TempDir(), "fuse")
	for dir := filepath.Dir(at); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	f := mountDeadFile(t, at)
	// By another process, since this one may stand still.
	end := exec.Command("/bin/sh", "-c", "sleep 10; exec umount -f "+at)
	if err := end.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = end.Process.Kill(); _ = end.Wait() }()
	s := &supervisor{root: true, stub: makeStub(), stops: map[int]chan earlyWait{}, early: map[int]earlyWait{},
		pids: map[int]*task{}, born: make(chan struct{}, 1)}
	r := &run{sup: s, spec: step.Spec{UID: bob, GID: bob}}
	j := &job{l: &launcher{sup: s}, r: r}
	ended := make(chan error, 1)
	go func() { ended <- j.hook(at+"/prog", []string{"PATH=/usr/bin:/bin"}) }()
	select {
	case <-f.reads: // the kernel reads the program
	case err := <-ended:
		t.Fatal("the hook was not read: ", err)
	}
	other := make(chan error, 1)
	go func() {
		runtime.GC()
		other <- exec.Command("/bin/true").Run()
	}()
	began := time.Now()
	if err := <-other; err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("another program was run after %v: %v", time.Since(began), err)
	}
	_ = unix.Unmount(at, unix.MNT_FORCE) // it may be busy, but the kernel gives it up
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the hook has succeeded")
		}
	case <-time.After(20 * time.Second):
		t.Error("the hook is waited for though its file system is gone")
	}
}
