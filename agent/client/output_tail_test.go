package client

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
		text, err := (&written{spec: c.spec, path: c.file}).tail(context.Background())
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.HasSuffix(string(text), c.ends) || len(text) > tailBytes+1 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&written{spec: me, path: fifo}).tail(context.Background()); err == nil || !strings.Contains(err.Error(), "is it a pipe") {
		t.Errorf("a pipe: %v", err)
	}
}

// TestOwnFolderOver: a job that is clean is kept until the servers take it away, but the folders it had for itself are gone.
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
			cfg:    Config{FileName: func(p string, _ *cluster.Launch) string { return p }, Sampler: &step.Sampler{}}}
		for _, done := range []bool{false, true} {
			want := runs
			if h.done = done; done {
				want = "went with the job"
			}
			w, err := c.writtenBy(context.Background(), api.Caller{}, 1)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && w.own == "" {
				t.Errorf("%s, clean %t: %+v, %v; want %q", dir, done, w, err, want)
			}
		}
	}
}
