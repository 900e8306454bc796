package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/container/layers"
	"dev.muster/agent/lookup"
	"dev.muster/agent/users"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched/explain"
)

// maxWaitHold bounds one waiting call; callers ask again.
const maxWaitHold = time.Minute

// Routes registers everything that server mode answers.
func (s *Server) Routes(m *api.Mux) {
	handle(s, m, api.SubmitJob, s.submitJob)
	handle(s, m, api.TestJob, s.testJob)
	handle(s, m, api.SubmitHet, s.submitHet)
	handle(s, m, api.TestHet, s.testHet)
	handle(s, m, api.ListJobs, s.listJobs)
	handle(s, m, api.WaitJob, s.waitJob)
	handle(s, m, api.WhyJob, s.whyJob)
	handle(s, m, api.JobScript, s.jobScript)
	handle(s, m, api.ListNodes, s.listNodes)
	handle(s, m, api.ShowCluster, s.showCluster)
	handle(s, m, api.ListSteps, s.listSteps)
	api.HandleStream(m, api.WatchEvents, s.watchEvents)
	pastRoutes(s, m)
	handle(s, m, api.ShowStats, s.showStats)
	handle(s, m, api.CreateLogin, s.createLogin)
	tokenRoutes(s, m)
	peerers{s}.routes(m)
	handle(s, m, api.FindLayer, findLayer(layers.NewRows()))
	triggerRoutes(s, m)
	handle(s, m, api.ShowBurstStatus, burstStatus(s))
	api.Handle(m, api.EndSession, s.endSession)
	handle(s, m, api.LogOut, recordLogout(s))
	api.Handle(m, api.OpenLink, s.credentials.openLink)
	api.Handle(m, api.Ping, s.pingAll)
	api.Handle(m, api.PingServer, s.ping)
	api.Handle(m, api.Join, s.join)
	api.Handle(m, api.Renew, s.renew)
	api.Handle(m, api.GossipKeys, s.gossipKeys)
	handle(s, m, api.ListAudit, listAudit(s))
	handle(s, m, api.NoteAudit, noteAudit(s))
	handle(s, m, api.AdmitMember, s.admitMember)
	handle(s, m, api.RevokeMember, s.revoke)
	handle(s, m, api.LeaveMember, s.leaveMember)
	handle(s, m, api.MayVouch, s.mayVouch)
	handle(s, m, api.ListMembers, s.listMembers)
	handle(s, m, api.AddServer, s.addServer)
	handle(s, m, api.RemoveServer, s.removeServer)
	handle(s, m, api.TransferLead, s.transferLead)
	handle(s, m, api.SetLogLevel, setLogLevel(s))
	handle(s, m, api.ShowCrontab, showCrontab(s))
	handle(s, m, api.PutCrontab, putCrontab(s))
	handle(s, m, api.RegisterNodes, s.registerNodes)
	handle(s, m, api.GetWork, s.getWork)
	handle(s, m, api.ReportWork, s.reportWork)
	handle(s, m, api.LedJob, s.ledJob)
	handle(s, m, api.GetBlob, s.getBlob)
	write(m, s, api.FinishJob)
	sharedJobRoutes(s, m)
	resilienceRoutes(s, m)
	write(m, s, api.TopJobs)
	write(m, s, api.ChangeAccounts)
	write(m, s, api.AmendJobs)
	handle(s, m, api.ListBooks, s.listBooks)
	handle(s, m, api.ListPriorities, s.listPriorities)
	write(m, s, api.SetNodes)
	write(m, s, api.CreateNodes)
	write(m, s, api.DeleteNodes)
	write(m, s, api.RebootNodes)
	handle(s, m, api.PutReservation, s.putReservation)
	write(m, s, api.DropReservation)
	handle(s, m, api.ListReservations, s.listReservations)
	write(m, s, api.RecordBurnin)
	handle(s, m, api.ListBurnins, s.listBurnins)
	write(m, s, api.SetPartition)
	handle(s, m, api.Configure, s.configure)
	handle(s, m, api.ShowConfig, s.showConfig)
	handle(s, m, api.Reconfigure, s.reconfigure)
}

