package cluster

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"dev.muster/wire"
)

// Blob is a stored script or environment with the number of jobs that name it.
type Blob struct {
	Hash  BlobHash  `json:"hash"`
	Text  BlobText  `json:"text"`
	Refs  int       `json:"refs"`
	Added time.Time `json:"added"`
}

const b64Prefix = "b64:"

func marshalBlob(b []byte) ([]byte, error) {
	if utf8.Valid(b) && !strings.HasPrefix(string(b), b64Prefix) {
		return wire.Marshal(string(b))
	}
	return wire.Marshal(b64Prefix + base64.StdEncoding.EncodeToString(b))
}

func unmarshalBlob(in []byte) ([]byte, error) {
	var s string
	if err := wire.Unmarshal(in, &s); err != nil {
		return nil, err
	}
	if rest, ok := strings.CutPrefix(s, b64Prefix); ok {
		return base64.StdEncoding.DecodeString(rest)
	}
	return []byte(s), nil
}

// HashBlob is the name under which the text is stored.
func HashBlob(b []byte) BlobHash {
	sum := sha256.Sum256(b)
	return BlobHash(fmt.Sprintf("%x", sum))
}

// idleBlobAge is how long a text without users stays: longer than a submission can take.
const idleBlobAge = time.Minute

// refBlob counts d more (or fewer) users of a stored text.
func (t *tx) refBlob(h BlobHash, d int) error {
	if h == "" {
		return nil
	}
	b, ok := t.blobs.Get(h)
	if !ok {
		return Errorf(Conflict, "", "stored text %s is not here", h)
	}
	n := *b
	n.Refs += d
	n.Added = t.at
	t.putBlob(&n)
	return nil
}

func (t *tx) putBlob(b *Blob) {
	old, had := t.blobs.Get(b.Hash)
	t.setBlob(b)
	t.onUndo(func() {
		t.idle.Delete(b.Hash)
		if had {
			t.setBlob(old)
		} else {
			t.blobs.Delete(b.Hash)
		}
	})
}

func (t *tables) setBlob(b *Blob) {
	t.blobs.Set(b.Hash, b)
	if b.Refs == 0 {
		t.idle.Set(b.Hash, b)
	} else {
		t.idle.Delete(b.Hash)
	}
}

func (t *tx) deleteBlob(b *Blob) {
	t.blobs.Delete(b.Hash)
	t.idle.Delete(b.Hash)
	t.onUndo(func() { t.setBlob(b) })
}
