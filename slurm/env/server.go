package env

import (
	"fmt"

	"dev.muster/cluster"
)

// Server returns what a program is told of a job that the leader runs because of it: PrologSlurmctld, EpilogSlurmctld
// (context names them) and, without a context, MailProg.
func Server(j *cluster.Job, cfg *cluster.Config, context string) []string {
	var e list
	s := j.Spec
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.set("SLURM_CLUSTER_NAME", cfg.ClusterName)
	e.num("SLURM_JOB_ID", int(j.ID))
	e.num("SLURM_JOBID", int(j.ID))
	e.set("SLURM_JOB_NAME", s.Name)
	e.set("SLURM_JOB_USER", s.User)
	e.num("SLURM_JOB_UID", int(s.UID))
	e.set("SLURM_JOB_GROUP", s.Group)
	e.num("SLURM_JOB_GID", int(s.GID))
	e.given("SLURM_JOB_ACCOUNT", s.Account)
	e.set("SLURM_JOB_WORK_DIR", s.WorkDir)
	e.num("SLURM_JOB_RESTART_COUNT", j.Restarts)
	e.given("SLURM_JOB_CONSTRAINTS", s.Constraint)
	e.given("SLURM_JOB_COMMENT", s.Comment)
	e.given("SLURM_JOB_RESERVATION", s.Reservation)
	e.given("SLURM_JOB_LICENSES", s.Licenses)
	e.given("SLURM_SCRIPT_CONTEXT", context)
	if j.Alloc != nil {
		e.set("SLURM_JOB_PARTITION", j.Alloc.Partition)
		e.set("SLURM_JOB_NODELIST", nodeList(j.Alloc.Shares))
		e.num("SLURM_JOB_NUM_NODES", len(j.Alloc.Shares))
		e.set("SLURM_JOB_CPUS_PER_NODE", PerNode(j.Alloc.Shares, cpusOf))
	}
	e.files(j)
	e.array(j)
	if j.Het != nil {
		for _, name := range [...]string{"HET", "PACK"} { // by their older name, too
			e.num("SLURM_"+name+"_JOB_ID", int(j.Het.ID))
			e.num("SLURM_"+name+"_JOB_OFFSET", j.Het.Offset)
		}
	}
	if j.Phase == cluster.Ended {
		e.num("SLURM_JOB_EXIT_CODE", j.Exit.Code<<8|j.Exit.Signal)
		e.set("SLURM_JOB_EXIT_CODE2", fmt.Sprintf("%d:%d", j.Exit.Code, j.Exit.Signal))
		e.num("SLURM_JOB_DERIVED_EC", j.Derived.Code)
	}
	return e
}

// Switch returns what programs are told that switch nodes on and off.
func Switch(cfg *cluster.Config) []string {
	var e list
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.set("SLURM_CLUSTER_NAME", cfg.ClusterName)
	return e
}

// given sets a variable that has a value.
func (e *list) given(name, value string) {
	if value != "" {
		e.set(name, value)
	}
}
