package cluster

import "strings"

// Manager is a process manager of MPI: how the tasks of a step find each other.
type Manager uint8

// The process managers.
const (
	ManagerUnknown Manager = iota
	ManagerNone            // each task is for itself
	ManagerPMI2            // PMI-1 and PMI-2, of MPICH and what comes of it
	ManagerPMIx            // of Open MPI
)

// ManagerOf is that of a name that users and slurm.conf give.
func ManagerOf(name string) Manager {
	switch strings.ToLower(name) {
	case "", "none", "openmpi":
		return ManagerNone
	case "pmi2":
		return ManagerPMI2
	case "pmix", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5": // these versions understand each other
		return ManagerPMIx
	}
	return ManagerUnknown
}

// Helped reports whether the step asks for what its tasks cannot do without: a container, or a process
// manager. manager is the step's, which the configuration may have chosen.
func (s *StepSpec) Helped(manager Manager) bool {
	return s.Inside != nil || manager != ManagerNone
}

// ManagerOf is the process manager of a step.
func (c *Config) ManagerOf(s *StepSpec) Manager {
	if s.MPI != "" {
		return ManagerOf(s.MPI)
	}
	return ManagerOf(c.Srun.MPI)
}
