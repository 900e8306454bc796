package rest

import (
	"bytes"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/control"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/report"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/show"
	"dev.muster/wire"
)

// reading are the paths that change nothing.
func reading() map[string]func(*request) {
	scontrol := func(argv ...string) func(*request) {
		return func(x *request) { x.show("scontrol", control.Scontrol, argv...) }
	}
	changed := func(do func(*request)) func(*request) {
		return func(x *request) {
			if !x.since() {
				do(x)
			}
		}
	}
	return map[string]func(*request){
		"GET /slurm/jobs": changed(func(x *request) {
			x.show("squeue", show.Squeue, "-a", "-t", "all")
		}),
		"GET /slurm/jobs/state":   jobStates,
		"GET /slurm/job/{job_id}": oneJob,
		"GET /slurm/nodes":        changed(scontrol("show", "nodes", "-F")),
		"GET /slurm/node/{node_name}": func(x *request) {
			x.orElse(404, "Failure to query node "+x.vars["node_name"], 2009, "Invalid node name specified")
			x.show("scontrol", control.Scontrol, "show", "node", x.vars["node_name"], "-F")
		},
		"GET /slurm/partitions": changed(scontrol("show", "partitions", "-a")),
		"GET /slurm/partition/{partition_name}": changed(func(x *request) {
			x.orElse(404, "Unable to find partition "+x.vars["partition_name"], 2000,
				"Invalid partition name specified")
			x.show("scontrol", control.Scontrol, "show", "partition", x.vars["partition_name"], "-a")
		}),
		"GET /slurm/reservations": changed(scontrol("show", "reservations")),
		"GET /slurm/reservation/{reservation_name}": func(x *request) {
			x.orElse(422, "Unable to find reservation "+x.vars["reservation_name"], badQuery, badQuery9)
			x.show("scontrol", control.Scontrol, "show", "reservation", x.vars["reservation_name"])
		},
		"GET /slurm/licenses":           scontrol("show", "licenses"),
		"GET /slurm/ping":               scontrol("ping"),
		"GET /slurm/diag":               func(x *request) { x.show("sdiag", report.Sdiag) },
		"GET /slurm/shares":             shares,
		"GET /slurm/conf":               scontrol("show", "config"),
		"GET /slurm/resources/{job_id}": resources,
		"GET /slurmdb/conf":             books("configuration"),
		"GET /slurmdb/jobs":             pastJobs,
		"GET /slurmdb/diag":             books("stats"),
		"GET /slurmdb/ping":             bookPing,
		"GET /slurmdb/tres":             books("tres"),
		"GET /slurmdb/qos":              books("qos", "name=name", "id=id"),
		"GET /slurmdb/qos/{qos}":        books("qos", "qos=name"),
		"GET /slurmdb/job/{job_id}": func(x *request) {
			if x.jobID() {
				x.show("sacct", report.Sacct, "-a", "-D", "-j", x.vars["job_id"])
			}
		},
		"GET /slurmdb/accounts":               books("account", "description=description"),
		"GET /slurmdb/account/{account_name}": books("account", "account_name=name"),
		"GET /slurmdb/users":                  books("user", "default_account=defaultaccount"),
		"GET /slurmdb/user/{name}":            books("user", "name=name"),
		"GET /slurmdb/associations":           books("association", associationConditions[:]...),
		"GET /slurmdb/association":            books("association", associationConditions[:]...),
		"GET /slurmdb/wckeys":                 books("wckey", "name=wckey", "user=user", "id=id", "cluster=cluster"),
		"GET /slurmdb/wckey/{id}":             books("wckey", "id=id"),
		"GET /slurmdb/clusters":               books("cluster"),
		"GET /slurmdb/cluster/{cluster_name}": books("cluster", "cluster_name=name"),
		"GET /slurmdb/instances":              books("instance"),
		"GET /slurmdb/instance":               books("instance"),
		"GET /slurmdb/config":                 allBooks,
		"POST /util/hostnames":                hostNames,
		"POST /util/hostlist":                 hostList,
	}
}

