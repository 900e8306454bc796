package cluster

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Reservation keeps nodes, or some cores and GPUs of them, for some users and accounts during a span of time.
type Reservation struct {
	Name  string     `json:"name"`
	Start time.Time  `json:"start"`
	End   time.Time  `json:"end"`
	Nodes []NodeName `json:"nodes"`
	Count int        `json:"count,omitempty"` // how many nodes were asked for, if not by name
	// Cores is how many cores were asked for: one number for all of its nodes together, or with ResvFirstCores for
	// each of them; or a number for each.
	Cores []int `json:"cores,omitempty"`
	// CPUs are what it has of each of Nodes in turn, whole cores; nil: all of them.
	CPUs []IDSet `json:"cpus,omitempty"`
	// GRES is how many GPUs were asked for, of any type or by type, of all of its nodes together.
	GRES []GRES `json:"gres,omitempty"`
	// PerNode says that Cores, which then is one number, and GRES are for each of its nodes.
	PerNode bool `json:"per_node,omitempty"`
	// GPUs are the devices that it has of each of Nodes in turn; one that has any has CPUs, too. nil: none by number.
	GPUs      []IDSet `json:"gpus,omitempty"`
	Partition string  `json:"partition,omitempty"`
	Features  string  `json:"features,omitempty"`
	Licenses  string  `json:"licenses,omitempty"` // that only its jobs may use: NAME:COUNT,...
	// Users who may use it. With Not, everybody but those. A job must be of the users or groups, of the accounts,
	// of the QOS and of the partitions, where these are given.
	Users       []string `json:"users,omitempty"`
	UsersNot    bool     `json:"users_not,omitempty"`
	Groups      []string `json:"groups,omitempty"`
	GIDs        []uint32 `json:"gids,omitempty"` // of Groups
	Accounts    []string `json:"accounts,omitempty"`
	AccountsNot bool     `json:"accounts_not,omitempty"`
	QOS         []string `json:"qos,omitempty"`
	QOSNot      bool     `json:"qos_not,omitempty"`
	// Partitions are those whose jobs may use it (AllowedPartitions).
	Partitions    []string  `json:"partitions,omitempty"`
	PartitionsNot bool      `json:"partitions_not,omitempty"`
	Flags         ResvFlags `json:"flags,omitempty"`
	// MaxStartDelay is how long at most a job of it waits for others that have its nodes meanwhile: those with
	// --signal=R: whose warning comes no earlier before their end; 0: it lets nobody have them.
	MaxStartDelay time.Duration `json:"max_start_delay,omitempty"`
	// PurgeAfter ends it once no job has used it for so long (PURGE_COMP); 0: never.
	PurgeAfter time.Duration `json:"purge_after,omitempty"`
	UsedAt     time.Time     `json:"used_at,omitzero"` // when its last job ended
	Begun      bool          `json:"begun,omitempty"`  // ResvProlog was asked for, of this time
	// FloatsFrom is the moment at which one with ResvTimeFloat has this start; as time goes on it moves along, and
	// never begins.
	FloatsFrom time.Time `json:"floats_from,omitzero"`
}

// OutsideReservation is the hint of an error about a job that names nodes outside of its reservation.
const OutsideReservation = "Problem using reservation"

// ResvFlags say how a reservation behaves.
type ResvFlags uint32

// The flags, as man scontrol describes them.
const (
	ResvMaint ResvFlags = 1 << iota // may overlap others; its nodes are shown as under maintenance
	ResvFlex                        // its jobs may use other nodes too, and run past its end
	ResvOverlap
	ResvIgnoreJobs
	ResvHourly
	ResvDaily
	ResvWeekday
	ResvWeekend
	ResvWeekly
	ResvSpecNodes // its nodes were given by name
	ResvPartNodes // all nodes of the partition, whichever these are
	ResvNoHold    // its pending jobs may run elsewhere afterwards
	ResvMagnetic  // jobs that may use it do so without asking
	ResvUserDelete
	ResvTimeFloat   // it always begins as long from now as when it was made
	ResvAnyNodes    // it is about licenses: its jobs run on any nodes
	ResvReplace     // nodes that fail, and those on which its jobs run, are replaced by idle ones
	ResvReplaceDown // nodes that fail are replaced, as they are without it
	ResvStatic      // it keeps the nodes that it was given
	ResvFirstCores  // its cores are the lowest of a node
	ResvAllNodes    // all nodes of the cluster, whichever these are
)

