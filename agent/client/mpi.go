package client

import (
	"fmt"
	"net"
	"path/filepath"

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
			"the components of a heterogeneous job cannot be one MPI world: "+
				"start each by an srun of its own (--het-group), or by --mpi=none what is no MPI program")
	}
	return nil
}

// manage gives the part of a step on its node i the process manager that it asks for, if it does.
func (p *Config) manage(sp *step.Spec, cfg *cluster.Config, ls *liveStep, ranks [][]int, i int, addr string) error {
	kind := cfg.ManagerOf(&ls.spec)
	if kind == cluster.ManagerNone || ls.spec.Interactive || ls.alone() {
		return nil
	}
	rec := &ls.record
	setup := &pmi.Setup{Job: stepName(rec.ID), Size: rec.Tasks, Universe: rec.Tasks, Node: i, Ranks: ranks}
	setup.UID, setup.GID = sp.UID, sp.GID
	setup.Addr = hostOf(addr)
	for _, sh := range rec.Shares {
		setup.Hosts = append(setup.Hosts, string(sh.Node))
	}
	if kind == cluster.ManagerPMIx { // that of PMI needs no files
		name := fmt.Sprintf("mpi-%s.%d@%s", setup.Job, rec.Attempt, sp.ID.Node)
		setup.Dir = filepath.Join(p.Spool, name)
	}
	text, err := setup.Encode()
	if err != nil {
		return fmt.Errorf("step %s: %w", setup.Job, err)
	}
	argv := p.Program.Managers[kind]
	if argv == nil {
		return cluster.Errorf(cluster.Invalid, "",
			"this node has no process manager for --mpi=%s", ls.spec.MPI)
	}
	sp.Server = &step.Server{Argv: argv, Setup: text, Tasks: kind == cluster.ManagerPMI2, Dir: setup.Dir}
	return nil
}

// hostOf is where the servers of other nodes reach one of this client's. A client that listens nowhere has all nodes
// itself.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return "127.0.0.1"
}

func stepName(id cluster.StepID) string { return fmt.Sprintf("%d.%d", id.Job, id.Step) }

// managed are the variables by which a task finds its process manager.
func managed(s *step.Server, rec *cluster.Step, rank int) []string {
	if s == nil || !s.Tasks {
		return nil // that of PMIx says itself what each task needs
	}
	return pmi.Environ(stepName(rec.ID), rank, rec.Tasks)
}
