package history

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// heldHistory has the events up to an index and is never flushed.
type heldHistory struct {
	History
	reached uint64
}

func (h heldHistory) Reached() uint64 { return h.reached }

func (h heldHistory) Flush(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestSettle(t *testing.T) {
	began := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		known     uint64
		elsewhere bool
		err       error
		missing   uint64
	}{
		"another server can answer": {7, true, api.ErrElsewhere, 0},
		"nobody else can answer":    {7, false, nil, 4},
		"entries were not applied":  {9, false, nil, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := New(heldHistory{reached: 3})
				k.Known = func() uint64 { return c.known }
				k.Elsewhere = func() bool { return c.elsewhere }
				k.Applied = func(ctx context.Context, index uint64) error {
					if index <= 7 {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				}
				for i := range uint64(7) {
					k.Note(i+1, began.Add(time.Duration(i+1)*time.Minute))
				}
				lag, err := k.settle(t.Context())
				if !errors.Is(err, c.err) || (lag == nil) != (c.missing == 0) {
					t.Fatalf("%v, %v", lag, err)
				}
				if lag != nil && (lag.Missing != c.missing || !lag.AsOf.Equal(began.Add(3*time.Minute))) {
					t.Errorf("%+v", lag)
				}
			})
		})
	}
}

// TestPageBears a history that is behind for a moment: it is always written a little later.
func TestPageBears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldHistory{reached: 3}
		k := New(h)
		k.Known = func() uint64 { return 4 }
		k.Committed = func() *cluster.Snapshot { return cluster.NewState().Snapshot() }
		k.Note(3, time.Now())
		k.Note(4, time.Now())
		if lag := k.Lag(); lag != nil {
			t.Errorf("reported at once: %+v", lag)
		}
		time.Sleep(lagNoted)
		if lag := k.Lag(); lag == nil || lag.Missing != 1 {
			t.Errorf("not reported: %+v", lag)
		}
		h.reached = 4
		if lag := k.Lag(); lag != nil {
			t.Errorf("reported after it was written: %+v", lag)
		}
	})
}

// TestNotes keeps few notes of a history that is far behind.
func TestNotes(t *testing.T) {
	k := New(heldHistory{reached: 10})
	const many = 20 * mostNotes
	for i := range uint64(many) {
		k.Note(i+1, time.Unix(int64(i+1), 0))
	}
	if n := len(k.notes.list); n > mostNotes {
		t.Errorf("%d notes", n)
	}
	last, next := k.notes.around(many / 2)
	if last.index > many/2 || next.index <= many/2 || next.index-last.index > many/100 {
		t.Errorf("%d and %d", last.index, next.index)
	}
	if last, _ = k.notes.around(10); last.index > 10 {
		t.Errorf("%d", last.index)
	}
}