// Bounds of a question for a layer, whose answer the server remembers.
const (
	maxLayerKey    = 64  // letters of its name
	maxLayerAddr   = 256 // letters of an address
	maxLayerFailed = 64  // addresses that did not have it
)

// findLayer answers where a node gets a layer of an image.
func findLayer(rows *layers.Rows) func(context.Context, api.Caller, api.LayerQuery) (api.LayerPlace, error) {
	return func(_ context.Context, who api.Caller, q api.LayerQuery) (api.LayerPlace, error) {
		tooLong := len(q.Key) > maxLayerKey || len(q.Addr) > maxLayerAddr || len(q.Failed) > maxLayerFailed
		if q.Key == "" || q.Addr == "" || tooLong {
			return api.LayerPlace{}, cluster.Errorf(cluster.Invalid, "", "%.64q at %.64q is no layer", q.Key, q.Addr)
		}
		client := layers.Client{Member: who.Member, Addr: strings.Clone(q.Addr)}
		return api.LayerPlace{Addr: rows.Find(q.Key, client, q.Failed, time.Now())}, nil
	}
}

// handle registers a function that is called once the state is current: a server that has just
// started must not answer from a log that it has not read to its end. Where no leader shows up, reads
// are answered from the log as it is here.
func handle[Q, R any](s *Server, m *api.Mux, e api.Endpoint[Q, R], f func(context.Context, api.Caller, Q) (R, error)) {
	read := e.Method == "GET" && !e.Leader
	api.Handle(m, e, func(ctx context.Context, who api.Caller, q Q) (R, error) {
		if err := s.ready(ctx, read); err != nil {
			var r R
			return r, err
		}
		began := time.Now()
		defer func() { s.stats.Call(e.Path, who.UID, time.Since(began)) }()
		return f(ctx, who, q)
	})
}

// write registers an endpoint whose request is a command as it stands.
func write[C any, P interface {
	*C
	cluster.Command
}](m *api.Mux, s *Server, e api.Endpoint[C, api.WriteResponse]) {
	handle(s, m, e, plainWrite[C, P](s, e))
}

// plainWrite proposes a request that is a command.
func plainWrite[C any, P interface {
	*C
	cluster.Command
}](s *Server, e api.Endpoint[C, api.WriteResponse]) func(context.Context, api.Caller, C) (api.WriteResponse, error) {
	return func(ctx context.Context, who api.Caller, c C) (api.WriteResponse, error) {
		values, index, err := s.proposeOf(ctx, s.actor(who, e.Rights), P(&c))
		if err != nil {
			return api.WriteResponse{Index: index}, err
		}
		return written(values, index), nil
	}
}

// written answers a command.
func written(values []any, index uint64) api.WriteResponse {
	jobs, _ := values[0].([]cluster.JobID)
	return api.WriteResponse{Index: index, Jobs: jobs}
}

