package submit

import (
	"cmp"

	"dev.muster/cluster"
)

// launches makes a step the one of --external-launcher, of mpirun's daemons say: a task on each node, which has all of
// the job there and takes nothing from other steps. The other options are the job's, as in Slurm.
func launches(r *Request, s *cluster.StepSpec) {
	if !r.Way.launcher {
		return
	}
	s.Layout = cluster.Layout{MinNodes: s.MinNodes, MaxNodes: s.MaxNodes, Tasks: s.MinNodes, NodeList: s.NodeList,
		Exclude: s.Exclude, CPUBind: "none"}
	s.Overlap, s.Exact, s.MPI = true, false, cmp.Or(s.MPI, "none")
}
