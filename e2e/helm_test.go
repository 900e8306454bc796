package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var chartProgram = flag.String("chart", "",
	"the program tools/chart: TestHelm renders the chart with it (make helm-check builds it)")

// manifest is what the test reads of a manifest of Kubernetes.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas            int
		ServiceName         string `yaml:"serviceName"`
		PodManagementPolicy string `yaml:"podManagementPolicy"`
		ClusterIP           string `yaml:"clusterIP"`
		MaxUnavailable      int    `yaml:"maxUnavailable"`
		Template            struct{ Spec podSpec }
	}
}

type podSpec struct {
	HostNetwork bool `yaml:"hostNetwork"`
	HostPID     bool `yaml:"hostPID"`
	Containers  []struct {
		Command, Args []string
		Env           []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		ReadinessProbe struct {
			HTTPGet struct{ Path string } `yaml:"httpGet"`
		} `yaml:"readinessProbe"`
		SecurityContext struct {
			Privileged             bool
			ReadOnlyRootFilesystem bool                    `yaml:"readOnlyRootFilesystem"`
			Capabilities           struct{ Drop []string } `yaml:"capabilities"`
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name   string
		Secret *struct {
			SecretName string `yaml:"secretName"`
			Items      []struct{ Key, Path string }
		}
	}
}

// chart is the rendered chart, and the cluster of boxes that runs it.
type chart struct {
	t         *testing.T
	dir       string
	notes     string
	manifests map[string]manifest // by kind/name
	h         *hosts
	table     string            // of host names
	boxes     map[string]*box   // pods
	volumes   map[string]string // pod/volume → folder
}

// TestHelm checks and renders the chart with Helm's library, starts the command lines of its pods in namespaces of
// their own, and types the commands of its notes.
func TestHelm(t *testing.T) {
	if *chartProgram == "" {
		t.Skip("give -chart=PROGRAM (make helm-check)")
	}
	c := &chart{t: t, dir: t.TempDir(), boxes: map[string]*box{}, volumes: map[string]string{}}
	c.checkValues()
	c.render("config: {secretName: muster-config}\nclients:\n  extraArgs: [--hollow, 2x8c16g8gpu:h100, --hollow-exec, --hollow-prefix, $(NODE_NAME)-]\n")
	want := []string{"DaemonSet/muster-client", "PodDisruptionBudget/muster-servers", "Service/muster-page",
		"Service/muster-servers", "StatefulSet/muster-server"}
	if have := slices.Sorted(maps.Keys(c.manifests)); !slices.Equal(have, want) {
		t.Fatalf("the chart has %s, want %s", have, want)
	}
	set := c.manifests["StatefulSet/muster-server"].Spec
	if set.Replicas != 3 || set.ServiceName != "muster-servers" || set.PodManagementPolicy != "Parallel" {
		t.Errorf("the servers are %+v", set)
	}
	needBoxes(t)
	var err error
	if c.h, err = newHosts(t, 5); err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	c.writeTable()
	c.volumes["secret/muster-config"] = t.TempDir()
	conf := filepath.Join(c.volumes["secret/muster-config"], "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=kube\nPartitionName=main Nodes=ALL Default=YES\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		c.start(fmt.Sprintf("muster-server-%d", i), i+1, set.Template.Spec)
	}
	nodes := c.manifests["DaemonSet/muster-client"].Spec.Template.Spec
	c.start("node-a", 4, nodes)
	c.start("node-b", 5, nodes)
	c.ready("muster-server-0")
	c.typeNotes()
	s1 := c.boxes["muster-server-1"]
	s1.shows("muster server members | grep -c 'leads\\|follows$'", "3")
	s1.shows("sinfo -hN -t idle -o %N | sort -u | tr '\\n' ' '", "node-a-001 node-a-002 node-b-001 node-b-002")
	s1.shows("scontrol show config | grep ClusterName", "= kube")
	if out, err := s1.run("srun", "-N4", "--gpus-per-node=8", "true"); err != nil {
		t.Errorf("a job on all nodes: %v\n%s", err, out)
	}
	for _, name := range []string{"muster-server-1", "muster-server-2"} {
		if out := textOf(c.boxes[name].log); !strings.Contains(out, "waiting for the key server of the Secret muster-join") {
			t.Errorf("%s has not waited for the Secret:\n%s", name, out)
		}
		c.ready(name)
	}
	c.checkLostVolume(set.Template.Spec)
}

// checkValues renders values that the schema must reject.
func (c *chart) checkValues() {
	for _, text := range []string{
		"servers: {replicas: 2}", "servers: {replica: 3}", "image: {repository: ''}", "servers: {storage: {size: 10}}",
		"clients: {nodeSelector: null}",
	} {
		if out, err := c.run(text); err == nil || !strings.HasPrefix(out, "chart: values.yaml: ") {
			c.t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
	for _, text := range []string{
		fenced(c.t, "kubernetes.md", "yaml muster")[0],
		"", "servers: {replicas: 1, storage: {className: fast}}", "clients: {enabled: false}", "config: {secretName: x}",
		"image: {pullSecrets: [{name: x}]}", "clients: {runtimeClassName: nvidia, tolerations: [{operator: Exists}]}",
	} {
		if out, err := c.run(text); err != nil {
			c.t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
}

// run checks and renders the chart with some values.
func (c *chart) run(values string) (string, error) {
	file := filepath.Join(c.dir, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		c.t.Fatal(err)
	}
	out, err := exec.Command(*chartProgram, "../packaging/helm/muster", file).CombinedOutput()
	return string(out), err
}

// render reads the manifests and the notes.
func (c *chart) render(values string) {
	c.t.Helper()
	out, err := c.run(values)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	c.manifests = map[string]manifest{}
	for _, part := range strings.Split(out, "---\n# Source: ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		if strings.HasSuffix(name, ".txt") {
			c.notes = text
			continue
		}
		for d := yaml.NewDecoder(strings.NewReader(text)); ; {
			var m manifest
			if err := d.Decode(&m); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				c.t.Fatalf("%s: %v", name, err)
			}
			c.manifests[m.Kind+"/"+m.Metadata.Name] = m
		}
	}
}

// writeTable writes the names that Kubernetes' DNS has of the servers.
func (c *chart) writeTable() {
	text := "127.0.0.1 localhost\n"
	for i := range 3 {
		text += fmt.Sprintf("10.77.0.%d muster-server-%d.muster-servers.batch.svc\n", i+1, i)
	}
	c.table = filepath.Join(c.dir, "hosts")
	if err := os.WriteFile(c.table, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// start starts a pod on a host, with the volumes that it had before.
func (c *chart) start(name string, host int, pod podSpec) {
	c.t.Helper()
	if len(pod.Containers) != 1 {
		c.t.Fatalf("%s has %d containers", name, len(pod.Containers))
	}
	k := pod.Containers[0]
	b := &box{name: name, net: c.h.name(host), volumes: map[string]string{"/etc/hosts": c.table}}
	fields := map[string]string{"metadata.name": name, "spec.nodeName": name, "status.hostIP": fmt.Sprintf("10.77.0.%d", host)}
	expand := []string{}
	for _, e := range k.Env {
		value := e.Value
		if path := e.ValueFrom.FieldRef.FieldPath; path != "" {
			if value = fields[path]; value == "" {
				c.t.Fatalf("%s is not known", path)
			}
		}
		b.env = append(b.env, e.Name+"="+value)
		expand = append(expand, "$("+e.Name+")", value)
	}
	for _, word := range slices.Concat(k.Command, k.Args) {
		b.argv = append(b.argv, strings.NewReplacer(expand...).Replace(word))
	}
	for _, v := range k.VolumeMounts {
		b.volumes[v.MountPath] = c.volume(name, v.Name, pod)
	}
	if k.SecurityContext.ReadOnlyRootFilesystem {
		b.restrict += "readonly "
	}
	if slices.Equal(k.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
		b.restrict += "uncapable"
	}
	b.start(c.t)
	c.boxes[name] = b
}

// volume returns the folder of a pod's volume; those of a Secret are shared.
func (c *chart) volume(pod, name string, spec podSpec) string {
	key := pod + "/" + name
	for _, v := range spec.Volumes {
		if v.Name == name && v.Secret != nil {
			key = "secret/" + v.Secret.SecretName
		}
	}
	if c.volumes[key] == "" {
		c.volumes[key] = c.t.TempDir()
	}
	return c.volumes[key]
}

// ready waits until a server's readiness probe passes.
func (c *chart) ready(name string) {
	c.t.Helper()
	path := c.manifests["StatefulSet/muster-server"].Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet.Path
	c.boxes[name].shows("exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/7480; printf \"GET "+path+
		" HTTP/1.0\\r\\n\\r\\n\" >&3; head -n 1 <&3'", "200 OK")
}

// kubectl stands in for kubectl in the commands of the notes.
const kubectl = `#!/bin/bash
set -eu
[ "$1 $2" = "-n batch" ] || exit 2
verb=$3; shift 3
case $verb in
wait) ;;
exec) pod=$1; [ "$2" = -- ] || exit 2; shift 2; read -r pid <"$PODS/$pod"; exec nsenter -t "$pid" -m -u -i -n -p -r "$@" ;;
create) [ "$1 $2 $3" = "secret generic muster-join" ] || exit 2; shift 3
	for a; do f=${a#--from-file=}; install -m 400 "$f" "$SECRET/$(basename "$f")"; done ;;
*) exit 2 ;;
esac
`

// typeNotes types the commands of the notes, with a stand-in for kubectl.
func (c *chart) typeNotes() {
	c.t.Helper()
	if err := os.WriteFile(c.dir+"/kubectl", []byte(kubectl), 0o755); err != nil {
		c.t.Fatal(err)
	}
	pid := fmt.Sprintln(c.boxes["muster-server-0"].init())
	if err := os.WriteFile(c.dir+"/muster-server-0", []byte(pid), 0o600); err != nil {
		c.t.Fatal(err)
	}
	list, _, _ := strings.Cut(c.notes, "Keep the Secret")
	script := "set -eu\n" + strings.Join(regexp.MustCompile(`(?m)^  .*$`).FindAllString(list, -1), "\n")
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+c.dir+":"+os.Getenv("PATH"), "PODS="+c.dir, "SECRET="+c.volumes["secret/muster-join"])
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "mst1.") {
		c.t.Fatalf("%v\n%s\n%s", err, script, out)
	}
}

// checkLostVolume starts the first server with an empty volume: it must not create a second cluster.
func (c *chart) checkLostVolume(pod podSpec) {
	c.boxes["muster-server-0"].stop()
	delete(c.volumes, "muster-server-0/data")
	c.start("muster-server-0", 1, pod)
	b := c.boxes["muster-server-0"]
	if err := b.wait(); err == nil {
		c.t.Error("a server without its volume has ended well")
	}
	if out := textOf(b.log); strings.Contains(out, "new cluster") || !strings.Contains(out, "muster-server-0") {
		c.t.Errorf("a server without its volume: %s", out)
	}
	c.boxes["muster-server-2"].shows("muster server members | grep -c 'leads\\|follows$'", "2")
}
