package watches

import (
	"context"
	"time"

	"dev.muster/agent/samples"
	"dev.muster/cluster"
)

// Jobs that make no progress. The action is decided where the command is applied, so that it happens once,
// whoever leads.

// findHung lists the jobs whose samples show that they hang.
func findHung(w *Watcher, snap *cluster.Snapshot, now time.Time) (out []finding) {
	for _, one := range w.Samples.Hung(snap, now) {
		if Hangs(snap, one.Job, one.Kind, now) {
			out = append(out, finding{
				job:  one.Job,
				deal: func(ctx context.Context) error { return w.dealHang(ctx, &one) },
			})
		}
	}
	return out
}

// Hangs reports whether something is to be said or done about a job that hangs.
func Hangs(snap *cluster.Snapshot, j *cluster.Job, kind cluster.HangKind, now time.Time) bool {
	if j.Phase != cluster.Running || cluster.HungLately(j, now) {
		return false
	}
	switch cluster.HangRuleOf(snap, j).Action {
	case cluster.HangOff:
		return false
	case cluster.HangDefault:
		return kind.Certain()
	}
	return true
}

// dealHang has a hang noted and acted upon.
func (w *Watcher) dealHang(ctx context.Context, one *samples.Hung) error {
	j := one.Job
	return Deal(ctx, w.Server, &cluster.HangFound{
		Job:     j.ID,
		Attempt: j.Attempt,
		Kind:    one.Kind,
		Text:    one.Text,
	})
}

// Deal has a hang noted and acted upon, and tells the job what was done.
func Deal(ctx context.Context, s Server, c *cluster.HangFound) error {
	values, err := s.Propose(ctx, c)
	if err != nil {
		return err
	}
	action, _ := values[0].(cluster.HangAction)
	if action == cluster.HangDefault {
		return nil // somebody else has dealt with it
	}
	tell(ctx, s, c, action)
	return nil
}

// tell says in the job's output what was found and done.
func tell(ctx context.Context, s Server, c *cluster.HangFound, action cluster.HangAction) {
	hang := cluster.Hang{
		Text:   c.Text,
		Action: action,
	}
	s.TellJob(ctx, c.Job, "muster: "+hang.Note())
	if action == cluster.HangStack {
		s.TellStacks(ctx, c.Job)
	}
}
