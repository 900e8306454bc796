package client

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
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
		"short":     {me, write("short", "hello", 0o600), "hello", ""},
		"long":      {me, write("long", long, 0o600), "end", ""},
		"-option":   {me, write("-c", "x", 0o600), "x", ""},
		"missing":   {me, filepath.Join(dir, "none"), "", "No such file"},
		"another's": {&cluster.JobSpec{Layout: &cluster.Layout{}, UID: 65534, GID: 65534}, write("secret", "secret", 0o600), "", map[bool]string{true: "Permission denied", false: "reads only files of user"}[os.Getuid() == 0]},
	} {
		var out api.TailResponse
		text, err := (&written{spec: c.spec, path: c.file}).read(context.Background(), api.TailRequest{}, &out)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) ||
			!strings.HasSuffix(string(text), c.ends) || len(text) > tailBytes || name == "long" &&
			out.Start != int64(len(long)-tailBytes) {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&written{spec: me, path: fifo}).read(context.Background(), api.TailRequest{},
		&api.TailResponse{}); err == nil || !strings.Contains(err.Error(), "is it a pipe") {
		t.Errorf("a pipe: %v", err)
	}
}

// TestReadOn: what is written is read from an offset, waited for if need be, and from the start if the file was
// begun anew.
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
	w := &written{spec: &cluster.JobSpec{Layout: &cluster.Layout{}, UID: uint32(os.Getuid()),
		GID: uint32(os.Getgid())}, path: file}
	read := func(from int64, hold bool) (string, int64) {
		t.Helper()
		var out api.TailResponse
		text, err := w.read(t.Context(), api.TailRequest{From: &from, Hold: hold}, &out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), out.Start
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
	put("new", os.O_TRUNC)
	if text, at := read(13, true); text != "new" || at != 0 {
		t.Errorf("a file begun anew: %q at %d", text, at)
	}
}

// TestOwnFolderOver: a job that is clean is kept until the servers take it away, but the folders it had for itself
// are gone.
func TestOwnFolderOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("jobs have folders of their own only where the client is root's")
	}
	ready := make(chan struct{})
	close(ready)
	for dir, runs := range map[string]string{"/tmp": "", "/dev/shm": "memory that only the job sees"} {
		h := here(cluster.Running, self)
		h.job.Spec.Kind, h.job.Spec.Stdout = cluster.Batch, dir+"/out"
		c := &Client{known: ready, told: ready, order: []cluster.NodeName{self}, nodes: map[cluster.NodeName]*node{self: {jobs: map[cluster.JobID]*jobHere{1: h}}},
			config: cluster.Config{PrivateDirs: []cluster.PrivateDirs{{Base: "/var/lib/own", Dirs: []string{"/tmp", "/dev/shm"}}}},
			cfg:    Config{Dialect: plainDialect{}, Sampler: &step.Sampler{}}}
		for _, done := range []bool{false, true} {
			want := runs
			if h.done = done; done {
				want = "went with the job"
			}
			w, err := c.writtenBy(context.Background(), api.Caller{}, api.TailRequest{Job: 1})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && w.own == "" {
				t.Errorf("%s, clean %t: %+v, %v; want %q", dir, done, w, err, want)
			}
		}
	}
}

// plainDialect adds nothing to what tasks are told, and takes patterns for names.
type plainDialect struct{ api.Dialect }

func (plainDialect) FileName(p string, _ *cluster.Launch) string                   { return p }
func (plainDialect) OOMNote(cluster.StepID, cluster.NodeName) string               { return "" }
func (plainDialect) EndNote(*cluster.Job, int, cluster.NodeName, time.Time) string { return "" }
