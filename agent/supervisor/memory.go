package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// starveTime bounds how long processes are killed until a job has no more memory than it may.
const starveTime = 10 * time.Second

// starveWait bounds the wait for one of them to end, in milliseconds.
const starveWait = 500

// setMemory changes the limit on the memory of a job on its node. Where the kernel refuses since more is in use
// (cgroup v1), the largest process is killed and counts as killed for want of memory, as the kernel does it with
// cgroup v2.
func setMemory(s *supervisor, id step.ID, mb cluster.MemMB) error {
	if s.cg == nil {
		return nil
	}
	job, _ := id.GroupPath()
	for late := time.Now().Add(starveTime); ; {
		err := s.cg.SetMemory(job, mb)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(late) {
			return fmt.Errorf("limit job %d to %d MB: %w", id.Job, mb, err)
		}
		g, pid := largest(s, id)
		if pid == 0 {
			return fmt.Errorf("limit job %d to %d MB, which uses more and has no process: %w", id.Job, mb, err)
		}
		slog.Info("a process is killed: its job's memory was lowered below what it uses",
			"job", id.Job, "pid", pid, "mb", mb)
		if err := g.Starve(pid, starveWait); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d of job %d: %w", pid, id.Job, err)
		}
	}
}

// largest finds the process of a job on its node that has the most memory; pid is 0 if there is none.
func largest(s *supervisor, id step.ID) (g *cgroup.Group, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock() // groups stay as long
	most := int64(0)
	for k, r := range s.steps {
		if k.Job != id.Job || k.Attempt != id.Attempt || k.Node != id.Node || r.grp == nil {
			continue
		}
		if p, pages := r.grp.Largest(); pages > most {
			g, pid, most = r.grp, p, pages
		}
	}
	return g, pid
}
