// Package samples holds what nodes told of their hardware lately, knows which GPUs do nothing, and takes the measures
// of the cluster itself.
package samples

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// Bounds of what is held.
const (
	held       = 32 << 20 // bytes for other servers: about an hour of 1,000 nodes with eight GPUs
	answerPart = 4 << 20  // of one answer
	knownTimes = 16       // times of a node's latest samples that are remembered
	nodeRoom   = 4 << 20  // bytes that a node may tell at once: an hour that it has kept
	nodeRate   = 2 << 10  // and then in a second: many times what it measures
)

// HourOver is how long after its end an hour is summed up.
const HourOver = 2 * time.Minute

// Store are those that this server was told.
type Store struct {
	Boot string
	More chan struct{}

	mu     sync.Mutex
	ring   []api.NodeSample // the latest
	told   uint64           // how many there were, with those that are gone from ring
	bytes  int              // of ring
	latest map[cluster.NodeName]*Latest
	unkept []acct.Hardware // not written yet
	idle   idleGPUs
	signs  signs
	slow   stragglers
	hours  map[int64]bool // in which samples were that are not summed up
}

// Latest is the last one of a node, and what is known of the times of those before.
type Latest struct {
	At   time.Time // when it ended
	span time.Duration
	Own  *telemetry.Sample
	Jobs map[cluster.JobID]*telemetry.Sample
	ats  []int64

	room   int       // bytes that the node may tell now
	roomAt time.Time // when that was so
}

// takes reports whether a node may tell so many bytes more: a stolen key must not fill the disks of the servers.
func (l *Latest) takes(bytes int, now time.Time) bool {
	gained := now.Sub(l.roomAt).Seconds() * nodeRate
	l.roomAt = now
	l.room = int(min(float64(l.room)+gained, nodeRoom))
	if bytes > l.room {
		return false
	}
	l.room -= bytes
	return true
}

func New() *Store {
	return &Store{
		Boot: rand.Text(), More: make(chan struct{}, 1), latest: map[cluster.NodeName]*Latest{},
		hours: map[int64]bool{}, idle: idleGPUs{}, signs: signs{}, slow: stragglers{},
	}
}

// weight is about what a sample takes.
func weight(s *api.NodeSample) int {
	n := 64 + len(s.Data)
	for i := range s.Jobs {
		n += 32 + len(s.Jobs[i].Data)
	}
	return n
}

// Take takes samples in that can be read, each once.
func (h *Store) Take(list []api.NodeSample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range list {
		s := &list[i]
		own, err := telemetry.Unpack(s.Data)
		if err != nil {
			continue
		}
		l := h.latest[s.Node]
		if l == nil {
			l = &Latest{}
			h.latest[s.Node] = l
		}
		if slices.Contains(l.ats, s.At) || !l.takes(weight(s), time.Now()) {
			continue
		}
		l.ats = append(l.ats[max(0, len(l.ats)+1-knownTimes):], s.At)
		h.keep(s)
		span := time.Duration(s.Span) * time.Second
		at := time.Unix(s.At, 0).Add(span)
		if !at.After(l.At) {
			continue // told late
		}
		l.At, l.span, l.Own, l.Jobs = at, span, own, map[cluster.JobID]*telemetry.Sample{}
		for k := range s.Jobs {
			if one, err := telemetry.Unpack(s.Jobs[k].Data); err == nil {
				l.Jobs[s.Jobs[k].Job] = one
				h.idle.note(s.Jobs[k].Job, s.Node, one, at.Add(-span), at)
				h.signs.note(&s.Jobs[k], s.Node, one, at.Add(-span), at)
			}
		}
	}
	select {
	case h.More <- struct{}{}:
	default: // somebody will look anyhow
	}
}

// keep holds a sample for other servers and for the disk. Called with mu held.
func (h *Store) keep(s *api.NodeSample) {
	h.ring, h.told, h.bytes = append(h.ring, *s), h.told+1, h.bytes+weight(s)
	for h.bytes > held { // append makes room again now and then, without those that are gone
		h.bytes -= weight(&h.ring[0])
		h.ring[0] = api.NodeSample{}
		h.ring = h.ring[1:]
	}
	row := acct.Hardware{Node: s.Node, At: time.Unix(s.At, 0), Span: time.Duration(s.Span) * time.Second, Data: s.Data}
	h.unkept = append(h.unkept, row)
	for k := range s.Jobs {
		row.Job, row.Data = s.Jobs[k].Job, s.Jobs[k].Data
		h.unkept = append(h.unkept, row)
	}
	h.hours[s.At/3600*3600] = true
}

