package supervisor

import (
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// resourceOf is the number of a limit by its name without RLIMIT_, or -1.
func resourceOf(name string) int {
	switch name {
	case "AS":
		return unix.RLIMIT_AS
	case "CORE":
		return unix.RLIMIT_CORE
	case "CPU":
		return unix.RLIMIT_CPU
	case "DATA":
		return unix.RLIMIT_DATA
	case "FSIZE":
		return unix.RLIMIT_FSIZE
	case "MEMLOCK":
		return unix.RLIMIT_MEMLOCK
	case "NOFILE":
		return unix.RLIMIT_NOFILE
	case "NPROC":
		return unix.RLIMIT_NPROC
	case "RSS":
		return unix.RLIMIT_RSS
	case "STACK":
		return unix.RLIMIT_STACK
	}
	return -1
}

// ownLimits reads the limits our children start with. NOFILE is left out: the Go runtime
// raises its own and gives children the earlier value back; learnLimit finds it out.
func ownLimits() map[int]unix.Rlimit {
	m := map[int]unix.Rlimit{}
	for r := 0; r <= unix.RLIMIT_RTTIME; r++ {
		var l unix.Rlimit
		if r != unix.RLIMIT_NOFILE && unix.Getrlimit(r, &l) == nil {
			m[r] = l
		}
	}
	return m
}

// different lists the limits to set that a child would not have anyway. A soft limit above
// the hard one counts as the hard one.
func (s *supervisor) different(want []cluster.Rlimit) (out []limit) {
	if len(want) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range want {
		r := resourceOf(w.Name)
		if r < 0 {
			continue
		}
		own, known := s.limits[r]
		if !known || min(w.Soft, own.Max) != own.Cur {
			out = append(out, limit{r, w.Soft})
		}
	}
	return out
}

func (s *supervisor) learnLimit(resource int, l unix.Rlimit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.limits[resource]; !ok {
		s.limits[resource] = l
	}
}

type limit struct {
	resource int
	soft     uint64
}
