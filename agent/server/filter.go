package server

import (
	"context"
	"errors"
	"maps"
	"slices"

	"dev.muster/api"
	"dev.muster/cluster"
)

// JobFilter is the site's say in what is submitted and changed: a script in the dialect's language (job_submit.lua).
// Its message for the user is returned, whatever becomes of the job.
type JobFilter interface {
	// Submit may change what is submitted. part is the number of a component of a heterogeneous job, below 0 in any
	// other.
	Submit(ctx context.Context, at api.FilterScene, q *api.SubmitRequest, part int) (said []string, err error)
	// Update may change what is changed; site is what the script asks for by itself.
	Update(ctx context.Context, at api.FilterScene, j *cluster.Job, p *cluster.Patch) (
		said []string, site *cluster.Patch, err error)
	// Changes says what differs between two submissions, in the script's words.
	Changes(from, to *api.SubmitRequest) []api.FieldChange
	// Check says what is wrong with a script, by the name of its file.
	Check(name, text string) error
}

// The names in Config.SubmitPlugins.
const (
	pluginScript    = "lua"
	pluginAllParts  = "all_partitions"
	pluginTimeLimit = "require_timelimit"
)

// filter has the site's plugins look at what is submitted, and returns who submits it: with an operator's rights where
// a script has set what only operators may.
func filter(ctx context.Context, s *Server, who api.Caller, q *api.SubmitRequest, part int) (
	by cluster.Identity, said []string, err error,
) {
	snap := s.Snapshot()
	plugins := snap.Config().SubmitPlugins
	if len(plugins) == 0 {
		return who.Identity, nil, nil
	}
	if q.Spec.Layout = q.Spec.Layout.Clone(); !who.Operator() {
		q.Spec.Priority = nil // only operators set it
	}
	nice := q.Spec.Nice
	for _, name := range plugins {
		more, err := plugin(ctx, s, name, q, part)
		if said = append(said, more...); err != nil {
			return who.Identity, nil, saying(err, said)
		}
	}
	by = who.Identity
	if who.Operator() || q.Spec.Priority == nil && (q.Spec.Nice >= 0 || q.Spec.Nice == nice) {
		return by, said, nil
	}
	plain := q.Spec // the user's own rights count for all else
	plain.Priority, plain.Nice = nil, 0
	if _, err := cluster.Admit(snap, by, plain); err != nil {
		return by, nil, saying(err, said)
	}
	by.Admin = true
	return by, said, nil
}

// plugin is one of the site's.
func plugin(ctx context.Context, s *Server, name string, q *api.SubmitRequest, part int) ([]string, error) {
	snap := s.Snapshot()
	switch name {
	case pluginAllParts:
		if len(q.Spec.Partitions) == 0 {
			for _, p := range openTo(snap, &q.Spec) {
				q.Spec.Partitions = append(q.Spec.Partitions, p.Name)
			}
		}
	case pluginTimeLimit:
		if q.Spec.Limit == 0 {
			return nil, cluster.Errorf(cluster.Invalid, "", "Time limit specification required, but not provided")
		}
	case pluginScript:
		if s.cfg.Hooks.Filter == nil {
			return nil, cluster.Errorf(cluster.Unavailable, "", "this server cannot run the site's script")
		}
		at := api.FilterScene{Snap: snap, By: q.Spec.UID, User: q.Spec.User, Open: openTo(snap, &q.Spec)}
		return s.cfg.Hooks.Filter.Submit(ctx, at, q, part)
	}
	return nil, nil
}

// checkScripts refuses a configuration with a script that cannot be read: the old one stays active.
func checkScripts(s *Server, cfg *cluster.Config) error {
	if s.cfg.Hooks.Filter == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Scripts)) {
		if err := s.cfg.Hooks.Filter.Check(name, cfg.Scripts[name]); err != nil {
			return cluster.Errorf(cluster.Invalid, "", "%v", err)
		}
	}
	return nil
}

// openTo are the partitions that a job's user may use.
func openTo(snap *cluster.Snapshot, spec *cluster.JobSpec) (open []*cluster.Partition) {
	all := snap.Config().Partitions
	for i := range all {
		if spec.UID == 0 || !all[i].RootOnly && inGroups(&all[i], spec) {
			open = append(open, &all[i])
		}
	}
	return open
}

// cliFilter is what commands are to do with their options before they submit; "": nothing.
func cliFilter(cfg *cluster.Config) string {
	text := cfg.Scripts[cliFile]
	plugins := api.FilterPlugins(cfg.Keys["clifilterplugins"])
	if !slices.Contains(plugins, api.FilterUser) {
		return text
	}
	return api.JoinFilter(plugins, cfg.ClusterName, text)
}

// unfiltered refuses a submission until the site's cli_filter.lua has seen the options of the command.
func unfiltered(s *Server, hash cluster.BlobHash) error {
	text := cliFilter(s.Snapshot().Config())
	if text == "" || hash == api.NotByCommand || hash == cluster.HashBlob([]byte(text)) {
		return nil
	}
	e := cluster.Errorf(cluster.Conflict, cluster.ErrFilter,
		"this command has an older version of the site's %s", cliFile)
	e.Script = text
	return e
}

// saying adds what a script said to an error.
func saying(err error, said []string) error {
	var e *cluster.Error
	if len(said) == 0 || !errors.As(err, &e) {
		return err
	}
	with := *e
	with.Said = append(slices.Clone(said), e.Said...)
	return &with
}

// updateJob changes jobs, if the site's script has nothing against it. It is asked once, about the first of them.
func updateJob(s *Server) func(context.Context, api.Caller, cluster.UpdateJob) (api.WriteResponse, error) {
	return func(ctx context.Context, who api.Caller, c cluster.UpdateJob) (api.WriteResponse, error) {
		site, said, err := filterUpdate(ctx, s, who, &c)
		if err != nil {
			return api.WriteResponse{}, err
		}
		values, index, err := s.proposeOf(ctx, s.actor(who, api.UpdateJob.Rights), &c)
		if err != nil {
			return api.WriteResponse{}, saying(err, said)
		}
		out := written(values, index)
		if out.Said = said; site == nil {
			return out, nil
		}
		own := &cluster.UpdateJob{Ref: c.Ref, Patch: *site, Runs: c.Runs, Memory: c.Memory}
		_, out.Index, err = s.proposeOf(ctx, cluster.Identity{System: true}, own)
		return out, saying(err, said)
	}
}

// filterUpdate has the site's script look at a change.
func filterUpdate(ctx context.Context, s *Server, who api.Caller, c *cluster.UpdateJob) (
	site *cluster.Patch, said []string, err error,
) {
	snap := s.Snapshot()
	if _, ok := snap.Config().Scripts[scriptFile]; !ok || s.cfg.Hooks.Filter == nil {
		return nil, nil, nil
	}
	jobs := snap.Find(c.Ref)
	if len(jobs) == 0 {
		return nil, nil, nil // it is refused below, in the usual words
	}
	j := jobs[0]
	at := api.FilterScene{Snap: snap, By: who.UID, User: who.User, Open: openTo(snap, j.Spec)}
	if at.User == "" && who.UID == j.Spec.UID {
		at.User = j.Spec.User
	}
	said, site, err = s.cfg.Hooks.Filter.Update(ctx, at, j, &c.Patch)
	return site, said, saying(err, said)
}

// The names of the site's scripts in the configuration.
const (
	scriptFile = "job_submit.lua"
	cliFile    = "cli_filter.lua"
)
