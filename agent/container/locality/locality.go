// Package locality knows which nodes have which images: a client lists what its store holds (Store), and the server
// that leads keeps what clients say, in memory (Table). Nobody depends on it being right: it decides between nodes on
// which a job fits equally well. The package knows nothing of registries.
package locality

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Most is how many images a node tells of.
const Most = 64

// keyBytes are enough to tell the images of a cluster apart.
const keyBytes = 6

// KeyOf is a short name of an image as a user or the store calls it:
// [docker://][USER@][REGISTRY#]IMAGE[:TAG|@DIGEST], or a path. Words for the same image have the same.
func KeyOf(image string) string {
	sum := sha256.Sum256([]byte(fullName(image)))
	return hex.EncodeToString(sum[:keyBytes])
}

// isKey reports whether a text is as long as those that KeyOf makes.
func isKey(text string) bool { return len(text) == hex.EncodedLen(keyBytes) }

// Defaults of an image's name, as docker has them.
const (
	hub       = "docker.io"
	hubAlias  = "index.docker.io/"
	official  = "library/"
	latest    = ":latest"
	digestKey = "sha256:"
)

// fullName is an image's name with all that may be left out of it, but for whose credentials are used. The result for
// a path is no name, but the same each time.
func fullName(image string) string {
	rest := strings.TrimPrefix(image, "docker://")
	if user, name, ok := strings.Cut(rest, "@"); ok && user != "" && !strings.HasPrefix(name, digestKey) {
		rest = name
	}
	rest = strings.Replace(strings.Replace(rest, "#", "/", 1), hubAlias, hub+"/", 1)
	registry, name, ok := strings.Cut(rest, "/")
	if !ok || !strings.ContainsAny(registry, ".:") {
		registry, name = hub, rest
	}
	if registry == hub && !strings.Contains(name, "/") {
		name = official + name
	}
	if !strings.Contains(name, "@") && !strings.Contains(name[strings.LastIndex(name, "/")+1:], ":") {
		name += latest
	}
	return registry + "/" + name
}
