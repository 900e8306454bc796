package rest

import (
	"strings"

	"dev.muster/api"
	"dev.muster/slurm/control"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
)

// nodeFields are the members of a change of nodes, as keys of scontrol update.
func nodeFields() []field {
	return []field{
		{"comment", "comment=", asText},
		{"extra", "extra=", asText},
		{"features", "availablefeatures=", asText},
		{"features_act", "activefeatures=", asText},
		{"gres", "gres=", asText},
		{"address", "nodeaddr=", asText},
		{"hostname", "nodehostname=", asText},
		{"state", "state=", asText},
		{"reason", "reason=", asText},
		{"resume_after", "resumeafter=", asCount},
		{"topology_str", "topology=", asText},
		{"weight", "weight=", asText},
	}
}

// changingNodes are the paths that change nodes, partitions and the configuration.
func changingNodes() map[string]func(*request) {
	return map[string]func(*request){
		"POST /slurm/node/{node_name}": func(x *request) { x.updateNodes(x.vars["node_name"]) },
		"POST /slurm/nodes":            func(x *request) { x.updateNodes(strings.Join(texts(x.body["name"]), ",")) },
		"DELETE /slurm/node/{node_name}": func(x *request) {
			name := x.vars["node_name"]
			if x.nodesThere(name) {
				x.change("Failure to delete node "+name, "scontrol", control.Scontrol, "delete", "nodename="+name)
			}
		},
		"POST /slurm/new/node": func(x *request) {
			conf, _ := x.body["node_conf"].(string)
			x.change("Failure to create nodes", "scontrol", control.Scontrol, append([]string{"create"},
				strings.Fields(conf)...)...)
		},
		"GET /slurm/reconfigure": func(x *request) {
			x.change("Reconfiguration failed", "scontrol",
				control.Scontrol, "reconfigure")
		},
		"POST /slurm/partitions": func(x *request) { x.partitions(list(x.body["partitions"])) },
		"DELETE /slurm/partition/{partition_name}": func(x *request) {
			x.change("Failure to delete partition", "scontrol", control.Scontrol, "delete",
				"partitionname="+x.vars["partition_name"])
		},
	}
}

// nodesThere reports whether all nodes of a list are known; else the request is answered.
func (x *request) nodesThere(names string) bool {
	var q api.NodeQuery
	if front.SetNodes(&q.Names, names) != nil || len(q.Names) == 0 {
		x.refuse(badQuery, badQuery9, "Invalid node list: "+names)
		return false
	}
	resp, err := front.Call(x.sys("scontrol", nil, nil), api.ListNodes, q)
	if err == nil && len(resp.Missing) > 0 {
		x.refuse(2009, "Invalid node name specified", "Failure to find node "+string(resp.Missing[0]))
		return false
	}
	return true
}

func (x *request) updateNodes(names string) {
	if !x.nodesThere(names) {
		return
	}
	words, bad := wordsOf(x.body, nodeFields(), "name", "reason_uid", "cpu_bind")
	if bad != "" {
		x.refuse(badQuery, bad, "Failure to update node "+names)
		return
	}
	x.change("Failure to update node "+names, "scontrol", control.Scontrol, append([]string{"update",
		"nodename=" + names}, words...)...)
}

// reservationFields are the members of a reservation, as keys of scontrol.
func reservationFields() []field {
	return []field{
		{"accounts", "accounts=", asText},
		{"core_count", "corecnt=", asCount},
		{"start_time", "starttime=", asTime},
		{"duration", "duration=", asText},
		{"end_time", "endtime=", asTime},
		{"features", "features=", asText},
		{"flags", "flags=", asText},
		{"groups", "groups=", asText},
		{"licenses", "licenses=", asText},
		{"max_start_delay", "maxstartdelay=", asCount},
		{"node_count", "nodecnt=", asCount},
		{"node_list", "nodes=", asText},
		{"partition", "partitionname=", asText},
		{"users", "users=", asText},
	}
}