// resvRepeats are the flags that bring a reservation back.
const resvRepeats = ResvHourly | ResvDaily | ResvWeekday | ResvWeekend | ResvWeekly

// maxReservations bounds them.
const maxReservations = 4096

// At is the reservation as it is at a moment.
func (r *Reservation) At(now time.Time) *Reservation {
	if r.Flags&ResvTimeFloat == 0 {
		return r
	}
	c := *r
	moved := now.Sub(r.FloatsFrom)
	c.Start = r.Start.Add(moved)
	c.End = r.End.Add(moved)
	c.FloatsFrom = now
	return &c
}

// Active reports whether a reservation is active.
func (r *Reservation) Active(now time.Time) bool {
	return !now.Before(r.Start) && now.Before(r.End)
}

// Keeps reports whether jobs that have no part in it must stay off its nodes at some moment of a span.
func (r *Reservation) Keeps(from, to time.Time) bool {
	return r.Start.Before(to) && r.End.After(from)
}

// Lets reports whether a job that has no part in it may have its nodes until a job of it wants them.
func (r *Reservation) Lets(s *JobSpec) bool {
	return r.MaxStartDelay > 0 && s.Signal.Reservation && s.Signal.Before <= r.MaxStartDelay
}

// Beyond reports whether its jobs may use other nodes too.
func (r *Reservation) Beyond() bool { return r.Flags&(ResvFlex|ResvAnyNodes) != 0 }

// next moves a repeating reservation to its first time that is not over.
func (r *Reservation) next(now time.Time) {
	day := 24 * time.Hour
	for !r.End.After(now) {
		step := day
		switch {
		case r.Flags&ResvHourly != 0:
			step = time.Hour
		case r.Flags&ResvWeekly != 0:
			step = 7 * day
		}
		if behind := now.Sub(r.End) / step; behind > 0 && r.Flags&(ResvWeekday|ResvWeekend) == 0 {
			step *= behind
		}
		r.Start, r.End = r.Start.Add(step), r.End.Add(step)
		for r.Flags&(ResvWeekday|ResvWeekend) != 0 && !r.onDay() {
			r.Start, r.End = r.Start.Add(day), r.End.Add(day)
		}
	}
}

// onDay reports whether it starts on a day of its kind. Days are UTC's, so that all servers agree.
func (r *Reservation) onDay() bool {
	kind := ResvWeekday
	switch r.Start.UTC().Weekday() {
	case time.Saturday, time.Sunday:
		kind = ResvWeekend
	}
	return r.Flags&kind != 0
}

// Reservations lists them by name.
func (t *tables) Reservations() []*Reservation { return slices.Collect(valuesOf(t.resvs)) }

// Reservation finds one by name.
func (t *tables) Reservation(name string) (*Reservation, bool) { return t.resvs.Get(name) }

// Reserved are the nodes of a reservation now: of the whole cluster or of a whole partition, those that it has.
func (t *tables) Reserved(r *Reservation) []NodeName {
	p, ok := t.Partition(r.Partition)
	switch {
	case r.Flags&ResvAllNodes != 0 && r.CPUs == nil:
		p = &Partition{All: true}
	case r.Flags&ResvPartNodes == 0 || !ok:
		return r.Nodes
	}
	var out []NodeName
	for n := range t.PartitionNodes(p) {
		out = append(out, n.Name)
	}
	return out
}

// ResvNames are the reservations that a job asks for; one of them is enough.
func (s *JobSpec) ResvNames() []string {
	if s.Reservation == "" {
		return nil
	}
	return strings.Split(s.Reservation, ",")
}

// ReservationPut makes a reservation, or with Update replaces one.
type ReservationPut struct {
	Reservation
	Update bool `json:"update,omitempty"`
	// Skip has one that repeats leave out its present or next time.
	Skip bool `json:"skip,omitempty"`
}

func (*ReservationPut) kind() string { return "reservation_put" }

