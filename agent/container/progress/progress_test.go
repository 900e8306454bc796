package progress

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestMeter(t *testing.T) {
	fd, err := unix.MemfdCreate("progress", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if got := Read(fd); got != (State{}) {
		t.Errorf("before: %+v", got)
	}
	m := On(fd)
	m.Of(3 << 20)
	m.Add(1 << 20)
	m.Add(1 << 19)
	if got := Read(fd).Text(); got != "1.5 MiB of 3 MiB" {
		t.Error(got)
	}
	if got := Read(fd).Bar(); got != "\r[###############...............]  50% 1.5 MiB of 3 MiB\x1b[K" {
		t.Errorf("%q", got)
	}
	m.Add(1 << 30)
	if got := Read(fd).Text(); got != "3 MiB of 3 MiB" {
		t.Error(got)
	}
	var none *Meter
	none.Of(1)
	none.Add(1)
	if got := (State{}).Bar(); got != "\r[..............................]   0% 0 B of 0 B\x1b[K" {
		t.Errorf("%q", got)
	}
}