// reservations makes reservations, or changes those that there are.
func (x *request) reservations(all []any) {
	there, err := front.Call(x.sys("scontrol", nil, nil), api.ListReservations, api.ReservationQuery{})
	if err != nil {
		x.failed = err
		x.write(statusOf(x.fail("Failure to read reservations", err.Error()).Number))
		return
	}
	done := []string{}
	for _, e := range all {
		body, _ := e.(map[string]any)
		words, bad := wordsOf(body, reservationFields(), "name", "comment", "purge_completed")
		if bad != "" {
			x.refuse(badQuery, bad, "Failure to update reservation")
			return
		}
		name, _ := body["name"].(string)
		verb := "create"
		for _, r := range there.Reservations {
			if r.Name == name {
				verb = "update"
			}
		}
		argv := []string{verb, "reservation"}
		if verb == "update" {
			argv = []string{verb}
		}
		if name != "" {
			argv = append(argv, "reservationname="+name)
		}
		if said, ok := x.run("scontrol", control.Scontrol, append(argv, words...)...); !ok {
			x.write(statusOf(x.fail("Failure to update reservation "+name, said).Number))
			return
		} else if made, ok := strings.CutPrefix(strings.TrimSpace(said), "Reservation created: "); ok {
			name = made
		}
		done = append(done, name)
	}
	x.write(200, data.Each("reservations", &madeTable, done))
}

// madeTable names reservations that were made or changed.
var madeTable = data.Table[string]{Schema: "reservation_desc_msg", Members: []data.Member[string]{
	{Path: "name", Of: func(s *string) data.Value { return data.Text(*s) }},
}}

// partitions makes partitions, or changes those that there are: of their members those that scontrol can set.
func (x *request) partitions(all []any) {
	resp, err := front.Call(x.sys("scontrol", nil, nil), api.ListNodes, api.NodeQuery{})
	if err != nil {
		x.failed = err
		x.write(statusOf(x.fail("Failure to read partitions", err.Error()).Number))
		return
	}
	for _, e := range all {
		body, _ := e.(map[string]any)
		name, _ := body["name"].(string)
		verb := "create"
		for i := range resp.Partitions {
			if resp.Partitions[i].Name == name {
				verb = "update"
			}
		}
		argv := []string{verb, "partitionname=" + name}
		for _, f := range partitionFields() {
			if v := at(body, f.name); !emptyValue(v) || isInfinite(v) {
				words, _ := f.words(f.key, v)
				argv = append(argv, words...)
			}
		}
		if said, ok := x.run("scontrol", control.Scontrol, argv...); !ok {
			x.write(statusOf(x.fail("Failure to update partition "+name, said).Number))
			return
		}
	}
	x.write(200)
}

func isInfinite(v any) bool {
	_, _, infinite := number(v)
	return infinite
}

// partitionFields are members of a partition by their paths, as keys of scontrol.
func partitionFields() []field {
	return []field{
		{"nodes.configured", "nodes=", asText},
		{"accounts.allowed", "allowaccounts=", asText},
		{"accounts.deny", "denyaccounts=", asText},
		{"groups.allowed", "allowgroups=", asText},
		{"qos.allowed", "allowqos=", asText},
		{"qos.deny", "denyqos=", asText},
		{"qos.assigned", "qos=", asText},
		{"defaults.time", "defaulttime=", asText},
		{"grace_time", "gracetime=", asCount},
		{"maximums.nodes", "maxnodes=", asText},
		{"maximums.time", "maxtime=", asText},
		{"minimums.nodes", "minnodes=", asCount},
		{"partition.state", "state=", asText},
		{"priority.tier", "prioritytier=", asCount},
		{"priority.job_factor", "priorityjobfactor=", asCount},
	}
}

// at is what stands at a path of a decoded object.
func at(body map[string]any, path string) any {
	name, rest, more := strings.Cut(path, ".")
	if !more {
		return body[name]
	}
	inner, _ := body[name].(map[string]any)
	return at(inner, rest)
}
