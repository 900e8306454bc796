package data

import (
	"io"
	"strings"
	"sync"
)

const (
	// firstSize is how much is written first: who reads need not wait for more.
	firstSize = 32 << 10
	// bufferSize is how much is written at a time after that. Smaller ones cost more turns between who makes the
	// answer, who writes it and who reads it.
	bufferSize = 512 << 10
)

// buffers were written, and are used again: most answers are short.
var buffers sync.Pool

// printer writes JSON that comes in pieces, each of whole tokens and without blanks: as it is, for the eyes, or as
// YAML in the manner of Slurm, with the type before each value.
type printer struct {
	out     io.Writer
	yaml    bool
	compact bool
	buf     []byte
	scratch []byte  // a piece that is not written as it is made
	behind  *writer // of an answer longer than a buffer

	open  []byte // the brackets around
	fresh bool   // nothing follows the last of them yet
	key   bool   // YAML: a key was written, its value is next
	depth int    // YAML: of the line
}

func (p *printer) print(b []byte) {
	p.made(func(to []byte) []byte { return append(to, b...) })
}

// made prints a piece that is made behind what it is given.
func (p *printer) made(piece func(to []byte) []byte) {
	if p.compact && !p.yaml {
		p.buf = piece(p.buf) // where it is written
	} else {
		p.scratch = piece(p.scratch[:0])
		p.tokens(p.scratch)
	}
	if len(p.buf) >= p.room() {
		p.flush()
	}
}

// room is how much a buffer takes before it is written.
func (p *printer) room() int {
	if p.behind == nil {
		return firstSize
	}
	return bufferSize
}

// flush writes the first part of an answer. Of what follows it has each part written while the next one is made.
func (p *printer) flush() {
	if p.behind == nil {
		_, err := p.out.Write(p.buf)
		p.behind = startWriter(p.out, err)
		p.buf = newBuffer()
		return
	}
	p.behind.full <- p.buf
	p.buf = (<-p.behind.empty)[:0]
}

// release gives up what a printer holds, wherever it ended.
func (p *printer) release() {
	if p.behind != nil {
		p.behind.stop()
		return // its buffers are too large to be kept for others
	}
	buffers.Put(&p.buf)
}

func (p *printer) end() error {
	if p.yaml {
		p.buf = append(p.buf, "...\n"...)
	}
	p.buf = append(p.buf, '\n')
	if p.behind == nil {
		_, err := p.out.Write(p.buf)
		return err
	}
	p.flush()
	return p.behind.end()
}

// writer writes full buffers one after the other, and gives them back empty.
type writer struct {
	full, empty chan []byte
	failed      chan error
	stop        func() // ends run, once
}

// newBuffer has room for what is written at a time, and for the piece that fills it.
func newBuffer() []byte { return make([]byte, 0, bufferSize+bufferSize/4) }

// startWriter begins a writer behind a first part, which may have failed. It ends with stop.
func startWriter(out io.Writer, failed error) *writer {
	w := &writer{full: make(chan []byte), empty: make(chan []byte, 2), failed: make(chan error, 1)}
	w.stop = sync.OnceFunc(func() { close(w.full) })
	w.empty <- newBuffer()
	go w.run(out, failed) // ends with stop
	return w
}

// run writes until the first error, and takes what comes until the end.
func (w *writer) run(out io.Writer, err error) {
	for b := range w.full {
		if err == nil {
			_, err = out.Write(b)
		}
		w.empty <- b
	}
	w.failed <- err
}

// end waits until all is written.
func (w *writer) end() error {
	w.stop()
	return <-w.failed
}

// tokens cuts JSON into brackets, commas, colons, texts and other words, and writes them.
func (p *printer) tokens(b []byte) {
	take := (*printer).jsonToken
	if p.yaml {
		take = (*printer).yamlToken
	}
	for i := 0; i < len(b); {
		end := i + 1
		switch c := b[i]; {
		case c == '"':
			for b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			end++
		case strings.IndexByte("{}[],:", c) < 0:
			for end < len(b) && strings.IndexByte("{}[],:", b[end]) < 0 {
				end++
			}
		}
		take(p, b[i:end])
		i = end
	}
}