func (s *Server) submitJob(ctx context.Context, who api.Caller, q api.SubmitRequest) (api.SubmitResponse, error) {
	if err := unfiltered(s, q.Filtered); err != nil {
		return api.SubmitResponse{}, err
	}
	if q.Moved != nil && !who.Operator() { // whatever rights the site's script gives
		return api.SubmitResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"only operators may move jobs from another cluster")
	}
	if len(q.Script) > cluster.MaxScriptBytes {
		return api.SubmitResponse{}, cluster.Errorf(cluster.Invalid, cluster.ErrTooBig,
			"the script has %d bytes, more than %d", len(q.Script), cluster.MaxScriptBytes)
	}
	if made, ok := s.submitted(who, q.Spec.UID, q.Key); ok {
		return made, nil
	}
	if err := s.settled(); err != nil {
		return api.SubmitResponse{}, err
	}
	asked := q.Spec
	done, err := s.complete(ctx, who, &q, -1)
	if err != nil {
		return api.SubmitResponse{}, err
	}
	spec, snap := done.spec, s.Snapshot()
	admitted, err := cluster.Admit(snap, done.by, spec)
	if err != nil {
		return api.SubmitResponse{}, saying(err, done.said)
	}
	viable, err := cluster.ViableFor(snap, &spec)
	if err != nil {
		return api.SubmitResponse{}, saying(err, done.said)
	}
	cmd := &cluster.Submit{Spec: &spec, Key: q.Key, Viable: viable, Moved: q.Moved}
	bad := s.feasible(snap, &admitted)
	if bad != nil {
		cmd.Dead = cluster.EndBadConstraints
	}
	var cmds []cluster.Command
	spec.Script, spec.Env = putBlob(snap, &cmds, q.Script), putBlob(snap, &cmds, q.Env)
	values, index, err := s.propose(ctx, done.by, append(cmds, cmd)...)
	if err != nil {
		return api.SubmitResponse{}, saying(err, done.said)
	}
	if bad != nil {
		return api.SubmitResponse{}, saying(bad, done.said)
	}
	id := values[len(values)-1].(cluster.JobID)
	s.slog.Info("job submitted", "job", id, "user", spec.User, "name", spec.Name)
	return api.SubmitResponse{Job: id, Index: index, Ignored: ignored(&asked, &spec), Said: done.said,
		Accounts: accountsBeside(snap, asked.Account)}, nil
}

// maxAccounts bounds the accounts among which a mistyped one is looked for.
const maxAccounts = 1000

// accountsBeside lists the accounts that there are if a job names none of them, which only associations forbid.
func accountsBeside(snap *cluster.Snapshot, account string) (names []string) {
	if account == "" || snap.Config().Enforce.Associations {
		return nil
	}
	for a := range snap.Accounts() {
		if a.Name == account {
			return nil
		}
		if len(names) < maxAccounts {
			names = append(names, a.Name)
		}
	}
	return names
}

// submitted finds what a submission with this key has made, when it is made again: before it is looked at whether
// the job would be taken now, since that may have changed. A job recorded as never to run is refused again.
func (s *Server) submitted(who api.Caller, uid uint32, key string) (api.SubmitResponse, bool) {
	if uid != who.UID && !who.Operator() {
		return api.SubmitResponse{}, false
	}
	snap := s.Snapshot()
	id, ok := snap.SubmittedAs(uid, key)
	if j, there := snap.Job(id); !ok || there && j.EndReason == cluster.EndBadConstraints {
		return api.SubmitResponse{}, false
	}
	s.slog.Info("job was submitted before", "job", id, "key", key)
	return api.SubmitResponse{Job: id, Index: snap.Index}, true
}

// putBlob adds a command that stores a text, if it is not stored.
func putBlob(snap *cluster.Snapshot, cmds *[]cluster.Command, text cluster.BlobText) cluster.BlobHash {
	if len(text) == 0 {
		return ""
	}
	h := cluster.HashBlob(text)
	if _, ok := snap.Blob(h); !ok {
		*cmds = append(*cmds, &cluster.PutBlob{Hash: h, Text: text})
	}
	return h
}

// ignored names what was asked for that is left out of what is submitted.
func ignored(asked, is *cluster.JobSpec) (out []string) {
	if asked.Layout == nil {
		return nil
	}
	if asked.CoreSpec != nil && is.CoreSpec == nil {
		out = append(out, "core_spec")
	}
	if asked.ThreadSpec != nil && is.ThreadSpec == nil {
		out = append(out, "thread_spec")
	}
	return out
}

// completed is a submission on its way into the log: what is asked, who asks it, and what the site says to them.
type completed struct {
	spec cluster.JobSpec
	by   cluster.Identity
	said []string
}

// complete fills in who the job runs as, has the site's plugins look at it, which may change all of q, and leaves out
// what the site does not allow. part is the number of a component, below 0 in a job that has none.
func (s *Server) complete(ctx context.Context, who api.Caller, q *api.SubmitRequest, part int) (
	done completed, err error,
) {
	if err := owner(s, who, &q.Spec); err != nil {
		return done, err
	}
	q.Spec.Script, q.Spec.Env = "", "" // which stored texts are the job's is not for its user to say
	if done.by, done.said, err = filter(ctx, s, who, q, part); err != nil {
		return done, err
	}
	if err := burstStages(s).Submit(ctx, q, part); err != nil {
		return done, saying(err, done.said)
	}
	done.spec = q.Spec
	if err := cluster.CheckTexts(s.Snapshot(), &done.spec, q.Script, q.Env); err != nil {
		return done, saying(err, done.said)
	}
	return done, saying(allow(s, who, &done.spec), done.said)
}

