package samples

import (
	"cmp"
	"fmt"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// Signs that a job makes no progress, as far as that can be seen from outside.

// Thresholds of the signs.
const (
	quietCPU    = 0.1  // cores
	quietWrites = 1    // kB/s
	quietLink   = 1000 // kB/s between GPUs, or to and from them
	spinUtil    = 90   // percent
	spinPower   = 0.5  // of the most that the job's GPUs have drawn: kernels that wait draw less than others
)

// StepFactor is how many times the usual time between two reports of progress a job may be late.
const StepFactor = 5

// stepLeast is how late a job is at least that hangs by its steps: short pauses of a file system are no hangs.
const stepLeast = 3 * time.Minute

// signs are since when jobs show which sign on which nodes.
type signs map[cluster.JobID]*jobSigns

type jobSigns struct {
	nodes    map[cluster.NodeName]*nodeSigns
	progress *api.Progress // the furthest; nil: it reports none
}

// nodeSigns is a job on a node.
type nodeSigns struct {
	at    time.Time // until when is known
	span  time.Duration
	quiet time.Time // since when nothing happens; zero: something does
	spin  time.Time // since when its GPUs are busy with little power, and nothing is written; zero: they are not
	gpus  bool      // its GPUs were measured
	power float64   // the most that its GPUs have drawn together, W
}

// patience is for how long nothing may be heard of the node.
func (n *nodeSigns) patience() time.Duration { return max(idleGap*n.span, idleLeast) }

// of returns what is known of a job.
func (l signs) of(id cluster.JobID) *jobSigns {
	on := l[id]
	if on == nil {
		on = &jobSigns{nodes: map[cluster.NodeName]*nodeSigns{}}
		l[id] = on
	}
	return on
}

// prune forgets jobs that are over.
func (l signs) prune(snap *cluster.Snapshot) {
	for id := range l {
		j, ok := snap.Job(id)
		if !ok && id >= snap.NextID {
			continue // this server will hear of it
		}
		if !ok || j.Alloc == nil || j.Phase == cluster.Ended {
			delete(l, id)
		}
	}
}

// hear keeps the furthest that a job says it has come.
func (on *jobSigns) hear(p *api.Progress) {
	if p != nil && p.At >= cmp.Or(on.progress, &api.Progress{}).At {
		on.progress = p
	}
}

// node returns what is known of a node, if that reaches to the time at which a sample begins.
func (on *jobSigns) node(name cluster.NodeName, from time.Time) *nodeSigns {
	n := cmp.Or(on.nodes[name], &nodeSigns{})
	if from.Sub(n.at) > n.patience() {
		n = &nodeSigns{}
	}
	on.nodes[name] = n
	return n
}

// note takes in what a job did on a node in a time.
func (l signs) note(one *api.JobSample, node cluster.NodeName, s *telemetry.Sample, from, to time.Time) {
	on := l.of(one.Job)
	on.hear(one.Progress)
	n := on.node(node, from)
	n.at, n.span = to, to.Sub(from)
	g := lookAt(s)
	n.gpus = g.measured
	n.power = max(n.power, g.power)
	still := s.Own[telemetry.JobWritten] < quietWrites && s.Own[telemetry.JobTraced] <= 0 // a debugger is no hang
	rests := s.Own[telemetry.JobCPU] < quietCPU
	since(&n.quiet, still && g.idle && rests, from)
	since(&n.spin, still && g.waits(n.power), from)
}

// gpusSeen is what the GPUs of a job did in a sample.
type gpusSeen struct {
	measured bool
	idle     bool    // none did anything
	busy     bool    // all did, without any transfer
	power    float64 // together, W
}

// waits reports whether kernels wait: all GPUs are busy, but with less power than they have drawn before.
func (g *gpusSeen) waits(most float64) bool {
	return g.busy &&
		g.power > 0 &&
		g.power < spinPower*most
}

// lookAt looks at the GPUs of a sample.
func lookAt(s *telemetry.Sample) gpusSeen {
	g := gpusSeen{
		measured: len(s.GPUs) > 0,
		idle:     true,
		busy:     len(s.GPUs) > 0,
	}
	for i := range s.GPUs {
		v := s.GPUs[i].Values
		util := v[telemetry.GPUUtil]
		g.power += max(v[telemetry.GPUPower], 0)
		if util < 0 || util >= cluster.IdleGPUPercent { // below 0: not known
			g.idle = false
		}
		if util < spinUtil || moves(v) {
			g.busy = false
		}
	}
	return g
}

// moves reports whether a GPU sends or receives more than what waiting kernels do.
func moves(v []float64) bool {
	most := max(
		v[telemetry.GPULinkIn],
		v[telemetry.GPULinkOut],
		v[telemetry.GPUBusIn],
		v[telemetry.GPUBusOut],
	)
	return most >= quietLink
}

// since keeps when a sign began, while it is there.
func since(at *time.Time, is bool, from time.Time) {
	switch {
	case !is:
		*at = time.Time{}
	case at.IsZero():
		*at = from
	}
}

// shows reports whether a node is known to show a sign now, for what a job has there.
func (n *nodeSigns) shows(sh *cluster.Share, now time.Time) bool {
	known := now.Sub(n.at) <= n.patience()
	measured := n.gpus ||
		sh.GPUs.Empty()
	shown := cmp.Or(n.quiet, n.spin)
	return known &&
		measured &&
		!shown.IsZero()
}

// pause is that a job shows a sign on all its nodes.
type pause struct {
	since  time.Time
	spin   bool               // on some of them its GPUs wait
	behind []cluster.NodeName // where it does nothing while they do
}

// still finds since when a job shows a sign on all its nodes; nil: something happens on one, or nothing is known of it.
func (on *jobSigns) still(j *cluster.Job, now time.Time) *pause {
	p := &pause{since: j.Started}
	for i := range j.Alloc.Shares {
		name := j.Alloc.Shares[i].Node
		n := cmp.Or(on.nodes[name], &nodeSigns{})
		if !n.shows(&j.Alloc.Shares[i], now) {
			return nil
		}
		began := cmp.Or(n.quiet, n.spin)
		if began.After(p.since) {
			p.since = began
		}
		if n.quiet.IsZero() {
			p.spin = true
		} else {
			p.behind = append(p.behind, name)
		}
	}
	return p
}

// kind is what a pause shows by itself.
func (p *pause) kind() cluster.HangKind {
	if p.spin {
		return cluster.HangSpin
	}
	return cluster.HangQuiet
}

// text words a pause.
func (p *pause) text(lasts time.Duration) string {
	if !p.spin {
		return fmt.Sprintf("its CPUs and GPUs have done nothing, and nothing was written, for %v", lasts)
	}
	text := fmt.Sprintf("its GPUs have waited at little power, and nothing was written, for %v", lasts)
	if p.behind != nil {
		text += fmt.Sprintf("; %s does nothing while the other nodes wait", joined(p.behind))
	}
	return text
}

// Hung is a job that makes no progress, and what shows it.
type Hung struct {
	Job  *cluster.Job
	Kind cluster.HangKind
	Text string
}

// find says whether a job hangs.
func (on *jobSigns) find(j *cluster.Job, after time.Duration, now time.Time) (out Hung, ok bool) {
	p := on.still(j, now)
	if p == nil {
		return out, false
	}
	lasts := now.Sub(p.since).Round(time.Second)
	out = Hung{
		Job:  j,
		Kind: p.kind(),
		Text: p.text(lasts),
	}
	if late := on.late(j, now); late != "" && lasts >= stepLeast-time.Minute {
		out.Kind = cluster.HangStep
		out.Text = late + "; " + out.Text
		return out, true
	}
	return out, lasts >= after && hasGPUs(j)
}

// late says that a job is later with its next report than it usually is; "" if it is not.
func (on *jobSigns) late(j *cluster.Job, now time.Time) string {
	p := cmp.Or(on.progress, &api.Progress{})
	if p.Pace <= 0 || p.At < j.Started.Unix() {
		return ""
	}
	told := time.Unix(p.At, 0)
	gone := now.Sub(told).Round(time.Second)
	usual := time.Duration(p.Pace * float64(time.Second))
	if gone < max(StepFactor*usual, stepLeast) {
		return ""
	}
	return fmt.Sprintf("it has reported no step for %v, since step %d; it usually reports one every %v",
		gone,
		p.Step,
		usual.Round(time.Millisecond))
}

// hasGPUs reports whether a job has any.
func hasGPUs(j *cluster.Job) bool {
	for i := range j.Alloc.Shares {
		sh := &j.Alloc.Shares[i]
		if !sh.GPUs.Empty() || sh.Part != nil {
			return true
		}
	}
	return false
}

// found is the job, if it hangs by the rule that counts for it.
func (on *jobSigns) found(snap *cluster.Snapshot, j *cluster.Job, now time.Time) []Hung {
	rule := cluster.HangRuleOf(snap, j)
	if one, hangs := on.find(j, rule.After, now); hangs && rule.Action != cluster.HangOff {
		return []Hung{one}
	}
	return nil
}
