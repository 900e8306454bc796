package explain

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/place"
)

// Bounds of the search for what would start a job sooner: forecasts, twice as many for a heterogeneous job, changes
// told, and other partitions or QOS tried.
const (
	maxTrials  = 64
	maxChanges = 10
	maxOthers  = 4
)

// leastGain is how much sooner a start must be to be told.
const leastGain = time.Minute

// Change is one change of a job that would start it sooner; of a heterogeneous job one of a kind, of as many
// components as need it.
type Change struct {
	Text string // as "with 7 nodes instead of 8"
	Hint string // the command that makes it, where there is one
	sched.Start
}

// improver looks for changes by forecasts of a state in which they were made.
type improver struct {
	s      *cluster.Snapshot
	now    time.Time
	job    *cluster.Job
	base   sched.Start
	trials int
	out    []Change
}

// knob is something that a job, or a component of a heterogeneous one, may have less of.
type knob struct {
	job   *cluster.Job
	kind  string // alike for all components
	have  int
	least int  // that is tried
	step  bool // one less is worth telling
	by    cluster.Identity
	patch func(n int) cluster.Patch
	say   func(n int) (text, hint string) // hint: the words of scontrol update
}

// setting is how much of each of some knobs.
type setting []int

// Changes lists single changes with which a job would start sooner than it will, soonest first. may tells which
// partitions its user may use.
func Changes(s *cluster.Snapshot, now time.Time, id cluster.JobID, may func(*cluster.Partition) bool) []Change {
	j, ok := s.Job(id)
	if !ok || j.Phase != cluster.Pending {
		return nil
	}
	parts := []*cluster.Job{j}
	if j.Het != nil {
		parts = s.Components(j)
	}
	im := &improver{s: s, now: now, job: j, base: sched.ForecastOf(s, now, id), trials: maxTrials * min(len(parts), 2)}
	if !im.base.At.After(now) && !im.base.At.IsZero() || slices.ContainsFunc(parts, im.notReady) {
		return nil // nothing of its size keeps it
	}
	var kinds []string
	knobs := map[string][]knob{}
	for _, o := range parts {
		for _, k := range slices.Concat(reducible(o), droppable(o, parts), im.elsewhere(o, may)) {
			if k.have <= k.least {
				continue
			}
			if knobs[k.kind] == nil {
				kinds = append(kinds, k.kind)
			}
			knobs[k.kind] = append(knobs[k.kind], k)
		}
	}
	for _, kind := range kinds {
		im.tryKind(knobs[kind])
	}
	slices.SortStableFunc(im.out, func(a, b Change) int { return a.At.Compare(b.At) })
	return im.out[:min(len(im.out), maxChanges)]
}

func (im *improver) notReady(j *cluster.Job) bool {
	_, why := im.s.Ready(j, im.now)
	return why != cluster.NoReason && why != cluster.WaitBegin
}

// withSettings is the state in which somebody has changed what a setting says; false if that is refused.
func (im *improver) withSettings(ks []knob, at setting) (*cluster.Snapshot, bool) {
	next := im.s
	for i, k := range ks {
		if at[i] == k.have {
			continue
		}
		ref := cluster.Ref{Job: cmp.Or(k.job.ArrayID, k.job.ID), Tasks: k.job.Tasks}
		if h := k.job.Het; h != nil {
			ref = cluster.Ref{Job: h.ID, Part: h.Offset + 1}
		}
		var err error
		next, _, err = next.Try(im.now, k.by, &cluster.UpdateJob{Ref: ref, Patch: k.patch(at[i])})
		if err != nil {
			return nil, false
		}
	}
	return next, true
}

// startWith is when the job would start with a setting.
func (im *improver) startWith(ks []knob, at setting) sched.Start {
	im.trials--
	if im.trials < 0 {
		return sched.Start{}
	}
	next, ok := im.withSettings(ks, at)
	if !ok {
		return sched.Start{}
	}
	return sched.ForecastOf(next, im.now, im.job.ID)
}

