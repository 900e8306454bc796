package bandwidth

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// block is how much is written and read at once.
const block = 256 << 10

// warmUp is the part of a transfer that is not measured: the begin, while a connection becomes fast.
const warmUp = 0.2

// push sends data for a time, and returns the bytes per second that the other side has received.
func push(c *net.TCPConn, d time.Duration) (float64, error) {
	_ = c.SetLinger(0) // what is still queued at the end is not sent
	begun := time.Now()
	_ = c.SetWriteDeadline(begun.Add(d + graceTime))
	stop := make(chan struct{})
	counted := make(chan struct{})
	var bytes, nanos uint64
	var failed error
	go func() {
		defer close(counted)
		defer close(stop)
		_ = c.SetReadDeadline(begun.Add(d + graceTime))
		answer := make([]byte, 16)
		if _, failed = io.ReadFull(c, answer); failed == nil {
			bytes, nanos = binary.BigEndian.Uint64(answer), binary.BigEndian.Uint64(answer[8:])
		}
		_ = c.SetWriteDeadline(time.Now()) // the other side has enough
	}()
	data := make([]byte, block)
	var err error
	for err == nil {
		select {
		case <-stop:
			err = errEnded
		default:
			_, err = c.Write(data)
		}
	}
	if !errors.Is(err, errEnded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.SetReadDeadline(time.Now().Add(graceTime)) // its answer may be here already
	}
	<-counted
	switch {
	case failed != nil:
		return 0, failed
	case nanos == 0:
		return 0, nil
	}
	return float64(bytes) / (float64(nanos) / 1e9), nil
}

// drain receives data for a time from the first byte on, and reports to the sender how many bytes came after the
// warm-up.
func drain(c *net.TCPConn, d time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(d + graceTime))
	data := make([]byte, block)
	n, err := c.Read(data)
	if err != nil || n == 0 {
		return err
	}
	begun := time.Now()
	from := begun.Add(time.Duration(float64(d) * warmUp))
	_ = c.SetReadDeadline(begun.Add(d))
	var bytes uint64
	for {
		n, err := c.Read(data)
		if time.Now().After(from) {
			bytes += uint64(n)
		}
		if err != nil {
			break
		}
	}
	measured := max(time.Since(from), 0)
	answer := binary.BigEndian.AppendUint64(nil, bytes)
	if _, err := c.Write(binary.BigEndian.AppendUint64(answer, uint64(measured))); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(graceTime))
	for err = nil; err == nil; { // until the sender has the answer, and closes
		_, err = c.Read(data)
	}
	return nil
}
