package tail

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestReadTail: the end of a file is read with the user's rights alone, and never for long.
func TestReadTail(t *testing.T) {
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	me := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	long := strings.Repeat("0123456789\n", 20_000) + "end"
	for name, c := range map[string]struct {
		spec *cluster.JobSpec
		file string
		ends string
		err  string
	}{
		"short":   {me, write("short", "hello", 0o600), "hello", ""},
		"long":    {me, write("long", long, 0o600), "end", ""},
		"-option": {me, write("-c", "x", 0o600), "x", ""},
		"missing": {me, filepath.Join(dir, "none"), "", "No such file"},
		"another's": {
			&cluster.JobSpec{Layout: &cluster.Layout{}, UID: 65534, GID: 65534},
			write("secret", "secret", 0o600), "",
			map[bool]string{true: "Permission denied", false: "reads only files of user"}[os.Getuid() == 0],
		},
	} {
		text, start, err := (&File{Spec: c.spec, Path: c.file}).Read(context.Background(), nil, false)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) ||
			!strings.HasSuffix(string(text), c.ends) || len(text) > Bytes || name == "long" &&
			start != int64(len(long)-Bytes) {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (&File{Spec: me, Path: fifo}).Read(context.Background(), nil, false); err == nil || !strings.Contains(err.Error(), "is it a pipe") {
		t.Errorf("a pipe: %v", err)
	}
}

// TestReadOn: what is written is read from an offset, waited for if need be, and from the start if the file was
// begun again.
func TestReadOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "out")
	put := func(text string, flag int) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|flag, 0o644)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
		}
	}
	me := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	w := &File{Spec: me, Path: file}
	read := func(from int64, hold bool) (string, int64) {
		t.Helper()
		text, start, err := w.Read(t.Context(), &from, hold)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), start
	}
	put("one two", os.O_TRUNC)
	if text, at := read(4, false); text != "two" || at != 4 {
		t.Errorf("from 4: %q at %d", text, at)
	}
	if text, at := read(7, false); text != "" || at != 7 {
		t.Errorf("from the end: %q at %d", text, at)
	}
	go put(" three", os.O_APPEND)
	if text, at := read(7, true); text != " three" || at != 7 {
		t.Errorf("what is written meanwhile: %q at %d", text, at)
	}
	over := make(chan struct{})
	w = &File{Spec: me, Path: file, Over: over} // the one before is still being read
	began := time.Now()
	time.AfterFunc(50*time.Millisecond, func() { put("!", os.O_APPEND); close(over) })
	if text, at := read(13, true); text != "!" || at != 13 {
		t.Errorf("what comes last: %q at %d", text, at)
	}
	if text, at := read(14, true); text != "" || at != 14 || time.Since(began) > tries*Pause/2 {
		t.Errorf("nobody writes any more: %q at %d after %s", text, at, time.Since(began))
	}
	put("new", os.O_TRUNC)
	if text, at := read(14, true); text != "new" || at != 0 {
		t.Errorf("a file begun anew: %q at %d", text, at)
	}
}

// TestReaderIsAlone: what else the user runs cannot trace the process that reads, which runs outside of the fences of
// the user's jobs.
func TestReaderIsAlone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root's client reads as others")
	}
	const nobody = 65534
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: nobody, GID: nobody}
	cmd, err := (&File{Spec: spec}).command(t.Context(), "/dev/null", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "id -u; sleep 100 & wait"}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Cancel(); _ = cmd.Wait() }()
	uid := make([]byte, 16)
	if n, err := out.Read(uid); err != nil || strings.TrimSpace(string(uid[:n])) != "65534" {
		t.Fatalf("it runs as %q: %v", uid[:n], err)
	}
	other := exec.Command("cat", fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)) // as ptrace, it wants access
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if text, err := other.CombinedOutput(); err == nil {
		t.Errorf("another process of the user looks into it: %q", text)
	}
}
