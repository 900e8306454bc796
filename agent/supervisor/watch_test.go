package supervisor

import (
	"io"
	"testing"

	"dev.muster/api/stream"
)

// watched is what a watcher has of a step.
type watched struct {
	out  int
	exit int
	lost bool // some output was left out
	err  error
}

// look reads all that a watcher gets.
func look(w *stream.Watcher) (got watched) {
	for {
		f, err := w.Next()
		switch {
		case err != nil:
			got.err = err
			return got
		case f.Task == stream.OfNode:
			got.lost = true
		case f.Kind == stream.Stdout:
			got.out += len(f.Data)
		case f.Kind == stream.Exit:
			x, _ := f.TaskExit()
			got.exit = x.Code
		case f.Kind == stream.Done:
			return got
		}
	}
}

// TestWatch: watchers get what a step prints beside its client, and may type; one that does not read holds
// up neither the step nor the others.
func TestWatch(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(1, "echo early; read x; head -c 9000000 /dev/zero; echo $x; exit 3")
	g.start(sp)
	client := g.stream(sp.ID)
	f, err := client.Next()
	if err != nil || string(f.Data) != "early\n" {
		t.Fatalf("%+v %v", f, err)
	}
	dial := func() (io.ReadWriteCloser, error) { return g.r.Attach(sp.ID) }
	idle, err := dial()
	if err == nil {
		err = stream.WriteFrame(idle, stream.Frame{Kind: stream.Watch})
	}
	if err != nil {
		t.Fatal(err)
	}
	if f, err := stream.ReadFrame(idle); err != nil || f.Kind != stream.Welcome {
		t.Fatalf("%+v %v", f, err)
	}
	reader := stream.NewWatcher(dial)
	looked := make(chan watched, 1)
	go func() { looked <- look(reader) }()
	if err := reader.Input(10, []byte("typed\n")); err != nil {
		t.Fatal(err)
	}
	total := 0
	for f.Kind != stream.Done {
		if f, err = client.Next(); err != nil {
			t.Fatal(err)
		}
		if f.Kind == stream.Stdout {
			total += len(f.Data)
		}
	}
	if total != 9000000+6 {
		t.Errorf("the client has %d bytes", total)
	}
	if got := <-looked; got.exit != 3 || got.err != nil || !got.lost && got.out != total+6 || got.lost && got.out >= total {
		t.Errorf("a watcher: %+v", got)
	}
	lost, ended := false, false
	for !ended {
		if f, err = stream.ReadFrame(idle); err != nil {
			t.Fatal("a watcher that does not read: ", err)
		}
		lost, ended = lost || f.Task == stream.OfNode, f.Kind == stream.Done
	}
	if !lost {
		t.Error("a watcher that did not read was not told so")
	}
	idle.Close()
	if got := look(stream.NewWatcher(dial)); got != (watched{}) {
		t.Errorf("a watcher that comes late: %+v", got)
	}
}
