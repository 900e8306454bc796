package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// cloudServers are the addresses of the servers that the tests give.
const cloudServers = "10.77.0.1 10.77.0.2 10.77.0.3"

// Scripts of the tests' secret store.
const (
	secretGet = "#!/bin/sh\nexec curl -fsS http://10.77.0.5:8000/secret/$1\n"
	secretPut = "#!/bin/sh\nexec curl -fsS -X PUT --data-binary @- http://10.77.0.5:8000/secret/$1\n"
)

// userData renders the template of the user data without Terraform.
func userData(t *testing.T, values map[string]string) string {
	t.Helper()
	text, err := os.ReadFile("../packaging/cloud/user-data.tftpl")
	if err != nil {
		t.Fatal(err)
	}
	join, err := os.ReadFile("../packaging/cloud/join.sh")
	if err != nil {
		t.Fatal(err)
	}
	values["join"] = base64.StdEncoding.EncodeToString(join)
	values["secret_get"] = base64.StdEncoding.EncodeToString([]byte(secretGet))
	values["secret_put"] = base64.StdEncoding.EncodeToString([]byte(secretPut))
	return regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllStringFunc(string(text), func(v string) string {
		value, known := values[v[2:len(v)-1]]
		if !known {
			t.Fatalf("the template has an unknown variable %s", v)
		}
		return value
	})
}

// cloudMachine returns the variables of a machine.
func cloudMachine(name, role, first, sum string) map[string]string {
	return map[string]string{"name": name, "role": role, "first": first, "servers": cloudServers,
		"program_url": "http://10.77.0.5:8000/muster", "program_sha256": sum, "token_uses": "6", "token_expires": "24h"}
}

// cloudConfig is what the user data may have.
type cloudConfig struct {
	Hostname       string
	ManageEtcHosts bool `yaml:"manage_etc_hosts"`
	WriteFiles     []struct {
		Path, Owner, Permissions, Encoding, Content string
	} `yaml:"write_files"`
	Runcmd [][]string
}

// TestCloudInit checks the user data: its form, the modes of its files, and that its commands are in it.
func TestCloudInit(t *testing.T) {
	text := userData(t, cloudMachine("s1", "server", "yes", strings.Repeat("0", 64)))
	if !strings.HasPrefix(text, "#cloud-config\n") {
		t.Errorf("it begins with %.20q", text)
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	var c cloudConfig
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, f := range c.WriteFiles {
		files[f.Path] = true
		if f.Owner != "root:root" || f.Permissions != "0600" && f.Permissions != "0700" {
			t.Errorf("%s is of %s with mode %s", f.Path, f.Owner, f.Permissions)
		}
		script, err := base64.StdEncoding.DecodeString(f.Content)
		if f.Encoding != "b64" {
			script, err = []byte(f.Content), nil
		}
		if err != nil {
			t.Errorf("%s: %v", f.Path, err)
		}
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = bytes.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", f.Path, err, out)
		}
	}
	for _, command := range c.Runcmd {
		if len(command) == 0 || !files[command[0]] {
			t.Errorf("%q is no file of the user data", command)
		}
	}
	if len(c.Runcmd) != 1 {
		t.Errorf("there are %d commands", len(c.Runcmd))
	}
}

// TestTerraform renders the user data with Terraform and compares it with what the other tests run.
func TestTerraform(t *testing.T) {
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skip("terraform is not here")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../packaging/cloud")); err != nil {
		t.Fatal(err)
	}
	terraform := func(args ...string) (string, error) {
		cmd := exec.Command("terraform", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+dir+"/none.tfrc")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	vars := map[string]any{"servers": strings.Fields(cloudServers), "nodes": 2, "secret_get": secretGet,
		"secret_put": secretPut, "program_url": "http://10.77.0.5:8000/muster", "program_sha256": strings.Repeat("0", 64)}
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(name string, value any) (string, error) {
		with := map[string]any{}
		for k, v := range vars {
			with[k] = v
		}
		with[name] = value
		text, err := json.Marshal(with)
		if err != nil {
			t.Fatal(err)
		}
		write("test.tfvars.json", string(text))
		return terraform("apply", "-no-color", "-auto-approve", "-input=false", "-var-file=test.tfvars.json")
	}
	write("none.tfrc", "")
	for _, args := range [][]string{{"init", "-input=false"}, {"validate"}, {"fmt", "-check", "-diff"}} {
		if out, err := terraform(args...); err != nil {
			t.Fatalf("terraform %s: %v\n%s", args, err, out)
		}
	}
	checkExample(t, dir, terraform)
	for name, value := range map[string]any{"servers": []string{"a", "b"}, "nodes": -1, "program_sha256": "abc",
		"token_expires": "1 day", "program_url": "https://x/$(id)"} {
		if out, err := apply(name, value); err == nil || !strings.Contains(out, "Invalid value for variable") {
			t.Errorf("%s = %v: %v\n%s", name, value, err, out)
		}
	}
	if out, err := apply("nodes", 2); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var have struct {
		Servers struct{ Value []string } `json:"server_user_data"`
		Nodes   struct{ Value []string } `json:"node_user_data"`
	}
	out, err := terraform("output", "-json")
	if _, rest, found := strings.Cut(out, "{"); found { // warnings come first
		out = "{" + rest
	}
	if err != nil || json.Unmarshal([]byte(out), &have) != nil || len(have.Servers.Value) != 3 || len(have.Nodes.Value) != 2 {
		t.Fatalf("the outputs: %v\n%s", err, out)
	}
	for i, text := range append(have.Servers.Value, have.Nodes.Value...) {
		name, role, first := fmt.Sprintf("s%d", i+1), "server", "no"
		switch {
		case i == 0:
			first = "yes"
		case i > 2:
			name, role = fmt.Sprintf("n%d", i-2), "client"
		}
		if want := userData(t, cloudMachine(name, role, first, strings.Repeat("0", 64))); text != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
		}
	}
}

