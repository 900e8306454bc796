package server

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// Samples of hardware come from nodes to the server that leads; the others fetch from it what they lack.
// Each server keeps them in its own history, and the latest in memory. None is in the log.

const (
	samplesWrite = 5 * time.Second  // gathered this long, then written together
	samplesFetch = 10 * time.Second // between what a server fetches
	samplesHeld  = 32 << 20         // bytes that are held for other servers: about an hour of 1,000 nodes with eight GPUs
	samplesPart  = 4 << 20          // of one answer
	samplesOld   = 2 * time.Hour    // older ones are not taken
	sampleBytes  = 32 << 10         // of one
	samplesHour  = 2 * time.Minute  // after its end an hour is summed up
	samplesKnown = 16               // times of a node's latest samples that are remembered
)

// samples are those that this server was told.
type samples struct {
	boot string
	more chan struct{}
	// callAs is how jobs are told what becomes of them because of samples.
	callAs atomic.Pointer[CallAs]

	mu     sync.Mutex
	ring   []api.NodeSample // the latest
	told   uint64           // how many there were, with those that are gone from ring
	bytes  int              // of ring
	latest map[cluster.NodeName]*latestSample
	unkept []acct.Hardware // not written yet
	idle   idleGPUs
	hours  map[int64]bool // in which samples were that are not summed up
}

// latestSample is the last one of a node, and what is known of the times of those before.
type latestSample struct {
	at   time.Time // when it ended
	span time.Duration
	own  *telemetry.Sample
	jobs map[cluster.JobID]*telemetry.Sample
	ats  []int64
}

func newSamples() *samples {
	return &samples{boot: rand.Text(), more: make(chan struct{}, 1), latest: map[cluster.NodeName]*latestSample{}, hours: map[int64]bool{},
		idle: idleGPUs{}}
}

// weight is about what a sample takes.
func weight(s *api.NodeSample) int {
	n := 64 + len(s.Data)
	for i := range s.Jobs {
		n += 32 + len(s.Jobs[i].Data)
	}
	return n
}

// take takes samples in that can be read, each once.
func (h *samples) take(list []api.NodeSample) {
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
			l = &latestSample{}
			h.latest[s.Node] = l
		}
		if slices.Contains(l.ats, s.At) {
			continue
		}
		l.ats = append(l.ats[max(0, len(l.ats)+1-samplesKnown):], s.At)
		h.keep(s)
		span := time.Duration(s.Span) * time.Second
		at := time.Unix(s.At, 0).Add(span)
		if !at.After(l.at) {
			continue // told late
		}
		l.at, l.span, l.own, l.jobs = at, span, own, map[cluster.JobID]*telemetry.Sample{}
		for k := range s.Jobs {
			if one, err := telemetry.Unpack(s.Jobs[k].Data); err == nil {
				l.jobs[s.Jobs[k].Job] = one
				h.idle.note(s.Jobs[k].Job, s.Node, one, at.Add(-span), at)
			}
		}
	}
	poke(h.more)
}

