package client

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/agent/container/locality"
	"dev.muster/api"
	"dev.muster/cluster"
)

// workHold is how long one poll for work stays open.
const workHold = time.Minute

// link is the connection to the servers: it registers the nodes and asks for their work. It describes the nodes
// whenever their hardware wants that (hardware.Servers).
type link struct {
	server *api.Client
	images *locality.Store // what the folder of images has, which is told with each poll
	slog   *slog.Logger
	order  []cluster.NodeName

	// The questions, and the receivers of the answers. Each takes the tables' mu.
	describe   func(names []cluster.NodeName, again bool, asked map[cluster.NodeName][]cluster.Held) api.RegisterRequest
	registered func(api.RegisterRequest, api.RegisterResponse)
	ask        func() api.WorkRequest
	take       func(context.Context, api.Work)
	informed   func() // once, when the first work has come

	registering sync.Mutex    // held while nodes are registered; taken before the tables' mu
	anew        chan struct{} // the nodes are to be registered again
}

func newLink(t *tables, images *locality.Store) *link {
	return &link{server: t.cfg.Server, images: images, slog: t.slog, order: t.order, anew: make(chan struct{}, 1)}
}

// register tells what nodes are.
func (l *link) register(ctx context.Context, names []cluster.NodeName, repeated bool) error {
	l.registering.Lock() // what was found last is told last
	defer l.registering.Unlock()
	ask, err := l.registerOnce(ctx, names, repeated, nil)
	if err == nil && len(ask) > 0 {
		_, err = l.registerOnce(ctx, names, repeated, ask)
	}
	return err
}

// registerOnce makes one call, and tells what servers ask then whose state was brought back from a file.
func (l *link) registerOnce(ctx context.Context, names []cluster.NodeName, repeated bool,
	asked map[cluster.NodeName][]cluster.Held) (
	map[cluster.NodeName][]cluster.Held, error) {
	q := l.describe(names, repeated, asked)
	r, err := api.Call(ctx, l.server, api.RegisterNodes, q)
	if err != nil {
		return nil, err
	}
	l.registered(q, r)
	return r.Ask, nil
}

// Register tells what all nodes are now.
func (l *link) Register(ctx context.Context) error { return l.register(ctx, l.order, true) }

// RegisterSoon has the nodes registered again, with what they are now.
func (l *link) RegisterSoon() {
	select {
	case l.anew <- struct{}{}:
	default:
	}
}

// Now is the time at a server.
func (l *link) Now(ctx context.Context) (time.Time, error) {
	r, err := api.Call(ctx, l.server, api.Ping, api.Empty{})
	return r.Now, err
}

// keepRegistered registers the nodes again when they have changed, until the servers know.
func (l *link) keepRegistered(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.anew:
		}
		for wait := time.Duration(0); ; {
			err := l.Register(ctx)
			if err == nil {
				break
			}
			l.slog.Debug("registering again failed", "err", err)
			if !backoff.Pause(ctx, &wait) {
				return
			}
		}
	}
}

// reporter tells the servers reports, and with the first of them, and when that has changed, which images there are.
func (l *link) reporter() func(context.Context, []cluster.Report) (index uint64, err error) {
	var told []string
	return func(ctx context.Context, list []cluster.Report) (uint64, error) {
		q := api.ReportRequest{Reports: list}
		images := l.images.Keys(time.Now())
		if !slices.Equal(images, told) {
			q.Images = images
		}
		answer, err := api.Call(ctx, l.server, api.ReportWork, q)
		var e *api.Error
		if err != nil && !(errors.As(err, &e) && e.Code == cluster.NotFound) {
			return 0, err
		}
		told = images
		return answer.Index, nil
	}
}

// poll keeps one call for work open.
func (l *link) poll(ctx context.Context) {
	var wait time.Duration
	missing, informed := slices.Clone(l.order), false
	for ctx.Err() == nil {
		if len(missing) > 0 {
			if err := l.register(ctx, missing, false); err != nil {
				l.slog.Debug("registering failed", "err", err)
				if !backoff.Pause(ctx, &wait) {
					return
				}
				continue
			}
		}
		q := l.ask()
		q.Hold = workHold
		q.Gather = true
		q.Images = l.images.Keys(time.Now())
		w, err := api.Call(ctx, l.server, api.GetWork, q)
		if err == nil {
			err = w.Spread()
		}
		if err != nil {
			l.slog.Debug("asking for work failed", "err", err)
			if !backoff.Pause(ctx, &wait) {
				return
			}
			continue
		}
		wait, missing = 0, w.Unknown
		l.take(ctx, w)
		if !informed && len(w.Nodes) > 0 {
			informed = true
			l.informed()
		}
	}
}