// tryKind looks at knobs of one kind: what helps of each alone, and of all together if that helps more.
func (im *improver) tryKind(ks []knob) {
	if len(ks) > 1 { // else it is tried at once
		ks = slices.DeleteFunc(ks, func(k knob) bool {
			_, ok := im.withSettings([]knob{k}, setting{k.least})
			return !ok
		})
	}
	least := leastOf(ks)
	best := im.startWith(ks, least)
	if !im.gains(&best) {
		return
	}
	var alone sched.Start
	for i := range ks {
		one := ks[i : i+1]
		st := best
		if len(ks) > 1 {
			st = im.startWith(one, leastOf(one))
		}
		if im.gains(&st) {
			im.offerLargest(one, st)
		}
		if st.Sooner(&alone) {
			alone = st
		}
	}
	if best.Sooner(&alone) {
		im.offerTogether(ks, best)
	}
}

// offerLargest offers the largest of a single knob that brings the earliest start that the least would bring, and one
// less than it has if that helps.
func (im *improver) offerLargest(one []knob, best sched.Start) {
	k := one[0]
	n, st := im.largest(one, leastOf(one), 0, best)
	im.offer(one, setting{n}, st)
	if k.step && n < k.have-1 {
		im.offer(one, setting{k.have - 1}, im.startWith(one, setting{k.have - 1}))
	}
}

// offerTogether offers what all of the knobs must be for a start that none of them brings alone.
func (im *improver) offerTogether(ks []knob, best sched.Start) {
	at := leastOf(ks)
	last := best
	for i, k := range ks {
		at[i] = k.have
		if st := im.startWith(ks, at); !best.Sooner(&st) {
			last = st
			continue // it need not change
		}
		at[i], last = im.largest(ks, at, i, best)
	}
	im.offer(ks, at, last)
}

// largest is how much of one knob, less than it has, brings a start no later than the least does, and that start.
func (im *improver) largest(ks []knob, at setting, i int, least sched.Start) (int, sched.Start) {
	low := ks[i].least
	starts := map[int]sched.Start{low: least}
	at = slices.Clone(at)
	n := sort.Search(ks[i].have-low-1, func(m int) bool { // the first that is too much, less what is tried first
		at[i] = m + low + 1
		st := im.startWith(ks, at)
		starts[at[i]] = st
		return least.Sooner(&st)
	}) + low
	return n, starts[n]
}

// leastOf is the least of each knob.
func leastOf(ks []knob) setting {
	at := make(setting, len(ks))
	for i, k := range ks {
		at[i] = k.least
	}
	return at
}

// gains reports whether a start is so much sooner than the job's own that it is worth a change.
func (im *improver) gains(st *sched.Start) bool {
	return st.Sooner(&im.base) && (im.base.At.IsZero() || im.base.At.Sub(st.At) >= leastGain)
}

// offer notes a change if it helps.
func (im *improver) offer(ks []knob, at setting, st sched.Start) {
	if !im.gains(&st) {
		return
	}
	var texts, hints phrases // of components that change alike there is one
	for i, k := range ks {
		if at[i] < k.have {
			text, hint := k.say(at[i])
			texts.add(text, k.job)
			hints.add(hint, k.job)
		}
	}
	im.out = append(im.out, Change{
		texts.join(", ",
			func(text string, of []*cluster.Job) string { return strings.TrimSpace(componentsText(of) + " " + text) }),
		hints.join(" && ", func(words string, of []*cluster.Job) string { return updateHint(of, words) }), st})
}

// phrases are what is said of jobs, once of those of which the same is said.
type phrases struct {
	list []string
	of   map[string][]*cluster.Job
}

func (p *phrases) add(text string, j *cluster.Job) {
	if text == "" {
		return
	}
	if p.of == nil {
		p.of = map[string][]*cluster.Job{}
	}
	if p.of[text] == nil {
		p.list = append(p.list, text)
	}
	p.of[text] = append(p.of[text], j)
}

func (p *phrases) join(by string, say func(string, []*cluster.Job) string) string {
	var out []string
	for _, text := range p.list {
		out = append(out, say(text, p.of[text]))
	}
	return strings.Join(out, by)
}

var system = cluster.Identity{System: true}

