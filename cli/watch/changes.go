package watch

import (
	"fmt"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/show"
)

// rowOf is a job as the commands show it.
func rowOf(j *cluster.Job) *show.JobRow { return &show.JobRow{Job: j, View: &show.View{}} }

// jobName names a job: job 17 (train).
func jobName(j *cluster.Job) string {
	return fmt.Sprintf("job %s (%s)", rowOf(j).ShownID(), j.Spec.Name)
}

// changes words how a job differs from what it was before, nil for a job that is seen for the first time.
func changes(old, now *cluster.Job) (lines []string) {
	if old == nil {
		old = &cluster.Job{Spec: now.Spec, Attempt: unseen}
	}
	if text := phase(old, now); text != "" {
		lines = append(lines, text)
	}
	return append(lines, found(cluster.Survived(old), cluster.Survived(now))...)
}

// unseen is the attempt of a job of which nothing is known.
const unseen = -1

// found words what the servers have learned of a job's checkpoints, hangs and slow GPUs.
func found(was, is cluster.Survival) (lines []string) {
	saved, hung, slow := deref(is.Saved), deref(is.Hung), deref(is.Slow)
	done := func(action string) string { return between("; done about it: ", action, "") }
	for _, l := range []struct {
		isNew bool
		text  string
	}{
		{saved.Count > deref(was.Saved).Count,
			fmt.Sprintf("has saved checkpoint %d%s", saved.Count, between(" (", saved.Path, ")"))},
		{hung.At.After(deref(was.Hung).At), "hangs: " + hung.Text + done(string(hung.Action))},
		{slow.At.After(deref(was.Slow).At),
			"is slowed by " + string(slow.Node) + ": " + slow.Text + done(string(slow.Action))},
	} {
		if l.isNew {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// deref is what a pointer leads to; the zero value for nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// between puts a text between two others, and is empty if it is.
func between(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

// phase words where a job has got to; "" if that is as it was.
func phase(old, now *cluster.Job) string {
	if now.Phase == cluster.Pending {
		return pending(old, now)
	}
	if old.Phase == now.Phase && old.Attempt == now.Attempt {
		return moved(rowOf(old).Nodes(), rowOf(now))
	}
	switch now.Phase {
	case cluster.Starting:
		return "is starting on " + rowOf(now).Nodes()
	case cluster.Running:
		return "runs on " + rowOf(now).Nodes()
	case cluster.Ended:
		return ending(now)
	}
	return "is " + strings.ToLower(show.StateOf(now).Long)
}

// moved words that a running job has got other nodes.
func moved(from string, now *show.JobRow) string {
	if now.Phase != cluster.Running || now.Nodes() == from {
		return ""
	}
	return "runs on " + now.Nodes() + " now, no longer on " + from
}

// pending words why a job waits, and what sent it back into the queue.
func pending(old, now *cluster.Job) string {
	why := rowOf(now).Reason()
	switch {
	case old.Phase != cluster.Pending:
		return fmt.Sprintf("is back in the queue (restart %d)%s", now.Restarts, between(": ", now.WaitNote, ""))
	case old.Attempt == unseen, rowOf(old).Reason() != why:
		return "waits: " + why
	}
	return ""
}

// ending words how a job has ended.
func ending(j *cluster.Job) string {
	text := "has ended: " + show.StateOf(j).Long + ", exit code " + show.ExitText(j.Exit)
	if !j.Started.IsZero() {
		text += ", after " + format.Duration(j.Ended.Sub(j.Started))
	}
	return text + between("; ", show.VerdictText(j, nil), "")
}