// owner fills in who the job runs as.
func owner(s *Server, who api.Caller, spec *cluster.JobSpec) error {
	if spec.UID != who.UID && !who.Operator() {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "user %d may not submit for user %d",
			who.UID, spec.UID)
	}
	if err := cluster.CheckRights(who.Identity, spec); err != nil {
		return err
	}
	if err := cluster.CheckAsked(spec); err != nil {
		return err
	}
	u, err := s.userOf(who, spec.UID)
	if err != nil {
		return err
	}
	spec.User, spec.Groups = u.Name, u.Groups
	if spec.GID != u.GID && !slices.Contains(u.Groups, spec.GID) && !who.Operator() && spec.GID != who.GID {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "user %s is not in group %d", u.Name, spec.GID)
	}
	spec.Group = users.GroupName(spec.GID)
	return nil
}

// mayContain refuses a script in a container where the site has that for steps alone.
func mayContain(cfg *cluster.Config, spec *cluster.JobSpec) error {
	if !cfg.Containers.NoBatch || spec.Inside == nil || spec.Kind != cluster.Batch {
		return nil
	}
	return cluster.Errorf(cluster.Invalid, "", "batch scripts run in no container here "+
		"(plugstack.conf: sbatch_support=0): give --container-image to an srun in the script, "+
		"and unset PYXIS_CONTAINER_IMAGE")
}

// allow leaves out what the site does not allow, and refuses what cannot be.
func allow(s *Server, who api.Caller, spec *cluster.JobSpec) error {
	if spec.Layout = spec.Layout.Clone(); !s.Snapshot().Config().SpecUse {
		spec.CoreSpec, spec.ThreadSpec = nil, nil
	} else if spec.Specializes() {
		spec.Sharing = cluster.ShareExclusive
	}
	if err := mayContain(s.Snapshot().Config(), spec); err != nil {
		return err
	}
	if err := cluster.CheckNew(s.Snapshot(), spec); err != nil {
		return err
	}
	if err := cluster.CheckParents(s.Snapshot(), spec.Depends.Terms); err != nil {
		return err
	}
	if err := cluster.LimitMemory(s.Snapshot(), spec); err != nil {
		return err
	}
	if err := cluster.CheckTimes(time.Now(), spec); err != nil {
		return err
	}
	return s.admitGroups(who, spec)
}

// admitGroups refuses a job all of whose partitions are for other groups (AllowGroups), with EnforcePartLimits=ALL
// one of which one is. Groups are known to the system's database alone, so this is not part of the cluster's state;
// root may use every partition.
func (s *Server) admitGroups(who api.Caller, spec *cluster.JobSpec) error {
	snap := s.Snapshot()
	in := func(p *cluster.Partition) bool { return who.UID == 0 || inGroups(p, spec) }
	closed, all := "", strings.EqualFold(snap.Config().EnforcePartLimits, "ALL")
	for _, name := range spec.Partitions {
		switch p, ok := snap.Partition(name); {
		case !ok:
			return nil
		case !in(p):
			closed = name
		case !all:
			return nil
		}
	}
	if p := snap.DefaultPartition(); len(spec.Partitions) == 0 && p != nil && !in(p) {
		closed = p.Name
	}
	if closed == "" {
		return nil
	}
	return cluster.Errorf(cluster.Denied, cluster.ErrGroup,
		"user %s is in none of the groups that may use partition %s", spec.User, closed)
}

// inGroups reports whether a partition is for one of the groups that a job may run as.
func inGroups(p *cluster.Partition, spec *cluster.JobSpec) bool {
	return visibility.InGroups(p, spec.GID, spec.Groups)
}

