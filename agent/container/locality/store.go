package locality

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// readEvery is how often a store is read though no image has come or gone: one may have got another name.
const readEvery = 30 * time.Second

// Store is what a node's store of images holds (package images).
type Store struct {
	images string // the folder of its images; "": there is none

	mu      sync.Mutex
	changed time.Time // the folder's time when it was read last
	read    time.Time
	keys    []string
}

// NewStore is the store in a folder; "" is one without images.
func NewStore(dir string) *Store {
	if dir == "" {
		return &Store{}
	}
	return &Store{images: filepath.Join(dir, "images")}
}

// Keys lists the images that were last used, by their keys, no more than Most.
func (s *Store) Keys(now time.Time) []string {
	info, err := os.Stat(s.images)
	if err != nil {
		return nil // there is no store, or nobody has had an image yet
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.ModTime().Equal(s.changed) && now.Sub(s.read) < readEvery {
		return s.keys
	}
	s.changed, s.read = info.ModTime(), now
	s.keys = keysIn(s.images)
	return s.keys
}

// held is an image of the store.
type held struct {
	dir  string
	used time.Time
}

func keysIn(images string) (keys []string) {
	for _, h := range lastUsed(images) {
		text, _ := os.ReadFile(filepath.Join(h.dir, "refs")) // there is none if it went meanwhile
		for ref := range strings.FieldsSeq(string(text)) {
			if len(keys) == Most {
				return keys
			}
			if key := KeyOf(ref); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// lastUsed lists whole images, the last used first.
func lastUsed(images string) (out []held) {
	files, _ := filepath.Glob(filepath.Join(images, "[^.]*", "config")) // with a dot they are not whole
	for _, file := range files {
		info, err := os.Stat(file) // its time is that of the last use
		if err == nil {
			out = append(out, held{filepath.Dir(file), info.ModTime()})
		}
	}
	slices.SortStableFunc(out, func(a, b held) int { return b.used.Compare(a.used) })
	return out
}