// associationConditions are those by which associations are asked for.
var associationConditions = [...]string{"account=account", "user=user", "partition=partition", "cluster=cluster",
	"qos=qos", "default_qos=defaultqos", "parent_account=parent", "id=id"}

// orElse says what an answer is that lists nothing.
func (x *request) orElse(status int, description string, number int, what string) {
	x.missing = status
	x.errors = []data.Problem{{Description: description, Number: number, Error: what, Source: x.source()}}
}

// books makes the function of a path that sacctmgr show answers. A condition is PARAMETER=KEY.
func books(entity string, conditions ...string) func(*request) {
	return func(x *request) {
		argv := []string{"show", entity}
		for _, c := range conditions {
			param, key, _ := strings.Cut(c, "=")
			value := x.query(param)
			if v, ok := x.vars[param]; ok {
				value = v
			}
			if value != "" {
				argv = append(argv, key+"="+value)
			}
		}
		for _, flag := range [...][2]string{{"with_assocs", "withassoc"}, {"WithAssociations", "withassoc"},
			{"with_coords", "withcoord"},
			{"WithCoordinators", "withcoord"}, {"with_deleted", "withdeleted"}, {"DELETED", "withdeleted"}} {
			v := x.query(flag[0])
			if _, given := x.Query[flag[0]]; given && v != "false" {
				argv = append(argv, flag[1])
			}
		}
		x.show("sacctmgr", sacctmgr.Run, argv...)
	}
}

// allBooks answers with everything that the books have.
func allBooks(x *request) {
	var parts []data.Part
	for _, e := range [...][2]string{{"clusters", "cluster"}, {"tres", "tres"}, {"accounts", "account"},
		{"users", "user"}, {"qos", "qos"}, {"wckeys", "wckey"}, {"associations", "association"}} {
		part, ok := x.part(e[0], "sacctmgr", sacctmgr.Run, "show", e[1])
		if !ok {
			return
		}
		parts = append(parts, part)
	}
	x.write(200, parts...)
}

// part is a member of what a front-end shows, for an answer of several. Where it fails, the request is answered.
func (x *request) part(name, prog string, f program, argv ...string) (part data.Part, ok bool) {
	var out, errs bytes.Buffer
	sys := x.sys(prog, &out, &errs)
	sys.Answers = func(a *data.Answer) { a.Compact, a.YAML = true, false }
	code := f(sys, append(argv, "--json="+x.schemas.Name()))
	members := map[string]wire.RawMessage{}
	if code != 0 || wire.Unmarshal(out.Bytes(), &members) != nil {
		p := x.fail("Unable to query "+name, strings.TrimSpace(errs.String()))
		x.write(statusOf(p.Number))
		return part, false
	}
	text := "[]"
	for k, v := range members {
		if strings.EqualFold(k, name) { // TRES is tres here
			text = string(v)
		}
	}
	return data.One(name, "", data.Raw(text)), true
}

// jobID reports whether the path names a job; else the request is answered.
func (x *request) jobID() bool {
	id, _, _ := strings.Cut(x.vars["job_id"], "_")
	id, _, _ = strings.Cut(id, "+")
	if n, err := strconv.ParseUint(id, 10, 32); err == nil && n > 0 {
		return true
	}
	x.refuse(badQuery, badQuery9, "Rejecting request. Failure parsing parameters")
	return false
}

func oneJob(x *request) {
	if x.jobID() {
		x.orElse(404, "Unable to query JobId="+x.vars["job_id"], 2017, "Invalid job id specified")
		x.show("scontrol", control.Scontrol, "show", "job", x.vars["job_id"])
	}
}

// jobStates is the jobs; of each its whole record, as the schema has it.
func jobStates(x *request) {
	argv := []string{"-a", "-t", "all"}
	if ids := x.query("job_id"); ids != "" {
		argv = append(argv, "-j", ids)
	}
	x.show("squeue", show.Squeue, argv...)
}

