package front

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"dev.muster/cluster"
)

// TestTerminal makes a real terminal raw, and as it was again.
func TestTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	var unlock, number int32
	if err := ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)); err != nil {
		t.Skip(err)
	}
	if err := ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		t.Skip(err)
	}
	f, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	size := [4]uint16{33, 101}
	if err := ioctl(f, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		t.Fatal(err)
	}
	if got, err := TerminalSize(f); err != nil || got != (cluster.Winsize{Rows: 33, Cols: 101}) || !IsTerminal(f) {
		t.Errorf("size %+v, %v, a terminal: %v", got, err, IsTerminal(f))
	}
	mode := func() (m syscall.Termios) {
		if err := ioctl(f, syscall.TCGETS, unsafe.Pointer(&m)); err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := mode()
	restore, err := MakeRaw(f)
	if err != nil {
		t.Fatal(err)
	}
	if m := mode(); m.Lflag&(syscall.ECHO|syscall.ICANON|syscall.ISIG) != 0 || m.Oflag&syscall.OPOST != 0 {
		t.Errorf("not raw: %+v", m)
	}
	if restore(); mode() != before {
		t.Errorf("%+v, was %+v", mode(), before)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := MakeRaw(null); err == nil || IsTerminal(null) {
		t.Error("/dev/null is taken for a terminal")
	}
}
