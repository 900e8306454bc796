package users

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What the system's database said is believed for a while, and what it did not know is asked for again.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, known := 0, false
		m := Memory[string, int]{look: func(string) (int, error) {
			if asked++; !known {
				return 0, errors.New("unknown")
			}
			return asked, nil
		}}
		for _, c := range []struct {
			after time.Duration
			known bool
			want  int // times asked
		}{{0, false, 1}, {0, false, 2}, {0, true, 3}, {userAge - 1, true, 3}, {1, true, 4}, {0, false, 4}} {
			time.Sleep(c.after)
			known = c.known
			if v, err := m.Get("a"); asked != c.want || (err == nil) != (c.want >= 3) || err == nil && v != c.want {
				t.Errorf("%d, %v after asking %d times, want %d times", v, err, asked, c.want)
			}
		}
	})
}