func (c *ReservationPut) apply(t *tx) (any, error) {
	r := c.Reservation
	old, err := c.admit(t, &r)
	if err != nil {
		return nil, err
	}
	if err := r.checkTimes(t.at, c.Skip); err != nil {
		return nil, err
	}
	if old != nil && old.cut(&r) {
		return nil, Errorf(Conflict, ErrResvCores,
			"reservation %s is of cores or GPUs, or was not: what it has of nodes stays as it is; make another one",
			r.Name)
	}
	if err := r.checkWhat(); err != nil {
		return nil, err
	}
	if r.MaxStartDelay < 0 {
		return nil, Errorf(Invalid, ErrResvTime,
			"a job of a reservation cannot wait for %s: the longest delay is 0, for none, or more",
			r.MaxStartDelay)
	}
	if _, ok := t.Partition(r.Partition); !ok && r.Partition != "" {
		return nil, Errorf(Invalid, ErrPartition, "partition %s does not exist", r.Partition)
	}
	if err := r.admitAccess(t); err != nil {
		return nil, err
	}
	if err := t.config.admitLicenses(r.Licenses); err != nil {
		return nil, err
	}
	if err := r.float(t.at); err != nil {
		return nil, err
	}
	r.next(t.at)
	if c.Skip {
		r.next(r.End)
	}
	nodes, err := nodesToReserve(t, &r)
	if err != nil {
		return nil, err
	}
	if err := t.clashes(&r, nodes); err != nil {
		return nil, err
	}
	r.Begun = old != nil && old.Begun && r.Active(t.at)
	t.putReservation(r.Name, &r)
	return nil, nil
}

// admit finds the reservation that is to be changed, if one is, and refuses what the caller may not do.
func (c *ReservationPut) admit(t *tx, r *Reservation) (*Reservation, error) {
	old, exists := t.resvs.Get(r.Name)
	if err := firstError(
		refuseIf(!t.by.Operator(),
			Denied, ErrUser, "only operators may make reservations"),
		refuseIf(r.Name == "" || len(r.Name) > 64 || strings.ContainsAny(r.Name, ",= \t\n|"),
			Invalid, ErrReservation, "%q cannot be a reservation's name", r.Name),
		refuseIf(exists && !c.Update,
			Conflict, ErrResvName, "there is a reservation %s already", r.Name),
		refuseIf(!exists && c.Update,
			NotFound, ErrReservation, "there is no reservation %s", r.Name),
		refuseIf(t.resvs.Len() >= maxReservations && !exists,
			Conflict, ErrTooBig, "there are %d reservations, no more are possible", maxReservations),
	); err != nil {
		return nil, err
	}
	return old, nil
}

// checkTimes refuses times that cannot be, at a moment; skip: the next of them is to be left out.
func (r *Reservation) checkTimes(at time.Time, skip bool) error {
	repeats := r.Flags&resvRepeats != 0
	return firstError(
		refuseIf(!r.Start.Before(r.End),
			Invalid, ErrResvTime, "a reservation from %s cannot end at %s",
			r.Start.Format(time.DateTime), r.End.Format(time.DateTime)),
		refuseIf(!r.End.After(at) && !repeats,
			Invalid, ErrResvTime, "a reservation until %s is over already", r.End.Format(time.DateTime)),
		refuseIf(skip && !repeats,
			Invalid, ErrResvSkip,
			"reservation %s does not repeat, so that no time of it can be skipped: delete it", r.Name),
	)
}

// checkWhat refuses a reservation of nothing, for nobody, or of what cannot be reserved together.
func (r *Reservation) checkWhat() error {
	has := func(flags ResvFlags) bool { return r.Flags&flags != 0 }
	return firstError(
		refuseIf(r.asksForParts() && has(ResvPartNodes|ResvAnyNodes|ResvReplace|ResvReplaceDown),
			Invalid, ErrCPUCount,
			"a reservation of cores cannot be of all nodes of a partition or of any, nor have its nodes replaced"),
		refuseIf(len(r.GRES) > 0 && has(ResvFirstCores),
			Invalid, ErrResvGPUs, "a reservation of GPUs cannot have FIRST_CORES: leave the flag out"),
		refuseIf(bits.OnesCount64(uint64(r.Flags&resvRepeats)) > 1,
			Invalid, ErrUnsupported, "a reservation repeats in one way: leave all but one of its repeating flags out"),
		refuseIf(has(ResvMaint|ResvStatic) && has(ResvReplace|ResvReplaceDown),
			Invalid, ErrUnsupported,
			"nodes of a MAINT or STATIC_ALLOC reservation are not replaced: leave one flag out"),
		refuseIf(len(r.Nodes) == 0 && !has(ResvPartNodes) && (r.Licenses == "" || !has(ResvAnyNodes)),
			Invalid, ErrNodeName, "a reservation needs nodes"),
		refuseIf(r.IsForNobody(),
			Invalid, ErrUser, "a reservation needs users, groups, accounts, QOS or partitions that may use it"),
	)
}

