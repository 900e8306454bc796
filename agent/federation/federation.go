// Package federation carries what the clusters of a federation say to each other about the jobs that they share. The
// leader of each asks the leaders of all others for orders about their jobs, and reports on its siblings of them;
// what is heard goes into the log by the commands of package cluster, where the rules are (cluster/federation).
// Begin with Run.
package federation

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	fed "dev.muster/cluster/federation"
)

// Cluster is this cluster, for one term of its leader.
type Cluster interface {
	// Snapshot is what is committed.
	Snapshot() *cluster.Snapshot
	// Propose writes commands of the leader's own to the log.
	Propose(ctx context.Context, cmds ...cluster.Command) ([]any, error)
	// Moved is closed when the state changes, and Changed when the federation does.
	Moved() <-chan struct{}
	Changed() <-chan struct{}
	// Change has all members know another record.
	Change(ctx context.Context, r fed.Record) error
	// Complete makes of what a user of a peer asks what can be proposed here, and tells as whom.
	Complete(ctx context.Context, peer *cluster.PeerCluster, user string, q *api.SubmitRequest) (
		cluster.Identity, error)
	// Call asks a peer's leader.
	Call(ctx context.Context, peer *cluster.PeerCluster, q *api.FederationCall) (api.FederationAnswer, error)
}

// answerWait is how long a caller waits for something new.
const answerWait = 3 * time.Second

// Pace of what is said.
const (
	again     = time.Second      // after a failure
	callLimit = 3 * answerWait   // one call
	awayAfter = 2 * answerWait   // so long without an answer a member is away
	useGrant  = 10 * time.Second // so long a grant is kept by which nothing can be started
	askAgain  = 2 * time.Second
	gather    = 5 * time.Millisecond
)

// termsAtOnce bounds how many terms are asked for in one call.
const termsAtOnce = 2000

// Run does, for one term, this cluster's part in the federation that it is in, if it is in one.
func Run(term context.Context, own Cluster, log *slog.Logger) {
	var all sync.WaitGroup
	defer all.Wait()
	links := map[fed.ID]context.CancelFunc{}
	running := map[fed.ID]string{}
	for {
		changed := own.Changed()
		want := others(own.Snapshot())
		for id, stop := range links {
			if want[id] != running[id] {
				stop()
				delete(links, id)
				delete(running, id)
			}
		}
		for id, name := range want {
			if running[id] != "" {
				continue
			}
			ctx, stop := context.WithCancel(term)
			links[id], running[id] = stop, name
			k := &link{own: own, id: id, name: name, log: log, heard: time.Now()}
			k.told = map[cluster.JobID]said{}
			all.Go(func() { k.pull(ctx) })
			all.Go(func() { k.report(ctx) })
			all.Go(func() { k.watch(ctx) })
			all.Go(func() { k.ask(ctx) })
		}
		var tick <-chan time.Time
		if len(want) > 0 { // whoever is in no federation is woken by a change of that alone
			returnGrants(term, own, log)
			leave(term, own, log)
			tick = time.After(again)
		}
		select {
		case <-term.Done():
			return
		case <-tick:
		case <-changed:
		}
	}
}

// pause waits, or ends with the term.
func pause(term context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-term.Done():
	case <-t.C:
	}
}

// others are the other members of the federation that this cluster is in.
func others(snap *cluster.Snapshot) map[fed.ID]string {
	self := cluster.FederationSelf(snap)
	if self == nil {
		return nil
	}
	out := map[fed.ID]string{}
	for _, m := range snap.Federation().Record.Members {
		if m.ID != self.ID {
			out[m.ID] = m.Name
		}
	}
	return out
}

// returnGrants gives back what was granted and cannot be started.
func returnGrants(term context.Context, own Cluster, log *slog.Logger) {
	snap := own.Snapshot()
	var idle []cluster.JobID
	for j := range snap.Queue() {
		if holdsGrant(j) && time.Since(j.Fed.Granted) > useGrant {
			idle = append(idle, j.ID)
		}
	}
	if len(idle) == 0 {
		return
	}
	if _, err := own.Propose(term, &cluster.FederationReturn{Jobs: idle}); err != nil && term.Err() == nil {
		log.Warn("grants were not given back", "err", err)
	}
}

// holdsGrant reports whether another cluster has granted a job to this one.
func holdsGrant(j *cluster.Job) bool {
	return j.Fed != nil && !j.Fed.Part.IsOrigin() && j.Fed.Part.Mine()
}

// leave takes this cluster out of its federation, if it is to leave and its last shared job is over.
func leave(term context.Context, own Cluster, log *slog.Logger) {
	snap := own.Snapshot()
	self := cluster.FederationSelf(snap)
	if self == nil || self.State != fed.Remove {
		return
	}
	for j := range snap.Jobs() {
		if concernsOthers(j) {
			return
		}
	}
	r := snap.Federation().Record
	r.Members = slices.DeleteFunc(slices.Clone(r.Members), func(m fed.Member) bool { return m.ID == self.ID })
	if err := own.Change(term, r); err != nil && term.Err() == nil {
		log.Warn("this cluster does not leave its federation yet", "err", err)
	}
}

