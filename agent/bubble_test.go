package agent

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/client"
	"dev.muster/agent/machine"
	"dev.muster/agent/server"
	"dev.muster/agent/step"
	"dev.muster/agent/supervisor"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"dev.muster/ui/page"
	"github.com/hashicorp/raft"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// forget is a history that keeps nothing.
type forget struct{}

func (forget) Apply(uint64, []cluster.Event) {}
func (forget) Flush(context.Context) error   { return nil }
func (forget) Sync(context.Context) error    { return nil }
func (forget) Reached() uint64               { return math.MaxUint64 }
func (forget) Restored(uint64) error         { return nil }
func (forget) Whole() bool                   { return true }
func (forget) Export(context.Context, func() (uint64, error)) (string, error) {
	return "", nil
}
func (forget) Adopt(context.Context, io.Reader) error { return nil }
func (forget) GiveUp(context.Context) error           { return nil }
func (forget) Page(context.Context, acct.Query, acct.Cursor) ([]acct.Record, *acct.Cursor, error) {
	return nil, nil, nil
}
func (forget) Jobs(context.Context, acct.Query) iter.Seq2[acct.Record, error] {
	return func(func(acct.Record, error) bool) {}
}
func (forget) Usage(context.Context, cluster.UsageQuery) ([]cluster.UsageRow, error) { return nil, nil }
func (forget) Utilization(context.Context, cluster.Span) ([]cluster.Utilization, error) {
	return nil, nil
}
func (forget) Reservations(context.Context, cluster.Span) ([]cluster.ResvSpan, error) {
	return nil, nil
}
func (forget) NodeSpans(context.Context, cluster.Span) ([]cluster.NodeSpan, error) { return nil, nil }
func (forget) SQL(context.Context, string) (acct.Table, error)                     { return acct.Table{}, nil }
func (forget) Old(context.Context, cluster.Cutoff) iter.Seq2[cluster.Archived, error] {
	return func(func(cluster.Archived, error) bool) {}
}
func (forget) Changes(context.Context, cluster.Span) ([]cluster.Transaction, error) { return nil, nil }
func (forget) Run(ctx context.Context) error                                        { <-ctx.Done(); return nil }

// pipes is a listener whose connections are pipes of the process itself, by root.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

type rootConn struct{ net.Conn }

