package launch

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/slurm/submit"
)

// TestLinesStayWhole: what two tasks write in parts comes out line by line, and with -u as it came. A line is kept
// up to 1024 bytes, as Slurm does.
func TestLinesStayWhole(t *testing.T) {
	long := strings.Repeat("x", 2500)
	for name, c := range map[string]struct {
		unbuffered, label bool
		frames            string // task:text of each write; an empty text is the end of the stream
		want              string
	}{
		"whole":          {frames: "0:a|1:c|0:b\n|1:d\n", want: "ab\ncd\n"},
		"unbuffered":     {unbuffered: true, frames: "0:a|1:c|0:b\n|1:d\n", want: "acb\nd\n"},
		"several at one": {frames: "0:a\nb\nc|1:x\n|0:d\n", want: "a\nb\nx\ncd\n"},
		"no end":         {frames: "0:open|1:x\n|0:", want: "x\nopen"},
		"label":          {label: true, frames: "0:a|1:c\n|0:b\n|1:open|1:", want: "1: c\n0: ab\n1: open\n"},
		"a long line":    {frames: "0:" + long + "|1:x\n|0:y\n", want: long[:2048] + "x\n" + long[2048:] + "y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &submit.Request{}
			r.Step.Unbuffered, r.Step.Label = c.unbuffered, c.label
			o := &stepIO{req: r, tasks: 2, parts: []*partIO{{out: &out, err: &out}}, begun: map[streamKey][]byte{}}
			for _, f := range strings.Split(c.frames, "|") {
				task, text, _ := strings.Cut(f, ":")
				var k int32
				fmt.Sscan(task, &k)
				if text == "" {
					o.eof(stream.Frame{Kind: stream.EOF, Task: k, Data: []byte{1}})
					continue
				}
				o.write(stream.Frame{Kind: stream.Stdout, Task: k, Data: []byte(text)})
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
		})
	}
}

// TestInputGoesOn: input goes to the other nodes when one of them takes none anymore.
func TestInputGoesOn(t *testing.T) {
	lost := stream.New(nil, 0)
	lost.Close()
	ours, theirs := net.Pipe()
	good := stream.New(func() (io.ReadWriteCloser, error) { return ours, nil }, 0)
	go func() { _, _ = good.Next() }() // it writes to the connection while this goes on
	defer theirs.Close()
	defer good.Close()
	in, out := io.Pipe()
	o := &stepIO{req: &submit.Request{}, in: in, inTask: stream.AllTasks}
	o.feed([]*stream.Stream{lost, good}, api.StepResponse{Nodes: make([]api.StepNode, 2)})
	got := ""
	go func() {
		_, _ = out.Write([]byte("one\n"))
		_, _ = out.Write([]byte("two\n"))
		out.Close()
	}()
	for {
		f, err := stream.ReadFrame(theirs)
		if err != nil {
			t.Fatal(err)
		}
		switch f.Kind {
		case stream.Hello:
			if err := stream.WriteFrame(theirs, stream.WelcomeFrame(0, 1)); err != nil {
				t.Fatal(err)
			}
		case stream.Stdin:
			got += string(f.Data)
		case stream.StdinEOF:
			if got != "one\ntwo\n" {
				t.Errorf("got %q", got)
			}
			return
		}
	}
}

// TestComponentsWriteApart: the output of a component goes where that component says, that of one that says nothing
// to the first's.
func TestComponentsWriteApart(t *testing.T) {
	var a, b bytes.Buffer
	o := &stepIO{
		req: &submit.Request{}, begun: map[streamKey][]byte{},
		parts: []*partIO{{out: &a, err: &a}, {first: 2, out: &b, err: &b}},
	}
	for rank, text := range []string{"0\n", "1\n", "2\n", "3\n"} {
		o.write(stream.Frame{Kind: stream.Stdout, Task: int32(rank), Data: []byte(text)})
	}
	if a.String() != "0\n1\n" || b.String() != "2\n3\n" {
		t.Errorf("first %q, second %q", a.String(), b.String())
	}
}
