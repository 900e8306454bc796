// Package federation is how clusters share a job so that one of them alone runs it. It is pure: what a cluster knows
// of such a job is a Part, which changes by what the others say, and the rules are here. Package cluster keeps the
// parts in the log; package agent/federation carries what is said.
//
// A job is made at its origin, and offered to all clusters where it may run. A member that could start it asks
// the origin, which alone grants it: each grant has a number, and is a fact in the origin's log before it is told. The
// holder starts it, or gives the grant back, which is a fact in the holder's log, and from then on no grant of that
// number or a lower one counts there. So it does not matter in which order, how often or how late things are told, nor
// who leads: what a cluster tells of itself is always true of its log, and there is one start for each grant at most.
package federation

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// ID numbers the clusters of a federation, from 1.
type ID uint8

// A job's number has the cluster that it was made at in its upper bits.
const (
	LocalBits = 26
	LocalMask = 1<<LocalBits - 1
	MaxID     = 63
)

// Of is the cluster at which a job was made, 0 if that is in no federation.
func Of(job uint32) ID { return ID(job >> LocalBits) }

// Number is the number of a cluster's job in a federation.
func (id ID) Number(local uint32) uint32 { return uint32(id)<<LocalBits | local&LocalMask }

// Set is a set of clusters.
type Set uint64

// SetOf makes one.
func SetOf(ids ...ID) (s Set) {
	for _, id := range ids {
		s = s.With(id)
	}
	return s
}

// Has reports whether a cluster is in it.
func (s Set) Has(id ID) bool { return id > 0 && s&(1<<id) != 0 }

// With is the set with one more.
func (s Set) With(id ID) Set { return s | 1<<id }

// Without is the set without one.
func (s Set) Without(id ID) Set { return s &^ (1 << id) }

// All yields the clusters by number.
func (s Set) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for rest := uint64(s); rest != 0; rest &= rest - 1 {
			if !yield(ID(bits.TrailingZeros64(rest))) {
				return
			}
		}
	}
}

// State says what a cluster does with jobs of a federation.
type State uint8

// The states, as sacctmgr names them.
const (
	Active   State = iota
	Inactive       // it neither starts nor takes jobs
	Drain          // it takes no new ones
	Remove         // so, and leaves when its last one is over (DRAIN+REMOVE)
)

// Takes reports whether new jobs are offered there.
func (s State) Takes() bool { return s == Active }

// Member is a cluster of a federation.
type Member struct {
	ID       ID       `json:"id"`
	Name     string   `json:"name"`
	State    State    `json:"state,omitempty"`
	Features []string `json:"features,omitempty"`
}

// Fits reports whether a member has the features that a job wants, or with a ! before them has none of them.
func (m *Member) Fits(constraint []string, none bool) bool {
	unfit := func(feature string) bool { return slices.Contains(m.Features, feature) == none }
	return !slices.ContainsFunc(constraint, unfit)
}

// Record is a federation. Its members have the same one, the newest.
type Record struct {
	Name    string   `json:"name"`
	Version uint64   `json:"version"`
	By      string   `json:"by,omitempty"` // the cluster that has made this version
	Members []Member `json:"members,omitempty"`
	Gone    bool     `json:"gone,omitempty"` // it was deleted
}

// Newer reports whether a record takes the place of another. Of two that were made at once the first name's counts.
func (r *Record) Newer(old *Record) bool {
	if old == nil {
		return true
	}
	if r.Version != old.Version {
		return r.Version > old.Version
	}
	return r.By < old.By
}

// maxAhead is how much later than now another cluster's clock may be.
const maxAhead = 24 * time.Hour

// CheckVersion refuses a version that another cluster may not have made: after it none of today's could ever count.
// Versions are times, in milliseconds since 1970.
func (r *Record) CheckVersion(now time.Time) error {
	if r.Version <= uint64(now.Add(maxAhead).UnixMilli()) {
		return nil
	}
	return fmt.Errorf("version %d of federation %s is more than a day ahead of this cluster's clock: "+
		"set the clock of cluster %s", r.Version, r.Name, r.By)
}

// Member finds one.
func (r *Record) Member(id ID) *Member {
	return r.find(func(m Member) bool { return m.ID == id })
}

// Named finds a member by its name.
func (r *Record) Named(name string) *Member {
	return r.find(func(m Member) bool { return strings.EqualFold(m.Name, name) })
}

func (r *Record) find(is func(Member) bool) *Member {
	i := slices.IndexFunc(r.Members, is)
	if i < 0 {
		return nil
	}
	return &r.Members[i]
}

// FreeID is the first number that no member has, 0 if all are taken.
func (r *Record) FreeID() ID {
	for id := ID(1); id <= MaxID; id++ {
		if r.Member(id) == nil {
			return id
		}
	}
	return 0
}