// float notes from when on a reservation with TIME_FLOAT moves along.
func (r *Reservation) float(at time.Time) error {
	r.FloatsFrom = time.Time{}
	if r.Flags&ResvTimeFloat == 0 {
		return nil
	}
	if !r.Start.After(at) || r.Flags&resvRepeats != 0 {
		return Errorf(Invalid, ErrResvTime,
			"a reservation with TIME_FLOAT must begin in the future, and cannot repeat")
	}
	r.FloatsFrom = at
	return nil
}

// clashes refuses a reservation of nodes that others have then, or that are busy then.
func (t *tx) clashes(r *Reservation, nodes map[NodeName]bool) error {
	for o := range valuesOf(t.resvs) {
		together := (o.Flags|r.Flags)&(ResvMaint|ResvOverlap) != 0
		if o.Name == r.Name || together || !o.At(t.at).Keeps(r.Start, r.End) {
			continue
		}
		shared := func(n NodeName) bool {
			return nodes[n] && (o.CPUs == nil || r.has(n, o.on(n)))
		}
		if slices.ContainsFunc(t.Reserved(o), shared) {
			return Errorf(Conflict, ErrResvOverlap, "reservation %s has some of the nodes then", o.Name)
		}
	}
	if r.Flags&ResvIgnoreJobs != 0 {
		return nil
	}
	shared := func(sh Share) bool {
		return nodes[sh.Node] && r.has(sh.Node, partOf(&sh))
	}
	for j := range t.Live() {
		if j.Alloc == nil || makesWay(t, j, r) {
			continue
		}
		if slices.ContainsFunc(j.Alloc.Parts(), shared) {
			return Errorf(Conflict, ErrResvBusy, "job %d runs on some of the nodes then", j.ID)
		}
	}
	return nil
}

// makesWay reports whether a job that runs is in no reservation's way: it is over by then, of it, or leaves for it.
func makesWay(t *tx, j *Job, r *Reservation) bool {
	over := hasCome(j.EndLimit(t.config), r.Start)
	return over || slices.Contains(j.Spec.ResvNames(), r.Name) || r.Lets(j.Spec)
}

// ReservationDrop takes reservations away that no job asks for.
type ReservationDrop struct {
	Name string `json:"name"`
}

func (*ReservationDrop) kind() string { return "reservation_drop" }

func (c *ReservationDrop) apply(t *tx) (any, error) {
	r, ok := t.resvs.Get(c.Name)
	switch {
	case !ok:
		return nil, Errorf(NotFound, ErrReservation, "there is no reservation %s", c.Name)
	case !t.by.Operator() && (r.Flags&ResvUserDelete == 0 || r.UsersNot || !slices.Contains(r.Users, t.by.User)):
		return nil, Errorf(Denied, ErrUser, "only operators may delete reservation %s", c.Name)
	}
	for j := range t.Jobs() {
		if j.Phase < Ended && slices.Contains(j.Spec.ResvNames(), c.Name) {
			return nil, Errorf(Conflict, ErrResvInUse, "job %d uses reservation %s", j.ID, c.Name)
		}
	}
	t.putReservation(c.Name, nil)
	return nil, nil
}

// ReservationsDue ends what the clock ends, and moves what repeats to its next time.
type ReservationsDue struct {
	Names []string `json:"names"`
}

func (*ReservationsDue) kind() string { return "reservations_due" }

