package server

import (
	"context"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestInternalFields: what only servers fill in of a job, or only crontabs ask for, is not for a user to say.
func TestInternalFields(t *testing.T) {
	cfg := cluster.DefaultConfig()
	st := cluster.NewState()
	by := cluster.Identity{System: true}
	for i, c := range []cluster.Command{
		&cluster.Configure{Config: &cfg}, &cluster.NodeUp{Name: "n0"}, &cluster.NodeUp{Name: "n1"},
	} {
		at := time.Unix(1e9, 0)
		if out := st.Apply(cluster.Entry{Index: uint64(i + 1), At: at, By: by, Cmd: c}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	s := &Server{}
	s.ahead.Store(st.Snapshot())
	who := api.Caller{Identity: cluster.Identity{UID: 1000, GID: 1000, User: "u"}, Member: "login"}
	for name, c := range map[string]struct {
		change func(*cluster.JobSpec)
		want   bool
	}{
		"nothing":          {func(*cluster.JobSpec) {}, true},
		"another's texts":  {func(s *cluster.JobSpec) { s.Script, s.Env = "abc", "def" }, true},
		"no way to share":  {func(s *cluster.JobSpec) { s.Sharing = 200 }, false},
		"no kind of job":   {func(s *cluster.JobSpec) { s.Kind = 9 }, false},
		"memory for what?": {func(s *cluster.JobSpec) { s.Layout = &cluster.Layout{Mem: cluster.Mem{Per: 9}} }, false},
	} {
		q := &api.SubmitRequest{Spec: cluster.JobSpec{UID: 1000, GID: 1000}}
		c.change(&q.Spec)
		done, err := s.complete(context.Background(), who, q, -1)
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if done.spec.Script != "" || done.spec.Env != "" {
			t.Errorf("%s: the user names the stored texts %q and %q", name, done.spec.Script, done.spec.Env)
		}
	}
	again := cluster.JobSpec{UID: 1000, GID: 1000}
	again.Cron = &cluster.Cron{When: "* * * * *"}
	het := &api.HetRequest{Specs: []cluster.JobSpec{{UID: 1000, GID: 1000}, again}}
	if _, _, err := s.completeHet(context.Background(), st.Snapshot(), who, het); err == nil {
		t.Error("a component of a heterogeneous job runs again and again")
	}
}

// TestReserveForOthers: what users may not do is refused before nodes are looked for by numbers of theirs.
func TestReserveForOthers(t *testing.T) {
	s := &Server{}
	s.ahead.Store(cluster.NewState().Snapshot())
	q := cluster.ReservationPut{Reservation: cluster.Reservation{Count: 1 << 40}}
	who := api.Caller{Identity: cluster.Identity{UID: 1000}, Member: "login"}
	_, err := s.putReservation(t.Context(), who, q)
	if e := api.AsError(err); e.Code != cluster.Denied {
		t.Errorf("a user reserves nodes: %v", err)
	}
}