// userOf finds a user: as the member that vouches knows them, else in this machine's database.
func (s *Server) userOf(who api.Caller, uid uint32) (users.Account, error) {
	if who.Member != "" && who.UID == uid && who.User != "" {
		return users.Account{Name: who.User, GID: who.GID, Groups: who.Groups}, nil
	}
	return users.ByID.Get(uid)
}

// feasible asks the judge.
func (s *Server) feasible(snap *cluster.Snapshot, spec *cluster.JobSpec) *cluster.Error {
	s.judge.mu.Lock()
	defer s.judge.mu.Unlock()
	return s.judge.Feasible(snap, spec, time.Now())
}

func (s *Server) testJob(ctx context.Context, who api.Caller, q api.SubmitRequest) (api.TestResponse, error) {
	if err := unfiltered(s, q.Filtered); err != nil {
		return api.TestResponse{}, err
	}
	asked := q
	done, err := s.complete(ctx, who, &q, -1)
	if err != nil {
		return api.TestResponse{}, err
	}
	snap := s.Snapshot()
	spec, err := cluster.Admit(snap, done.by, done.spec)
	if err != nil {
		return api.TestResponse{}, saying(err, done.said)
	}
	if bad := s.feasible(snap, &spec); bad != nil {
		return api.TestResponse{}, saying(bad, done.said)
	}
	out, err := s.testStart(ctx, snap, who, &spec)
	out.Ignored, out.Said = ignored(&asked.Spec, &spec), done.said
	if q.Explain && s.cfg.Hooks.Filter != nil {
		asked.Spec.User, asked.Spec.GID = q.Spec.User, q.Spec.GID // these are the server's to fill in
		out.Changed = s.cfg.Hooks.Filter.Changes(&asked, &q)
	}
	return out, saying(err, done.said)
}

// waitAfter returns the snapshot once the given index is applied.
func (s *Server) waitAfter(ctx context.Context, index uint64) (*cluster.Snapshot, error) {
	if index > 0 {
		if err := s.log.Applied(ctx, index); err != nil {
			return nil, err
		}
	}
	return s.Snapshot(), nil
}

func (s *Server) waitJob(ctx context.Context, who api.Caller, q api.WaitRequest) (api.WaitResponse, error) {
	if _, err := s.waitAfter(ctx, q.After); err != nil {
		return api.WaitResponse{}, err
	}
	hold := time.NewTimer(min(max(q.Timeout, 0), maxWaitHold))
	defer hold.Stop()
	var jobs []*cluster.Job
	for known := false; ; {
		moved := s.wakeups.await(topicJob(q.Job))
		snap := s.Snapshot()
		if !known || q.Phase < cluster.Ended || snap.TasksOver(q.Job) { // an array may have very many
			jobs = snap.Find(cluster.Ref{Job: q.Job})
			if len(jobs) == 0 || !visibility.Of(snap, who).Job(jobs[0]) {
				return api.WaitResponse{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID,
					"job %d does not exist", q.Job)
			}
			reached := true
			for _, j := range jobs {
				reached = reached && j.Phase >= q.Phase && !(j.Phase == cluster.Ending && j.RequeueAfter)
			}
			if reached {
				return api.WaitResponse{Reached: true, Jobs: lookup.Some(jobs), Gone: snap.Gone(q.Job)}, nil
			}
			known = true
		}
		select {
		case <-moved:
		case <-hold.C:
			return api.WaitResponse{Jobs: lookup.Some(jobs)}, nil
		case <-ctx.Done():
			return api.WaitResponse{}, ctx.Err()
		}
	}
}

// maxOthers is how many records beside the one that is explained an answer names.
const maxOthers = 5

