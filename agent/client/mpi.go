package client

import (
	"fmt"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"dev.muster/pmi"
)

// checkManager refuses a step whose tasks could not find each other.
func checkManager(cfg *cluster.Config, s *cluster.StepSpec) error {
	manager := cfg.ManagerOf(s)
	switch {
	case manager == cluster.ManagerUnknown:
		return cluster.Errorf(cluster.Invalid, "",
			"%q is no process manager of MPI: there are none, pmi2 and pmix", s.MPI)
	case manager != cluster.ManagerNone && s.World != nil:
		return cluster.Errorf(cluster.Invalid, "",
			"the components of a heterogeneous job can not be one MPI world: "+
				"start each by an srun of its own (--het-group), or by --mpi=none what is no MPI program")
	}
	return nil
}

// manager is the process manager of a step's tasks on its node i; nil if it has none.
func (p Programs) manager(cfg *cluster.Config, ls *liveStep, ranks [][]int, i int) (*step.Server, error) {
	kind := cfg.ManagerOf(&ls.spec)
	if kind == cluster.ManagerNone || ls.spec.Interactive {
		return nil, nil
	}
	rec := &ls.record
	setup := &pmi.Setup{Job: stepName(rec.ID), Size: rec.Tasks, Universe: rec.Tasks}
	setup.Node, setup.Ranks, setup.UID = i, ranks, rec.UID
	for _, sh := range rec.Shares {
		setup.Hosts = append(setup.Hosts, string(sh.Node))
	}
	text, err := setup.Encode()
	if err != nil {
		return nil, fmt.Errorf("step %s: %w", setup.Job, err)
	}
	argv := p.Managers[kind]
	if argv == nil {
		return nil, cluster.Errorf(cluster.Invalid, "",
			"this node has no process manager for --mpi=%s", ls.spec.MPI)
	}
	return &step.Server{Argv: argv, Setup: text, Tasks: kind == cluster.ManagerPMI2}, nil
}

func stepName(id cluster.StepID) string { return fmt.Sprintf("%d.%d", id.Job, id.Step) }

// managed are the variables by which a task finds its process manager.
func managed(s *step.Server, rec *cluster.Step, rank int) []string {
	if s == nil || !s.Tasks {
		return nil // that of PMIx says itself what each task needs
	}
	return pmi.Environ(stepName(rec.ID), rank, rec.Tasks)
}