func (p *printer) line(depth int) {
	p.buf = append(p.buf, '\n')
	for range depth {
		p.buf = append(p.buf, "  "...)
	}
}

func (p *printer) jsonToken(tok []byte) {
	switch c := tok[0]; c {
	case '{', '[':
		p.begin()
		p.open, p.fresh = append(p.open, c), true
		p.buf = append(p.buf, c)
	case '}', ']':
		p.open = p.open[:len(p.open)-1]
		if !p.fresh {
			p.line(len(p.open))
		}
		p.fresh = false
		p.buf = append(p.buf, c)
	case ',':
		p.buf = append(p.buf, c)
		p.line(len(p.open))
	case ':':
		p.buf = append(p.buf, ": "...)
	default:
		p.begin()
		p.buf = append(p.buf, tok...)
	}
}

// begin puts what follows a bracket on a line of its own.
func (p *printer) begin() {
	if p.fresh {
		p.line(len(p.open))
	}
	p.fresh = false
}

// yamlToken writes a token as YAML. The element of a list stands behind a dash; a list stands as deep as its key.
func (p *printer) yamlToken(tok []byte) {
	switch c := tok[0]; c {
	case '{', '[':
		p.item()
		if len(p.open) == 0 {
			p.buf = append(p.buf, "%YAML 1.1\n--- "...)
		}
		p.buf = append(p.buf, map[byte]string{'{': "!!map", '[': "!!seq"}[c]...)
		if len(p.open) > 0 && (c == '{' || p.open[len(p.open)-1] == '[') {
			p.depth++
		}
		p.open, p.fresh, p.key = append(p.open, c), true, false
	case '}', ']':
		if p.fresh {
			p.buf = append(p.buf, ' ', p.open[len(p.open)-1], c)
		}
		p.open, p.fresh = p.open[:len(p.open)-1], false
		if len(p.open) > 0 && (c == '}' || p.open[len(p.open)-1] == '[') {
			p.depth--
		}
		if len(p.open) == 0 {
			p.buf = append(p.buf, '\n')
		}
	case ',', ':':
		p.fresh = false
	default:
		p.scalar(tok)
	}
}

// item begins the line of an element of a list.
func (p *printer) item() {
	if n := len(p.open); n > 0 && p.open[n-1] == '[' {
		p.line(p.depth)
		p.buf = append(p.buf, "- "...)
	}
	p.fresh = false
}

func (p *printer) scalar(tok []byte) {
	if n := len(p.open); p.open[n-1] == '{' && !p.key {
		p.line(p.depth)
		p.buf = append(append(append(p.buf, "!!str "...), yamlText(tok)...), ": "...)
		p.key, p.fresh = true, false
		return
	}
	p.item()
	p.key = false
	p.buf = append(append(p.buf, tagOf(tok)...), yamlText(tok)...)
}

// tagOf is the type before a value.
func tagOf(tok []byte) string {
	k := strings.IndexByte(`"tf`, tok[0])
	if k < 0 {
		return [...]string{"!!int ", "!!float "}[len(strings.FieldsFunc(string(tok), isPoint))-1]
	}
	return [...]string{"!!str ", "!!bool ", "!!bool "}[k]
}

func isPoint(r rune) bool {
	return r == '.'
}

// plainBytes may stand anywhere in a text without quotes, insideBytes not at its ends.
const (
	plainBytes  = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/."
	insideBytes = "-+=@%,() "
)

func notPlain(r rune) bool {
	return !strings.ContainsRune(plainBytes+insideBytes, r)
}

// yamlText is a text without its quotes, where it can be without.
func yamlText(tok []byte) []byte {
	if tok[0] != '"' {
		return tok
	}
	text := string(tok[1 : len(tok)-1])
	if text == "" || strings.IndexFunc(text, notPlain) >= 0 || strings.ContainsAny(text[:1]+text[len(text)-1:],
		insideBytes) {
		return tok
	}
	return tok[1 : len(tok)-1]
}