func (c *ReservationsDue) apply(t *tx) (any, error) {
	for _, name := range c.Names {
		old, ok := t.resvs.Get(name)
		if !ok || old.Flags&ResvTimeFloat != 0 {
			continue
		}
		r := *old
		if t.resvEnd(old).After(t.at) {
			if t.begins(old, t.at) {
				r.Begun = true
				t.putReservation(name, &r)
				t.send(Hook{Kind: HookResvProlog, Reservation: name})
			}
			continue
		}
		if t.config.ResvEpilog != "" {
			t.send(Hook{Kind: HookResvEpilog, Reservation: name})
		}
		over := old.Flags&resvRepeats == 0 || old.End.After(t.at)
		for _, j := range slices.Collect(t.Jobs()) {
			if slices.Contains(j.Spec.ResvNames(), name) {
				t.resvOver(j, old, over)
			}
		}
		if over {
			t.putReservation(name, nil)
			continue
		}
		r.next(t.at)
		r.Begun = false
		t.putReservation(name, &r)
	}
	return nil, nil
}

// begins reports whether a reservation's time has come and its ResvProlog has not been asked for.
func (t *tables) begins(r *Reservation, now time.Time) bool {
	return t.config.ResvProlog != "" && !r.Begun && r.Flags&ResvTimeFloat == 0 && r.Active(now)
}

// overrun has a job of a reservation that is over end ResvOverRun later, if it does not end before.
func (j *Job) overrun(c *Config, r *Reservation) {
	latest := r.End.Add(c.ResvOverRun)
	if end := j.EndLimit(c); c.ResvOverRun != Unlimited && (end.IsZero() || end.After(latest)) {
		j.Limit = max(latest.Sub(j.Begun())-j.SuspendTotal-c.overTime(j), time.Second)
	}
}

// resvOver ends a job's time in a reservation; if that does not come back, what waits for it is held.
func (t *tx) resvOver(j *Job, r *Reservation, over bool) {
	n := *j
	bound := begunAndGoesOn(j) && j.in(r.Name) && r.Flags&ResvFlex == 0
	switch {
	case bound && t.config.ResvOverRun > 0:
		n.overrun(t.config, r)
	case bound:
		t.end(&n, TimedOut, EndTimeLimit)
	case over && j.Phase == Pending && j.Spec.Reservation == r.Name:
		leaveReservation(&n, r)
	default:
		return
	}
	t.putJob(&n)
	t.tell(&n)
}

// leaveReservation has a job that waits for a reservation wait without it, held unless that is not to be.
func leaveReservation(j *Job, r *Reservation) {
	spec := *j.Spec
	spec.Reservation = ""
	j.Spec = &spec
	if r.Flags&ResvNoHold != 0 {
		return
	}
	j.Held = HeldAdmin
	j.Wait = WaitResvDeleted
	j.WaitNote = ""
	j.PlannedStart = time.Time{}
	j.PlannedNodes = nil
}

// in reports whether a job has nodes of a reservation.
func (j *Job) in(name string) bool {
	return j.Alloc != nil && j.Alloc.Reservation == name
}

// resvEnd is when the clock next changes a reservation.
func (t *tables) resvEnd(r *Reservation) time.Time {
	if r.PurgeAfter == 0 {
		return r.End
	}
	for j := range t.Live() {
		if j.in(r.Name) {
			return r.End
		}
	}
	idle := later(r.Start, r.UsedAt).Add(r.PurgeAfter)
	if idle.Before(r.End) {
		return idle
	}
	return r.End
}

// resvsDue lists what the clock demands of reservations.
func (t *tables) resvsDue(now time.Time) Command {
	var c ReservationsDue
	for r := range valuesOf(t.resvs) {
		if r.Flags&ResvTimeFloat == 0 && !t.resvEnd(r).After(now) || t.begins(r, now) {
			c.Names = append(c.Names, r.Name)
		}
	}
	if c.Names == nil {
		return nil
	}
	return &c
}

// nextResv is the first moment after now at which a reservation begins or ends; zero if none does.
func (t *tables) nextResv(now time.Time) (at time.Time) {
	for r := range valuesOf(t.resvs) {
		if r.Flags&ResvTimeFloat != 0 {
			continue
		}
		for _, x := range []time.Time{r.Start, t.resvEnd(r)} {
			if x.After(now) {
				at = sooner(at, x)
			}
		}
	}
	return at
}

