package sched

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Jobs of one shape are an equivalence class: they ask for the same, so what does not fit for one of them fits for
// none, and is not tried again in the cycle.

// shapeKey is everything of a job that decides where it fits. All that place.NewDemand reads must be in it: a field
// that is missing makes two different jobs one (TestShapeKeyIsComplete).
type shapeKey struct {
	part        *cluster.Partition
	reservation *reservedNodes // in which the job would run

	numbers          place.Numbers
	flags            place.Flags
	switches         int32
	forSystem        int32 // see specKey
	partMin, partMax int32 // plus one, where accounts or QOS replace the partition's bounds; else 0

	mem        cluster.Mem
	sharing    cluster.Sharing
	constraint string
	prefer     string
	gresFlags  string
	hint       string
	lists      string // of GRES and nodes, see keyLists
	user       int64  // UID plus one, where nodes are for one user's jobs; else 0
}

// jobShape is a shape: what its jobs ask for, which they are, and what is known of where that fits.
type jobShape struct {
	part          *cluster.Partition
	demand        *place.Demand
	fit           *place.Fit
	reservation   *reservedNodes // in which the jobs would run; nil: in none
	why           cluster.Reason // not NoReason: no job of the shape can run at present, whatever is free
	note          string
	members       []*shapeMember
	asking        cluster.Asking    // what one job of the shape counts against limits
	unstable      bool              // some member may start with a shorter limit, or become ready as time goes by
	failed        []uint64          // masks of planned starts beside which it did not fit
	number        int               // index in the book
	checkedIn     int               // the last pass in which invalidations were applied
	invalidations int               // how many of that pass were applied
	reopened      []uint64          // masks taken from failed in that pass
	projection    *place.Projection // what its planned start rests on; nil: nothing is known
}

// shapeFor finds the shape of a job in a partition, or adds it, and has the job be a member.
func (c *cycle) shapeFor(p *cluster.Partition, j *cluster.Job, own *reservedNodes) *jobShape {
	key := shapeKeyOf(p, j.Spec, j.Avoid, c.switchesWanted(j))
	key.reservation = own
	limit := nodeLimit(c.meter, p, j)
	if least, most := boundsOf(c.s, p, j, limit); least != p.MinNodes || most != p.MaxNodes {
		key.partMin = int32(1 + least)
		key.partMax = int32(1 + most)
	}
	if c.free.HasOneUserNodes || j.Spec.Sharing == cluster.ShareUser {
		key.user = int64(j.Spec.UID) + 1
		c.book.perUser = true
	}
	shape, ok := c.book.byKey[key]
	if !ok {
		shape = c.newShape(p, j, own, limit)
		c.book.add(key, shape)
	}
	if !c.revisited {
		c.joinShape(shape, j)
	}
	return shape
}

// boundsOf returns how many nodes a job may have in a partition at least and at most, where limits allow so many; 0:
// any.
func boundsOf(s *cluster.Snapshot, p *cluster.Partition, j *cluster.Job, limit int) (least, most int) {
	least, most = s.NodeBounds(p, j.Spec)
	if limit > 0 && (most == 0 || limit < most) {
		most = limit
	}
	return least, most
}

// limitNodes bounds what a job demands by what limits allow (0: any number). A job that needs more keeps its demand:
// it waits for the limit, which is then its reason.
func limitNodes(d *place.Demand, limit int) {
	if limit >= d.MinNodes && (d.PartMax == 0 || limit < d.PartMax) {
		d.PartMax = limit
	}
}

// nodeLimit returns the most nodes that limits allow a job in a partition; 0 where they allow all that it may get.
func nodeLimit(m *cluster.Meter, p *cluster.Partition, j *cluster.Job) int {
	s := j.Spec
	onOne := s.MaxNodes == 0 && s.Tasks <= 1 && len(s.PerJob) == 0
	if m.Off() || onOne {
		return 0
	}
	most := m.Gate(j, p.Name).MostNodes()
	if s.MaxNodes > 0 && s.MaxNodes <= most {
		return 0
	}
	return most
}

// newShape is the shape of a job to which limits allow so many nodes (0: any), and whether such jobs can run at all.
func (c *cycle) newShape(p *cluster.Partition, j *cluster.Job, own *reservedNodes, limit int) *jobShape {
	d := place.NewDemand(c.s, p, j.Spec, j.Avoid)
	limitNodes(d, limit)
	d.Switches = c.switchesWanted(j)
	shape := &jobShape{
		part: p, demand: d, fit: place.NewFit(d, c.free), reservation: own,
		asking: cluster.Asking{Like: j, Part: p.Name},
	}
	fitsNow := shape.fit.ObviouslyPossible(c.free) || shape.fit.Find(c.free, nil, 0, place.Exclusion{}) != nil
	if !fitsNow { // else there is no need to ask
		shape.why, shape.note = d.Possible(c.s, c.emptied())
	}
	if own != nil && !own.AllowsPartition(p.Name) {
		shape.why = cluster.WaitReservation
		return shape
	}
	if shape.why != cluster.NoReason && limit > 0 { // it may be the limit that makes it impossible: then that is told
		return c.newShape(p, j, own, 0)
	}
	return shape
}

// add puts a shape into the book.
func (b *shapeBook) add(key shapeKey, shape *jobShape) {
	shape.number = len(b.list)
	b.byKey[key] = shape
	b.list = append(b.list, shape)
	b.needs = append(b.needs, shape.fit.NeededCapability())
	b.bounds = append(b.bounds, turnBound{})
}

