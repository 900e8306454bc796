package stream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"testing/synctest"
)

func FuzzReadFrame(f *testing.F) {
	f.Add(AppendFrame(nil, Frame{Kind: Stdout, Seq: 7, Task: 3, Data: []byte("x")}))
	f.Add(AppendFrame(nil, WinsizeFrame(2, 3)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		fr, err := ReadFrame(bytes.NewReader(in))
		if err != nil {
			return
		}
		if got := AppendFrame(nil, fr); !bytes.HasPrefix(in, got) {
			t.Errorf("%q becomes %q", in, got)
		}
		fr.TaskExit()
		fr.Winsize()
		fr.Signal()
		fr.First()
		fr.FD()
	})
}

func TestExitTravels(t *testing.T) {
	in := TaskExit{Code: 3, Signal: 9, Core: true, Lost: true, Errno: 2, Error: "execve x"}
	out, err := Frame{Kind: Exit, Data: AppendExit(nil, in)}.TaskExit()
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestTooMuchData(t *testing.T) {
	if err := WriteFrame(io.Discard, Frame{Data: make([]byte, MaxData+1)}); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
	if _, err := ReadFrame(bytes.NewReader([]byte{0, 1, 0, 14})); err == nil {
		t.Error("cut frame is read")
	}
}

// TestWindow: Input waits when the window is full, and goes on when told so, or ends with Close.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		dialled := false
		s := New(func() (io.ReadWriteCloser, error) {
			if dialled {
				return nil, io.ErrUnexpectedEOF
			}
			dialled = true
			return ours, nil
		}, 0)
		frames := make(chan Frame)
		go func() {
			defer close(frames)
			for {
				f, err := ReadFrame(theirs)
				if err != nil {
					return
				}
				if f.Kind == Hello {
					WriteFrame(theirs, WelcomeFrame(0, 1))
					continue
				}
				frames <- f
			}
		}()
		ended := make(chan error)
		go func() { _, err := s.Next(); ended <- err }()
		fed := make(chan error)
		go func() { fed <- s.Input(AllTasks, make([]byte, InputWindow+1)) }()
		var last uint64
		for n := 0; n < InputWindow; {
			f := <-frames
			n += len(f.Data)
			last = f.Seq
		}
		synctest.Wait()
		select {
		case err := <-fed:
			t.Fatalf("beyond the window: %v", err)
		default:
		}
		WriteFrame(theirs, Frame{Kind: Room, Seq: 2 * InputWindow}) // none was acknowledged, and there is more room
		if f := <-frames; len(f.Data) != 1 || f.Seq != last+1 {
			t.Errorf("%+v", f)
		}
		if err := <-fed; err != nil {
			t.Error(err)
		}
		s.Close()
		if err := <-ended; err != ErrClosed {
			t.Error(err)
		}
		theirs.Close()
		for range frames {
		}
	})
}

// TestBrokenIsNotOver: connections that break before the welcome are not the end of the step.
func TestBrokenIsNotOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		s := New(func() (io.ReadWriteCloser, error) {
			dials++
			ours, theirs := net.Pipe()
			go func() { // ends with the hello
				_, _ = ReadFrame(theirs)
				theirs.Close()
			}()
			return ours, nil
		}, 0)
		if _, err := s.Next(); !errors.Is(err, ErrRefused) || errors.Is(err, io.EOF) {
			t.Errorf("%d connections broke: %v", dials, err)
		}
	})
}