// checkExample has Terraform check the example of docs/automation.md.
func checkExample(t *testing.T, module string, terraform func(args ...string) (string, error)) {
	t.Helper()
	example := fenced(t, "automation.md", "hcl")[0]
	dir := filepath.Join(module, "example")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(example, "./packaging/cloud", "../", 1) + "variable \"muster_sha256\" { type = string }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-chdir=example", "init", "-input=false"}, {"-chdir=example", "validate"}} {
		if out, err := terraform(args...); err != nil {
			t.Errorf("terraform %s: %v\n%s", args, err, out)
		}
	}
	for _, output := range regexp.MustCompile(`module\.muster\.(\w+)`).FindAllStringSubmatch(textOf("../docs/automation.md"), -1) {
		if !strings.Contains(textOf("../packaging/cloud/outputs.tf"), `output "`+output[1]+`"`) {
			t.Errorf("the module has no output %s", output[1])
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// cloudStore is a secret store, and a web server with the program. It stands in for a provider's.
const cloudStore = `
import http.server, sys
secrets = {"server": b"none\n", "client": b"none\n"}
class Store(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rsplit("/", 1)[1]
        body = open(sys.argv[1], "rb").read() if name == "muster" else secrets.get(name)
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body or b"")
    def do_PUT(self):
        secrets[self.path.rsplit("/", 1)[1]] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
http.server.ThreadingHTTPServer(("10.77.0.5", 8000), Store).serve_forever()
`

// TestApplianceCloudInit boots machines whose cloud-init runs the user data: they become a cluster by themselves. Then
// the first server is made again, and must not create a second cluster.
func TestApplianceCloudInit(t *testing.T) {
	if *applianceImage == "" {
		t.Skip("give -appliance=FOLDER to boot machines")
	}
	image := makeImageWith(t, *applianceImage+"-cloud", imagePackages+",cloud-init,python3-cffi-backend", "/usr/bin/cloud-init")
	h, err := newHosts(t, 5)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	program := filepath.Join(bin, "muster")
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	store := exec.Command("ip", "netns", "exec", h.name(5), "python3", "-c", cloudStore, program)
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Process.Kill(); _ = store.Wait() })
	at, sum := map[string]*machine{}, fmt.Sprintf("%x", sha256.Sum256(text))
	for i, name := range []string{"s1", "s2", "s3", "n1"} {
		role, first := "server", "no"
		if i == 0 {
			first = "yes"
		} else if i == 3 {
			role = "client"
		}
		at[name] = newMachine(t, h, i+1, name, image)
		at[name].seed(userData(t, cloudMachine(name, role, first, sum)))
	}
	began := time.Now()
	for _, m := range at {
		m.start()
	}
	for _, m := range at {
		m.booted()
	}
	for name, m := range at {
		if out, err := m.run("cloud-init status --wait"); err != nil || !strings.Contains(out, "status: done") {
			log, _ := m.run("tail -n 30 /var/log/cloud-init-output.log; cloud-init schema --system")
			t.Fatalf("%s: %v\n%s\n%s", name, err, out, log)
		}
		if out, err := m.run("cloud-init schema --system"); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if out, _ := m.run("grep -rlE 'mst1[.][0-9a-f]{64}' /etc /root /run /tmp /var"); strings.TrimSpace(out) != "" {
			t.Errorf("on %s there is a token in %s", name, out)
		}
	}
	t.Logf("the cluster took %v", time.Since(began).Round(100*time.Millisecond))
	at["s2"].shows("muster server members | grep -c 'leads\\|follows$'", "3")
	at["s2"].shows("srun hostname", "n1")
	if out := at["s1"].must("muster token list | tail -n +2 | wc -l"); out != "2" {
		t.Errorf("there are %s tokens, those of the store are 2", out)
	}
	at["s1"].must("systemctl stop muster-server; rm -rf /var/lib/muster /usr/local/bin/muster")
	if out, err := at["s1"].run("/usr/local/sbin/muster-cloud-join"); err == nil || strings.Contains(out, "new cluster") {
		t.Errorf("the first server, made anew: %v\n%s", err, out)
	}
	at["s2"].shows("muster server members | grep -c 'leads\\|follows$'", "2")
}

// seed gives a machine that is off its user data, as clouds do; its network stays as the test made it.
func (m *machine) seed(text string) {
	m.t.Helper()
	for file, text := range map[string]string{
		"/var/lib/cloud/seed/nocloud/user-data": text,
		"/var/lib/cloud/seed/nocloud/meta-data": "instance-id: " + m.name + "\n",
		"/etc/cloud/cloud.cfg.d/99-network.cfg": "network: {config: disabled}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(m.root()+file), 0o755); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(m.root()+file, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}