func (rootConn) Caller() api.Caller { return api.Caller{} }

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return rootConn{c}, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context) (api.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble is a server and a client with hollow nodes in one synctest bubble.
type bubble struct {
	t          *testing.T
	api        *api.Client
	stopClient func()
	handler    *handler
	pages      http.Handler
}

func newBubble(t *testing.T, nodes string, length time.Duration) *bubble {
	return newBubbleLog(t, nodes, length, quiet)
}

func newBubbleLog(t *testing.T, nodes string, length time.Duration, log *slog.Logger) *bubble {
	return newBubbleWith(t, nodes, length, log, func(*server.Config, *cluster.Config) {})
}

func newBubbleWith(t *testing.T, nodes string, length time.Duration, log *slog.Logger,
	change func(*server.Config, *cluster.Config),
) *bubble {
	addr, trans := raft.NewInmemTransport("")
	cfg := cluster.DefaultConfig()
	own := server.Config{
		Name: "s1", Load: func() (*cluster.Config, []string, error) { return &cfg, nil, nil },
		Log:  consensus.Config{ID: "s1", Addr: string(addr), Bootstrap: true, Memory: true},
		Page: page.New,
	}
	change(&own, &cfg)
	s, err := server.New(own, trans, forget{}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ln, mux := newPipes(), api.NewMux()
	s.Routes(mux)
	hollow, err := machine.ParseHollow(nodes)
	if err != nil {
		t.Fatal(err)
	}
	timers := supervisor.NewTimers(func(step.Spec) (time.Duration, cluster.ExitStatus) { return length, cluster.ExitStatus{} })
	near := &api.Client{Dial: ln.dial}
	c, err := client.New(client.Config{Dir: t.TempDir(), Nodes: hollow, Server: near, Runner: timers,
		Dialect: plainDialect{}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	clientCtx, stopClient := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	wg.Go(func() { _ = serve(ctx, ln, mux, nil, quiet) })
	wg.Go(func() { _ = c.Run(clientCtx) })
	t.Cleanup(func() {
		cancel()
		near.Close()
		wg.Wait()
		_ = timers.Close()
	})
	s.ShowsPage("http://s1:7480/")
	h := &handler{mux: mux, log: log, ctx: ctx}
	return &bubble{t: t, api: &api.Client{Dial: ln.dial}, stopClient: stopClient, handler: h, pages: s.Pages(h.callAs)}
}

func (b *bubble) submit(spec cluster.JobSpec) cluster.JobID {
	b.t.Helper()
	spec.Name, spec.WorkDir, spec.Stdout = "job", "/", "out"
	r, err := api.Call(context.Background(), b.api, api.SubmitJob, api.SubmitRequest{
		Spec: spec, Script: cluster.BlobText("#!/bin/sh\n"),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Job
}

func (b *bubble) job(id cluster.JobID) *cluster.Job {
	b.t.Helper()
	r, err := api.Call(context.Background(), b.api, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if err != nil || len(r.Jobs) == 0 {
		b.t.Fatalf("job %d: %v", id, err)
	}
	return r.Jobs[0]
}

func TestBubbleRunsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "4x8c16g", 10*time.Second)
		defer b.api.Close()
		one := b.submit(cluster.JobSpec{Layout: &cluster.Layout{}})
		time.Sleep(time.Second)
		if j := b.job(one); j.Phase != cluster.Running { // else the gang, which is larger, might go first
			t.Errorf("after a second the first job is in phase %d", j.Phase)
		}
		gang := b.submit(cluster.JobSpec{Layout: &cluster.Layout{MinNodes: 4}, Sharing: cluster.ShareExclusive})
		time.Sleep(time.Second)
		if j := b.job(gang); j.Phase != cluster.Pending || j.Wait != cluster.WaitResources || j.PlannedStart.IsZero() == false && j.PlannedStart.Before(time.Now()) {
			t.Errorf("the gang: phase %d, reason %q, planned %v", j.Phase, j.Wait, j.PlannedStart)
		}
		time.Sleep(10 * time.Second)
		if j := b.job(one); j.Phase != cluster.Ended || j.Outcome != cluster.Completed {
			t.Errorf("after twelve seconds the first job is in phase %d, outcome %d", j.Phase, j.Outcome)
		}
		if j := b.job(gang); j.Phase != cluster.Running || len(j.Alloc.Shares) != 4 {
			t.Errorf("the gang: phase %d on %d nodes", j.Phase, len(j.AllocNodes()))
		}
		time.Sleep(20 * time.Second)
		if j := b.job(gang); j.Phase != cluster.Ended {
			t.Errorf("the gang never ended: phase %d", j.Phase)
		}
	})
}

func TestBubbleTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		id := b.submit(cluster.JobSpec{Layout: &cluster.Layout{}, Limit: time.Minute})
		time.Sleep(59 * time.Second)
		if j := b.job(id); j.Phase != cluster.Running {
			t.Errorf("before its limit the job is in phase %d", j.Phase)
		}
		time.Sleep(40 * time.Second)
		if j := b.job(id); j.Outcome != cluster.TimedOut {
			t.Errorf("after its limit: phase %d, outcome %d", j.Phase, j.Outcome)
		}
	})
}

// A client that is gone takes its nodes down after the timeout, and the job goes back to the queue.
func TestBubbleLostClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		id := b.submit(cluster.JobSpec{Layout: &cluster.Layout{}})
		time.Sleep(time.Second)
		b.stopClient()
		time.Sleep(2 * time.Second)
		if j := b.job(id); j.Phase != cluster.Running {
			t.Errorf("a short absence of the client put the job into phase %d", j.Phase)
		}
		time.Sleep(10 * time.Second)
		if j := b.job(id); j.Phase != cluster.Pending || j.Restarts != 1 {
			t.Errorf("after the node was lost: phase %d, %d restarts", j.Phase, j.Restarts)
		}
	})
}

