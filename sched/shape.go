package sched

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Jobs of one shape are an equivalence class: they ask for the same, so what does not fit for one of them fits for
// none, and is not tried again in the cycle.

// shapeKey is everything of a job that decides where it fits. All that newDemand reads must be in it: a field that is
// missing makes two different jobs one (TestShapeKeyIsComplete).
type shapeKey struct {
	part        *cluster.Partition
	reservation *reservedNodes // in which the job would run
	numbers     [19]int32
	mem         cluster.Mem
	tmp         int64
	sharing     cluster.Sharing
	overcommit  bool
	sockets     int // bit 0: one socket is filled before the next; bit 1: not said
	constraint  string
	prefer      string
	gres        string // --gres-flags
	hint        string
	lists       string
	user        int64 // UID plus one, where nodes are for one user's jobs; else 0
}

// jobShape is a shape: what its jobs ask for, which they are, and what is known of where that fits.
type jobShape struct {
	demand        *demand
	fit           *classFit
	reservation   *reservedNodes // in which the jobs would run; nil: in none
	why           cluster.Reason // not NoReason: no job of the shape can run at present, whatever is free
	note          string
	nodeFits      []*nodeFit // one for each free set and mask of planned starts that was asked about
	members       []*shapeMember
	asking        cluster.Asking // what one job of the shape counts against limits
	unstable      bool           // some member may start with a shorter limit, or become ready as time goes by
	failed        []uint64       // masks of planned starts beside which it did not fit
	number        int            // index in the book
	checkedIn     int            // the last pass in which invalidations were applied
	invalidations int            // how many of that pass were applied
	reopened      []uint64       // masks taken from failed in that pass
	projection    *projection    // what its planned start rests on; nil: nothing is known
}

// shapeFor finds the shape of a job in a partition, or adds it, and has the job be a member.
func (c *cycle) shapeFor(p *cluster.Partition, j *cluster.Job, own *reservedNodes) *jobShape {
	switches := c.switchesWanted(j)
	key := shapeKeyOf(p, j.Spec, j.Avoid, switches)
	key.reservation = own
	if least, upTo := c.s.NodeBounds(p, j.Spec); least != p.MinNodes || upTo != p.MaxNodes { // the job's QOS replaces the partition's bounds
		key.numbers[len(key.numbers)-2], key.numbers[len(key.numbers)-1] = int32(1+least), int32(1+upTo)
	}
	if c.free.hasOneUserNodes || j.Spec.Sharing == cluster.ShareUser {
		key.user, c.book.perUser = int64(j.Spec.UID)+1, true
	}
	shape, ok := c.book.byKey[key]
	if !ok {
		shape = &jobShape{demand: newDemand(c.s, p, j.Spec, j.Avoid), reservation: own, asking: cluster.Asking{Like: j, Part: p.Name}}
		shape.demand.switches = switches
		shape.fit = newClassFit(shape.demand, c.free)
		if !shape.obviouslyPossible(c.free) && shape.find(c.free, nil, 0, exclusion{}) == nil { // what fits now is possible, no need to ask
			shape.why, shape.note = shape.demand.possible(c.s, c.emptied())
		}
		c.book.byKey[key], shape.number = shape, len(c.book.list)
		c.book.list, c.book.needs, c.book.bounds = append(c.book.list, shape), append(c.book.needs, *shape.fit.neededCapability()), append(c.book.bounds, turnBound{})
	}
	if !c.revisited {
		shape.unstable = shape.unstable || j.Spec.LimitMin != 0 || unstable(j, c.now)
		c.book.members++
		m := &shapeMember{id: j.ID, pass: c.book.pass, nice: j.Spec.Nice, since: waitingSince(j), limit: j.Limit, share: c.current.share}
		if !c.responsive && (c.book.pass > 0 || len(shape.members) == 0) { // in a full pass the first member comes first, so the others' places do not matter
			m.place, _ = c.s.PlaceOf(j.ID)
		}
		c.book.bounds[shape.number].widen(m, len(shape.members) == 0)
		shape.members = append(shape.members, m)
		c.joinGate(shape, j)
	}
	return shape
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

// find is an allocation in a free set that keeps off the planned starts of the mask and what is excluded, or nil.
func (shape *jobShape) find(fs *freeSet, planned []*plannedStart, mask uint64, avoid exclusion) *cluster.Alloc {
	at := slices.IndexFunc(shape.nodeFits, func(nf *nodeFit) bool { return nf.mask == mask && nf.free == fs })
	if at >= 0 {
		shape.nodeFits[at].setExcluded(avoid.cpus)
	}
	if at >= 0 && shape.nodeFits[at].tooSmall() || (at < 0 || len(shape.demand.gpuJob) > 0) && shape.fit.hopeless(fs.classIndex(planned, mask)) {
		return nil
	}
	if at >= 0 {
		return shape.nodeFits[at].find(avoid)
	}
	nf := shape.fit.newNodeFit(fs, planned, mask)
	shape.nodeFits = append(shape.nodeFits, nf)
	return nf.find(avoid)
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

func shapeKeyOf(p *cluster.Partition, s *cluster.JobSpec, avoid []cluster.Avoided, switches int) shapeKey {
	flags := b2i(s.Contiguous) | b2i(s.Spread)<<1 | b2i(s.UseMinNodes)<<2 | b2i(s.ConsolidateSegments)<<3 | b2i(s.SpreadSegments)<<4
	k := shapeKey{part: p, mem: s.Mem, tmp: s.TmpMB, sharing: s.Sharing, overcommit: s.Overcommit, sockets: b2i(fillsSockets(s.Distribution)) | b2i(s.Distribution == "")<<1, constraint: s.Constraint, prefer: s.Prefer, gres: s.GRESFlags, hint: s.Hint,
		numbers: [19]int32{ // Admit bounds them
			int32(s.MinNodes), int32(s.MaxNodes), int32(s.Tasks), int32(s.TasksPerNode), int32(s.TasksPerGPU),
			int32(s.CPUsPerTask), int32(s.CPUsPerGPU), int32(s.MinCPUs), int32(s.SocketsPerNode), int32(s.CoresPerSocket),
			int32(s.ThreadsPerCore), int32(switches), int32(s.Segment), int32(flags), int32(s.TasksPerSocket),
			int32(s.TasksPerCore), specKey(s.Layout)}}
	if len(s.PerNode)+len(s.PerJob)+len(s.PerTask)+len(s.PerSocket)+len(s.NodeList)+len(s.Exclude)+len(avoid) == 0 {
		return k
	}
	var b strings.Builder
	for _, list := range [][]cluster.GRES{s.PerNode, s.PerJob, s.PerTask, s.PerSocket} {
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
	for _, list := range [][]cluster.NodeName{s.NodeList, s.Exclude} {
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
	k.lists = b.String()
	return k
}