// whyJob explains one record of those that are asked for: the first that waits, else the first that is not over.
func (s *Server) whyJob(ctx context.Context, who api.Caller, q api.WhyRequest) (api.WhyResponse, error) {
	snap := s.Snapshot()
	jobs, sees := snap.Find(q.Ref), visibility.Of(snap, who)
	if len(jobs) == 0 || !sees.Job(jobs[0]) {
		return api.WhyResponse{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not exist", q.Job)
	}
	slices.SortStableFunc(jobs, func(a, b *cluster.Job) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(firstTask(a), firstTask(b)))
	})
	j, now := jobs[0], time.Now()
	e := explain.JobFor(snap, now, j.ID, sees)
	out := api.WhyResponse{Job: j, StartsAt: e.StartsAt, Nodes: e.Nodes, Notes: e.Notes}
	out.Progress = s.hist.Samples.Progress(j)
	if j.Het == nil { // the components of one are explained with its leader
		out.Others = slices.DeleteFunc(jobs[1:], func(o *cluster.Job) bool { return o.Phase != cluster.Pending })
		out.More = max(len(out.Others)-maxOthers, 0)
		out.Others = out.Others[:len(out.Others)-out.More]
	}
	for _, c := range e.Causes {
		out.Causes = append(out.Causes, api.Cause{Reason: c.Reason, Text: c.Text, Hint: c.Hint})
	}
	for _, h := range e.Holders {
		held := api.Holder{Nodes: h.Nodes, From: h.From, Until: h.Until, Endless: h.Endless}
		if sees.Job(h.Job) {
			held.Job = h.Job
		}
		out.Holders = append(out.Holders, held)
	}
	out.Changes = s.changes(ctx, snap, who, j, now)
	return out, nil
}

// firstTask is the task of an array by which its records are told in order; 0 of other jobs.
func firstTask(j *cluster.Job) int {
	switch {
	case !j.Tasks.Empty():
		return j.Tasks.Min()
	case j.Task != cluster.TaskAny:
		return j.Task
	}
	return 0
}

func (s *Server) jobScript(_ context.Context, who api.Caller, q api.ScriptRequest) (api.ScriptResponse, error) {
	snap := s.Snapshot()
	j, ok := snap.Job(q.Job)
	if !ok {
		return api.ScriptResponse{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not exist", q.Job)
	}
	if who.UID != j.Spec.UID && !who.Operator() {
		return api.ScriptResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"job %d belongs to user %s", q.Job, j.Spec.User)
	}
	hash := j.Spec.Script
	if q.Env && hash != "" { // of batch jobs only, as in Slurm
		hash = j.Spec.Env
	}
	b, ok := snap.Blob(hash)
	if !ok {
		return api.ScriptResponse{}, cluster.Errorf(cluster.NotFound, cluster.ErrBatchOnly,
			"job %d has no batch script", q.Job)
	}
	return api.ScriptResponse{Script: b.Text}, nil
}

func (s *Server) showCluster(_ context.Context, who api.Caller, _ api.Empty) (api.ClusterResponse, error) {
	snap := s.Snapshot()
	restored := snap.Restored()
	if !visibility.Of(snap, who).All {
		restored = nil
	}
	cfg, w := *snap.Config(), snap.Wiring()
	cfg.Topology, cfg.Blocks, cfg.BlockSizes = w.Switches, w.Blocks, w.BlockSizes // as they are active
	return api.ClusterResponse{Config: cfg, LicensesUsed: snap.LicensesUsed(),
		LicensesReserved: snap.LicensesReserved(time.Now()), Restored: restored, Servers: s.servers(),
		Version: s.cfg.Version, Booted: s.booted,
		Now: time.Now(), NextJob: snap.NextID}, nil
}

// pingAll is ping that also asks the other servers whether they answer.
func (s *Server) pingAll(ctx context.Context, who api.Caller, q api.Empty) (api.PingResponse, error) {
	r, err := s.ping(ctx, who, q)
	s.askAll(ctx, r.Servers)
	return r, err
}

func (s *Server) ping(context.Context, api.Caller, api.Empty) (api.PingResponse, error) {
	return api.PingResponse{Servers: s.servers(), Name: s.cfg.Name, Applied: s.log.AppliedIndex(),
		Heard: s.heard(), Now: time.Now(),
		Partial: !s.hist.Whole(), Revoked: s.Revoked(), Level: cluster.Newest}, nil
}