// reducible is all that a job may have less of.
func reducible(j *cluster.Job) (out []knob) {
	spec := j.Spec
	sp := fmt.Sprintf
	add := func(kind string, have int, step bool, patch func(int) cluster.Patch, say func(int) (text, hint string)) {
		out = append(out, knob{j, kind, have, 1, step, system, patch, say})
	}
	add("time", int(min(j.Limit, sched.Endless)/time.Minute), false, func(n int) cluster.Patch {
		l := time.Duration(n) * time.Minute
		return cluster.Patch{Limit: &l}
	}, func(n int) (string, string) {
		span := spanText(time.Duration(n) * time.Minute)
		return sp("with %s instead of %s", span, spanText(j.Limit)), sp("timelimit=%d", n)
	})
	add("nodes", spec.MinNodes, true, func(n int) cluster.Patch { return fewerNodes(spec, n) },
		func(n int) (string, string) {
			return sp("with %s instead of %d", place.Count(n, "node", "nodes"), spec.MinNodes), sp("numnodes=%d", n)
		})
	out[len(out)-1].least = mostOf(spec.MinNodes)
	if spec.MinNodes <= 1 {
		add("tasks", spec.Tasks, true, func(n int) cluster.Patch { return cluster.Patch{Tasks: &n} },
			func(n int) (string, string) {
				return sp("with %s instead of %d", place.Count(n, "task", "tasks"), spec.Tasks), ""
			})
	}
	add("CPUs", spec.CPUsPerTask, true, func(n int) cluster.Patch { return cluster.Patch{CPUsPerTask: &n} },
		func(n int) (string, string) {
			return sp("with %s a task instead of %d", place.Count(n, "CPU", "CPUs"), spec.CPUsPerTask), ""
		})
	const parts = 16 // of memory
	if mb := int64(spec.Mem.MB); mb >= parts {
		add("memory", parts, false, func(n int) cluster.Patch {
			return cluster.Patch{Mem: &cluster.Mem{Per: spec.Mem.Per, MB: cluster.MemMB(mb * int64(n) / parts)}}
		}, func(n int) (string, string) {
			return sp("with %d MB of memory instead of %d", mb*int64(n)/parts, mb), ""
		})
	}
	out = append(out, gpus(j, spec.PerNode, "a node",
		func(l []cluster.GRES) cluster.Patch { return cluster.Patch{PerNode: &l} })...)
	return append(out, gpus(j, spec.PerJob, "in all",
		func(l []cluster.GRES) cluster.Patch { return cluster.Patch{PerJob: &l} })...)
}

// gpus are fewer GPUs, and any type of them.
func gpus(j *cluster.Job, list []cluster.GRES, per string, patch func([]cluster.GRES) cluster.Patch) (out []knob) {
	if len(list) != 1 || list[0].Name != "gpu" {
		return nil
	}
	g := list[0]
	have := int(g.Count)
	out = append(out, knob{j, "GPUs " + per, have, mostOf(have), true, system, func(n int) cluster.Patch {
		return patch([]cluster.GRES{{Name: g.Name, Type: g.Type, Count: int64(n)}})
	}, func(n int) (string, string) {
		return fmt.Sprintf("with %s %s instead of %d", place.Count(n, "GPU", "GPUs"), per, g.Count), ""
	}})
	if g.Type != "" {
		out = append(out, condition(j, "type "+per, system, patch([]cluster.GRES{{Name: g.Name, Count: g.Count}}),
			"with any type of GPU instead of "+g.Type, ""))
	}
	return out
}

// mostOf is the least of nodes or GPUs that is offered in place of so many: more than half of them, since a job that is
// made much smaller is another one. Of two it is one.
func mostOf(have int) int { return max(have-max((have-1)/2, 1), 1) }

// condition is a knob that there is only to keep or to change.
func condition(j *cluster.Job, kind string, by cluster.Identity, p cluster.Patch, text, hint string) knob {
	return knob{j, kind, 2, 1, false, by, func(int) cluster.Patch { return p },
		func(int) (string, string) { return text, hint }}
}