// concernsOthers reports whether other clusters are yet to hear of a job.
func concernsOthers(j *cluster.Job) bool {
	if j.Fed == nil {
		return false
	}
	return j.Phase != cluster.Ended || j.Fed.Part.Owes(j.Outcome != cluster.Revoked)
}

// link is what there is between this cluster and another member.
type link struct {
	own  Cluster
	id   fed.ID
	name string
	log  *slog.Logger

	mu    sync.Mutex
	heard time.Time // when it answered last

	told map[cluster.JobID]said // what it knows of its jobs here

	refusedMu sync.Mutex
	refused   []cluster.FederationReport // of jobs that cannot be here
}

// said is a report that has arrived.
type said struct {
	report cluster.FederationReport
	at     time.Time
}

// holds reports whether it need not be said again. A question to which nothing came back is asked again.
func (s said) holds(r cluster.FederationReport) bool {
	return s.report == r && (!r.Report.Asks || time.Since(s.at) < askAgain)
}

// call asks the other member.
func (k *link) call(ctx context.Context, q api.FederationCall) (api.FederationAnswer, error) {
	snap := k.own.Snapshot()
	peer, ok := snap.PeerCluster(k.name)
	if !ok {
		return api.FederationAnswer{}, cluster.Errorf(cluster.NotFound, "", "cluster %s is no peer any more", k.name)
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	q.From, q.Version = snap.Config().ClusterName, snap.Federation().Record.Version
	out, err := k.own.Call(ctx, peer, &q)
	if err != nil {
		return out, err
	}
	k.mu.Lock()
	k.heard = time.Now()
	k.mu.Unlock()
	if out.Record != nil {
		if err := out.Record.CheckVersion(time.Now()); err != nil {
			return out, err
		}
		_, err = k.own.Propose(ctx, &cluster.FederationPut{Record: *out.Record})
	}
	return out, err
}

// watch says whether the other member answers.
func (k *link) watch(ctx context.Context) {
	for ctx.Err() == nil {
		k.mu.Lock()
		away := time.Since(k.heard) > awayAfter
		k.mu.Unlock()
		if f := k.own.Snapshot().Federation(); f != nil && f.Link(k.id).Away != away {
			_, err := k.own.Propose(ctx, &cluster.FederationAway{ID: k.id, Away: away})
			if err == nil {
				k.log.Info("member of the federation", "cluster", k.name, "away", away)
			}
		}
		pause(ctx, again)
	}
}

// pull takes orders until ctx ends.
func (k *link) pull(ctx context.Context) {
	q := api.FederationCall{Pull: true}
	for ctx.Err() == nil {
		out, err := k.call(ctx, q)
		if err == nil && (out.Full || len(out.Rows) > 0) {
			err = k.obey(ctx, &out)
		}
		if err != nil {
			k.log.Debug("federation", "cluster", k.name, "err", err)
			q.Epoch = ""
			pause(ctx, again)
			continue
		}
		q.Epoch, q.After = out.Epoch, out.Next
	}
}

// ask asks until ctx ends about the jobs of the other member for which jobs of this cluster wait.
func (k *link) ask(ctx context.Context) {
	for ctx.Err() == nil {
		if terms := cluster.TermsOf(k.own.Snapshot(), k.id); len(terms) > 0 {
			if err := k.askOf(ctx, terms); err != nil {
				k.log.Debug("federation", "cluster", k.name, "err", err)
			}
		}
		pause(ctx, again)
	}
}

// askOf writes to the log what the other member says of some terms.
func (k *link) askOf(ctx context.Context, terms []cluster.Depend) error {
	for some := range slices.Chunk(terms, termsAtOnce) {
		out, err := k.call(ctx, api.FederationCall{Parents: some})
		if err != nil {
			return err
		}
		if len(out.Parents) == 0 {
			continue
		}
		if _, err := k.own.Propose(ctx, &cluster.FederationParents{From: k.id, Rows: out.Parents}); err != nil {
			return err
		}
	}
	return nil
}

// obey writes orders to the log.
func (k *link) obey(ctx context.Context, out *api.FederationAnswer) error {
	snap := k.own.Snapshot()
	cmd := &cluster.FederationOrders{From: k.id, Index: out.Index}
	var cmds []cluster.Command
	listed := map[cluster.JobID]bool{}
	for i := range out.Rows {
		row := &out.Rows[i]
		listed[row.Job] = true
		if texts, ok := k.ready(ctx, snap, row); ok {
			cmds = append(cmds, texts...)
			cmd.Rows = append(cmd.Rows, row.FederationOrder)
		}
	}
	if out.Full {
		for _, id := range out.All {
			listed[id] = true
		}
		for j := range snap.Jobs() {
			if j.Fed != nil && j.Fed.Part.Origin == k.id && !listed[j.ID] {
				gone := fed.Order{Over: true, Grant: j.Fed.Part.Grant}
				cmd.Rows = append(cmd.Rows, cluster.FederationOrder{Job: j.ID, Order: gone})
			}
		}
	}
	if len(cmd.Rows) == 0 {
		return nil
	}
	values, err := k.own.Propose(ctx, append(cmds, cmd)...)
	if err != nil {
		return err
	}
	results, _ := values[len(values)-1].([]*cluster.Error)
	for i, bad := range results {
		if bad != nil {
			k.refuse(cmd.Rows[i].Job, bad)
		}
	}
	return nil
}

// ready makes of an order what can be proposed: with the user and the texts as this cluster has them. Not so one that
// changes nothing, or of a job that cannot be here.
func (k *link) ready(ctx context.Context, snap *cluster.Snapshot, row *api.FederationRow) (
	texts []cluster.Command, ok bool,
) {
	if err := row.Check(k.id); err != nil {
		k.refuse(row.Job, err)
		return nil, false
	}
	j, known := snap.Job(row.Job)
	if known && (j.Fed == nil || j.Fed.Part.Origin != k.id) {
		k.refuse(row.Job, cluster.Errorf(cluster.Conflict, "", "there is another job of that number"))
		return nil, false
	}
	if known && j.Fed.Spec == row.Hash {
		row.Spec = nil
	}
	if row.Spec == nil {
		return nil, known
	}
	if !known && len(row.Script) == 0 && row.Spec.Script != "" {
		// It is not here any more.
		k.tell(cluster.FederationReport{Job: row.Job, Report: revoked})
		return nil, false
	}
	peer, _ := snap.PeerCluster(k.name)
	q := &api.SubmitRequest{Spec: *row.Spec, Script: row.Script, Env: row.Env}
	by, err := k.own.Complete(ctx, peer, row.User, q)
	if err != nil {
		k.refuse(row.Job, err)
		return nil, false
	}
	row.By = by
	if !known {
		q.Spec.Script, q.Spec.Env = put(snap, &texts, q.Script), put(snap, &texts, q.Env)
	}
	row.Spec = &q.Spec
	return texts, true
}

// put adds a command that stores a text, if it is not stored.
func put(snap *cluster.Snapshot, cmds *[]cluster.Command, text cluster.BlobText) cluster.BlobHash {
	if len(text) == 0 {
		return ""
	}
	h := cluster.HashBlob(text)
	if _, ok := snap.Blob(h); !ok {
		*cmds = append(*cmds, &cluster.PutBlob{Hash: h, Text: text})
	}
	return h
}

// refuse tells the origin that a job cannot be here.
func (k *link) refuse(id cluster.JobID, why error) {
	k.log.Info("a job of the federation cannot run here", "job", id, "cluster", k.name, "why", why)
	k.tell(cluster.FederationReport{Job: id, Report: fed.Report{Phase: fed.Refused}})
}

// tell has something told that no record here says.
func (k *link) tell(r cluster.FederationReport) {
	k.refusedMu.Lock()
	k.refused = append(k.refused, r)
	k.refusedMu.Unlock()
}

// report tells the origin of the siblings here until ctx ends: what is new in them.
func (k *link) report(ctx context.Context) {
	for ctx.Err() == nil {
		moved := k.own.Moved()
		began := time.Now()
		news := k.news(k.own.Snapshot())
		looked := time.Since(began)
		k.refusedMu.Lock()
		refused := k.refused
		k.refused = nil
		k.refusedMu.Unlock()
		if all := append(news, refused...); len(all) > 0 {
			if _, err := k.call(ctx, api.FederationCall{Reports: all}); err != nil {
				k.refusedMu.Lock()
				k.refused = append(refused, k.refused...)
				k.refusedMu.Unlock()
				k.log.Debug("federation", "cluster", k.name, "err", err)
				pause(ctx, again)
				continue
			}
			for _, r := range news {
				k.told[r.Job] = said{r, began}
				if r.Report == revoked {
					delete(k.told, r.Job)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-moved:
			pause(ctx, max(gather, 4*looked))
		case <-time.After(again): // what was refused wakes nobody
		}
	}
}

// revoked is the report of a job that is not here any more.
var revoked = fed.Report{Phase: fed.Revoked}

// news are the reports that the origin has not heard.
func (k *link) news(snap *cluster.Snapshot) (out []cluster.FederationReport) {
	seen := map[cluster.JobID]bool{}
	for j := range snap.Jobs() {
		if j.Fed == nil || j.Fed.Part.Origin != k.id {
			continue
		}
		seen[j.ID] = true
		r := cluster.ReportOf(j)
		told, ever := k.told[j.ID]
		if told.holds(r) {
			continue
		}
		if !ever && r.Report == revoked {
			continue // as the origin has said
		}
		out = append(out, r)
	}
	for id := range k.told {
		if !seen[id] {
			out = append(out, cluster.FederationReport{Job: id, Report: revoked})
		}
	}
	return out
}