// entered is the reservation in which a job is to start, nil for none; an error if it cannot start in it now, or
// asks for another.
func (t *tx) entered(j *Job, name string) (*Reservation, error) {
	own, ok := t.resvs.Get(name)
	switch {
	case name == "" && j.Spec.Reservation != "":
		return nil, Errorf(Conflict, ErrReservation, "job %d asks for reservation %s", j.ID, j.Spec.Reservation)
	case name == "":
		return nil, nil
	case !ok || !own.At(t.at).Active(t.at) && own.Flags&ResvFlex == 0 || !own.Allows(j.Spec):
		return nil, Errorf(Conflict, ErrReservation, "job %d cannot use reservation %s now", j.ID, name)
	}
	return own, nil
}

// mayHave checks that a start keeps off other people's reservations.
func (t *tx) mayHave(j *Job, d *Decision) error {
	if t.resvs.Len() == 0 && d.Start.Reservation == "" {
		return nil
	}
	own, err := t.entered(j, d.Start.Reservation)
	if err != nil {
		return err
	}
	over := t.at.Add(min(j.Limit, Unlimited/2))
	for r := range valuesOf(t.resvs) {
		inside := own != nil && own.Flags&ResvAnyNodes == 0 && r.Flags&ResvMaint == 0
		if r == own || inside && !own.leavesGPUsTo(r) || r.Lets(j.Spec) {
			continue
		}
		if r.At(t.at).Keeps(t.at, over) && t.holdsOf(r, d.Start.Shares, inside) {
			return Errorf(Conflict, ErrReservation, "a node for job %d is reserved (%s)", j.ID, r.Name)
		}
	}
	return nil
}

func (t *tx) putReservation(name string, r *Reservation) {
	old, _ := t.resvs.Get(name)
	if r == nil {
		dropValue(t, t.resvs, name)
	} else {
		putValue(t, t.resvs, name, r)
	}
	if e := (Event{Resv: cmp.Or(r, old), ResvOver: r == nil}); e.Resv != nil {
		e.Resv = t.withNodes(e.Resv)
		t.events = append(t.events, e)
	}
}

// usedResv notes when a reservation was used last.
func (t *tx) usedResv(j *Job) {
	if j.Alloc == nil {
		return
	}
	if old, ok := t.resvs.Get(j.Alloc.Reservation); ok && old.PurgeAfter > 0 {
		r := *old
		r.UsedAt = t.at
		t.putReservation(r.Name, &r)
	}
}

// withNodes is a reservation that names its nodes, also where they are whichever a partition has.
func (t *tables) withNodes(r *Reservation) *Reservation {
	c := *r
	c.Nodes = t.Reserved(r)
	return &c
}

// ReservationNodes gives a reservation other nodes for some that it has.
type ReservationNodes struct {
	Name string     `json:"name"`
	Drop []NodeName `json:"drop"`
	Add  []NodeName `json:"add"`
}

func (*ReservationNodes) kind() string { return "reservation_nodes" }

func (c *ReservationNodes) apply(t *tx) (any, error) {
	old, ok := t.resvs.Get(c.Name)
	if !ok || !t.by.Operator() || !old.Replaces() {
		return nil, Errorf(Conflict, ErrReservation, "the nodes of reservation %s cannot be replaced", c.Name)
	}
	r := *old
	r.Nodes = slices.DeleteFunc(slices.Clone(old.Nodes), func(n NodeName) bool { return slices.Contains(c.Drop, n) })
	nodes := map[NodeName]bool{}
	for _, name := range c.Add {
		if n, ok := t.nodes.Get(name); !ok || !n.Usable() || slices.Contains(r.Nodes, name) {
			return nil, Errorf(Conflict, ErrNodeName, "reservation %s cannot get node %s now", c.Name, name)
		}
		nodes[name] = true
	}
	if err := t.clashes(&r, nodes); err != nil {
		return nil, err
	}
	for _, n := range r.Nodes {
		nodes[n] = true
	}
	r.Nodes = nil
	for n := range t.Nodes() { // in their order
		if nodes[n.Name] {
			r.Nodes = append(r.Nodes, n.Name)
		}
	}
	t.putReservation(r.Name, &r)
	return nil, nil
}

// Replaces reports whether nodes that fail are replaced by others: those of a reservation that asked for a number
// of them.
func (r *Reservation) Replaces() bool {
	return r.Count > 0 && !r.asksForParts() && r.Flags&(ResvSpecNodes|ResvPartNodes|ResvStatic) == 0
}