// keep holds a sample for other servers and for the disk. Called with mu held.
func (h *samples) keep(s *api.NodeSample) {
	h.ring, h.told, h.bytes = append(h.ring, *s), h.told+1, h.bytes+weight(s)
	for h.bytes > samplesHeld { // append makes room anew now and then, without those that are gone
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

// after is what was told after so much, or a part of it.
func (h *samples) after(q api.CopyRequest) api.CopyResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := h.told - uint64(len(h.ring))
	if q.Boot != h.boot {
		q.After = 0
	}
	from := int(min(max(q.After, gone), h.told) - gone)
	out := api.CopyResponse{Boot: h.boot}
	n := 0
	for _, s := range h.ring[from:] {
		if n += weight(&s); n > samplesPart && len(out.Samples) > 0 {
			out.More = true
			break
		}
		out.Samples = append(out.Samples, s)
	}
	out.After = gone + uint64(from+len(out.Samples))
	return out
}

// tellSamples takes samples from a node.
func tellSamples(s *Server) func(context.Context, api.Caller, api.SamplesRequest) (api.SamplesResponse, error) {
	return func(_ context.Context, who api.Caller, q api.SamplesRequest) (api.SamplesResponse, error) {
		snap, now := s.Snapshot(), time.Now()
		good := q.Samples[:0]
		for _, one := range q.Samples {
			if err := s.owns(who, one.Node); err != nil {
				return api.SamplesResponse{}, err
			}
			at := time.Unix(one.At, 0)
			if _, ok := snap.Node(one.Node); !ok || one.Span < 1 || one.Span > 3600 || at.Before(now.Add(-samplesOld)) ||
				at.After(now.Add(samplesHour)) || len(one.Data) > sampleBytes {
				continue
			}
			one.Jobs = slices.DeleteFunc(one.Jobs, func(j api.JobSample) bool {
				job, ok := snap.Job(j.Job)
				return !ok || len(j.Data) > sampleBytes || !slices.Contains(job.AllocNodes(), one.Node)
			})
			good = append(good, one)
		}
		s.samples.take(good)
		return api.SamplesResponse{Boot: s.samples.boot}, nil
	}
}

// copySamples gives another server what it lacks.
func copySamples(s *Server) func(context.Context, api.Caller, api.CopyRequest) (api.CopyResponse, error) {
	return func(_ context.Context, _ api.Caller, q api.CopyRequest) (api.CopyResponse, error) {
		return s.samples.after(q), nil
	}
}

// keepSamples writes samples to history, until ctx ends, and sums them up.
func keepSamples(ctx context.Context, s *Server) {
	db, ok := s.hist.(*acct.DB)
	if !ok {
		return
	}
	kept := acct.SamplesOf(db)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.samples.more:
		}
		select {
		case <-ctx.Done(): // what is left is written all the same
		case <-time.After(samplesWrite):
		}
		list, hours := s.samples.unwritten(time.Now())
		err := kept.Add(context.WithoutCancel(ctx), list)
		for _, hour := range hours {
			if err == nil && ctx.Err() == nil {
				err = sumUp(ctx, kept, hour)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.slog.Warn("samples of hardware could not be kept", "err", err)
		}
	}
}

// sumUp ends an hour.
func sumUp(ctx context.Context, kept acct.Samples, hour time.Time) error {
	if err := kept.Hour(ctx, hour, time.Now()); err != nil {
		return err
	}
	for after := cluster.JobID(0); ; {
		var err error
		if after, err = kept.Thin(ctx, time.Now(), after); err != nil || after == 0 {
			return err
		}
	}
}

// unwritten are the samples that are not on the disk, and hours that are over.
func (h *samples) unwritten(now time.Time) (list []acct.Hardware, hours []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, h.unkept = h.unkept, nil
	for hour := range h.hours {
		if end := time.Unix(hour, 0).Add(time.Hour); now.After(end.Add(samplesHour)) {
			delete(h.hours, hour)
			hours = append(hours, time.Unix(hour, 0))
		}
	}
	return list, hours
}

// fetchSamples gets from the server that leads what this one was not told, until ctx ends.
func fetchSamples(ctx context.Context, s *Server) {
	if s.cfg.Peer == nil {
		return
	}
	var from string
	var q api.CopyRequest
	tick := time.NewTicker(samplesFetch)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		addr, self := s.log.Leader()
		if addr == "" || self {
			continue
		}
		if addr != from {
			from, q = addr, api.CopyRequest{}
		}
		for more := true; more; {
			call, cancel := context.WithTimeout(ctx, samplesFetch)
			r, err := api.Call(call, s.cfg.Peer(addr), api.CopySamples, q)
			cancel()
			if err != nil {
				s.slog.Debug("samples could not be fetched", "from", addr, "err", err)
				break
			}
			s.samples.take(r.Samples)
			q, more = api.CopyRequest{Boot: r.Boot, After: r.After}, r.More
		}
	}
}
