package users

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The database's answers are believed for a while, and names that it did not know are asked for again.
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

// TestSlowLookup: who is looked up slowly delays nobody else, and is looked up once for all who ask.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, asked := make(chan struct{}), 0
		m := Memory[string, int]{look: func(key string) (int, error) {
			if key == "slow" {
				asked++
				<-answer
			}
			return len(key), nil
		}}
		got := make(chan int, 2)
		for range cap(got) {
			go func() {
				v, _ := m.Get("slow")
				got <- v
			}()
		}
		synctest.Wait()
		other := make(chan int, 1)
		go func() {
			v, _ := m.Get("other")
			other <- v
		}()
		synctest.Wait()
		if len(other) != 1 {
			t.Error("another user waits")
		}
		close(answer)
		if a, b := <-got, <-got; a != 4 || b != 4 || asked != 1 {
			t.Errorf("%d and %d after asking %d times", a, b, asked)
		}
	})
}

// TestNumber: an entry of the database whose number is none gives nobody the rights of root.
func TestNumber(t *testing.T) {
	for text, want := range map[string]uint32{"0": 0, "1000": 1000, "4294967294": 4294967294} {
		if n, err := number(text); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "S-1-5-21", "-1", "4294967296", "12x"} {
		if n, err := number(text); err == nil {
			t.Errorf("%q is number %d", text, n)
		}
	}
}