// A submission that is made again is answered with its job, whatever has become of what would take it now; one that was
// refused is refused again.
func TestBubbleSubmitAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		time.Sleep(time.Second)
		submit := func(key string, cpus int) (cluster.JobID, error) {
			spec := cluster.JobSpec{
				Layout: &cluster.Layout{CPUsPerTask: cpus}, Name: "job", WorkDir: "/", Stdout: "out",
			}
			r, err := api.Call(t.Context(), b.api, api.SubmitJob, api.SubmitRequest{
				Spec: spec, Script: cluster.BlobText("#!/bin/sh\n"), Key: key,
			})
			return r.Job, err
		}
		id, err := submit("k", 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := submit("large", 100); err == nil {
				t.Error("a job was taken that can never run")
			}
		}
		closed := cluster.DefaultConfig().Partitions[0]
		closed.State = cluster.PartitionDrain
		if _, err := api.Call(t.Context(), b.api, api.SetPartition, cluster.PartitionSet{Partition: closed}); err != nil {
			t.Fatal(err)
		}
		if again, err := submit("k", 1); err != nil || again != id {
			t.Errorf("made again: job %d, %v, was %d", again, err, id)
		}
		if other, err := submit("other", 1); err == nil {
			t.Errorf("job %d was taken by a partition that takes none", other)
		}
	})
}

// A caller without the right is told so first, before anything else is wrong.
func TestBubbleRefusedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "2x8c16g", time.Hour)
		defer b.api.Close()
		time.Sleep(time.Second)
		part := cluster.JobSpec{Layout: &cluster.Layout{}, JobFlags: cluster.JobFlags{Hold: true}, Name: "job", WorkDir: "/", Stdout: "out"}
		set := api.HetRequest{Specs: []cluster.JobSpec{part, part}, Script: cluster.BlobText("#!/bin/sh\n")}
		made, err := api.Call(t.Context(), b.api, api.SubmitHet, set)
		if err != nil {
			t.Fatal(err)
		}
		single := b.submit(cluster.JobSpec{Layout: &cluster.Layout{}, JobFlags: cluster.JobFlags{Hold: true}})
		for _, c := range []struct {
			job  cluster.JobID
			hold bool
			want cluster.ErrKind
		}{
			{made.Job + 1, false, cluster.ErrHetLeader}, {made.Job + 1, true, cluster.ErrHetLeader},
			{made.Job, false, cluster.ErrPending}, {single, false, cluster.ErrPending},
			{single, true, cluster.ErrPending},
		} {
			q := cluster.Requeue{Ref: cluster.Ref{Job: c.job}, Hold: c.hold}
			_, err := api.Call(t.Context(), b.api, api.RequeueJob, q)
			var e *cluster.Error
			if !errors.As(err, &e) || e.Kind != c.want {
				t.Errorf("requeue %+v: %v, want %s", q, err, c.want)
			}
		}
	})
}

// The log has all commands but those that were refused.
func TestBubbleRefusedNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		id := b.submit(cluster.JobSpec{Layout: &cluster.Layout{}, JobFlags: cluster.JobFlags{Hold: true}})
		index := func() uint64 {
			r, err := api.Call(t.Context(), b.api, api.PingServer, api.Empty{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Applied
		}
		time.Sleep(time.Minute) // the leader has looked at the job, and written down why it waits
		synctest.Wait()
		before := index()
		for range 20 {
			_, none := api.Call(t.Context(), b.api, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: 999}})
			_, nice := api.Call(t.Context(), b.api, api.UpdateJob, cluster.UpdateJob{Ref: cluster.Ref{Job: 999}})
			_, drop := api.Call(t.Context(), b.api, api.DropReservation, cluster.ReservationDrop{Name: "none"})
			if none == nil || nice == nil || drop == nil {
				t.Fatalf("%v, %v, %v", none, nice, drop)
			}
		}
		if grown := index() - before; grown > 0 {
			t.Errorf("60 refused calls are %d entries of the log", grown)
		}
		if _, err := api.Call(t.Context(), b.api, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: id}}); err != nil {
			t.Fatal(err)
		}
		if j := b.job(id); j.Phase != cluster.Ended || index() == before {
			t.Errorf("the job is in phase %d, the log grew by %d", j.Phase, index()-before)
		}
	})
}

// plainDialect is a dialect that adds nothing to what tasks are told.
type plainDialect struct{ api.Dialect }

func (plainDialect) TaskEnv(*cluster.Launch) []string                              { return nil }
func (plainDialect) FileName(p string, _ *cluster.Launch) string                   { return p }
func (plainDialect) OOMNote(cluster.StepID, cluster.NodeName) string               { return "" }
func (plainDialect) LostNote(cluster.NodeName) string                              { return "" }
func (plainDialect) EndNote(*cluster.Job, int, cluster.NodeName, time.Time) string { return "" }
func (plainDialect) Greeting(*cluster.Launch, cluster.Binding, cluster.MemBinding, cluster.IDSet) string {
	return ""
}
