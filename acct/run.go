package acct

import (
	"context"
	"errors"
	"math"
	"time"
)

// Run writes queued events until ctx ends, the rest included.
func (d *DB) Run(ctx context.Context) error {
	defer d.close()
	var quiet <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return d.write(math.MaxUint64)
		case <-quiet:
			quiet = nil
			shrink(ctx, d)
			continue
		case <-d.more:
			quiet = time.After(quietTime)
		}
		select {
		case <-ctx.Done():
		case <-d.hurry:
		case <-time.After(gatherTime):
		}
		if err := errors.Join(d.write(math.MaxUint64), d.sweep()); err != nil {
			d.log.Error("history could not be written; trying again", "err", err)
			select {
			case <-time.After(time.Second):
				poke(d.more)
			case <-ctx.Done():
			}
		}
	}
}

// shrink gives back the memory of pages that were written.
func shrink(ctx context.Context, d *DB) {
	d.files.RLock()
	defer d.files.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	if _, err := d.w.ExecContext(ctx, "PRAGMA shrink_memory"); err != nil && ctx.Err() == nil {
		d.log.Debug("history keeps its pages in memory", "err", err)
	}
}

func (d *DB) close() {
	d.files.Lock()
	defer d.files.Unlock()
	_ = d.w.Close()
	_ = d.r.Close()
}
