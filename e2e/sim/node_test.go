package sim

import (
	"fmt"
	"time"

	"dev.muster/agent/client"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

const (
	timeout = 30 * time.Second // of leases
	hold    = 20 * time.Second // how long a call for work stays open
	redial  = 2 * time.Second  // then a call that failed is made again, at most
)

// node is a client machine: the real rules over steps that are durations.
type node struct {
	w    *world
	name cluster.NodeName
	inv  cluster.Inventory
	cut  bool   // from the network
	off  bool   // rebooting
	life int    // counts reboots: what was begun in an earlier life does not happen
	call int    // counts calls for work: only the last one is open
	work uint64 // index of the last entry that changed what it should do
	// trouble is when it was last cut or off.
	trouble time.Time

	desk    *client.Simulated
	have    map[step.ID]*step.Status
	outbox  []cluster.Report // on disk
	seq     uint64           // on disk
	sending bool
	look    time.Time // when to reconcile next, zero if only on news
}

func newNode(w *world, i int) *node {
	inv := cluster.Inventory{Sockets: 2, CoresPerSocket: 16, ThreadsPerCore: 1 + i%2, MemMB: 128000}
	inv.CPUs = 32 * inv.ThreadsPerCore
	for g := range 4 * (i % 2) {
		inv.GPUs = append(inv.GPUs, cluster.GPU{
			Index: g, Type: []string{"a100", "h100"}[i/2%2], Cores: cluster.RangeIDSet(g/2*16, g/2*16+15),
		})
	}
	n := &node{w: w, name: cluster.NodeName(fmt.Sprintf("n%05d", i)), inv: inv}
	n.boot()
	return n
}

func (n *node) boot() {
	n.life++
	n.have, n.sending, n.off, n.look = map[step.ID]*step.Status{}, false, false, time.Time{}
	n.desk = client.NewSimulated(n.name, n.outbox)
}

func (n *node) reboot(last time.Duration) {
	n.off, n.have = true, map[step.ID]*step.Status{}
	n.life++
	n.call++
	life := n.life
	n.w.after(last, func() {
		if n.life == life {
			n.boot()
			n.trouble = n.w.now
			n.hungUp()
			n.flush()
		}
	})
}

// later does something unless the machine was rebooted meanwhile.
func (n *node) later(d time.Duration, do func()) {
	life := n.life
	n.w.after(d, func() {
		if n.life == life {
			do()
		}
	})
}

// beat makes the call for work that every client keeps open: again when it is over, and soon if it failed.
func (n *node) beat() {
	w := n.w
	n.call++
	call, known := n.call, n.desk.Index()
	if n.off || !w.send(n, func() {
		if n.call == call && !n.off {
			n.called(known)
		}
	}) {
		n.hungUp()
		return
	}
	w.after(hold+time.Duration(w.rng.IntN(1000))*time.Millisecond, func() {
		if n.call == call {
			n.beat()
		}
	})
}

// hungUp makes a call again that has failed.
func (n *node) hungUp() {
	n.call++
	call := n.call
	n.w.after(time.Duration(n.w.rng.Int64N(int64(redial))), func() {
		if n.call == call {
			n.beat()
		}
	})
}

// called is its call at the leader, which answers at once if its work is not what it knows.
func (n *node) called(known uint64) {
	w := n.w
	if w.leads < 0 {
		n.hungUp()
		return
	}
	over := w.heartbeats.Open([]cluster.NodeName{n.name}, hold, w.now)
	w.after(hold, func() { over(w.now) })
	if old, ok := w.s.Node(n.name); ok && old.Up {
		if known < max(n.work, 1) {
			w.offer(n)
		}
		return
	}
	seq := n.seq
	for _, r := range n.outbox {
		seq = min(seq, r.Seq-1)
	}
	w.propose(cluster.Identity{Node: n.name, System: true}, func(out []cluster.Applied) {
		if out == nil {
			n.hungUp()
			return
		}
		w.offer(n)
	}, &cluster.NodeUp{Name: n.name, Inventory: n.inv, Seq: seq})
}

// offer sends a node its whole work.
func (w *world) offer(n *node) {
	if w.leads < 0 {
		return
	}
	nw := api.NodeWork{Node: n.name, Index: uint64(w.servers[w.leads].at)}
	for _, id := range w.s.Load(n.name).Jobs {
		if j, ok := w.s.Job(id); ok {
			nw.Jobs = append(nw.Jobs, j.On(n.name))
		}
	}
	if old, ok := w.s.Node(n.name); !ok || !old.Up {
		return
	}
	life := n.life
	w.send(n, func() {
		if n.life == life && !n.off {
			n.desk.Take(nw)
			n.pass()
		}
	})
}

// pass reconciles until nothing more is to be done.
func (n *node) pass() {
	w := n.w
	if n.off || n.desk.Index() == 0 {
		return
	}
	actions, again := n.desk.Reconcile(n.have, w.s.Config(), w.now)
	for _, a := range actions {
		switch a.Do {
		case client.Tell:
			n.report(a.Updates)
		case client.Launch:
			n.launch(a.Job)
		case client.Term:
			if w.rng.IntN(10) > 0 { // some do not listen
				n.endSteps(a.Job.ID, a.Job.Attempt, time.Duration(w.rng.IntN(2000))*time.Millisecond)
			}
		case client.Kill:
			n.endSteps(a.Job.ID, a.Job.Attempt, 100*time.Millisecond)
		case client.Stray:
			delete(n.have, a.Step)
		}
	}
	if !again.IsZero() && (n.look.IsZero() || again.Before(n.look) || !n.look.After(w.now)) {
		n.look = again
		n.later(max(again.Sub(w.now), time.Millisecond), func() { n.look = time.Time{}; n.pass() })
	}
}

// launch starts a job's script.
func (n *node) launch(j *cluster.Job) {
	w := n.w
	id := step.ID{Job: j.ID, Attempt: j.Attempt, Step: cluster.BatchStep, Node: n.name}
	key := run{j.ID, j.Attempt}
	if w.runs[key]++; w.runs[key] > 1 {
		w.fail("attempt %d of job %d was begun twice, now on %s", j.Attempt, j.ID, n.name)
	}
	n.have[id] = &step.Status{ID: id, State: step.Running}
	n.report([]cluster.Update{{Kind: cluster.NodeReady, Job: j.ID, Attempt: j.Attempt, At: w.now}})
	length, err := time.ParseDuration(j.Spec.Comment)
	if err != nil {
		w.fail("length of job %d: %v", j.ID, err)
	}
	n.later(length, func() { n.endStep(id) })
}

func (n *node) endSteps(job cluster.JobID, attempt int, d time.Duration) {
	id := step.ID{Job: job, Attempt: attempt, Step: cluster.BatchStep, Node: n.name}
	if n.have[id] != nil {
		n.later(d, func() { n.endStep(id) })
	}
}

func (n *node) endStep(id step.ID) {
	if st := n.have[id]; st != nil && st.State != step.Ended {
		n.have[id] = &step.Status{ID: id, State: step.Ended}
		n.pass()
	}
}

func (n *node) has(j *cluster.Job) bool {
	return n.have[step.ID{Job: j.ID, Attempt: j.Attempt, Step: cluster.BatchStep, Node: n.name}] != nil
}

// report puts news in the outbox, which keeps them over reboots.
func (n *node) report(us []cluster.Update) {
	for i := range us {
		if us[i].Kind == cluster.BatchOver && n.w.rng.IntN(10) == 0 {
			us[i].Exit.Code = 1
		}
	}
	n.seq++
	r := cluster.Report{Node: n.name, Seq: n.seq, Updates: us}
	n.outbox = append(n.outbox, r)
	n.desk.Reported(r)
	n.flush()
}

// flush delivers the outbox in order and again until it is acknowledged.
func (n *node) flush() {
	if n.sending || len(n.outbox) == 0 || n.off {
		return
	}
	n.sending = true
	w := n.w
	batch := append([]cluster.Report(nil), n.outbox...)
	life := n.life
	w.send(n, func() {
		if _, ok := w.s.Node(n.name); !ok {
			return
		}
		cmds := make([]cluster.Command, len(batch))
		for i := range batch {
			cmds[i] = &batch[i]
		}
		w.propose(cluster.Identity{Node: n.name, System: true}, func(out []cluster.Applied) {
			if out == nil {
				return
			}
			w.send(n, func() {
				last := batch[len(batch)-1].Seq
				for len(n.outbox) > 0 && n.outbox[0].Seq <= last && n.life == life {
					n.outbox = n.outbox[1:]
				}
			})
		}, cmds...)
	})
	n.later(time.Second, func() { n.sending = false; n.flush() })
}
