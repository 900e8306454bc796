package front

import (
	"strings"

	"dev.muster/api"
)

// OwnCluster is this cluster's name where -M or its variable names clusters, "" where it names none. Another one than this is
// refused: what was meant for it is not done here.
func (s *Sys) OwnCluster(names string) (own string, code int) {
	if names == "" {
		return "", 0
	}
	resp, err := Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := ErrorText(err)
		return "", s.Fail("%s", text)
	}
	own = resp.Config.ClusterName
	for _, n := range SplitList(names) {
		if !strings.EqualFold(n, own) && n != "all" {
			s.Say("error: No cluster '%s' known by database.", n)
			return "", s.Fail("'%s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.", names)
		}
	}
	return own, 0
}
