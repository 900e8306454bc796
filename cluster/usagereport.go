package cluster

import "slices"

// UsageBy says what a report keeps apart.
type UsageBy string

// Keys that reports sum by.
const (
	ByOwner   UsageBy = ""        // account, user and wckey
	BySize    UsageBy = "size"    // and what a run holds
	ByOutcome UsageBy = "outcome" // how attempts ended, and why they failed
)

// UsageQuery asks what was used in a time; filters that are empty select all.
type UsageQuery struct {
	Time       Span       `json:"time"`
	By         UsageBy    `json:"by,omitempty"`
	Users      []string   `json:"users,omitempty"`
	Accounts   []string   `json:"accounts,omitempty"`
	GIDs       []uint32   `json:"gids,omitempty"`
	Partitions []string   `json:"partitions,omitempty"`
	WCKeys     []string   `json:"wckeys,omitempty"`
	Resv       string     `json:"resv,omitempty"`  // the reservation
	Refs       []Ref      `json:"refs,omitempty"`  // jobs
	Nodes      []NodeName `json:"nodes,omitempty"` // jobs that had one of them
}

// Selects reports whether the filters take a class of runs.
func (q *UsageQuery) Selects(c *UsageClass) bool {
	if q.Resv != "" && q.Resv != c.Reservation {
		return false
	}
	owner := takes(q.Users, c.User) && takes(q.GIDs, c.GID) && takes(q.Accounts, c.Account)
	return owner && takes(q.Partitions, c.Partition) && takes(q.WCKeys, c.WCKey)
}

// takes reports whether a filter, which takes all if it is empty, takes a value.
func takes[T comparable](filter []T, v T) bool {
	return len(filter) == 0 || slices.Contains(filter, v)
}

// Key is the part of a class that a report keeps apart.
func (q *UsageQuery) Key(c *UsageClass) UsageClass {
	switch q.By {
	case BySize:
		return UsageClass{
			Account: c.Account,
			User:    c.User,
			UID:     c.UID,
			WCKey:   c.WCKey,
			TRES:    c.TRES,
		}
	case ByOutcome:
		return UsageClass{Outcome: c.Outcome, Cause: c.Cause, Refunded: c.Refunded}
	}
	return UsageClass{
		Account: c.Account,
		User:    c.User,
		UID:     c.UID,
		WCKey:   c.WCKey,
	}
}

// UsageRow is one sum of a report.
type UsageRow struct {
	UsageClass
	Used []Amount `json:"used"` // TRES-seconds
	Jobs int64    `json:"jobs"` // that ran in the time
}

// Add adds seconds of runs of a class.
func (r *UsageRow) Add(c *UsageClass, secs, jobs int64) {
	r.Used = addAmounts(r.Used, c.TRES, float64(secs))
	r.Jobs += jobs
}

// addAmounts adds f times some amounts.
func addAmounts(sum, more []Amount, f float64) []Amount {
	for _, a := range more {
		i := slices.IndexFunc(sum, func(b Amount) bool { return b.TRES == a.TRES })
		if i < 0 {
			i = len(sum)
			sum = append(sum, Amount{TRES: a.TRES})
		}
		sum[i].N += float64(a.N * f)
	}
	return sum
}

// AddAmounts adds f times some amounts to a sum.
func AddAmounts(sum, more []Amount, f float64) []Amount { return addAmounts(sum, more, f) }

// AmountOf finds how much of a resource a list has.
func AmountOf(list []Amount, tres string) float64 { return amountOf(list, tres) }

// Utilization is where the time of one resource went, in TRES-seconds: the first five sum up to Reported.
type Utilization struct {
	TRES        string  `json:"tres"`
	Count       float64 `json:"count"` // how much there was at the end
	Allocated   float64 `json:"allocated"`
	Down        float64 `json:"down"`
	PlannedDown float64 `json:"planned_down"`
	Idle        float64 `json:"idle"`
	Planned     float64 `json:"planned"` // idle while eligible jobs waited for so much
	Over        float64 `json:"over"`    // what jobs waited for beyond that
	Reported    float64 `json:"reported"`
}

// Hour adds one hour: how much time there was, ran, was down, planned to be, and was waited for. A node that is down
// counts only as far as nothing ran there, and so on.
func (u *Utilization) Hour(total, ran, down, off, wait float64) {
	left := total
	take := func(n float64) float64 {
		n = max(min(n, left), 0)
		left -= n
		return n
	}
	u.Reported += total
	u.Allocated += take(ran)
	u.Down += take(down)
	u.PlannedDown += take(off)
	planned := take(wait)
	u.Planned += planned
	u.Over += wait - planned
	u.Idle += left
}
