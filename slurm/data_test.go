package slurm

import (
	"encoding/json"
	"strings"
	"testing"

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
	slurmtest.WithCounts(f.Own, f)
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
