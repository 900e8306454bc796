package show

import "sync"

// lazy is a value that is made when it is first asked for. Unlike one of sync.OnceValue it takes no memory in the start
// of each command (docs/adr/0002-early-dispatch.md).
type lazy[T any] struct {
	once  sync.Once
	value T
}

// get returns the value; build makes it.
func (l *lazy[T]) get(build func() T) T {
	l.once.Do(func() { l.value = build() })
	return l.value
}
