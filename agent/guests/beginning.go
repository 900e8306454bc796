package guests

import (
	"strings"
	"sync"
)

// Beginning keeps the first bytes of the output of a program. The program may be a user's, which writes any number.
type Beginning struct {
	most int
	mu   sync.Mutex
	text []byte
}

// KeepBeginning returns one that keeps so many bytes.
func KeepBeginning(most int) *Beginning { return &Beginning{most: most} }

func (b *Beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), b.most-len(b.text))]...)
	return len(p), nil
}

// String returns the bytes as UTF-8.
func (b *Beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.ToValidUTF8(string(b.text), "�")
}