// joinShape has a job be a member of a shape.
func (c *cycle) joinShape(shape *jobShape, j *cluster.Job) {
	m := &shapeMember{
		id: j.ID, pass: c.book.pass, nice: j.Spec.Nice, since: waitingSince(j), limit: j.Limit, share: c.current.share,
	}
	first := len(shape.members) == 0
	if !c.responsive && (first || c.book.pass > 0) { // in a full pass the others come behind the first
		m.place, _ = c.s.PlaceOf(j.ID)
	}
	shape.unstable = shape.unstable || j.Spec.LimitMin != 0 || unstable(j, c.now)
	shape.members = append(shape.members, m)
	c.book.members++
	c.book.bounds[shape.number].widen(m, first)
	c.joinGate(shape, j)
}

// licensesFree reports whether there are licenses for the job beside those in use and given in this cycle.
func (c *cycle) licensesFree(j *cluster.Job) bool {
	if c.licenses == nil {
		c.licenses = c.s.LicensesUsed()
	}
	return c.s.LicensesFree(j, c.now, c.licenses)
}

// takeLicenses counts what a job that starts holds from now on.
func (c *cycle) takeLicenses(j *cluster.Job) {
	if j.Spec.Licenses == "" {
		return
	}
	list, _ := cluster.ParseLicenses(j.Spec.Licenses)
	for _, l := range list {
		c.licenses[l.Name] += l.Total
	}
}

// maxSwitchWait is the longest wait for --switches where nothing else is configured, as in Slurm.
const maxSwitchWait = 300 * time.Second

// switchesWanted is the most leaf switches that a job holds out for at present; 0: it does not, or not any more.
func (c *cycle) switchesWanted(j *cluster.Job) int {
	if j.Spec.Switches == 0 {
		return 0
	}
	longest := cmp.Or(c.s.Config().MaxSwitchWait, maxSwitchWait)
	if wait := min(cmp.Or(j.Spec.SwitchWait, longest), longest); c.now.Sub(j.Eligible) >= wait {
		return 0
	}
	return j.Spec.Switches
}

// noteFailure remembers that the shape does not fit beside these planned starts.
func (shape *jobShape) noteFailure(mask uint64) { shape.failed = append(shape.failed, mask) }

// specKey is what a job leaves of its nodes for the system (-S): cores above 0, threads below 0; 0: what the nodes say.
func specKey(l *cluster.Layout) int32 {
	switch {
	case l.ThreadSpec != nil:
		return -1 - int32(*l.ThreadSpec)
	case l.CoreSpec != nil:
		return 1 + int32(*l.CoreSpec)
	}
	return 0
}

// shapeKeyOf is the key of a spec in a partition, but for what depends on the cycle.
func shapeKeyOf(p *cluster.Partition, s *cluster.JobSpec, avoid []cluster.Avoided, switches int) shapeKey {
	return shapeKey{
		part: p, mem: s.Mem, sharing: s.Sharing,
		constraint: s.Constraint, prefer: s.Prefer, gresFlags: s.GRESFlags, hint: s.Hint,
		numbers: place.NumbersOf(s), flags: place.FlagsOf(s), switches: int32(switches),
		forSystem: specKey(s.Layout), lists: keyLists(s, avoid),
	}
}

// keyLists is the lists of a spec as one text; empty if they all are.
func keyLists(s *cluster.JobSpec, avoid []cluster.Avoided) string {
	if len(s.PerNode)+len(s.PerJob)+len(s.PerTask)+len(s.PerSocket)+len(s.NodeList)+len(s.Exclude)+len(avoid) == 0 {
		return ""
	}
	var b strings.Builder
	for _, list := range [...][]cluster.GRES{s.PerNode, s.PerJob, s.PerTask, s.PerSocket} {
		for _, g := range list {
			b.WriteString(g.Name)
			b.WriteByte(':')
			b.WriteString(g.Type)
			b.WriteByte(':')
			b.WriteString(strconv.FormatInt(g.Count, 10))
			b.WriteByte(',')
		}
		b.WriteByte(';')
	}
	for _, list := range [...][]cluster.NodeName{s.NodeList, s.Exclude} {
		for _, n := range list {
			b.WriteString(string(n))
			b.WriteByte(',')
		}
		b.WriteByte(';')
	}
	for _, a := range avoid {
		b.WriteString(string(a.Node))
		b.WriteByte(',')
	}
	return b.String()
}

// shapeMember is a job of a shape, with what gives it its turn.
type shapeMember struct {
	id      cluster.JobID
	pass    int // in which it joined; void if its record has changed later
	nice    int
	since   time.Time // when it began to wait
	limit   time.Duration
	share   float64        // in the responsive order
	place   cluster.Place  // in the queue; zero until it is asked for
	limited cluster.Reason // why limits keep it from starting, when that was last compared
}

// turnBound is a turn that is not after that of any member of a shape.
type turnBound struct {
	nice  int
	since time.Time
	limit time.Duration
	share float64
	place cluster.Place // in the strict order
}

// widen has it cover one more member; only: no other one.
func (b *turnBound) widen(m *shapeMember, only bool) {
	if only {
		*b = turnBound{m.nice, m.since, m.limit, m.share, m.place}
		return
	}
	b.nice = min(b.nice, m.nice)
	b.limit = min(b.limit, m.limit)
	b.share = max(b.share, m.share)
	if m.since.Before(b.since) {
		b.since = m.since
	}
	if m.place != (cluster.Place{}) && m.place.Before(b.place) {
		b.place = m.place
	}
}