// After is what was told after so much, or a part of it.
func (h *Store) After(q api.CopyRequest) api.CopyResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := h.told - uint64(len(h.ring))
	if q.Boot != h.Boot {
		q.After = 0
	}
	from := int(min(max(q.After, gone), h.told) - gone)
	out := api.CopyResponse{Boot: h.Boot}
	n := 0
	for _, s := range h.ring[from:] {
		if n += weight(&s); n > answerPart && len(out.Samples) > 0 {
			out.More = true
			break
		}
		out.Samples = append(out.Samples, s)
	}
	out.After = gone + uint64(from+len(out.Samples))
	return out
}

// Unwritten are the samples that are not on the disk, and hours that are over.
func (h *Store) Unwritten(now time.Time) (list []acct.Hardware, hours []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, h.unkept = h.unkept, nil
	for hour := range h.hours {
		if end := time.Unix(hour, 0).Add(time.Hour); now.After(end.Add(HourOver)) {
			delete(h.hours, hour)
			hours = append(hours, time.Unix(hour, 0))
		}
	}
	return list, hours
}

// Recent are the last samples of nodes that were heard from within a time.
func (h *Store) Recent(fresh time.Duration) map[cluster.NodeName]Latest {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[cluster.NodeName]Latest{}
	for name, l := range h.latest {
		if time.Since(l.At) < fresh && l.Own != nil {
			out[name] = *l // its samples are replaced, never changed
		}
	}
	return out
}

// Idle are the jobs that run with GPUs which have done nothing for a time, those of the longest first;
// 0: the time of their partitions.
func (h *Store) Idle(snap *cluster.Snapshot, least time.Duration, now time.Time) (out []api.IdleJob) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.idle {
		j, ok := snap.Job(id)
		if !ok || j.Phase == cluster.Ended || j.Alloc == nil {
			if ok || id < snap.NextID {
				delete(h.idle, id)
			}
			continue
		}
		if j.Phase != cluster.Running {
			continue
		}
		p, wait, rule := partitionOf(snap, j), least, cluster.IdleRule("")
		if p != nil {
			rule = p.IdleGPU
		}
		if wait == 0 {
			if wait = cluster.IdleGPUTime; p != nil {
				wait = p.IdleTime()
			}
		}
		if one := h.idle.of(j, wait, now); one.Idle > 0 {
			one.Rule = rule
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b api.IdleJob) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return int(a.Job.ID) - int(b.Job.ID)
	})
	return out
}

// Recall takes in what a job's GPUs did before this server began, from its history.
func (h *Store) Recall(job cluster.JobID, rows []acct.Hardware) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, row := range rows {
		if n := h.idle[job][row.Node]; n != nil && n.at.After(row.At) {
			continue // it is known already
		}
		if one, err := telemetry.Unpack(row.Data); err == nil {
			h.idle.note(job, row.Node, one, row.At, row.At.Add(row.Span))
		}
	}
}

// Prune forgets the signs of jobs that are over.
func (h *Store) Prune(snap *cluster.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signs.prune(snap)
}

// Progress returns how far a job says that it has come in its present attempt; nil: it says nothing.
func (h *Store) Progress(j *cluster.Job) *api.Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	on := h.signs[j.ID]
	if on == nil || on.progress == nil || on.progress.At < j.Started.Unix() {
		return nil
	}
	return on.progress // it is replaced, never changed
}

// Hung are the jobs that run and make no progress, by their numbers.
func (h *Store) Hung(snap *cluster.Snapshot, now time.Time) (out []Hung) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signs.prune(snap)
	for id, on := range h.signs {
		if j, ok := snap.Job(id); ok && j.Phase == cluster.Running {
			out = append(out, on.found(snap, j, now)...)
		}
	}
	slices.SortFunc(out, func(a, b Hung) int { return cmp.Compare(a.Job.ID, b.Job.ID) })
	return out
}
