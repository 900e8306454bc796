package bandwidth

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxOutput bounds what is read of what ib_write_bw prints.
const maxOutput = 64 << 10

// The line of names that ib_write_bw --report_gbits prints above its values, and the place of the average among these.
const (
	ibNames   = "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]"
	ibValues  = 5
	ibAverage = 3
)

// parseIB reads the average bandwidth, in Gb/s, from what ib_write_bw --report_gbits prints: one line of values below
// one line of names. It refuses everything else.
func parseIB(out string) (float64, error) {
	var table []string // from the names on, without rulers
	for line := range strings.Lines(out) {
		text := strings.Join(strings.Fields(line), " ")
		if text == ibNames || len(table) > 0 {
			table = append(table, text)
		}
	}
	table = slices.DeleteFunc(table, func(text string) bool {
		return text == "" || strings.HasPrefix(text, "---")
	})
	if len(table) != 2 {
		return 0, fmt.Errorf("ib_write_bw printed no single line below %q", ibNames)
	}
	values := strings.Fields(table[1])
	if len(values) != ibValues {
		return 0, fmt.Errorf("ib_write_bw printed %d values below %q", len(values), ibNames)
	}
	var numbers [ibValues]float64
	for i, text := range values {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0 && n < 1e15) {
			return 0, fmt.Errorf("ib_write_bw: value %d is %q, want a number", i+1, text)
		}
		numbers[i] = n
	}
	return numbers[ibAverage], nil
}

// program is ib_write_bw on this machine.
type program struct{ path string }

func (p program) command(ctx context.Context, rail string, port int, d time.Duration, more ...string) *exec.Cmd {
	device, number, _ := strings.Cut(rail, ":")
	args := append([]string{"-d", device, "-i", number, "-p", strconv.Itoa(port), "-F", "--report_gbits",
		"-D", strconv.Itoa(max(1, int(d.Round(time.Second)/time.Second)))}, more...)
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.WaitDelay = time.Second
	return cmd
}

// bounded keeps the first bytes of what is written to it.
type bounded struct{ text []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxOutput-len(b.text))]...)
	return len(p), nil
}

// send runs the side of ib_write_bw that sends. Messages between its two sides about the test go through c.
func (p program) send(ctx context.Context, c net.Conn, rail string, d time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d+toolTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	go func() { // ends with the listener or the connections
		own, err := l.Accept()
		l.Close() // one is enough
		if err == nil {
			defer context.AfterFunc(ctx, func() { own.Close() })()
			join(own, c)
		}
	}()
	var out bounded
	cmd := p.command(ctx, rail, l.Addr().(*net.TCPAddr).Port, d, "127.0.0.1")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("ib_write_bw -d %s: %w: %s", rail, err, lastLine(string(out.text)))
	}
	return parseIB(string(out.text))
}

// receive runs the other side of send.
func (p program) receive(ctx context.Context, c net.Conn, rail string, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d+toolTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd := p.command(ctx, rail, port, d)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	gone, leave := context.WithCancel(ctx)
	go func() { ended <- cmd.Wait(); leave() }()
	for gone.Err() == nil {
		own, err := (&net.Dialer{}).DialContext(gone, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			stop := context.AfterFunc(ctx, func() { own.Close() })
			join(own, c)
			stop()
			break
		}
		select { // it does not listen yet
		case <-gone.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return <-ended
}

// join copies between two connections until both have ended, or have been closed, and closes them.
func join(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, p := range [2][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(p[0], p[1]) // an end is an end
			_ = p[0].(*net.TCPConn).CloseWrite()
			done <- struct{}{}
		}()
	}
	<-done
	<-done
	a.Close()
	b.Close()
}

// The ports of ib_write_bw: from its own default up to those that the system gives to connections.
const (
	firstPort = 18515
	lastPort  = 32767
)

// freePort finds a port on which nobody listens.
func freePort() (port int, err error) {
	for range 100 {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		var l net.Listener
		if l, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, err
}

func lastLine(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(all[len(all)-1])
}
