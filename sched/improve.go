package sched

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Bounds of the search for what would start a job sooner: forecasts, changes told, and other partitions or QOS tried.
const (
	maxTrials  = 64
	maxChanges = 10
	maxOthers  = 4
)

// Change is one change of a job that would start it sooner.
type Change struct {
	Text string // as "with 7 nodes instead of 8"
	Hint string // the command that makes it, where there is one
	Start
}

// improver looks for changes by forecasts of a state in which they were made.
type improver struct {
	s    *cluster.Snapshot
	now  time.Time
	job  *cluster.Job
	base Start
	left int
	out  []Change
}

// Changes lists single changes with which a job would start sooner than it will, soonest first. may tells which
// partitions its user may use.
func Changes(s *cluster.Snapshot, now time.Time, id cluster.JobID, may func(*cluster.Partition) bool) []Change {
	j, ok := s.Job(id)
	if !ok || j.Phase != cluster.Pending || j.Het != nil { // its other components would have to start sooner, too
		return nil
	}
	im := &improver{s: s, now: now, job: j, base: forecastOf(s, now, id), left: maxTrials}
	if _, why := s.Ready(j, now); !im.base.At.After(now) && !im.base.At.IsZero() || why != cluster.NoReason && why != cluster.WaitBegin {
		return nil // nothing of its size keeps it
	}
	im.less()
	im.without()
	im.elsewhere(may)
	slices.SortStableFunc(im.out, func(a, b Change) int { return a.At.Compare(b.At) })
	return im.out[:min(len(im.out), maxChanges)]
}

// try is when the job would start if it were changed so by somebody.
func (im *improver) try(by cluster.Identity, p cluster.Patch) Start {
	if im.left--; im.left < 0 {
		return Start{}
	}
	next, _, err := im.s.Try(im.now, by, &cluster.UpdateJob{Ref: cluster.Ref{Job: cmp.Or(im.job.ArrayID, im.job.ID), Tasks: im.job.Tasks}, Patch: p})
	if err != nil {
		return Start{}
	}
	return forecastOf(next, im.now, im.job.ID)
}

// offer notes a change if it helps.
func (im *improver) offer(st Start, text, hint string) {
	if st.sooner(&im.base) {
		if hint != "" {
			hint = fmt.Sprintf("scontrol update jobid=%d %s", im.job.ID, hint)
		}
		im.out = append(im.out, Change{text, hint, st})
	}
}

var system = cluster.Identity{System: true}

// fewer looks for the largest number below one that brings the earliest start that the least would bring, and, with
// step, whether one less helps.
func (im *improver) fewer(have int, step bool, patch func(int) cluster.Patch, say func(int) (text, hint string)) {
	if have <= 1 {
		return
	}
	best := im.try(system, patch(1))
	if !best.sooner(&im.base) {
		return
	}
	starts := map[int]Start{1: best}
	n := sort.Search(have-2, func(i int) bool { // the first that is too much, less two
		st := im.try(system, patch(i+2))
		starts[i+2] = st
		return best.sooner(&st)
	}) + 1
	text, hint := say(n)
	im.offer(starts[n], text, hint)
	if step && n < have-1 {
		text, hint = say(have - 1)
		im.offer(im.try(system, patch(have-1)), text, hint)
	}
}

// less tries less of everything.
func (im *improver) less() {
	spec, sp := im.job.Spec, fmt.Sprintf
	if m := int(min(im.job.Limit, endless) / time.Minute); m > 0 {
		im.fewer(m, false, func(n int) cluster.Patch {
			l := time.Duration(n) * time.Minute
			return cluster.Patch{Limit: &l}
		}, func(n int) (string, string) {
			return sp("with %s instead of %s", spanText(time.Duration(n)*time.Minute), spanText(im.job.Limit)), sp("timelimit=%d", n)
		})
	}
	im.fewer(spec.MinNodes, true, func(n int) cluster.Patch { return fewerNodes(spec, n) }, func(n int) (string, string) {
		return sp("with %s instead of %d", count(n, "node", "nodes"), spec.MinNodes), sp("numnodes=%d", n)
	})
	if spec.MinNodes <= 1 {
		im.fewer(spec.Tasks, true, func(n int) cluster.Patch { return cluster.Patch{Tasks: &n} }, func(n int) (string, string) {
			return sp("with %s instead of %d", count(n, "task", "tasks"), spec.Tasks), ""
		})
	}
	im.fewer(spec.CPUsPerTask, true, func(n int) cluster.Patch { return cluster.Patch{CPUsPerTask: &n} }, func(n int) (string, string) {
		return sp("with %s a task instead of %d", count(n, "CPU", "CPUs"), spec.CPUsPerTask), ""
	})
	const parts = 16 // of memory
	if mb := int64(spec.Mem.MB); mb >= parts {
		im.fewer(parts, false, func(n int) cluster.Patch {
			return cluster.Patch{Mem: &cluster.Mem{Per: spec.Mem.Per, MB: cluster.MemMB(mb * int64(n) / parts)}}
		}, func(n int) (string, string) {
			return sp("with %d MB of memory instead of %d", mb*int64(n)/parts, mb), ""
		})
	}
	im.gpus(spec.PerNode, "a node", func(l []cluster.GRES) cluster.Patch { return cluster.Patch{PerNode: &l} })
	im.gpus(spec.PerJob, "in all", func(l []cluster.GRES) cluster.Patch { return cluster.Patch{PerJob: &l} })
}

