package page

import (
	"context"
	"sync"
	"time"
)

// Bounds of what takes a page too long to be made for each visitor.
const (
	laterWait = 12 * time.Millisecond // for what comes soon
	laterTime = 30 * time.Second
	laterKept = 200 // of a kind
)

// later keeps what was made recently, and makes it again while nobody waits for it. Its zero value is not of use: see
// newLater.
type later[T any] struct {
	fresh time.Duration // so old ones are not made again
	stale time.Duration // so old ones are shown while that is done
	wait  time.Duration
	mu    sync.Mutex
	made  map[string]*made[T]
}

func newLater[T any](fresh, stale time.Duration) *later[T] {
	return &later[T]{fresh: fresh, stale: stale, wait: laterWait}
}

// made is one of them.
type made[T any] struct {
	mu   sync.Mutex
	at   time.Time // zero: not made
	it   T
	anew chan struct{} // closed once it is made again; nil: nobody does
}

type makes[T any] func(context.Context) (T, error)

// of is what goes by a key, unless it takes long: a page does not wait for that, it says that it comes, and is fetched
// again.
func (l *later[T]) of(ctx context.Context, key string, do makes[T]) (it T, ok bool) {
	m := l.entry(key)
	it, age := m.latest()
	if age < l.fresh {
		return it, true
	}
	done := m.remake(do)
	if age < l.stale {
		return it, true
	}
	late := time.NewTimer(l.wait)
	defer late.Stop()
	select {
	case <-done:
		it, _ = m.latest()
		return it, true
	case <-late.C:
	case <-ctx.Done():
	}
	var none T
	return none, false
}

func (m *made[T]) latest() (it T, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.it, time.Since(m.at)
}

// remake has it made, unless somebody does; what fails is tried again by the next one. It is closed once that is done.
func (m *made[T]) remake(do makes[T]) (done <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.anew != nil {
		return m.anew
	}
	over := make(chan struct{})
	m.anew = over
	go func() {
		defer close(over)
		ctx, cancel := context.WithTimeout(context.Background(), laterTime)
		defer cancel()
		it, err := do(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.anew = nil
		if err == nil {
			m.at, m.it = time.Now(), it
		}
	}()
	return over
}

func (l *later[T]) entry(key string) *made[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.made[key]
	if m != nil {
		return m
	}
	if l.made == nil || len(l.made) > laterKept {
		l.made = map[string]*made[T]{}
	}
	m = &made[T]{}
	l.made[key] = m
	return m
}
