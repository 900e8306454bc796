package slurm

import (
	"strings"

	"dev.muster/api"
)

// ownCluster is this cluster's name where -M or its variable names clusters, "" where it names none. Another one than this is
// refused: what was meant for it is not done here.
func (s *Sys) ownCluster(names string) (own string, code int) {
	if names == "" {
		return "", 0
	}
	resp, err := call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := slurmText(err)
		return "", s.fail("%s", text)
	}
	own = resp.Config.ClusterName
	for _, n := range splitList(names) {
		if !strings.EqualFold(n, own) && n != "all" {
			s.say("error: No cluster '%s' known by database.", n)
			return "", s.fail("'%s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.", names)
		}
	}
	return own, 0
}
