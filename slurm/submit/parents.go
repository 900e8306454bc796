package submit

import (
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/front"
)

// followParents has a job that depends on jobs of another cluster of the federation be made there: the origin of both
// knows how those have ended. Where it runs does not depend on that. What stays where it is made, and what depends on
// jobs of several clusters, is left to the servers, which refuse it.
func followParents(s *front.Sys, r *Request) int {
	origin := parentsOrigin(&r.Job)
	if origin == 0 || r.Job.Array != nil || r.Job.Clusters != "" {
		return 0
	}
	resp, err := front.Call(s, api.ShowFederation, api.AfterQuery{})
	if err != nil || resp.Record == nil {
		return 0 // the servers know of no such job
	}
	m := resp.Record.Member(origin)
	if m == nil || m.Name == resp.Cluster {
		return 0
	}
	_, code := s.PickCluster(m.Name, func(*front.Sys) (time.Time, error) { return time.Time{}, nil })
	return code
}

// parentsOrigin is the cluster at which all the jobs were made that a job depends on, 0 if that is not one alone.
func parentsOrigin(spec *cluster.JobSpec) (origin federation.ID) {
	for _, d := range spec.Depends.Terms {
		of := federation.Of(uint32(d.Job))
		if d.Job == 0 || of == 0 || origin != 0 && of != origin {
			return 0
		}
		origin = of
	}
	return origin
}
