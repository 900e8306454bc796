package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"dev.muster/cluster"
)

// maxReports bounds one call; the rest follows.
const maxReports = 512

// outbox keeps reports in a file until they are acknowledged, so that a restart loses none. The
// file is a line per report; it is cut when everything is acknowledged.
type outbox struct {
	more chan struct{}

	mu   sync.Mutex
	file *os.File
	list []cluster.Report
	last map[cluster.NodeName]uint64
}

func openOutbox(dir string) (*outbox, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of the outbox: %w", err)
	}
	path := filepath.Join(dir, "outbox")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	b := &outbox{more: make(chan struct{}, 1), file: f, last: map[cluster.NodeName]uint64{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r cluster.Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // a line cut off by a crash was never acted on
		}
		b.last[r.Node] = max(b.last[r.Node], r.Seq)
		if len(r.Updates) > 0 {
			b.list = append(b.list, r)
		}
	}
	return b, lines.Err()
}

func (b *outbox) seq(n cluster.NodeName) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[n] - uint64(b.waiting(n))
}

func (b *outbox) waiting(n cluster.NodeName) (k int) {
	for _, r := range b.list {
		if r.Node == n {
			k++
		}
	}
	return k
}

// put adds a report; it is on file before put returns.
func (b *outbox) put(n cluster.NodeName, updates []cluster.Update) (cluster.Report, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[n]++
	r := cluster.Report{Node: n, Seq: b.last[n], Updates: updates}
	b.list = append(b.list, r)
	line, err := json.Marshal(r)
	if err == nil {
		_, err = b.file.Write(append(line, '\n'))
	}
	select {
	case b.more <- struct{}{}:
	default:
	}
	return r, err
}

// pending are the oldest reports not yet acknowledged.
func (b *outbox) pending() []cluster.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]cluster.Report(nil), b.list[:min(len(b.list), maxReports)]...)
}

func (b *outbox) ack(reports []cluster.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = b.list[len(reports):]
	if len(b.list) > 0 {
		return
	}
	b.list = nil
	// Only the numbers remain worth keeping: one line a node.
	if err := b.file.Truncate(0); err != nil {
		return
	}
	for n, seq := range b.last {
		line, _ := json.Marshal(cluster.Report{Node: n, Seq: seq})
		_, _ = b.file.Write(append(line, '\n'))
	}
}

func (b *outbox) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.file.Close()
}
