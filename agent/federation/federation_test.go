package federation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	fed "dev.muster/cluster/federation"
)

// site is a cluster with a log that is a list in memory, and one node.
type site struct {
	mu     sync.Mutex
	st     *cluster.State
	moved  chan struct{}
	offers *Offers
	all    map[string]*site
	cut    bool // nothing that it says or is told arrives
	lossy  *rand.Rand
	starts map[cluster.JobID]int
}

var (
	sys   = cluster.Identity{System: true}
	alice = cluster.Identity{UID: 1000, GID: 1000, User: "alice"}
)

func newSite(t *testing.T, name string, all map[string]*site) *site {
	s := &site{st: cluster.NewState(), moved: make(chan struct{}), all: all, starts: map[cluster.JobID]int{},
		lossy: rand.New(rand.NewPCG(uint64(len(all)), 7))}
	all[name] = s
	cfg := cluster.DefaultConfig()
	cfg.ClusterName, cfg.Partitions = name, []cluster.Partition{{Name: "batch", Default: true, All: true}}
	s.must(t, sys, &cluster.RaiseLevel{Level: cluster.Newest})
	s.must(t, cluster.Identity{}, &cluster.Configure{Config: &cfg})
	s.must(t, sys, &cluster.NodeUp{
		Name:      "n0",
		Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 100},
	})
	return s
}

// apply appends to the log.
func (s *site) apply(by cluster.Identity, cmds ...cluster.Command) ([]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []any
	for _, c := range cmds {
		a := s.st.Apply(cluster.Entry{Index: s.st.Index + 1, At: time.Now(), By: by, Cmd: c})
		if a.Err != nil {
			return nil, a.Err
		}
		out = append(out, a.Result)
	}
	close(s.moved)
	s.moved = make(chan struct{})
	return out, nil
}

func (s *site) must(t *testing.T, by cluster.Identity, c cluster.Command) any {
	t.Helper()
	out, err := s.apply(by, c)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func (s *site) Snapshot() *cluster.Snapshot { s.mu.Lock(); defer s.mu.Unlock(); return s.st.Snapshot() }
func (s *site) Moved() <-chan struct{}      { s.mu.Lock(); defer s.mu.Unlock(); return s.moved }
func (s *site) Changed() <-chan struct{}    { return s.Moved() }

func (s *site) Propose(_ context.Context, cmds ...cluster.Command) ([]any, error) {
	return s.apply(sys, cmds...)
}

func (s *site) Change(_ context.Context, r fed.Record) error {
	for _, one := range s.all {
		next := r
		next.Version++
		if _, err := one.apply(sys, &cluster.FederationPut{Record: next}); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) Complete(_ context.Context, _ *cluster.PeerCluster, user string, _ *api.SubmitRequest) (cluster.Identity, error) {
	if user != alice.User {
		return alice, errors.New("a stranger")
	}
	return alice, nil
}

// Call is answered as a server does; some calls, and some answers, are lost.
func (s *site) Call(ctx context.Context, p *cluster.PeerCluster, q *api.FederationCall) (out api.FederationAnswer, err error) {
	far := s.all[p.Name]
	if s.lost(far) {
		time.Sleep(time.Second)
		return out, errors.New("lost on the way")
	}
	snap := far.Snapshot()
	from := fed.ID(1)
	for _, m := range snap.Federation().Record.Members {
		if m.Name == q.From {
			from = m.ID
		}
	}
	for i := range q.Reports {
		if cluster.Hears(snap, from, &q.Reports[i], time.Now()) {
			if _, err := far.apply(sys, &cluster.FederationReports{From: from, Rows: q.Reports[i : i+1]}); err != nil {
				return out, err
			}
		}
	}
	for _, d := range q.Parents {
		if row, settled, _ := cluster.JudgeFor(snap, d, time.Now()); settled {
			out.Parents = append(out.Parents, row)
		}
	}
	if q.Pull {
		out = far.offers.Pull(ctx, from, q)
	}
	if s.lost(far) {
		return api.FederationAnswer{}, errors.New("the answer is lost")
	}
	return out, nil
}

func (s *site) lost(far *site) bool {
	s.mu.Lock()
	loses := s.cut || s.lossy.IntN(10) == 0
	s.mu.Unlock()
	far.mu.Lock()
	defer far.mu.Unlock()
	return loses || far.cut
}

func (s *site) setCut(cut bool) { s.mu.Lock(); s.cut = cut; s.mu.Unlock() }

// schedule starts the first job that may start, if the node is idle, and ends what has run for a while.
func (s *site) schedule(t *testing.T, seq *uint64) {
	snap := s.Snapshot()
	for j := range snap.Live() {
		kind := []cluster.UpdateKind{cluster.NodeReady}
		if j.Phase == cluster.Running && time.Since(j.Started) > 3*time.Second {
			kind = []cluster.UpdateKind{cluster.BatchOver, cluster.NodeDone}
		} else if j.Phase != cluster.Starting {
			return
		}
		*seq++
		r := &cluster.Report{Node: "n0", Seq: *seq}
		for _, k := range kind {
			r.Updates = append(r.Updates, cluster.Update{Kind: k, Job: j.ID, Attempt: j.Attempt, At: time.Now()})
		}
		s.must(t, sys, r)
		return
	}
	for j := range snap.Queue() {
		if _, why := snap.Ready(j, time.Now()); why != cluster.NoReason {
			continue
		}
		alloc := &cluster.Alloc{
			Partition: "batch",
			Shares:    []cluster.Share{{Node: "n0", CPUs: cluster.NewIDSet(0), MemMB: 1, Tasks: 1}},
		}
		d := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Start: alloc}
		s.must(t, sys, &cluster.Decide{Decisions: []cluster.Decision{d}})
		if now, _ := s.Snapshot().Job(j.ID); now.Phase == cluster.Starting {
			s.starts[j.ID]++
		}
		return
	}
}

// TestFederationLosses: three clusters lose calls and answers and are cut off again and again; each job is started
// once, wherever, and its origin knows how it has ended. Some wait for others, whatever the origins of these.
func TestFederationLosses(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { losses(t, seed) })
	}
}

