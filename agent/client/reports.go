package client

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/container/locality"
	"dev.muster/agent/outbox"
	"dev.muster/api"
	"dev.muster/cluster"
)

// reports are what is told to the servers of attempts on this client's nodes, until they have it in the log.
type reports struct {
	server  *api.Client
	images  *locality.Store // what the folder of images has, which is told with them
	slog    *slog.Logger
	box     *outbox.Box
	journal *outbox.Journal
	begun   map[outbox.Attempt]bool // attempts that an earlier life of this client confirmed; never changes

	mu   sync.Mutex                // also held while a report is written; nothing of the client is locked under it
	over map[outbox.Attempt]uint64 // attempts that are finished here → index from which the servers know
}

// openReports opens the files, and notes what reports on their way say.
func openReports(cfg *Config, images *locality.Store, log *slog.Logger) (*reports, error) {
	box, err := outbox.Open(cfg.Dir)
	if err != nil {
		return nil, err
	}
	ended, err := outbox.OpenJournal(cfg.Dir)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	r := &reports{
		server: cfg.Server, images: images, slog: log, box: box, journal: ended,
		begun: confirmedBy(box.Pending()), over: map[outbox.Attempt]uint64{},
	}
	for _, old := range box.Pending() {
		r.settle(old)
	}
	return r, nil
}

func (r *reports) close() error { return errors.Join(r.box.Close(), r.journal.Close()) }

// confirmedBy lists the attempts that reports on their way say are begun.
func confirmedBy(reports []cluster.Report) map[outbox.Attempt]bool {
	begun := map[outbox.Attempt]bool{}
	for _, r := range reports {
		for _, u := range r.Updates {
			if u.Kind == cluster.NodeReady {
				begun[outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: r.Node}] = true
			}
		}
	}
	return begun
}

// settle notes what a report says is over, so that it is not begun again. Called with mu held.
func (r *reports) settle(told cluster.Report) {
	for _, u := range told.Updates {
		if u.Kind.Final() {
			r.over[outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: told.Node}] = 0
		}
	}
}

// put hands updates of a node to the outbox, which keeps them until the servers have them. An attempt that ends so is
// over before it can be known that the servers have heard of it.
func (r *reports) put(n cluster.NodeName, updates ...cluster.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, err := r.box.Put(n, updates)
	if err != nil {
		r.slog.Error("a report could not be kept", "node", n, "err", err)
	}
	if err := r.journal.Put(n, updates); err != nil {
		r.slog.Error("what ended here could not be kept", "node", n, "err", err)
	}
	r.settle(told)
}

// isOver reports whether an attempt is finished here, and the servers may not know it.
func (r *reports) isOver(key outbox.Attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, over := r.over[key]
	return over
}

// forget drops attempts of nodes that the servers know to be over and name no more.
func (r *reports) forget(fresh map[cluster.NodeName]uint64, named map[outbox.Attempt]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, index := range r.over {
		if at, ok := fresh[key.Node]; ok && index != 0 && index < at && !named[key] {
			delete(r.over, key)
		}
	}
}

// forgetAll drops all attempts of nodes: if one is named, its end is told again.
func (r *reports) forgetAll(names []cluster.NodeName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.over, func(key outbox.Attempt, _ uint64) bool { return slices.Contains(names, key.Node) })
}

// arrived notes from which index on the servers know what reports say is over.
func (r *reports) arrived(list []cluster.Report, index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range list {
		for _, u := range rep.Updates {
			key := outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: rep.Node}
			if _, ok := r.over[key]; ok && u.Kind.Final() {
				r.over[key] = max(index, 1)
			}
		}
	}
}

// send delivers the outbox.
func (r *reports) send(ctx context.Context) {
	var wait time.Duration
	var told []string // which images there are
	for {
		list := r.box.Pending()
		if len(list) == 0 {
			select {
			case <-r.box.More:
				continue
			case <-ctx.Done():
				return
			}
		}
		q, images := api.ReportRequest{Reports: list}, r.images.Keys(time.Now())
		if !slices.Equal(images, told) {
			q.Images = images
		}
		answer, err := api.Call(ctx, r.server, api.ReportWork, q)
		var e *api.Error
		if err != nil && !(errors.As(err, &e) && e.Code == cluster.NotFound) {
			r.slog.Debug("reporting failed", "err", err)
			if !pause(ctx, &wait) {
				return
			}
			continue
		}
		wait, told = 0, images
		if err := r.box.Ack(list); err != nil {
			r.slog.Error("the outbox could not be written", "err", err)
		}
		r.arrived(list, answer.Index)
	}
}
