package server

import (
	"strconv"
	"sync"

	"dev.muster/cluster"
)

// wakeups wakes those who wait for something to change. A topic's channel is closed once, then
// replaced; a waiter takes the channel first and looks at the state after that.
type wakeups struct {
	mu     sync.Mutex
	topics map[string]chan struct{}
}

const topicAny = "any"

func topicNode(n cluster.NodeName) string { return "node " + string(n) }
func topicJob(id cluster.JobID) string    { return "job " + strconv.FormatUint(uint64(id), 10) }

// topicHooks is that there is something to be done outside.
const topicHooks = "hooks"

// topicTrust is who is a member.
const topicTrust = "trust"

func newWakeups() *wakeups { return &wakeups{topics: map[string]chan struct{}{}} }

func (h *wakeups) await(topic string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.topics[topic]
	if !ok {
		c = make(chan struct{})
		h.topics[topic] = c
	}
	return c
}

func (h *wakeups) wakeTopic(topic string) {
	if c, ok := h.topics[topic]; ok {
		close(c)
		delete(h.topics, topic)
	}
}

// wake wakes those who wait for one topic.
func (h *wakeups) wake(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeTopic(topic)
}

// wakeAll wakes everybody.
func (h *wakeups) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for topic := range h.topics {
		h.wakeTopic(topic)
	}
}

// wakeFor wakes the waiters that events concern.
func (h *wakeups) wakeFor(events []cluster.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeTopic(topicAny)
	for _, e := range events {
		switch {
		case e.Job != nil:
			h.wakeTopic(topicJob(e.Job.ID))
			if e.Job.ArrayID != 0 {
				h.wakeTopic(topicJob(e.Job.ArrayID))
			}
			if e.Job.Follows() {
				h.wakeTopic(topicJob(e.Job.Het.ID))
			}
			for i, n := range e.Job.AllNodes() {
				if i == 0 {
					h.wakeTopic(topicNodes)
				}
				h.wakeTopic(topicNode(n))
			}
		case e.Node != nil:
			h.wakeTopic(topicNodes)
			h.wakeTopic(topicNode(e.Node.Name))
		case e.Purged != 0:
			h.wakeTopic(topicJob(e.Purged))
		}
	}
}

// awaitNodes waits for any of several nodes. One node has its own channel; a client with many
// (hollow) nodes wakes for every change.
func (h *wakeups) awaitNodes(names []cluster.NodeName) <-chan struct{} {
	if len(names) == 1 {
		return h.await(topicNode(names[0]))
	}
	return h.await(topicNodes)
}

const topicNodes = "nodes"
