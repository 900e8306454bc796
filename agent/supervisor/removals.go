package supervisor

import (
	"log/slog"
	"sync"
)

// removals removes folders that users have filled, which may take long, while nobody waits for it. A user's folders are
// removed one after the other: each removal has a thread while the disk is slow, and a user may end steps at any rate.
type removals struct {
	remove func(dir string) error

	mu   sync.Mutex
	left map[uint32][]string // by user; one that is here has a goroutine
}

// add has a user's folder removed.
func (q *removals) add(uid uint32, dir string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, running := q.left[uid]
	if q.left == nil {
		q.left = map[uint32][]string{}
	}
	q.left[uid] = append(list, dir)
	if !running {
		go q.run(uid) // ends when nothing of the user's is left
	}
}

// run removes what a user has left.
func (q *removals) run(uid uint32) {
	for dir, ok := q.next(uid); ok; dir, ok = q.next(uid) {
		if err := q.remove(dir); err != nil {
			slog.Error("a container could not be removed", "user", uid, "err", err)
		}
	}
}

// next takes the folder that is removed next; false: there is none, and run ends.
func (q *removals) next(uid uint32) (dir string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.left[uid]
	if len(list) == 0 {
		delete(q.left, uid)
		return "", false
	}
	q.left[uid] = list[1:]
	return list[0], true
}