func losses(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		all := map[string]*site{}
		names := []string{"a", "b", "c"}
		for _, n := range names {
			newSite(t, n, all)
		}
		r := fed.Record{
			Name: "f", Version: 1,
			Members: []fed.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c"}},
		}
		term, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, n := range names {
			s := all[n]
			for _, o := range names {
				if o != n {
					s.must(t, cluster.Identity{}, &cluster.PeerPut{
						Peer: cluster.PeerCluster{
							Name: o, URLs: "http://h", Send: "s", Accept: strings.Repeat("0a", 32),
						},
					})
				}
			}
			s.must(t, cluster.Identity{}, &cluster.FederationPut{Record: r})
			s.offers = NewOffers(s)
		}
		for _, s := range all { // each of them can be called by then
			running.Go(func() { Run(term, s, slog.New(slog.DiscardHandler)) })
		}
		rnd := rand.New(rand.NewPCG(seed, 2))
		var ids []cluster.JobID
		seqs := map[string]*uint64{"a": new(uint64), "b": new(uint64), "c": new(uint64)}
		over := func() bool {
			for _, id := range ids {
				j, ok := all[names[fed.Of(uint32(id))-1]].Snapshot().Job(id)
				if ok && j.Phase != cluster.Ended {
					return false
				}
			}
			return true
		}
		for step := range 4000 {
			if step < 400 && step%20 == 0 {
				n := names[rnd.IntN(3)]
				spec := cluster.JobSpec{
					Layout: &cluster.Layout{}, Name: fmt.Sprint(step), UID: alice.UID, GID: alice.GID,
					User: "alice",
				}
				for _, parent := range ids[max(0, len(ids)-step/20%4):] {
					term := cluster.Depend{Type: cluster.AfterOK, Job: parent, Task: cluster.TaskAny}
					spec.Depends.Terms = append(spec.Depends.Terms, term)
				}
				ids = append(ids,
					all[n].must(t, alice, &cluster.Submit{Spec: &spec, Viable: fed.SetOf(1, 2, 3)}).(cluster.JobID))
			}
			if step%50 == 0 {
				for _, n := range names {
					all[n].setCut(step < 800 && rnd.IntN(4) == 0)
				}
			}
			for _, n := range names {
				all[n].schedule(t, seqs[n])
			}
			time.Sleep(100 * time.Millisecond)
			if step > 800 && over() {
				break
			}
		}
		for _, id := range ids {
			n := all["a"].starts[id] + all["b"].starts[id] + all["c"].starts[id]
			if n != 1 {
				t.Errorf("job %d was started %d times", id, n)
			}
		}
		if !over() {
			t.Error("some jobs are not over at their origins")
		}
		elsewhere := 0
		for _, id := range ids {
			if all[names[fed.Of(uint32(id))-1]].starts[id] == 0 {
				elsewhere++
			}
		}
		if elsewhere == 0 {
			t.Error("no job ran elsewhere")
		}
		end()
		running.Wait()
	})
}

// TestOrdersChecked: what a member orders about jobs with numbers of others, or with numbers that stand for nothing, is
// refused before it comes into the log.
func TestOrdersChecked(t *testing.T) {
	s := newSite(t, "a", map[string]*site{})
	for job, want := range map[cluster.JobID]bool{
		cluster.JobID(fed.ID(2).Number(1)): true, cluster.JobID(fed.ID(1).Number(1)): false, 1: false, 0: false,
	} {
		k := &link{own: s, id: 2, name: "b", log: slog.New(slog.DiscardHandler)}
		row := &api.FederationRow{User: alice.User, Script: cluster.BlobText("#!/bin/sh\n")}
		row.Job, row.Spec = job, &cluster.JobSpec{Layout: &cluster.Layout{}}
		if _, ok := k.ready(t.Context(), s.Snapshot(), row); ok != want || want == (len(k.refused) > 0) {
			t.Errorf("job %d: taken %v, refused %v", job, ok, k.refused)
		}
	}
}
