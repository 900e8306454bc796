package x11

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const cookie = "00112233445566778899aabbccddeeff"

func options(t *testing.T) Options {
	return Options{Cookie: cookie, Host: "n1", File: filepath.Join(t.TempDir(), "x"),
		Owner: Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}
}

// open makes a display whose tunnel is the other end of what is returned, and reads its number.
func open(t *testing.T, o Options) (*Display, *bufio.Reader, net.Conn) {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { // ends with the tunnel
		done <- d.Serve(context.Background(), far)
		far.Close()
	}()
	t.Cleanup(func() { near.Close(); <-done })
	r := bufio.NewReader(near)
	if n := number(t, r); n != d.Number {
		t.Fatalf("told :%d, is :%d", n, d.Number)
	}
	return d, r, near
}

func number(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func dial(t *testing.T, d *Display) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(base+d.Number))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestDisplay: a program's connection is told of and can be taken once; the tunnel's end is that of the display, of
// its file and of what waits.
func TestDisplay(t *testing.T) {
	d, told, tunnel := open(t, options(t))
	program := dial(t, d)
	start := setup(binary.LittleEndian, cookieKind, rawCookie(t))
	if _, err := program.Write(start); err != nil {
		t.Fatal(err)
	}
	n := uint64(number(t, told))
	carried := d.Take(n)
	if carried == nil || d.Take(n) != nil {
		t.Fatal("want the connection once")
	}
	go func() { _, _ = io.WriteString(program, "hello"); program.(*net.TCPConn).CloseWrite() }()
	if text, err := io.ReadAll(carried); string(text) != string(start)+"hello" {
		t.Errorf("carried %q, %v", text, err)
	}
	carried.Close()
	waits := dial(t, d)
	if _, err := waits.Write(start); err != nil {
		t.Fatal(err)
	}
	number(t, told)
	tunnel.Close()
	if _, err := waits.Read(make([]byte, 1)); err == nil {
		t.Error("what waits goes on")
	}
	<-d.closed
	d.Close()
	if _, err := os.Stat(d.Path()); err == nil {
		t.Error("the file is still there")
	}
}

func rawCookie(t *testing.T) string {
	t.Helper()
	raw, err := hex.DecodeString(cookie)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// setup is what a program begins a connection with.
func setup(order binary.AppendByteOrder, kind, proof string) []byte {
	b := []byte{'B', 0}
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		b[0] = 'l'
	}
	for _, n := range []int{11, 0, len(kind), len(proof), 0} {
		b = order.AppendUint16(b, uint16(n))
	}
	for _, s := range []string{kind, proof} {
		b = append(b, s...)
		b = append(b, make([]byte, padded(len(s))-len(s))...)
	}
	return b
}