// fewerNodes asks for so many nodes, and for as many tasks and GPUs on each as before.
func fewerNodes(spec *cluster.JobSpec, n int) cluster.Patch {
	p := cluster.Patch{MinNodes: &n}
	if spec.MaxNodes > 0 {
		p.MaxNodes = &n
	}
	if per := spec.Tasks / spec.MinNodes; per*spec.MinNodes == spec.Tasks && per > 0 {
		tasks := per * n
		p.Tasks = &tasks
	}
	if list := slices.Clone(spec.PerJob); len(list) == 1 && list[0].Count%int64(spec.MinNodes) == 0 {
		list[0].Count = list[0].Count / int64(spec.MinNodes) * int64(n)
		p.PerJob = &list
	}
	return p
}

// droppable are the conditions of a job, of which each may be left out. A component keeps off the nodes that the
// others name.
func droppable(j *cluster.Job, parts []*cluster.Job) (out []knob) {
	spec := j.Spec
	none := ""
	zero := 0
	add := func(what string, p cluster.Patch, hint string) {
		kind, _, _ := strings.Cut(what, "=")
		out = append(out, condition(j, kind, system, p, "without --"+what, hint))
	}
	if spec.Constraint != "" {
		add("constraint="+spec.Constraint, cluster.Patch{Constraint: &none}, "features=")
	}
	if list := spec.NodeList; len(list) > 0 {
		nodes := max(spec.MinNodes, len(list))
		add("nodelist="+joined(list), cluster.Patch{NodeList: &[]cluster.NodeName{}, MinNodes: &nodes}, "")
	}
	if own, others := excluded(j, parts); len(own) > 0 {
		add("exclude="+joined(own), cluster.Patch{Exclude: &others}, "excnodelist="+joined(others))
	}
	if spec.Sharing == cluster.ShareExclusive || spec.Sharing == cluster.ShareUser {
		share := cluster.ShareDefault
		add("exclusive", cluster.Patch{Sharing: &share}, "")
	}
	for _, flag := range place.Droppable(spec) {
		add(flag.Option, flag.Patch, "")
	}
	if spec.Switches > 0 {
		add("switches", cluster.Patch{Switches: &zero}, "switches=0")
	}
	if spec.Licenses != "" {
		add("licenses="+spec.Licenses, cluster.Patch{Licenses: &none}, "licenses=")
	}
	if spec.Reservation != "" {
		add("reservation="+spec.Reservation, cluster.Patch{Reservation: &none}, "reservationname=")
	}
	return out
}

// excluded are the nodes that a job keeps off, and of these those that other components name.
func excluded(j *cluster.Job, parts []*cluster.Job) (own, others []cluster.NodeName) {
	others = []cluster.NodeName{}
	for _, n := range j.Spec.Exclude {
		if slices.ContainsFunc(parts,
			func(o *cluster.Job) bool { return o != j && slices.Contains(o.Spec.NodeList, n) }) {
			others = append(others, n)
		} else {
			own = append(own, n)
		}
	}
	return own, others
}

// elsewhere are other partitions and QOS that the job's user may use.
func (im *improver) elsewhere(j *cluster.Job, may func(*cluster.Partition) bool) (out []knob) {
	spec := j.Spec
	user := cluster.Identity{UID: spec.UID}
	for i := range im.s.Config().Partitions {
		p := &im.s.Config().Partitions[i]
		if len(out) < maxOthers && !slices.Contains(spec.Partitions, p.Name) && may(p) {
			out = append(out, condition(j, "partition "+p.Name, user, cluster.Patch{Partitions: []string{p.Name}},
				"in partition "+p.Name+" instead of "+strings.Join(spec.Partitions, ","), "partition="+p.Name))
		}
	}
	others := im.s.AllowedQOS(j.Assoc)
	for _, name := range others[:min(len(others), maxOthers)] {
		if name != spec.QOS {
			out = append(out, condition(j, "QOS "+name, user, cluster.Patch{QOS: &name},
				"with QOS "+name+" instead of "+spec.QOS, "qos="+name))
		}
	}
	return out
}

func joined(list []cluster.NodeName) string {
	var names []string
	for _, n := range list {
		names = append(names, string(n))
	}
	return strings.Join(names, ",")
}
