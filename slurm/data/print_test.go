package data

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// brokenPipe takes so many bytes, and then no more.
type brokenPipe struct{ left int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return len(p), nil
}

// TestPrinter writes answers of several sizes: whole and in order, or with the first error of who reads.
func TestPrinter(t *testing.T) {
	for _, c := range []struct {
		name  string
		words int
		taken int // bytes until the reader goes; 0: it stays
	}{
		{"short", 3, 0},
		{"many buffers", 300_000, 0},
		{"short, broken", 3, 1},
		{"broken in the middle", 50_000, 3 * firstSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which waits for the writer to end
				var whole bytes.Buffer
				p := &printer{out: &whole, compact: true}
				if c.taken > 0 {
					p.out = &brokenPipe{c.taken}
				}
				defer p.release()
				for range c.words {
					p.print([]byte(`"word",`))
				}
				err := p.end()
				if (err != nil) != (c.taken > 0) {
					t.Fatalf("end: %v", err)
				}
				want := strings.Repeat(`"word",`, c.words) + "\n"
				if c.taken == 0 && whole.String() != want {
					t.Errorf("%d bytes were written, want %d", whole.Len(), len(want))
				}
			})
		})
	}
}

// TestPrinterGivenUp: a printer that is left in the middle leaves nothing behind.
func TestPrinterGivenUp(t *testing.T) {
	synctest.Test(t, func(*testing.T) { // which fails if the writer does not end
		p := &printer{out: &bytes.Buffer{}, compact: true}
		p.print(make([]byte, 3*firstSize))
		p.release()
	})
}
