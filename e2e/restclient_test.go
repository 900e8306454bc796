package e2e

import (
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var readREST = flag.Bool("restclient", false,
	"TestRESTClient: generate a client of the REST interface, and read every answer by it")

// everyState brings jobs, nodes and what is beside them into every state that comes about within seconds.
func everyState(d *dev) {
	d.t.Helper()
	d.must("sacctmgr", "-i", "add", "account", "team", "description=d", "organization=o")
	d.must("sacctmgr", "-i", "add", "user", "root", "account=team", "adminlevel=admin")
	d.must("sacctmgr", "-i", "add", "user", "daemon", "account=team")
	d.must("sacctmgr", "-i", "add", "coordinator", "account=team", "names=daemon")
	d.must("sacctmgr", "-i", "add", "qos", "high", "priority=10", "maxtresperuser=cpu=100", "grptresmins=gres/gpu=1000")
	d.must("sacctmgr", "-i", "add", "user", "root", "account=team", "wckeys=key")
	d.must("scontrol", "create", "reservation", "reservationname=r", "starttime=now+1hour", "duration=60",
		"users=root", "nodecnt=1")
	batch := func(args ...string) string {
		return strings.TrimSpace(d.must("sbatch", append([]string{
			"--parsable", "-A", "team", "-o", "/dev/null",
		}, args...)...))
	}
	batch("-W", "-n2", "--comment=c", "--wrap", "srun true; srun -n2 hostname")
	if _, _, code := d.run("sbatch", "-A", "team", "-W", "-o", "/dev/null", "--wrap", "exit 3"); code != 3 {
		d.t.Errorf("a job that fails: %d", code)
	}
	runs := batch("--mem=100", "-n2", "--gres=gpu:1", "--mail-type=END", "--wckey=key", "--qos=high",
		"--wrap", "srun -n1 sleep 600 & srun -n1 sleep 600; wait")
	asleep := batch("--wrap", "sleep 600")
	gone := batch("--wrap", "sleep 600")
	batch("-H", "--deadline=now+1day", "--wrap", "true")
	batch("--dependency=afternotok:"+runs, "--wrap", "true")
	batch("--begin=now+1hour", "--exclude=gpu-node-001", "--wrap", "true")
	batch("-a", "0-9%2", "--wrap", "sleep 600")
	batch("-n1", ":", "-n2", "--wrap", "sleep 600")
	batch("-N4", "--exclusive", "-t", "5", "--wrap", "true")
	d.wait("jobs that run", func() bool {
		return strings.Count(d.must("squeue", "-h", "-t", "R", "-j", runs+","+asleep+","+gone, "-o", "%i"), "\n") == 2
	})
	d.must("scancel", gone)
	d.must("scontrol", "suspend", asleep)
	d.must("scontrol", "update", "nodename=gpu-node-004", "state=drain", "reason=fan")
	d.must("scontrol", "update", "nodename=gpu-node-003", "state=down", "reason=dead")
}

// TestRESTClient: a client that is generated from the document that the interface gives out reads every answer of every
// version: nothing that the document does not know, all that it requires. The client is a module of its own, since
// nothing of it is for muster.
func TestRESTClient(t *testing.T) {
	if !*readREST {
		t.Skip("needs -restclient, and the module proxy the first time")
	}
	addr := freeAddr(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=c\nPriorityType=priority/multifactor\nPriorityWeightFairshare=10\n"+
		"TrackWCKey=yes\nLicenses=x:3\nPartitionName=main Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "4x16c16g2gpu:h100", "--hollow-exec", "--http", addr, "--conf", conf)
	everyState(d)
	token := tokenOf(t, d, 0)
	file := filepath.Join(dir, "openapi.json")
	r, err := http.NewRequest("GET", "http://"+addr+"/openapi/v3", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-SLURM-USER-TOKEN", token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, "restclient")
	if err := errors.Join(os.CopyFS(module, os.DirFS("testdata/restclient")),
		os.Mkdir(filepath.Join(module, "client"), 0o755)); err != nil {
		t.Fatal(err)
	}
	in := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "SLURM_JWT="+token)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	in("tool", "oapi-codegen", "-config", "oapi-codegen.yaml", file)
	jobs := strings.Join(strings.Fields(d.must("squeue", "-h", "-t", "all", "-o", "%A")), ",")
	t.Log(in("run", ".", "http://"+addr, file, "job_id="+jobs, "node_name=gpu-node-001,gpu-node-003", "partition_name=main",
		"reservation_name=r", "qos=high,normal", "name=daemon,root", "account_name=team,root", "cluster_name="+
			strings.TrimSpace(d.must("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")), "id=1"))
}
