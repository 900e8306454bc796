package submit

import (
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// addSpares has the job ask for its spares, too: as many tasks and devices on each of them as on its other nodes.
func addSpares(r *Request) error {
	j := &r.Job
	if j.Resilience == nil || j.Resilience.Spares == 0 {
		return nil
	}
	runs := max(j.MinNodes, 1)
	if j.MaxNodes > runs {
		return opt.Errorf(opt.CodeError, "error: --spare needs one number of nodes, not --nodes=%d-%d", j.MinNodes,
			j.MaxNodes)
	}
	if err := spreadEvenly(j, runs); err != nil {
		return err
	}
	survive := *j.Resilience
	if sharesSpares(r) {
		survive.Spares = (runs*survive.Spares + 99) / 100
	}
	all := runs + survive.Spares
	j.MinNodes, j.MaxNodes = all, all
	j.Resilience = &survive
	return nil
}

// sharesSpares reports whether --spare was given as a percentage.
func sharesSpares(r *Request) bool {
	for _, g := range slices.Backward(r.Set) {
		if g.Long == "spare" {
			return strings.HasSuffix(g.Value, "%")
		}
	}
	return false
}

// spreadEvenly turns what the job asks for as a whole into what it asks for on each of its nodes.
func spreadEvenly(j *cluster.JobSpec, nodes int) error {
	if j.Tasks%nodes != 0 {
		return opt.Errorf(opt.CodeError, "error: --spare: %d tasks cannot be spread evenly over %d nodes; "+
			"use --ntasks-per-node", j.Tasks, nodes)
	}
	if j.Tasks > 0 {
		j.TasksPerNode = j.Tasks / nodes
		j.Tasks = 0
	}
	for _, g := range j.PerJob {
		if g.Count%int64(nodes) != 0 {
			return opt.Errorf(opt.CodeError, "error: --spare: %d GPUs cannot be spread evenly over %d nodes; "+
				"use --gpus-per-node", g.Count, nodes)
		}
		g.Count /= int64(nodes)
		j.PerNode = append(j.PerNode, g)
	}
	j.PerJob = nil
	return nil
}
