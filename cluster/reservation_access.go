package cluster

import "slices"

// Which jobs may use a reservation.

// Allows reports whether a job may use it by its user, account, QOS and one of its partitions.
func (r *Reservation) Allows(s *JobSpec) bool {
	users := len(r.Users)+len(r.GIDs) == 0
	switch {
	case len(r.Users) > 0 && r.UsersNot:
		users = !slices.Contains(r.Users, s.User)
	case !users:
		users = slices.Contains(r.Users, s.User) || slices.ContainsFunc(r.GIDs,
			func(g uint32) bool {
				return g == s.GID || slices.Contains(s.Groups, g)
			})
	}
	if !users || !lists(r.Accounts, r.AccountsNot, s.Account) || !lists(r.QOS, r.QOSNot, s.QOS) {
		return false
	}
	return len(r.Partitions) == 0 || slices.ContainsFunc(s.Partitions, r.AllowsPartition)
}

// AllowsPartition reports whether jobs may use it in a partition.
func (r *Reservation) AllowsPartition(name string) bool {
	return lists(r.Partitions, r.PartitionsNot, name)
}

// lists reports whether a list that allows its names, or with not all others, allows one; an empty list allows all.
func lists(list []string, not bool, name string) bool {
	return len(list) == 0 || slices.Contains(list, name) != not
}

// IsForNobody reports whether nothing says who may use it.
func (r *Reservation) IsForNobody() bool {
	return len(r.Users)+len(r.GIDs)+len(r.Accounts)+len(r.QOS)+len(r.Partitions) == 0
}

// admitAccess refuses QOS and partitions that are not there.
func (r *Reservation) admitAccess(t *tx) error {
	for _, name := range r.QOS {
		if _, ok := t.QOS(name); !ok {
			return Errorf(Invalid, ErrQOS, "there is no QOS %s: sacctmgr show qos lists them", name)
		}
	}
	for _, name := range r.Partitions {
		if _, ok := t.Partition(name); !ok {
			return Errorf(Invalid, ErrPartition, "partition %s does not exist", name)
		}
	}
	return nil
}
