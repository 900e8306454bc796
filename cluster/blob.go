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
