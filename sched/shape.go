package sched

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// shape is everything of a job that decides where it fits: equal shapes are one question.
type shape struct {
	part       *cluster.Partition
	own        *keptNodes // the reservation that it would run in
	numbers    [19]int32
	mem        cluster.Mem
	tmp        int64
	sharing    cluster.Sharing
	overcommit bool
	sockets    int // whether to fill one socket before the next: said so, or not said
	constraint string
	prefer     string
	gres       string // --gres-flags
	hint       string
	lists      string
	user       int64 // where nodes are for one user's jobs
}

// question is what jobs of one shape ask, and what this cycle has found out about it.
type question struct {
	want    *demand
	gauge   *gauge
	own     *keptNodes     // the reservation that it is about
	why     cluster.Reason // if it can not run at all now
	note    string
	views   []*view // what the nodes can give, beside each set of reservations that was asked about
	jobs    []*member
	asks    cluster.Asking // what each of them comes to
	fickle  bool           // one of them may start with another limit, or become ready by itself
	failed  []uint64       // sets of reservations to stay off with which it did not fit
	number  int            // among those posed
	opened  int            // the last round in which it was looked into
	doubts  int            // of that round that were
	lost    []uint64       // the sets with which it may fit since then
	outlook *outlook       // what its planned start rests on
}

// ask finds the question of a job, or makes it.
func (c *cycle) ask(p *cluster.Partition, j *cluster.Job, own *keptNodes) *question {
	switches := c.switches(j)
	key := shapeOf(p, j.Spec, j.Avoid, switches)
	key.own = own
	if least, upTo := c.s.NodeBounds(p, j.Spec); least != p.MinNodes || upTo != p.MaxNodes { // its QOS lifts them
		key.numbers[len(key.numbers)-2], key.numbers[len(key.numbers)-1] = int32(1+least), int32(1+upTo)
	}
	if c.free.closed || j.Spec.Sharing == cluster.ShareUser {
		key.user, c.users = int64(j.Spec.UID)+1, true
	}
	q, ok := c.asked[key]
	if !ok {
		q = &question{want: newDemand(c.s, p, j.Spec, j.Avoid), own: own, asks: cluster.Asking{Like: j, Part: p.Name}}
		q.want.switches = switches
		q.gauge = newGauge(q.want, c.free)
		if !q.plainly(c.free) && q.find(c.free, nil, 0, off{}) == nil { // what fits now is possible
			q.why, q.note = q.want.possible(c.s, c.idle())
		}
		c.asked[key], q.number = q, len(c.posed)
		c.posed, c.least, c.bounds = append(c.posed, q), append(c.least, *q.gauge.needs()), append(c.bounds, bound{})
	}
	if !c.known {
		q.fickle = q.fickle || j.Spec.LimitMin != 0 || fickle(j, c.now)
		c.members++
		m := &member{id: j.ID, round: c.rounds, nice: j.Spec.Nice, since: waitsSince(j), limit: j.Limit, share: c.turn.share}
		if !c.responsive && (c.rounds > 0 || len(q.jobs) == 0) { // the others of a full pass come behind
			m.place, _ = c.s.PlaceOf(j.ID)
		}
		c.bounds[q.number].add(m, len(q.jobs) == 0)
		q.jobs = append(q.jobs, m)
		c.heldTo(q, j)
	}
	return q
}

// licensed reports whether there are licenses for the job beside those in use and given in this cycle.
func (c *cycle) licensed(j *cluster.Job) bool {
	if c.used == nil {
		c.used = c.s.LicensesUsed()
	}
	return c.s.LicensesFree(j, c.now, c.used)
}

// license counts what a job that starts holds from now on.
func (c *cycle) license(j *cluster.Job) {
	if j.Spec.Licenses == "" {
		return
	}
	list, _ := cluster.ParseLicenses(j.Spec.Licenses)
	for _, l := range list {
		c.used[l.Name] += l.Total
	}
}

// maxSwitchWait is the longest wait for --switches where nothing else is configured, as in Slurm.
const maxSwitchWait = 300 * time.Second

// switches is the most leaf switches that a job holds out for at present; 0: it does not, or not any more.
func (c *cycle) switches(j *cluster.Job) int {
	if j.Spec.Switches == 0 {
		return 0
	}
	longest := cmp.Or(c.s.Config().MaxSwitchWait, maxSwitchWait)
	if wait := min(cmp.Or(j.Spec.SwitchWait, longest), longest); c.now.Sub(j.Eligible) >= wait {
		return 0
	}
	return j.Spec.Switches
}

// find is an allocation that fits now beside the reservations of the mask and keeps off what it must, or nil.
func (q *question) find(p *pool, heads []*reservation, mask uint64, avoid off) *cluster.Alloc {
	at := slices.IndexFunc(q.views, func(v *view) bool { return v.mask == mask && v.p == p })
	if at >= 0 {
		q.views[at].bar(avoid.cpus)
	}
	if at >= 0 && q.views[at].short() || (at < 0 || len(q.want.gpuJob) > 0) && q.gauge.hopeless(p.scene(heads, mask)) {
		return nil
	}
	if at >= 0 {
		return q.views[at].find(avoid)
	}
	v := q.gauge.view(p, heads, mask)
	q.views = append(q.views, v)
	return v.find(avoid)
}

// fail notes that it does not fit beside these reservations.
func (q *question) fail(mask uint64) bool {
	q.failed = append(q.failed, mask)
	return true
}

// leaves tells apart what jobs leave of their nodes for the system: cores above 0, threads below, 0 for what the nodes keep.
func leaves(l *cluster.Layout) int32 {
	switch {
	case l.ThreadSpec != nil:
		return -1 - int32(*l.ThreadSpec)
	case l.CoreSpec != nil:
		return 1 + int32(*l.CoreSpec)
	}
	return 0
}

func shapeOf(p *cluster.Partition, s *cluster.JobSpec, avoid []cluster.Avoided, switches int) shape {
	flags := b2i(s.Contiguous) | b2i(s.Spread)<<1 | b2i(s.UseMinNodes)<<2 | b2i(s.ConsolidateSegments)<<3 | b2i(s.SpreadSegments)<<4
	k := shape{part: p, mem: s.Mem, tmp: s.TmpMB, sharing: s.Sharing, overcommit: s.Overcommit, sockets: b2i(inBlocks(s.Distribution)) | b2i(s.Distribution == "")<<1, constraint: s.Constraint, prefer: s.Prefer, gres: s.GRESFlags, hint: s.Hint,
		numbers: [19]int32{ // Admit bounds them
			int32(s.MinNodes), int32(s.MaxNodes), int32(s.Tasks), int32(s.TasksPerNode), int32(s.TasksPerGPU),
			int32(s.CPUsPerTask), int32(s.CPUsPerGPU), int32(s.MinCPUs), int32(s.SocketsPerNode), int32(s.CoresPerSocket),
			int32(s.ThreadsPerCore), int32(switches), int32(s.Segment), int32(flags), int32(s.TasksPerSocket),
			int32(s.TasksPerCore), leaves(s.Layout)}}
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
