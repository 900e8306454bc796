package bandwidth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/burnin/pairs"
)

// world is peers on this machine, whose lines are labeled as srun does it.
type world struct {
	in   *io.PipeReader // what the lead reads
	out  io.Writer      // what it writes
	mu   sync.Mutex
	pipe *io.PipeWriter
	each []io.WriteCloser
	all  sync.WaitGroup
}

func (w *world) Write(p []byte) (int, error) {
	for _, e := range w.each {
		_, _ = e.Write(p) // one that has gone reads nothing
	}
	return len(p), nil
}

// labeled writes lines of a task.
type labeled struct {
	w    *world
	task int
}

func (l labeled) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	_, err := fmt.Fprintf(l.w.pipe, "%d: %s", l.task, p)
	return len(p), err
}

// newWorld starts peers; change prepares the peer of a node, and returns false to have none there.
func newWorld(t *testing.T, n int, change func(int, *Peer) bool) (*world, Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{}
	w.out = w
	w.in, w.pipe = io.Pipe()
	o := Options{Time: 50 * time.Millisecond, Streams: 2, First: 5 * time.Second, Rest: 500 * time.Millisecond,
		Say: t.Logf, Began: func(uint64) {}, Addrs: make([]string, n)}
	for i := range n {
		o.Nodes = append(o.Nodes, fmt.Sprintf("n%d", i))
		p := &Peer{Node: o.Nodes[i], Job: 7, Out: labeled{w, n - 1 - i}}
		if change != nil && !change(i, p) {
			continue
		}
		in, out := io.Pipe()
		w.each = append(w.each, out)
		w.all.Go(func() {
			defer in.Close()
			if err := p.Run(ctx, in); err != nil && ctx.Err() == nil {
				t.Errorf("peer %d: %v", i, err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		w.in.Close()
		w.all.Wait()
	})
	return w, o
}

// TestRun: all pairs of nodes transfer data, and a node that does not answer is reported.
func TestRun(t *testing.T) {
	w, o := newWorld(t, 6, func(i int, _ *Peer) bool { return i != 4 })
	r, err := Run(context.Background(), w.in, w.out, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Silent) != 1 || r.Silent[4] != "did not answer" || r.Tool != TCP || r.Job != 7 {
		t.Errorf("got %+v", r)
	}
	met := map[pairs.Pair]int{}
	for _, s := range r.Test.Samples {
		met[pairs.Pair{s.From, s.To}]++
		if s.Gbits <= 0 || s.Err != "" || s.From == 4 || s.To == 4 {
			t.Errorf("sample %+v", s)
		}
	}
	if len(met) != 2*2*3 { // 3 rounds of 2 pairs, both ways
		t.Errorf("got %v", met)
	}
}

// TestDead: a node that nobody can reach is found, and the others are well.
func TestDead(t *testing.T) {
	w, o := newWorld(t, 8, nil)
	o.Addrs[2] = "255.255.255.255" // TCP refuses it at once
	r, err := Run(context.Background(), w.in, w.out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Slow {
		if p.From != 2 || !p.IsNode() || !p.Receives {
			t.Errorf("found %+v", p)
		}
	}
	if len(r.Slow) == 0 || r.Blocked() != "" {
		t.Errorf("found nothing: %+v", r.Test.Samples)
	}
	if r.Test.Samples = pairs.Select(r.Test.Samples, func(s pairs.Sample) bool { return s.To == 2 }); r.Blocked() == "" {
		t.Errorf("not blocked: %+v", r.Test.Samples)
	}
}

// TestEnds: a test ends with its context, with its peers, and when nobody answers.
func TestEnds(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		w, o := newWorld(t, 2, nil)
		ctx, cancel := context.WithCancel(context.Background())
		o.Say = func(string, ...any) { cancel() }
		if _, err := Run(ctx, w.in, w.out, o); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		in, _ := io.Pipe()
		o := Options{Nodes: []string{"a", "b"}, Addrs: []string{"", ""}, First: time.Millisecond}
		if _, err := Run(context.Background(), in, io.Discard, o); err == nil || !strings.Contains(err.Error(), "no node has begun") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("end", func(t *testing.T) {
		o := Options{Nodes: []string{"a", "b"}, Addrs: []string{"", ""}, First: time.Minute}
		in := strings.NewReader("srun: something\n1: no JSON\n")
		if _, err := Run(context.Background(), in, io.Discard, o); err == nil || !strings.Contains(err.Error(), "simulated") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a peer without a lead", func(t *testing.T) {
		p := &Peer{Node: "a", Out: io.Discard}
		if err := p.Run(context.Background(), strings.NewReader("")); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
	})
}

// TestStops: a node whose peer stops in the middle is reported, and does not make its partners slow.
func TestStops(t *testing.T) {
	w, o := newWorld(t, 6, nil)
	o.Patience = 4 * time.Second
	rounds := 0
	o.Say = func(string, ...any) {
		if rounds++; rounds == 2 {
			w.each[4] = discard{w.each[4]} // it hears of no phase anymore
		}
	}
	r, err := Run(context.Background(), w.in, w.out, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Silent[4] != "stopped answering" || len(r.Silent) != 1 || len(r.Slow) > 0 {
		t.Errorf("got %v, %+v", r.Silent, r.Verdict)
	}
	for _, s := range r.Test.Samples {
		if s.From == 4 || s.To == 4 {
			t.Errorf("sample %+v", s)
		}
	}
	w.each[4].Close()
}

// discard writes nothing.
type discard struct{ io.WriteCloser }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestStrangers: neither side of a connection goes on with one that does not know the secret, and a peer has only so
// many connections that have not shown that they do.
func TestStrangers(t *testing.T) {
	secret, other := make([]byte, secretLen), []byte(strings.Repeat("x", secretLen))
	for _, c := range []struct {
		name         string
		dial, listen []byte
		ok           bool
	}{{"friends", secret, secret, true}, {"a stranger dials", other, secret, false}} {
		t.Run(c.name, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			want := header{Phase: 1, From: 2, To: 3, Rail: 4, Stream: 5, Millis: 6, Tunnel: true}
			ended := make(chan error, 1)
			go func() {
				err := greet(a, c.dial, want)
				if err != nil {
					a.Close()
				}
				ended <- err
			}()
			got, err := welcome(b, c.listen)
			if err != nil {
				b.Close()
			}
			dialed := <-ended
			b.Close()
			if c.ok != (err == nil) || c.ok != (dialed == nil) || c.ok && got != want {
				t.Errorf("got %+v, %v, %v", got, err, dialed)
			}
		})
	}
	t.Run("a stranger listens", func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			_, _ = b.Write(make([]byte, nonceLen))
			_, _ = io.ReadFull(b, make([]byte, nonceLen+headerLen+macLen))
			_, _ = b.Write(make([]byte, macLen))
		}()
		if err := greet(a, secret, header{}); !errors.Is(err, errStranger) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a flood", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := &Peer{start: &start{Secret: secret, Rails: []string{""}, Tool: TCP}}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { p.listen(ctx, l); close(done) }()
		refused := 0
		for range maxStrangers + 10 {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.ReadFull(c, make([]byte, nonceLen)); err != nil {
				refused++
			}
		}
		cancel()
		<-done
		if refused != 10 {
			t.Errorf("%d connections were refused", refused)
		}
	})
}

// TestCheck: a peer refuses what is too much, and what is for another node.
func TestCheck(t *testing.T) {
	good := func() *start {
		return &start{Secret: make([]byte, secretLen), Nodes: []string{"a", "b"}, Rails: []string{""},
			Addrs: []string{"", ""}, Tool: TCP, Seconds: 1, Streams: 1}
	}
	for name, spoil := range map[string]func(*start){
		"secret": func(s *start) { s.Secret = nil }, "nodes": func(s *start) { s.Nodes = nil },
		"rails": func(s *start) { s.Rails = nil }, "addresses": func(s *start) { s.Addrs = nil },
		"tool": func(s *start) { s.Tool = "rm" }, "time": func(s *start) { s.Seconds = maxSeconds + 1 },
		"no time": func(s *start) { s.Seconds = 0 }, "streams": func(s *start) { s.Streams = maxStreams + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			if err := s.check(); err != nil {
				t.Fatal(err)
			}
			if spoil(s); s.check() == nil {
				t.Error("not refused")
			}
		})
	}
	p := &Peer{start: good(), self: 1}
	for _, h := range []header{{To: 0}, {To: 1, Rail: 1}, {To: 1, Tunnel: true}, {To: 1, Millis: maxSeconds*1000 + 1}} {
		if p.checkHeader(h) == nil {
			t.Errorf("%+v is not refused", h)
		}
	}
	if err := p.checkHeader(header{To: 1, Millis: 1000}); err != nil {
		t.Error(err)
	}
}

// TestParseIB reads what ib_write_bw has printed, as its users have shown it in public.
func TestParseIB(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	gbits := read("post_list.txt")
	for _, c := range []struct {
		name, out string
		want      float64
		ok        bool
	}{
		{"Gb/s", gbits, 0.48, true},
		{"MB/s", read("mb.txt"), 0, false},
		{"nothing", "", 0, false},
		{"two lines", strings.Replace(gbits, " 8 ", " 8 1 0.00 0.48 7.5\n 16 ", 1), 0, false},
		{"twice", gbits + gbits, 0, false},
		{"negative", strings.Replace(gbits, "0.48", "-0.48", 1), 0, false},
		{"no number", strings.Replace(gbits, "0.48", "NaN", 1), 0, false},
		{"cut off", strings.Replace(gbits, "0.48", "", 1)[:len(gbits)-100], 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseIB(c.out)
			if got != c.want || c.ok != (err == nil) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestMain is also ib_write_bw, by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != IB {
		os.Exit(m.Run())
	}
	if err := fakeIB(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeIB prints a bandwidth after its two sides have exchanged a byte. mlx5_1 is slow.
func fakeIB(args []string) error {
	value := func(name string) string { return args[slices.Index(args, name)+1] }
	at := "127.0.0.1:" + value("-p")
	if args[len(args)-1] != "127.0.0.1" {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, err = io.CopyN(c, c, 1)
		return err
	}
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return err
	}
	gbits := map[bool]string{true: "97.50", false: "392.50"}[value("-d") == "mlx5_1"]
	fmt.Println(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
	fmt.Println(" 65536      664644           0.00              ", gbits, "            0.748")
	return nil
}

// TestIB: ib_write_bw is called on both sides of each pair, for each port, and its sides reach each other.
func TestIB(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(t.TempDir(), IB)
	if err := os.Symlink(self, tool); err != nil {
		t.Fatal(err)
	}
	ports := []Port{{"mlx5_0", 1, 400}, {"mlx5_1", 1, 400}, {"mlx5_2", 1, 400}}
	w, o := newWorld(t, 4, func(i int, p *Peer) bool {
		p.Tool = tool
		if p.Ports = ports; i == 3 {
			p.Ports = ports[:2]
		}
		return true
	})
	r, err := Run(context.Background(), w.in, w.out, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Tool != IB || fmt.Sprint(r.Rails, r.Verdict.Rails, r.Lacks) != "[mlx5_0:1 mlx5_1:1 mlx5_2:1] [1] map[3:[mlx5_2:1]]" {
		t.Errorf("got %+v", r)
	}
	if len(r.Slow)+len(r.Once)+len(r.Unsure) > 0 {
		t.Errorf("found %+v in %+v", r.Verdict, r.Test.Samples)
	}
}
