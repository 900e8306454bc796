package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dev.muster/agent/history"
	"dev.muster/agent/trust"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"dev.muster/durable"
)

// Archive is what a file of muster snapshot save holds.
type Archive struct {
	history.ArchiveHead
	State *cluster.Snapshot
}

// Inspect reads a saved cluster and checks that it is whole.
func Inspect(path string, watch Watch) (Archive, error) {
	return readArchive(path, io.Discard, watch)
}

// A Watch hears how much of a file was read, and how large that is.
type Watch func(done, all int64)

// counted is a file whose reading is told of.
type counted struct {
	*os.File
	watch     Watch
	done, all int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.done += int64(n)
	c.watch(c.done, c.all)
	return n, err
}

func readArchive(path string, past io.Writer, watch Watch) (Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return Archive{}, err
	}
	defer f.Close()
	file := &counted{File: f, watch: watch}
	if fi, err := f.Stat(); err == nil {
		file.all = fi.Size()
	}
	var text bytes.Buffer
	head, err := history.ReadArchive(file, func(history.ArchiveHead) (io.Writer, error) { return &text, nil },
		func(history.ArchiveHead) (io.Writer, error) { return past, nil })
	if err != nil {
		return Archive{}, fmt.Errorf("%s: %w", path, err)
	}
	state, err := cluster.Decode(&text)
	if err != nil {
		return Archive{}, fmt.Errorf("%s: %w", path, err)
	}
	return Archive{head, state.Snapshot()}, nil
}

// Restore makes the data folder of a server, the only one of its group, from a saved cluster. The
// members stay, but for the other servers: those join again.
func Restore(path, dir, name string, watch Watch) (Archive, error) {
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		return Archive{}, fmt.Errorf("%s is not empty: restore into a new folder, or move that one away", dir)
	}
	work := dir + ".restoring"
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(filepath.Join(work, "acct"), 0o700)); err != nil {
		return Archive{}, err
	}
	defer os.RemoveAll(work)
	a, err := restoreInto(path, work, name, watch)
	if err != nil {
		return a, err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return a, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return a, err
	}
	return a, durable.Rename(work, dir)
}

func restoreInto(path, dir, name string, watch Watch) (Archive, error) {
	hist, err := os.OpenFile(filepath.Join(dir, "acct", "history.db"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return Archive{}, err
	}
	a, err := readArchive(path, hist, watch)
	if err := errors.Join(err, hist.Sync(), hist.Close()); err != nil {
		return a, err
	}
	var text bytes.Buffer
	if err := a.State.Encode(&text); err != nil {
		return a, err
	}
	state, err := cluster.Decode(&text)
	if err != nil {
		return a, err
	}
	if ca := a.State.CA(); ca != nil {
		creds, err := trust.SelfSigned(filepath.Join(dir, trustDir), ca, name, time.Now())
		if err != nil {
			return a, err
		}
		state.Refound(cluster.Member{Name: name, Role: cluster.RoleServer, Key: creds.Key,
			Public: creds.Public(), Joined: time.Now()}, time.Now())
	}
	state.Restore(a.At, time.Now())
	return a, consensus.Seed(filepath.Join(dir, "raft"), name, state.Index, state.Snapshot().Encode)
}
