package measure

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/api"
	"dev.muster/cluster"
)

const (
	boxKept  = time.Hour // for servers that give no answer
	boxAgain = 5         // so many spans are told again to a server that has begun to lead
	boxMost  = 20_000    // kept at most
	boxCall  = 200       // in one call
	boxApart = 5 * time.Second

	retryMin = 20 * time.Millisecond
	retryMax = 2 * time.Second
)

// box keeps what was measured until the servers have it, and a little longer.
type box struct {
	mu   sync.Mutex
	list []keptSample
	boot string // of the server that has taken the last
	more chan struct{}
}

type keptSample struct {
	api.NodeSample
	told bool
}

func newBox() *box { return &box{more: make(chan struct{}, 1)} }

// add keeps samples, and forgets those that are too old.
func (b *box) add(list []api.NodeSample, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range list {
		b.list = append(b.list, keptSample{NodeSample: s})
	}
	b.list = slices.DeleteFunc(b.list, func(s keptSample) bool {
		age, span := now.Unix()-s.At, int64(s.Span)
		return s.told && age > (boxAgain+1)*span || age > max(int64(boxKept/time.Second), 2*span)
	})
	b.list = b.list[max(0, len(b.list)-boxMost):]
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// next are samples that the servers lack.
func (b *box) next() (out []api.NodeSample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.list {
		if !b.list[i].told && len(out) < boxCall {
			out = append(out, b.list[i].NodeSample)
		}
	}
	return out
}

// took notes that a server has samples. Another one than before is told the latest once more: it may lack
// what the former one was told last.
func (b *box) took(list []api.NodeSample, boot string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if boot != b.boot && b.boot != "" {
		for i := range b.list {
			b.list[i].told = false
		}
	}
	b.boot = boot
	for i := range b.list {
		k := &b.list[i]
		same := func(s api.NodeSample) bool { return s.Node == k.Node && s.At == k.At }
		k.told = k.told || slices.ContainsFunc(list, same)
	}
}

// apart is how long a client waits with what it has, so that not all tell at once.
func apart(span time.Duration, first cluster.NodeName) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(first))
	most := min(boxApart, span/spanParts)
	return time.Duration(uint64(h.Sum32()) * uint64(most) >> 32)
}

// tell tells the servers what was measured, until ctx ends.
func tell(ctx context.Context, cfg *Config, b *box, apart time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.more:
		}
		if !backoff.Sleep(ctx, apart) || !empty(ctx, cfg, b) {
			return
		}
	}
}

// empty tells all that the servers lack; it reports whether ctx goes on.
func empty(ctx context.Context, cfg *Config, b *box) bool {
	wait := retryMin
	for list := b.next(); len(list) > 0; list = b.next() {
		r, err := cfg.Tell(ctx, api.SamplesRequest{Samples: list})
		if err == nil {
			b.took(list, r.Boot)
			wait = retryMin
			continue
		}
		cfg.Log.Debug("samples could not be told", "err", err)
		if e := (*cluster.Error)(nil); errors.As(err, &e) && e.Code == cluster.NotFound {
			return true // servers of before they took samples
		}
		wait = min(2*wait, retryMax)
		if !backoff.Sleep(ctx, wait) {
			return false
		}
	}
	return ctx.Err() == nil
}
