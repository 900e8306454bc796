package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestShow: a user hears of what takes long, by lines or by a bar.
func TestShow(t *testing.T) {
	for terminal, want := range map[bool]string{
		false: "a: 512 KiB of 1 MiB\na: 512 KiB of 1 MiB\n",
		true:  "512 KiB of 1 MiB\x1b[K\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			m := New()
			stop := m.Show(&out, terminal, "a")
			m.Of(1 << 20)
			m.Add(1 << 19)
			time.Sleep(13 * time.Second)
			stop()
			if got := out.String(); !strings.HasSuffix(got, want) || !terminal && got != want {
				t.Errorf("terminal %t: %q", terminal, got)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		m := New()
		stop := m.Show(&out, true, "a")
		m.Of(1 << 20)
		time.Sleep(time.Second)
		if stop(); out.Len() > 0 {
			t.Errorf("of what is quick nothing is told: %q", out.String())
		}
	})
}
