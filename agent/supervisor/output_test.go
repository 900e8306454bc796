package supervisor

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/api/stream"
)

// TestReadsAtOnce: a step whose many tasks write at once has no more output in memory than one whose tasks write in
// turn, and a read that finds nothing takes no room.
func TestReadsAtOnce(t *testing.T) {
	o := newOutput(&run{})
	const pipes = 100
	var readers, writers []*os.File
	for range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		if _, err := w.WriteString(strings.Repeat("x", readSize)); err != nil { // the pipe has room for it
			t.Fatal(err)
		}
		readers, writers = append(readers, r), append(writers, w)
	}
	read := func(f *os.File) int {
		rc, err := f.SyscallConn()
		if err != nil {
			t.Error(err)
			return 0
		}
		n, err := o.readFrame(stream.Stdout, 0, rc)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, f := range readers {
		wg.Go(func() { <-begin; read(f) })
	}
	close(begin)
	wg.Wait()
	if o.bytes > MaxUnacked+readSize+frameCost || o.bytes < MaxUnacked-readSize || o.reading != 0 {
		t.Errorf("%d bytes are in memory, and %d are being read", o.bytes, o.reading)
	}
	o.mu.Lock()
	o.frames, o.bytes = nil, 0
	o.mu.Unlock()
	for i, f := range readers {
		writers[i].Close()
		for n := 1; n > 0; n = read(f) {
			o.mu.Lock()
			o.bytes = 0
			o.mu.Unlock()
		}
	}
	if n := read(readers[0]); n != 0 || o.reading != 0 {
		t.Errorf("at the end %d bytes are read, and %d are being read", n, o.reading)
	}
}

// TestCloseWhileReading: a step can be forgotten while its descriptors are read: closing one waits for its reader, who
// must not wait for a lock that is held meanwhile.
func TestCloseWhileReading(t *testing.T) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 100 {
			closeWhileReading(t)
		}
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("a step is still not closed after a minute")
	}
}

// closeWhileReading closes an output whose descriptors have more to read at any time.
func closeWhileReading(t *testing.T) {
	o := newOutput(&run{})
	var writers sync.WaitGroup
	for range 4 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Error(err)
			return
		}
		writers.Go(func() {
			defer w.Close()
			for {
				if _, err := w.WriteString("x"); err != nil {
					return // nobody reads any more
				}
			}
		})
		o.addSource(&source{fd: 1, f: r})
	}
	o.mu.Lock()
	for o.seq < 20 {
		o.moved.Wait()
	}
	o.mu.Unlock()
	o.close()
	o.wg.Wait()
	writers.Wait()
}
