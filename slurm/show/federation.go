package show

import (
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
)

// isRevoked reports whether another cluster of the federation has a job, or has had it.
func isRevoked(j *cluster.Job) bool {
	return cluster.Elsewhere(j) || j.Phase == cluster.Ended && j.Outcome == cluster.Revoked
}

// federationOf asks for the federation when a text first needs it.
func federationOf(v *View) *api.FederationResponse {
	if v.Fed == nil {
		r, _ := front.Call(v.Sys, api.ShowFederation, api.AfterQuery{}) // none where the servers know of none
		v.Fed = &r
	}
	return v.Fed
}

// ClusterOf is the cluster that a line is of.
func ClusterOf(v *View) string {
	if v.Place != "" {
		return v.Place
	}
	return v.Config().Config.ClusterName
}

// siblingNames are the names of clusters.
func siblingNames(v *View, set federation.Set) string {
	var names []string
	r := federationOf(v).Record
	for id := range set.All() {
		name := strconv.Itoa(int(id)) // of a member that has left
		if r != nil && r.Member(id) != nil {
			name = r.Member(id).Name
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

func siblingNumbers(set federation.Set) string {
	var list []string
	for id := range set.All() {
		list = append(list, strconv.Itoa(int(id)))
	}
	return strings.Join(list, ",")
}

// shared is a field of a job that is shared, NA of others.
func shared(r *JobRow, of func(v *View, p *federation.Part) string) string {
	if r.Fed == nil {
		return "NA"
	}
	return of(r.View, &r.Fed.Part)
}

// sharedData is the same in JSON.
func sharedData(r *JobRow, of func(v *View, p *federation.Part) string) data.Value {
	if r.Fed == nil {
		return data.Unset
	}
	return data.Text(of(r.View, &r.Fed.Part))
}

func originNumber(_ *View, p *federation.Part) string  { return strconv.Itoa(int(p.Origin)) }
func activeNumbers(_ *View, p *federation.Part) string { return siblingNumbers(activeSet(p)) }
func viableNumbers(_ *View, p *federation.Part) string { return siblingNumbers(p.Viable) }

// FedOrigin names the cluster at which a shared job was made.
func FedOrigin(v *View, p *federation.Part) string {
	return siblingNames(v, federation.SetOf(p.Origin))
}

// FedViable names the clusters where it may run.
func FedViable(v *View, p *federation.Part) string { return siblingNames(v, p.Viable) }

// FedActive names the clusters that have it: once it has begun the one that runs it.
func FedActive(v *View, p *federation.Part) string { return siblingNames(v, activeSet(p)) }

func activeSet(p *federation.Part) federation.Set {
	if p.Begun {
		return federation.SetOf(p.Holder)
	}
	return p.Active
}

// FedStates are the states of members, as they are written.
var FedStates = [...]string{federation.Active: "ACTIVE", federation.Inactive: "INACTIVE", federation.Drain: "DRAIN",
	federation.Remove: "DRAIN+REMOVE"}

// FedState is how a state is written.
func FedState(s federation.State) string {
	if int(s) < len(FedStates) {
		return FedStates[s]
	}
	return "NA"
}

// FederalRows are the lines of all clusters of the federation; here are those of this one, and made makes those of
// others. A job that clusters share has one line, where it runs or else where it was made, or with siblings one at
// each cluster that has it.
func FederalRows(v *View, q api.JobQuery, siblings bool, here []JobRow,
	made func(*View, []*cluster.Job) []JobRow,
) []JobRow {
	members := v.Sys.Members()
	if members == nil {
		return here
	}
	var rows []JobRow
	for _, one := range members {
		at := *v
		at.Sys, at.Place, at.Conf, at.Books = one, one.Named(), nil, nil
		if !one.Remote() {
			for i := range here {
				here[i].View = &at
			}
			rows = append(rows, here...)
			continue
		}
		resp, err := ListJobs(one, q)
		if err != nil {
			one.MemberFailed(err)
			continue
		}
		rows = append(rows, made(&at, resp.Jobs)...)
	}
	if siblings {
		return rows
	}
	best := map[cluster.JobID]int{}
	for i := range rows {
		if old, ok := best[rows[i].ID]; !ok || standing(&rows[i]) > standing(&rows[old]) {
			best[rows[i].ID] = i
		}
	}
	out := rows[:0]
	for i := range rows {
		if best[rows[i].ID] == i {
			out = append(out, rows[i])
		}
	}
	return out
}

// standing tells which of the records of a job that clusters share stands for all of them.
func standing(r *JobRow) int {
	switch {
	case isRevoked(r.Job):
		return 0
	case r.Phase > cluster.Pending:
		return 3
	case r.Fed != nil && !r.Fed.Part.IsOrigin():
		return 1
	}
	return 2
}

// federalCells are the nodes and partitions of all clusters of the federation; resp is what this one has.
func federalCells(o *infoOptions, v *View, resp api.NodesResponse) (cells []InfoRow) {
	for _, one := range v.Sys.Members() {
		at := *v
		at.Sys, at.Place, at.Conf, at.Books = one, one.Named(), nil, nil
		there := resp
		if one.Remote() {
			var err error
			if there, err = front.Call(one, api.ListNodes, api.NodeQuery{Listed: o.listed()}); err != nil {
				one.MemberFailed(err)
				continue
			}
		}
		cells = append(cells, o.cells(&at, there)...)
	}
	return cells
}
