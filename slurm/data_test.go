package slurm

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/slurmtest"
)

// answers are the command lines that answer as objects, and the schemas of their answers.
var answers = [...]struct{ line, schema string }{
	{"squeue -t all", "openapi_job_info_resp"}, {"squeue -s", "openapi_step_info_resp"}, {"sinfo",
		"openapi_sinfo_resp"},
	{"scontrol show job", "openapi_job_info_resp"}, {"scontrol show job 734", "openapi_job_info_resp"},
	{"scontrol show node", "openapi_nodes_resp"}, {"scontrol show node gpu-node-001", "openapi_nodes_resp"},
	{"scontrol show partition", "openapi_partition_resp"}, {"scontrol show reservation", "openapi_reservation_resp"},
	{"scontrol show licenses", "openapi_licenses_resp"}, {"scontrol show step", "openapi_step_info_resp"},
	{"scontrol ping", "openapi_ping_array_resp"}, {"sdiag", "openapi_diag_resp"}, {"sshare -a",
		"openapi_shares_resp"},
	{"sacct -a -S 2020-01-01", "openapi_slurmdbd_jobs_resp"},
	{"sacctmgr show account withassoc withcoord",
		"openapi_accounts_resp"}, {"sacctmgr show user withassoc withcoord", "openapi_users_resp"},
	{"sacctmgr show association", "openapi_assocs_resp"}, {"sacctmgr show qos", "openapi_slurmdbd_qos_resp"},
	{"sacctmgr show wckey", "openapi_wckey_resp"}, {"sacctmgr show tres", "openapi_tres_resp"},
	{"sacctmgr show cluster", "openapi_clusters_resp"}, {"sacctmgr show stats", "openapi_slurmdbd_stats_resp"},
	{"sacctmgr show instance", "openapi_instances_resp"},
}

// answering is a server that answers all of them.
func answering() *slurmtest.Server {
	f := slurmtest.New()
	f.Own = f.Mux()
	slurmtest.WithBooks(f.Own, f)
	books := slurmtest.Books()
	books.Priority.Multifactor = true
	books.QOS = []*cluster.QOS{{ID: 1, Name: "normal", UsageFactor: 1, Flags: []string{"DenyOnLimit"},
		Preempt: []string{"low"},
		Limits:  cluster.Limits{{Name: "MaxTRESPerUser", TRES: "gres/gpu", Max: 4}, {Name: "MaxWall", Max: 3600}}}}
	books.Users = []*cluster.User{{Name: "alice", DefaultAccount: "team-a", WCKeys: []cluster.WCKey{{ID: 1,
		Name: "w"}}}, {Name: "bob", AdminLevel: "Operator"}}
	books.Accounts[1].Coordinators = []string{"bob"}
	books.Assocs[4].Limits = cluster.Limits{{Name: "GrpTRES", TRES: "cpu", Max: 8}, {Name: "MaxJobs", Max: 3}}
	api.Handle(f.Own, api.ListBooks, func(context.Context, api.Caller, api.AfterQuery) (api.BooksResponse,
		error) {
		return books, nil
	})
	api.Handle(f.Own, api.ShowStats, func(context.Context, api.Caller, api.StatsRequest) (api.StatsResponse, error) {
		return api.StatsResponse{Now: f.Now, Since: f.Now.Add(-time.Hour), Calls: []api.CallCount{{Name: "jobs",
			N: 2, Time: time.Second}}, Users: []api.CallCount{{UID: 0, N: 2}}}, nil
	})
	api.Handle(f.Own, api.ListHistory, func(context.Context, api.Caller, api.HistoryQuery) (api.HistoryResponse,
		error) {
		out := api.HistoryResponse{Now: f.Now}
		for _, j := range f.Jobs {
			h := api.JobHistory{Job: j}
			if j.Alloc != nil {
				h.Steps = []*cluster.Step{{ID: cluster.StepID{Job: j.ID}, Name: "s", Tasks: 1,
					Shares: j.Alloc.Shares, Started: f.Now, Ended: j.Ended}}
			}
			out.Records = append(out.Records, h)
		}
		return out, nil
	})
	return f
}

// TestAnswers: every answer of every version has all members of its schema, no others, and values of their types.
func TestAnswers(t *testing.T) {
	f := answering()
	for _, a := range answers {
		for i, version := range data.Versions() {
			text := runLine(f, t, 0, nil, append(strings.Fields(a.line), "--json="+version)...)
			var got any
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Errorf("%s of %s: %v\n%.2000s", a.line, version, err, text)
				continue
			}
			for k, w := range data.Check(data.Load(data.Oldest+i).Type(a.schema), got, true) {
				if k == 5 {
					t.Errorf("%s of %s: and more", a.line, version)
					break
				}
				t.Errorf("%s of %s: %s", a.line, version, w)
			}
		}
	}
}