// shares are those of fair share. Without priority/multifactor there are none, which Slurm calls an error of its own.
func shares(x *request) {
	argv := []string{}
	resp, err := front.Call(x.sys("sshare", nil, nil), api.ListBooks, api.AfterQuery{})
	if err == nil && !resp.Priority.Multifactor {
		x.errors = append(x.errors, data.Problem{Number: -1, Source: x.source(), Error: "Unspecified error",
			Description: "there are no shares: PriorityType is not priority/multifactor"})
		x.write(500)
		return
	}
	if names := x.query("accounts"); names != "" {
		argv = append(argv, "-A", names)
	}
	if names := x.query("users"); names != "" {
		argv = append(argv, "-u", names)
	} else {
		argv = append(argv, "-a")
	}
	x.show("sshare", report.Sshare, argv...)
}

// pastFilters are the parameters of history and the options of sacct that they are.
var pastFilters = [...][2]string{{"account", "-A"}, {"association", "-x"}, {"constraints", "-C"}, {"groups", "-g"},
	{"job_name", "--name"},
	{"partition", "-r"}, {"qos", "-q"}, {"reason", "-R"}, {"state", "-s"}, {"step", "-j"}, {"node", "-N"}, {"users",
		"-u"}, {"wckey", "-W"}}

func pastJobs(x *request) {
	argv := []string{"-a"}
	for _, f := range pastFilters {
		if v := x.query(f[0]); v != "" {
			argv = append(argv, f[1], v)
		}
	}
	for _, f := range [...][2]string{{"start_time", "-S"}, {"end_time", "-E"}} {
		v := x.query(f[0])
		if _, err := strconv.ParseInt(v, 10, 64); err == nil {
			v = "uts" + v
		}
		if v != "" {
			argv = append(argv, f[1], v)
		}
	}
	if x.query("show_duplicates") == "true" {
		argv = append(argv, "-D")
	}
	if x.query("skip_steps") == "true" {
		argv = append(argv, "-X")
	}
	x.show("sacct", report.Sacct, argv...)
}

// maxHosts bounds what a host list may unfold to.
const maxHosts = 1 << 16

func hostNames(x *request) {
	list, _ := x.body["hostlist"].(string)
	names, err := hostlist.Expand(list)
	if err != nil || len(names) > maxHosts {
		x.refuse(badQuery, badQuery9, "Invalid hostlist: "+list)
		return
	}
	x.write(200, data.One("hostnames", "hostlist_string", data.Words(names...)))
}

func hostList(x *request) {
	x.write(200, data.One("hostlist", "hostlist_text", data.Text(hostlist.Compress(texts(x.body["hostnames"])))))
}

// bookServer is a server as the one that keeps the books.
type bookServer struct {
	api.Server
	first bool
}

var bookServers = data.Table[bookServer]{Schema: "slurmdbd_ping", Members: []data.Member[bookServer]{
	{Path: "hostname", Of: func(s *bookServer) data.Value { return data.Text(s.Name) }},
	{Path: "responding", Of: func(s *bookServer) data.Value { return data.Bool(s.Up) }},
	{Path: "primary", Of: func(s *bookServer) data.Value { return data.Bool(s.first) }},
	{Path: "status", Of: func(s *bookServer) data.Value {
		return data.Text(map[bool]string{true: "No error", false: "Unable to contact"}[s.Up])
	}},
}}

// bookPing asks the servers, each of which has the books.
func bookPing(x *request) {
	resp, err := front.Call(x.sys("scontrol", nil, nil), api.Ping, api.Empty{})
	if err != nil {
		x.failed = err
		x.write(statusOf(x.fail("Unable to ping", err.Error()).Number))
		return
	}
	var rows []bookServer
	for i, s := range resp.Servers {
		rows = append(rows, bookServer{s, i == 0})
	}
	x.write(200, data.Each("pings", &bookServers, rows))
}

// texts are the elements of a decoded list of texts.
func texts(v any) (list []string) {
	all, _ := v.([]any)
	for _, e := range all {
		if s, ok := e.(string); ok {
			list = append(list, s)
		}
	}
	return list
}
