package server

import (
	"context"
	"fmt"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched"
)

// putReservation makes or changes a reservation: it chooses its name and nodes, if they were not given.
func (s *Server) putReservation(ctx context.Context, who api.Caller, q cluster.ReservationPut) (api.ReservationResponse, error) {
	snap := s.Snapshot()
	if q.Name == "" {
		q.Name = freshName(snap, &q.Reservation)
	}
	if !q.Update && len(q.Cores) > 0 || q.Count > 0 && len(q.Nodes) != q.Count && len(q.Cores) == 0 {
		nodes, cpus, err := sched.Reserve(snap, &q.Reservation, time.Now())
		if err != nil {
			return api.ReservationResponse{}, err
		}
		q.Nodes, q.CPUs = nodes, cpus
		if p := snap.DefaultPartition(); q.Partition == "" && p != nil && !q.Update {
			q.Partition = p.Name
		}
	}
	_, index, err := s.proposeOf(ctx, s.actor(who, api.PutReservation.Rights), &q)
	if err != nil {
		return api.ReservationResponse{}, err
	}
	s.slog.Info("reservation set", "name", q.Name, "start", q.Start, "end", q.End, "nodes", len(q.Nodes))
	return api.ReservationResponse{Name: q.Name, Index: index}, nil
}

// freshName is the first account or user, and a number, as Slurm names what was given no name.
func freshName(s *cluster.Snapshot, r *cluster.Reservation) string {
	base := "resv"
	for _, list := range [][]string{r.Groups, r.Users, r.Accounts} {
		if len(list) > 0 {
			base = list[0]
		}
	}
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s_%d", base, n)
		if _, taken := s.Reservation(name); !taken {
			return name
		}
	}
}

func (s *Server) listReservations(ctx context.Context, who api.Caller, q api.ReservationQuery) (api.ReservationsResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.ReservationsResponse{}, err
	}
	out := api.ReservationsResponse{Index: snap.Index, Now: time.Now(), CoreIDs: map[string][]cluster.IDSet{}}
	sees := visibilityOf(snap, who)
	for _, r := range snap.Reservations() {
		if !sees.reservation(r) {
			continue
		}
		c := *r.At(out.Now)
		c.Nodes = snap.Reserved(r)
		cores, cpus := 0, 0
		for k, name := range c.Nodes {
			n, ok := snap.Node(name)
			switch {
			case !ok:
			case c.CPUs == nil:
				cores, cpus = cores+n.Inventory.Sockets*n.Inventory.CoresPerSocket, cpus+n.Inventory.CPUs
			default:
				ids := n.Inventory.CoresOf(c.CPUs[k])
				cores, cpus, out.CoreIDs[c.Name] = cores+ids.Len(), cpus+c.CPUs[k].Len(), append(out.CoreIDs[c.Name], ids)
			}
		}
		out.Reservations, out.Cores, out.CPUs = append(out.Reservations, c), append(out.Cores, cores), append(out.CPUs, cpus)
	}
	return out, nil
}

// reservedNow marks the nodes that reservations have at a moment.
func reservedNow(snap *cluster.Snapshot, now time.Time) func(*api.NodeInfo) {
	maint := map[cluster.NodeName]bool{}

	for _, r := range snap.Reservations() {
		if !r.At(now).Active(now) {
			continue
		}
		for _, n := range snap.Reserved(r) {
			maint[n] = maint[n] || r.Flags&cluster.ResvMaint != 0
		}
	}
	return func(n *api.NodeInfo) {
		if m, ok := maint[n.Name]; ok {
			n.Reserved, n.Maint = true, m
		}
	}
}
