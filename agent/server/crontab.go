package server

import (
	"context"
	"fmt"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// cronEnabled refuses crontabs where the site does not allow them.
func cronEnabled(snap *cluster.Snapshot) error {
	if enabled, _ := snap.Config().Cron(); !enabled {
		return cluster.Errorf(cluster.Denied, cluster.ErrDisabled, "scrontab is disabled on this cluster")
	}
	return nil
}

// showCrontab answers with the text of a user's crontab.
func showCrontab(s *Server) func(context.Context, api.Caller, api.CrontabQuery) (api.CrontabResponse, error) {
	return func(_ context.Context, who api.Caller, q api.CrontabQuery) (out api.CrontabResponse, err error) {
		snap := s.Snapshot()
		if err := cronEnabled(snap); err != nil {
			return out, err
		}
		if who.UID != q.UID && !s.actor(who, api.ShowCrontab.Rights).Operator() {
			return out, cluster.Errorf(cluster.Denied, cluster.ErrUser, "only operators see the crontabs of others")
		}
		if c := snap.Crontab(q.UID); c != nil {
			out.Text = cluster.BlobText(c.Text)
		}
		return out, nil
	}
}

// putCrontab replaces a user's crontab. This server's time zone says when its lines are due.
func putCrontab(s *Server) func(context.Context, api.Caller, api.CrontabRequest) (api.CrontabResponse, error) {
	return func(ctx context.Context, who api.Caller, q api.CrontabRequest) (out api.CrontabResponse, _ error) {
		snap := s.Snapshot()
		if err := cronEnabled(snap); err != nil {
			return out, err
		}
		put := &cluster.CrontabPut{UID: q.UID, Text: string(q.Text)}
		var cmds []cluster.Command
		for _, j := range q.Jobs {
			spec, err := cronSpec(ctx, s, snap, who, &j)
			if err != nil {
				return out, onLines(err, j.First, j.Last)
			}
			spec.Script, spec.Env = putBlob(snap, &cmds, j.Submit.Script), putBlob(snap, &cmds, j.Submit.Env)
			put.Jobs = append(put.Jobs, cluster.CronJob{Spec: spec, First: j.First, Last: j.Last})
		}
		if err := cluster.Check(snap, put); err != nil {
			return out, err
		}
		cmd, err := s.atLevel(put)
		if err != nil {
			return out, err
		}
		values, _, err := s.propose(ctx, who.Identity, append(cmds, cmd)...)
		if err != nil {
			return out, err
		}
		out.Text, out.Jobs = q.Text, values[len(values)-1].([]cluster.JobID)
		s.slog.Info("crontab changed", "uid", q.UID, "jobs", len(out.Jobs))
		return out, nil
	}
}

// onLines says which lines of a crontab an error is about.
func onLines(err error, first, last int) error {
	e := *api.AsError(err)
	if e.Hint = fmt.Sprintf("lines %d-%d", first, last); first == last {
		e.Hint = fmt.Sprintf("line %d", first)
	}
	return &e
}

// cronSpec is what a line of a crontab asks for, complete and with its first run, if a node could ever run it.
func cronSpec(
	ctx context.Context, s *Server, snap *cluster.Snapshot, who api.Caller, j *api.CrontabJob,
) (*cluster.JobSpec, error) {
	if j.Submit.Spec.Cron == nil {
		return nil, cluster.Errorf(cluster.Invalid, "", "a job of a crontab says when it runs")
	}
	when, err := cluster.ParseCron(j.Submit.Spec.Cron.When)
	if err != nil {
		return nil, cluster.Errorf(cluster.Invalid, "", "%v", err)
	}
	done, err := s.complete(ctx, who, &j.Submit, -1)
	if err != nil {
		return nil, err
	}
	spec := done.spec
	if spec.Begin = when.Next(time.Now()); spec.Begin.IsZero() {
		return nil, cluster.Errorf(cluster.Invalid, cluster.ErrBeginTime, "%s never comes", spec.Cron.When)
	}
	admitted, err := cluster.Admit(snap, done.by, spec)
	if err != nil {
		return nil, err
	}
	if bad := s.feasible(snap, &admitted); bad != nil {
		return nil, bad
	}
	return &spec, nil
}