// gpus tries fewer GPUs, and any type of them.
func (im *improver) gpus(list []cluster.GRES, per string, patch func([]cluster.GRES) cluster.Patch) {
	if len(list) != 1 || list[0].Name != "gpu" {
		return
	}
	g := list[0]
	im.fewer(int(g.Count), true, func(n int) cluster.Patch {
		return patch([]cluster.GRES{{Name: g.Name, Type: g.Type, Count: int64(n)}})
	}, func(n int) (string, string) {
		return fmt.Sprintf("with %s %s instead of %d", count(n, "GPU", "GPUs"), per, g.Count), ""
	})
	if g.Type != "" {
		im.offer(im.try(system, patch([]cluster.GRES{{Name: g.Name, Count: g.Count}})), "with any type of GPU instead of "+g.Type, "")
	}
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

// without tries to leave out each single condition.
func (im *improver) without() {
	spec := im.job.Spec
	none, zero, no := "", 0, false
	if spec.Constraint != "" {
		im.offer(im.try(system, cluster.Patch{Constraint: &none}), "without --constraint="+spec.Constraint, "features=")
	}
	if list := spec.NodeList; len(list) > 0 {
		nodes := max(spec.MinNodes, len(list))
		im.offer(im.try(system, cluster.Patch{NodeList: &[]cluster.NodeName{}, MinNodes: &nodes}), "without --nodelist="+joined(list), "")
	}
	if list := spec.Exclude; len(list) > 0 {
		im.offer(im.try(system, cluster.Patch{Exclude: &[]cluster.NodeName{}}), "without --exclude="+joined(list), "excnodelist=")
	}
	if spec.Sharing == cluster.ShareExclusive || spec.Sharing == cluster.ShareUser {
		share := cluster.ShareDefault
		im.offer(im.try(system, cluster.Patch{Sharing: &share}), "without --exclusive", "")
	}
	if spec.Contiguous {
		im.offer(im.try(system, cluster.Patch{Contiguous: &no}), "without --contiguous", "")
	}
	if spec.Switches > 0 {
		im.offer(im.try(system, cluster.Patch{Switches: &zero}), "without --switches", "switches=0")
	}
	if spec.Licenses != "" {
		im.offer(im.try(system, cluster.Patch{Licenses: &none}), "without --licenses="+spec.Licenses, "licenses=")
	}
	if spec.Reservation != "" {
		im.offer(im.try(system, cluster.Patch{Reservation: &none}), "without --reservation="+spec.Reservation, "reservationname=")
	}
}

// elsewhere tries other partitions and QOS that the user may use.
func (im *improver) elsewhere(may func(*cluster.Partition) bool) {
	spec := im.job.Spec
	user := cluster.Identity{UID: spec.UID}
	tried := 0
	for i := range im.s.Config().Partitions {
		p := &im.s.Config().Partitions[i]
		if slices.Contains(spec.Partitions, p.Name) || !may(p) || tried >= maxOthers {
			continue
		}
		tried++
		im.offer(im.try(user, cluster.Patch{Partitions: []string{p.Name}}), "in partition "+p.Name+" instead of "+strings.Join(spec.Partitions, ","), "partition="+p.Name)
	}
	others := im.s.AllowedQOS(im.job.Assoc)
	for _, name := range others[:min(len(others), maxOthers)] {
		if name != spec.QOS {
			im.offer(im.try(user, cluster.Patch{QOS: &name}), "with QOS "+name+" instead of "+spec.QOS, "qos="+name)
		}
	}
}

func joined(list []cluster.NodeName) string {
	var names []string
	for _, n := range list {
		names = append(names, string(n))
	}
	return strings.Join(names, ",")
}

// spanText is a time limit in hours and minutes.
func spanText(d time.Duration) string {
	h, m := int(d/time.Hour), int(d%time.Hour/time.Minute)
	switch {
	case d >= endless:
		return "unlimited time"
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}
