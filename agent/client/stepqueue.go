package client

import (
	"sync"

	"dev.muster/cluster"
)

// queues are of those who wait for something of their jobs to end. All of a job's that place a step do so one after the
// other: thousands may wait, and only one of them at a time may keep others from the lock that all jobs share.
type queues struct {
	mu sync.Mutex
	of map[cluster.JobID]*queue
}

// queue is that of a job.
type queue struct {
	gate  sync.Mutex // held before that of tables
	users int
	freed chan struct{} // closed and replaced when a step of the job, or the job, ends
}

// enter finds the queue of a job for one more; leave ends that.
func (q *queues) enter(job cluster.JobID) (own *queue, leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[cluster.JobID]*queue{}
	}
	own = q.of[job]
	if own == nil {
		own = &queue{freed: make(chan struct{})}
		q.of[job] = own
	}
	own.users++
	return own, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(q.of, job)
		}
	}
}

// next is closed when something of the job has ended from now on.
func (q *queues) next(own *queue) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return own.freed
}

// free wakes who waits for something of a job to end.
func (q *queues) free(job cluster.JobID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own := q.of[job]; own != nil {
		close(own.freed)
		own.freed = make(chan struct{})
	}
}
