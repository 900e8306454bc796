package wrap

import (
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// picked is which jobs a listing shows.
type picked struct {
	refs       []cluster.Ref
	users      []string
	partitions []string
	names      []string
	phases     []cluster.Phase
}

// live are jobs that are not over.
var live = []cluster.Phase{cluster.Pending, cluster.Starting, cluster.Running, cluster.Suspended, cluster.Ending}

// jobs asks for jobs, by number; missing are those that were named and are not there.
func jobs(sys *front.Sys, p picked) (rows []show.JobRow, missing []cluster.Ref, err error) {
	q := api.JobQuery{Refs: p.refs, Partitions: p.partitions, Names: p.names, Phases: p.phases}
	for _, name := range p.users {
		u, ok := front.LookupUser(name)
		if !ok {
			return nil, nil, &api.Error{Message: "unknown user " + name}
		}
		q.Users = append(q.Users, u.UID)
	}
	resp, err := front.Call(sys, api.ListJobs, q)
	v := &show.View{Sys: sys, Now: resp.Now}
	for _, j := range resp.Jobs {
		rows = append(rows, show.NewRow(v, j))
	}
	return rows, resp.Missing, err
}

// refs reads job numbers.
func refs(words []string) (list []cluster.Ref, err error) {
	ids, err := jobIDs(words)
	for _, id := range ids {
		t, _ := front.ParseTarget(id)
		list = append(list, t.Ref)
	}
	return list, err
}

// stateOf gives a job the word of its state's first row that fits.
func stateOf(r *show.JobRow, words map[string]string, other string) string {
	if r.Phase == cluster.Pending && r.Held != cluster.NotHeld {
		return words["HELD"]
	}
	if w, ok := words[r.State.Short]; ok {
		return w
	}
	return other
}

// nodes asks for nodes, all if none is named.
func nodes(sys *front.Sys, names []string) (api.NodesResponse, error) {
	var q api.NodeQuery
	for _, n := range names {
		var list []cluster.NodeName
		if err := front.SetNodes(&list, n); err != nil {
			return api.NodesResponse{}, err
		}
		q.Names = append(q.Names, list...)
	}
	return front.Call(sys, api.ListNodes, q)
}

// hasState reports whether a node's state in sinfo has a word in it.
func hasState(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(text), w) })
}
