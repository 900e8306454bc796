package layers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestFollow: a layer is read while it is written, and afterwards.
func TestFollow(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	f, ctx := Folder(t.TempDir()), context.Background()
	key := KeyOf("hub/a", digestOf(text))
	if _, err := f.Open(ctx, key, 0); !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	w, err := f.Create(key, digestOf(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(key, digestOf(text)); !errors.Is(err, ErrBusy) {
		t.Error("two write one layer:", err)
	}
	r, err := f.Open(ctx, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make(chan []byte)
	go func() { // ends with the layer
		all, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		got <- all
	}()
	if err := w.Begin(int64(len(text))); err != nil {
		t.Fatal(err)
	}
	for part := text; len(part) > 0; part = part[1<<12:] {
		if _, err := w.Write(part[:1<<12]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all[HeadSize:], text) {
		t.Errorf("%d bytes were read", len(all))
	}
	if _, err := f.Create(key, digestOf(text)); !errors.Is(err, fs.ErrExist) {
		t.Error("it is not whole:", err)
	}
	r, err = f.Open(ctx, key, HeadSize+16)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, text[16:]) {
		t.Errorf("%d bytes from the middle: %v", len(rest), err)
	}
	r.Close()
}

// TestResume: who comes after a dead process goes on where that ended, and what is not what the digest says goes.
func TestResume(t *testing.T) {
	text := []byte("what a layer has in it")
	f, ctx := Folder(t.TempDir()), context.Background()
	key := KeyOf("hub/a", digestOf(text))
	w, err := f.Create(key, digestOf(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Begin(int64(len(text))), second(w.Write(text[:5]))); err != nil {
		t.Fatal(err)
	}
	r, err := f.Open(ctx, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abandon(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, ErrBroken) {
		t.Error("a reader is left waiting, or content:", err)
	}
	r.Close()
	if w, err = f.Create(key, digestOf(text)); err != nil || w.At != HeadSize+5 {
		t.Fatal(w, err)
	}
	if _, err := w.Write(append(text[5:len(text):len(text)], "more"...)); !errors.Is(err, ErrDigest) {
		t.Error("more than all:", err)
	}
	_ = w.f.Close()
	if w, err = f.Create(key, digestOf([]byte("else"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second(w.Write(text[5:]))); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(); !errors.Is(err, ErrDigest) {
		t.Error("a wrong layer is kept:", err)
	}
	if _, err := f.Open(ctx, key, 0); !errors.Is(err, ErrNone) {
		t.Error("a wrong layer is there:", err)
	}
}

func second(_ int, err error) error { return err }

// TestCutOff: a layer of which a crash of the machine has left a part is fetched again.
func TestCutOff(t *testing.T) {
	f := Folder(t.TempDir())
	if err := os.WriteFile(f.file("k"), []byte{0, 0, 0, 0, 0, 0, 0, 9, 'x'}, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := f.Create("k", digestOf([]byte("y")))
	if err != nil {
		t.Fatal("it is taken for whole:", err)
	}
	if err := errors.Join(w.Begin(1), second(w.Write([]byte("y"))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create("k", digestOf([]byte("y"))); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}

// TestReaderEnds: a reader of a layer that does not come ends with its context.
func TestReaderEnds(t *testing.T) {
	f := Folder(t.TempDir())
	key := KeyOf("a", "b")
	if _, err := f.Create(key, "sha256:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := f.Open(ctx, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel()
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPrune: what is old goes, what somebody writes stays.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	f := Folder(dir)
	w, err := f.Create("written", "sha256:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(5); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "dead.part"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left, err := f.Prune(time.Now().Add(time.Minute))
	if err != nil || left != HeadSize {
		t.Errorf("%d bytes are left: %v", left, err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Error(list)
	}
	if left, err := Folder(filepath.Join(dir, "none")).Prune(time.Now()); left != 0 || err != nil {
		t.Error(left, err)
	}
}