// TestDisplayOfOthers: a program without the display's cookie does not reach the X server, which might admit it.
func TestDisplayOfOthers(t *testing.T) {
	d, told, _ := open(t, options(t))
	right := rawCookie(t)
	for name, start := range map[string][]byte{
		"no cookie":       setup(binary.LittleEndian, "", ""),
		"another cookie":  setup(binary.BigEndian, cookieKind, strings.Repeat("x", len(right))),
		"another kind":    setup(binary.LittleEndian, "XDM-AUTHORIZATION", right),
		"half a cookie":   setup(binary.LittleEndian, cookieKind, right[:8]),
		"long texts":      setup(binary.LittleEndian, strings.Repeat("a", 60000), strings.Repeat("b", 60000)),
		"something else":  []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"no byte order":   make([]byte, 100),
		"the right words": setup(binary.BigEndian, cookieKind, right),
	} {
		t.Run(name, func(t *testing.T) {
			program := dial(t, d)
			if _, err := program.Write(start); err != nil {
				t.Fatal(err)
			}
			if name == "the right words" {
				if d.Take(uint64(number(t, told))) == nil {
					t.Error("want a connection")
				}
				return
			}
			answer, _ := io.ReadAll(program) // the end may be a reset: not all was read
			refused := len(answer) == 0 || answer[0] == 0 && strings.Contains(string(answer), "has not the cookie")
			if !refused {
				t.Errorf("answered %q", answer)
			}
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next != 1 {
		t.Errorf("%d connections reach the X server, want one", d.next)
	}
}

// TestPortOfOthers: a display has its port at both addresses of localhost, so that programs show their cookie to nobody
// else; where one of them is taken it has another port.
func TestPortOfOthers(t *testing.T) {
	other, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("there is no IPv6 here: ", err)
	}
	other.Close()
	o := options(t)
	for o.Number = lowest; o.Number <= highest; o.Number++ {
		port := strconv.Itoa(base + o.Number)
		if other, err = net.Listen("tcp6", "[::1]:"+port); err == nil {
			break
		}
	}
	defer other.Close()
	d, told, _ := open(t, o)
	if d.Number == o.Number {
		t.Fatalf("display :%d is given out, whose port is another's at ::1", d.Number)
	}
	program, err := net.Dial("tcp", "[::1]:"+strconv.Itoa(base+d.Number))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if _, err := program.Write(setup(binary.LittleEndian, cookieKind, rawCookie(t))); err != nil {
		t.Fatal(err)
	}
	if d.Take(uint64(number(t, told))) == nil {
		t.Error("want a connection")
	}
}

// TestTurns: a user has one xauth at a time, whatever another one waits for.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	program := "#!/bin/sh\nmkdir \"$HOME/runs\" || echo twice >>\"$HOME/log\"; sleep 0.05; rmdir \"$HOME/runs\"\n"
	if err := os.WriteFile(filepath.Join(dir, "xauth"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	u := Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Home: dir}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := xauth(u, dir+"/file", "add"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if text, err := os.ReadFile(filepath.Join(dir, "log")); err == nil {
		t.Errorf("several ran at once: %s", text)
	}
}

// TestXauthIsBounded: however much is in a user's file, or is said of it, xauth takes little memory of the node's.
func TestXauthIsBounded(t *testing.T) {
	dir := t.TempDir()
	program := "#!/bin/sh\nulimit -v >\"$HOME/limit\"; head -c 10000000 /dev/zero | tr '\\0' a; exit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "xauth"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	u := Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Home: dir}
	err := xauth(u, dir+"/file", "add")
	if err == nil || !strings.Contains(err.Error(), "exit status 3: aaa") || len(err.Error()) > 2*xauthSays {
		t.Errorf("%.200v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "limit"))
	if got := strings.TrimSpace(string(text)); err != nil || got != strconv.Itoa(xauthMemory) {
		t.Errorf("it may take %s KiB, want %d (%v)", got, xauthMemory, err)
	}
}

// TestSilentOthers: connections of others that show no cookie keep no program from the display.
func TestSilentOthers(t *testing.T) {
	d, told, _ := open(t, options(t))
	for range 2 * maxReading {
		dial(t, d)
	}
	program := dial(t, d)
	if _, err := program.Write(setup(binary.LittleEndian, cookieKind, rawCookie(t))); err != nil {
		t.Fatal(err)
	}
	got := make(chan int, 1)
	go func() { got <- number(t, told) }()
	select {
	case <-got:
	case <-time.After(setupTime - time.Second):
		t.Fatal("the program waits in vain")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reading) > maxReading {
		t.Errorf("%d connections are read, want %d at most", len(d.reading), maxReading)
	}
}

// TestDisplayAgain: a tunnel that is made again gets the number and the file that it had; two displays have two
// numbers.
func TestDisplayAgain(t *testing.T) {
	o := options(t)
	first, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Number = first.Number
	other := o
	other.File += "2"
	second, err := Open(other)
	if err != nil || second.Number == first.Number {
		t.Fatalf("a second display: %v", err)
	}
	defer second.Close()
	first.Close()
	again, err := Open(o)
	if err != nil || again.Number != o.Number || again.Path() != o.File {
		t.Fatalf("again: %+v, %v", again, err)
	}
	again.Close()
	if (*Display)(nil).Environ() != nil || (*Display)(nil).Take(1) != nil {
		t.Error("none has something")
	}
}

// TestCookie: xauth reads the file, for this machine's name and for any; what is no cookie is refused.
func TestCookie(t *testing.T) {
	o := options(t)
	for _, bad := range []string{"", "xyz", strings.Repeat("00", maxCookie+1)} {
		o.Cookie = bad
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "hexadecimal") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	d, _, _ := open(t, options(t))
	st, err := os.Stat(d.Path())
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	want := []string{"DISPLAY=localhost:" + strconv.Itoa(d.Number) + ".0", "XAUTHORITY=" + d.Path()}
	if !slices.Equal(d.Environ(), want) {
		t.Errorf("%q", d.Environ())
	}
	if _, err := exec.LookPath("xauth"); err != nil {
		t.Skip("there is no xauth: apt-get install xauth")
	}
	list := func(file string) string {
		out, err := exec.Command("xauth", "-n", "-f", file, "list").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	at := ":" + strconv.Itoa(d.Number) + "  MIT-MAGIC-COOKIE-1  " + cookie + "\n"
	if got := list(d.Path()); got != "n1/unix"+at+"#ffff#"+"#"+at {
		t.Errorf("xauth list: %q", got)
	}
	t.Run("in a home", func(t *testing.T) {
		o := options(t)
		o.InHome, o.Owner.Home = true, t.TempDir()
		d, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		got := list(o.Owner.Home + "/.Xauthority")
		if !strings.HasPrefix(got, "n1/unix:") || !strings.Contains(got, cookie) {
			t.Errorf("xauth list: %q", got)
		}
		o.Owner.Home = ""
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "knows no home") {
			t.Errorf("without a home: %v", err)
		}
	})
}
