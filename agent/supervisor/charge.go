package supervisor

import (
	"log/slog"
	"time"

	"dev.muster/agent/cgroup"
)

// charged is the group of the process that fetches and unpacks a step's image: its memory and CPU time are the job's.
// The step has no group yet.
type charged struct {
	*cgroup.Group
	r *run
}

// imageGroup ends the name of such a group.
const imageGroup = "-image"

// charge makes the group; its Group is nil where no job is fenced.
func (r *run) charge() (charged, error) {
	c := charged{r: r}
	if r.sup.cg == nil {
		return c, nil
	}
	job, name := r.id.GroupPath()
	var err error
	c.Group, err = r.sup.cg.Create(job, name+imageGroup, &r.spec.Fence)
	return c, err
}

// take moves the process into the group. It waits for its request until then.
func (c charged) take(pid int) error {
	if c.Group == nil {
		return nil
	}
	return c.Take(pid, &c.r.spec.Fence)
}

// starved reports whether the process was killed since the job's memory was used up.
func (c charged) starved() bool { return c.Group != nil && c.OOMKills() > 0 }

// free removes the group, with what is left in it.
func (c charged) free() {
	if c.Group == nil {
		return
	}
	c.CloseFD()
	for wait := time.Millisecond; !c.Remove(); wait = min(2*wait, time.Second) {
		if err := c.Kill(); err != nil {
			slog.Error("kill failed", "job", c.r.id.Job, "err", err)
			time.Sleep(wait)
		}
		c.AwaitEmpty(wait)
	}
}
