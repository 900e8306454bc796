package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// fenced returns the blocks of a page that begin with ```INFO.
func fenced(t *testing.T, page, info string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range regexp.MustCompile("(?ms)^```"+regexp.QuoteMeta(info)+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		list = append(list, b[1])
	}
	if len(list) == 0 {
		t.Fatalf("docs/%s has no block of %s", page, info)
	}
	return list
}

// bridgeValues are values of slurm-bridge's chart, as of its version 1.2.
var bridgeValues = []string{"schedulerConfig.partition", "schedulerConfig.mcsLabel", "schedulerConfig.schedulerName",
	"sharedConfig.slurmRestApi", "sharedConfig.slurmJwtSecret.name", "sharedConfig.slurmJwtSecret.key",
	"admission.managedNamespaces"}

// paths returns the paths of the leaves of a YAML value; lists are leaves.
func paths(prefix string, v any) (list []string) {
	m, isMap := v.(map[string]any)
	if !isMap {
		return []string{prefix}
	}
	for k, v := range m {
		list = append(list, paths(strings.TrimPrefix(prefix+"."+k, "."), v)...)
	}
	return list
}

// TestKubernetesPage reads the manifests and values of docs/kubernetes.md, and does with its slurm.conf what
// slurm-bridge does.
func TestKubernetesPage(t *testing.T) {
	t.Parallel()
	read := func(text string) map[string]any {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return v
	}
	values, err := os.ReadFile("../packaging/helm/muster/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := paths("", read(string(values)))
	for info, allowed := range map[string][]string{"yaml muster": known, "yaml slurm-bridge": bridgeValues} {
		for _, p := range paths("", read(fenced(t, "kubernetes.md", info)[0])) {
			if !slices.Contains(allowed, p) {
				t.Errorf("%s: the chart has no value %s", info, p)
			}
		}
	}
	for _, text := range fenced(t, "kubernetes.md", "yaml") {
		m := read(text)
		if m["apiVersion"] != "batch/v1" || m["kind"] != "Job" || m["metadata"] == nil || m["spec"] == nil {
			t.Errorf("no Job:\n%s", text)
		}
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	text := strings.Replace(fenced(t, "kubernetes.md", "conf slurm.conf")[0], "SlurmUser=slurm\n", "", 1) // perhaps unknown here
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", conf)
	u := &restUser{t: t, base: "http://" + addr, client: http.DefaultClient}
	u.token = strings.TrimPrefix(d.must("scontrol", "token", "lifespan=infinite"), "SLURM_JWT=")
	page, err := os.ReadFile("../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	create := regexp.MustCompile("`scontrol (create nodename=k1 [^`]*)`").FindSubmatch(page)
	if create == nil {
		t.Fatal("the page creates no external node")
	}
	d.must("scontrol", strings.Fields(string(create[1]))...)
	checkBridge(t, d, u)
}

// checkBridge does what slurm-bridge does for a pod, and for a node.
func checkBridge(t *testing.T, d *dev, u *restUser) {
	t.Helper()
	const v = "/slurm/v0.0.44/"
	if status, got := u.ask("GET", v+"partition/slurm-bridge", ""); status != 200 || len(got["partitions"].([]any)) != 1 {
		t.Errorf("the partition: %d %v", status, got)
	}
	status, got := u.ask("POST", v+"job/submit", `{"job":{"name":"hello","flags":["EXTERNAL_JOB"],"partition":"slurm-bridge",`+
		`"nodes":"1","required_nodes":["k1"],"admin_comment":"{\"pods\":[\"slurm-bridge/hello\"]}","mcs_label":"kubernetes",`+
		`"tres_per_node":"gres/gpu=2","shared":["none"],"time_limit":{"set":true,"number":60},`+
		`"current_working_directory":"/tmp"}}`)
	id, _ := got["job_id"].(float64)
	if status != 200 || id == 0 {
		t.Fatalf("the job: %d %v", status, got)
	}
	d.wait("the job to run", func() bool { return u.job(id, "job_state") == "[RUNNING]" })
	if out := d.must("squeue", "-h", "-o", "%j %P %N %l"); out != "hello slurm-bridge k1 1:00:00" {
		t.Errorf("squeue shows %q", out)
	}
	if _, got = u.ask("GET", fmt.Sprintf(v+"resources/%.0f", id), ""); !strings.Contains(fmt.Sprint(got), "index:0-3") {
		t.Errorf("the job's resources: %v", got)
	}
	if status, got = u.ask("DELETE", fmt.Sprintf(v+"job/%.0f", id), ""); status != 200 {
		t.Errorf("the job's end: %d %v", status, got)
	}
	d.wait("the node to be idle", func() bool { return d.must("sinfo", "-hN", "-n", "k1", "-p", "main", "-o", "%T") == "idle" })
	_, got = u.ask("POST", v+"new/node/", `{"node_conf":"NodeName=k2 CPUs=16 RealMemory=64000 State=External Feature=kube"}`)
	if errs, _ := got["errors"].([]any); len(errs) > 0 {
		t.Errorf("a node without devices: %v", errs)
	}
	_, got = u.ask("POST", v+"new/node/", `{"node_conf":"NodeName=k3 CPUs=16 RealMemory=64000 State=External Feature=kube `+
		`Gres=\"gpu:h:1\" GresConf=\"count=1,name=gpu,type=h,file=gpu-0\""}`)
	if !strings.Contains(fmt.Sprint(got["errors"]), "GresConf is not a setting of a node") {
		t.Errorf("the page says that GresConf= is rejected: %v", got["errors"])
	}
}
