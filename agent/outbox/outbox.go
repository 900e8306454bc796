// Package outbox keeps in files what a node tells the servers: reports until they have arrived, and how attempts ended
// for servers whose state is brought back from an older file. It knows neither how the servers are reached nor what
// runs. Start with Reports.
package outbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Bounds of one call; the rest follows. Servers take no larger body than api.MaxBody, and a record of a step has its
// user's command line and a share of each node.
const (
	maxReports = 512
	maxBytes   = 8 << 20 // as in the file; one report is told whatever it has
)

// maxOutboxFile is the size at which a file without waiting reports is begun again.
const maxOutboxFile = 4 << 20

// box keeps reports in a file until they are acknowledged, so that a restart loses none. The
// file only grows: a line per report, and a line per acknowledgement. It is replaced, by rename,
// when it is large and nothing waits, so that the numbers are never lost.
type box struct {
	More chan struct{} // a report was added
	path string

	mu   sync.Mutex
	file *os.File
	size int64
	list []kept
	last map[cluster.NodeName]uint64
}

// kept is a report that has not arrived.
type kept struct {
	cluster.Report
	bytes int // of its line
}

// boxLine is one line of the file: a report, or that everything up to Acked has arrived.
type boxLine struct {
	cluster.Report
	Acked uint64 `json:"acked,omitempty"`
}

// openBox opens the outbox of a folder, which it makes.
func openBox(dir string) (*box, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of the outbox: %w", err)
	}
	b := &box{More: make(chan struct{}, 1), path: filepath.Join(dir, "outbox"), last: map[cluster.NodeName]uint64{}}
	f, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	b.file = f
	acked := map[cluster.NodeName]uint64{}
	for lines := bufio.NewReader(f); err == nil; {
		var text []byte
		if text, err = lines.ReadBytes('\n'); len(text) == 0 {
			continue
		}
		b.size += int64(len(text))
		var l boxLine
		if wire.Unmarshal(text, &l) != nil {
			continue // a line cut off by a crash was never acted on
		}
		b.last[l.Node] = max(b.last[l.Node], l.Seq, l.Acked)
		acked[l.Node] = max(acked[l.Node], l.Acked)
		if l.Acked == 0 {
			b.list = append(b.list, kept{l.Report, len(text)})
		}
	}
	if err != io.EOF {
		return b, errors.Join(err, f.Close())
	}
	b.list = slices.DeleteFunc(b.list, func(r kept) bool { return r.Seq <= acked[r.Node] })
	err = nil
	if b.size > 0 { // end a line that a crash cut off
		_, err = f.Write([]byte{'\n'})
	}
	return b, err
}

// Seq is the last number that the servers may have seen of a node.
func (b *box) Seq(n cluster.NodeName) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	seq := b.last[n]
	for _, r := range b.list {
		if r.Node == n {
			seq = min(seq, r.Seq-1)
		}
	}
	return seq
}

// Put adds a report; it is on file before Put returns.
func (b *box) Put(n cluster.NodeName, updates []cluster.Update) (cluster.Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[n]++
	r := cluster.Report{Node: n, Seq: b.last[n], Updates: updates}
	before := b.size
	err := b.write(boxLine{Report: r})
	b.list = append(b.list, kept{r, int(b.size - before)})
	select {
	case b.More <- struct{}{}:
	default:
	}
	return r, err
}

func (b *box) write(lines ...boxLine) error {
	var text []byte
	for _, l := range lines {
		line, err := wire.Marshal(l)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	n, err := b.file.Write(text)
	b.size += int64(n)
	return err
}

// Pending are the oldest reports not yet acknowledged.
func (b *box) Pending() []cluster.Report { return b.oldest(maxReports, maxBytes) }

// All are all reports not yet acknowledged.
func (b *box) All() []cluster.Report { return b.oldest(math.MaxInt, math.MaxInt) }

// oldest are so many reports not yet acknowledged, of so many bytes together.
func (b *box) oldest(most, room int) (out []cluster.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.list[:min(len(b.list), most)] {
		if room -= k.bytes; room < 0 && out != nil {
			break
		}
		out = append(out, k.Report)
	}
	return out
}

// Ack notes that the servers have the oldest reports.
func (b *box) Ack(reports []cluster.Report) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = b.list[len(reports):]
	newest := map[cluster.NodeName]uint64{}
	for _, r := range reports {
		newest[r.Node] = r.Seq
	}
	if len(b.list) == 0 {
		b.list = nil
		if b.size > maxOutboxFile {
			return b.renew()
		}
	}
	var lines []boxLine
	for n, seq := range newest {
		lines = append(lines, boxLine{Report: cluster.Report{Node: n}, Acked: seq})
	}
	return b.write(lines...)
}

// renew replaces the file by one with only the numbers.
func (b *box) renew() error {
	f, err := os.OpenFile(b.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("begin a new outbox: %w", err)
	}
	old := b.file
	b.file, b.size = f, 0
	var lines []boxLine
	for n, seq := range b.last {
		lines = append(lines, boxLine{Report: cluster.Report{Node: n}, Acked: seq})
	}
	if err := b.write(lines...); err != nil {
		b.file = old
		return errors.Join(err, f.Close())
	}
	return errors.Join(os.Rename(b.path+".new", b.path), old.Close())
}

// Close closes the file.
func (b *box) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.file.Close()
}
