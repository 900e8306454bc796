package server

import (
	"context"
	"fmt"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched"
)

// putReservation makes or changes a reservation: it chooses its name and nodes, if they were not given.
func (s *Server) putReservation(ctx context.Context, who api.Caller, q cluster.ReservationPut) (api.ReservationResponse, error) {
	snap, by := s.Snapshot(), s.actor(who, api.PutReservation.Rights)
	if !by.Operator() { // nothing is looked for in the name of whom it is refused
		return api.ReservationResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrUser,
			"only operators may make reservations")
	}
	if q.Name == "" {
		q.Name = freshName(snap, &q.Reservation)
	}
	if err := chooseReserved(snap, &q, time.Now()); err != nil {
		return api.ReservationResponse{}, err
	}
	_, index, err := s.proposeOf(ctx, by, &q)
	if err != nil {
		return api.ReservationResponse{}, err
	}
	s.slog.Info("reservation set", "name", q.Name, "start", q.Start, "end", q.End, "nodes", len(q.Nodes))
	return api.ReservationResponse{Name: q.Name, Index: index}, nil
}

// chooseReserved chooses what a reservation gets that does not name all of it.
func chooseReserved(snap *cluster.Snapshot, q *cluster.ReservationPut, now time.Time) error {
	ofParts := len(q.GRES) > 0 || q.PerNode
	ofCores := len(q.Cores) > 0 && !ofParts
	otherCount := q.Count > 0 && len(q.Nodes) != q.Count && !ofParts && !ofCores
	switch {
	case ofParts && !q.Update:
		r, err := sched.ReserveParts(snap, &q.Reservation, now)
		if err != nil {
			return err
		}
		q.Reservation = *r
	case ofCores && !q.Update, otherCount:
		nodes, cpus, err := sched.Reserve(snap, &q.Reservation, now)
		if err != nil {
			return err
		}
		q.Nodes, q.CPUs = nodes, cpus
	default:
		return nil
	}
	if p := snap.DefaultPartition(); q.Partition == "" && p != nil && !q.Update {
		q.Partition = p.Name
	}
	return nil
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
	sees := visibility.Of(snap, who)
	for _, r := range snap.Reservations() {
		if !sees.Reservation(r) {
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
				cores = cores + ids.Len()
				cpus = cpus + c.CPUs[k].Len()
				out.CoreIDs[c.Name] = append(out.CoreIDs[c.Name], ids)
			}
		}
		out.Reservations = append(out.Reservations, c)
		out.Cores = append(out.Cores, cores)
		out.CPUs = append(out.CPUs, cpus)
	}
	return out, nil
}
