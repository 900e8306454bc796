package history

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// archiveFormat is the version of a saved cluster's file: a line of JSON (ArchiveHead), the state as the
// log's snapshots hold it, and the history's database.
const archiveFormat = 1

// ArchiveHead says what a file holds.
type ArchiveHead struct {
	Format  int       `json:"muster_snapshot"`
	Version string    `json:"version"` // of the binary that wrote it
	Server  string    `json:"server"`
	At      time.Time `json:"at"`
	Cluster string    `json:"cluster,omitempty"` // its id, if it has a network
	Index   uint64    `json:"index"`
	Jobs    int       `json:"jobs"`
	Nodes   int       `json:"nodes"`
	State   Part      `json:"state"`
	History Part      `json:"history"`
}

// Part is one of the two things behind the head.
type Part struct {
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sha256"` // hex
}

// SaveCluster sends the state and the history of one moment.
func (k *Keeper) SaveCluster(ctx context.Context, _ api.Caller, _ []byte, conn api.Conn) error {
	file, snap, err := k.copyAt(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	state, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-state-*")
	if err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	defer os.Remove(state.Name())
	if err := errors.Join(snap.Encode(state), state.Close()); err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	head := ArchiveHead{
		Format: archiveFormat, Version: k.Version, Server: k.Name, At: time.Now(),
		Index: snap.Index, Jobs: snap.JobCount(),
	}
	if ca := snap.CA(); ca != nil {
		head.Cluster = ca.ClusterID
	}
	for range snap.Nodes() {
		head.Nodes++
	}
	if head.State, err = measure(state.Name()); err != nil {
		return err
	}
	if head.History, err = measure(file); err != nil {
		return err
	}
	line, err := wire.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return err
	}
	return errors.Join(send(conn, state.Name()), send(conn, file))
}

func measure(file string) (Part, error) {
	f, err := os.Open(file)
	if err != nil {
		return Part{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return Part{n, hex.EncodeToString(sum.Sum(nil))}, err
}

func send(w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// ReadArchive reads a saved cluster: it hands the state and the history to the writers, and fails unless
// both are whole.
func ReadArchive(r io.Reader, state, history func(ArchiveHead) (io.Writer, error)) (ArchiveHead, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var head ArchiveHead
	line, err := in.ReadBytes('\n')
	if err != nil || wire.Unmarshal(line, &head) != nil || head.Format == 0 {
		return head, errors.New("this is no file of muster snapshot save")
	}
	if head.Format != archiveFormat {
		return head, fmt.Errorf("the file has format %d, this binary knows %d", head.Format, archiveFormat)
	}
	for _, p := range []struct {
		name string
		part Part
		to   func(ArchiveHead) (io.Writer, error)
	}{{"state", head.State, state}, {"history", head.History, history}} {
		w, err := p.to(head)
		if err != nil {
			return head, err
		}
		sum := sha256.New()
		if _, err := io.CopyN(io.MultiWriter(w, sum), in, p.part.Bytes); err != nil {
			return head, fmt.Errorf("the %s is cut off: %w", p.name, err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != p.part.Sum {
			return head, fmt.Errorf("the %s is damaged: its checksum is wrong", p.name)
		}
	}
	return head, nil
}

// CheckSave refuses to save for anybody but an operator: the file has the cluster's keys.
func (k *Keeper) CheckSave(who api.Caller, _ []byte) error {
	if !who.Operator() {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "only an operator may save the cluster")
	}
	if !k.Whole() {
		return cluster.Errorf(cluster.Unavailable, "",
			"the history is still on its way to this server: save on another one")
	}
	return nil
}
