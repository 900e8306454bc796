package e2e

import (
	"bytes"
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

// composeFile is what the test knows of a compose file; a key that is not here fails the test.
type composeFile struct {
	Name     string
	Member   any                        `yaml:"x-member"`
	Services map[string]*composeService `yaml:"services"`
	Volumes  map[string]any
}

type composeService struct {
	Image, Hostname, Restart string
	Build                    struct{ Context, Dockerfile string }
	Entrypoint, Command      []string
	Init                     bool
	Ports, Volumes           []string
	Healthcheck              struct {
		Test              []string
		Interval, Timeout time.Duration
		Retries           int
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
}

// compose is a cluster of boxes that a compose file describes.
type compose struct {
	t     *testing.T
	h     *hosts
	file  composeFile
	entry []string          // of the image
	dirs  map[string]string // volumes
	boxes map[string]*box
	up    map[string]bool // as its healthcheck or its end says
}

// TestCompose starts the command lines of the compose file, each in namespaces of its own, and uses the cluster. It
// starts them once more with other addresses.
func TestCompose(t *testing.T) {
	t.Parallel()
	const dir = "../packaging/container/"
	text, err := os.ReadFile(dir + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var file composeFile
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	recipe, err := os.ReadFile(dir + "Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	if build := file.Services["s1"].Build; filepath.Join(dir, build.Context, build.Dockerfile) != dir+"Containerfile" {
		t.Errorf("the image is built from %s", build)
	}
	c := &compose{t: t, file: file, dirs: map[string]string{}}
	entry := regexp.MustCompile(`(?m)^ENTRYPOINT (.*)$`).FindSubmatch(recipe)
	if entry == nil || json.Unmarshal(entry[1], &c.entry) != nil {
		t.Fatalf("the recipe has no entry point: %s", recipe)
	}
	checkRecipe(t, string(recipe))
	needBoxes(t)
	if c.h, err = newHosts(t, len(file.Services)); err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	for name := range file.Volumes {
		c.dirs[name] = t.TempDir()
	}
	names := []string{"s1", "s2", "s3", "n1", "n2", "tokens"}
	c.start(names)
	s2 := c.boxes["s2"]
	s2.shows("muster server members | grep -c 'leads\\|follows$'", "3")
	s2.shows("sinfo -hN -t idle -o %N | sort -u | wc -l", "2")
	out, err := s2.run("sh", "-c", "srun -N2 --gpus-per-node=8 hostname | sort")
	if err != nil || out != "n1-001\nn2-001" {
		t.Errorf("a job on both nodes: %v\n%s", err, out)
	}
	c.typePage()
	for _, file := range []string{"server", "client"} {
		if st, err := os.Stat(filepath.Join(c.dirs["tokens"], file)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("the file of a token: %v, %v", st.Mode(), err)
		}
	}
	for _, b := range c.boxes {
		b.stop()
	}
	c.start([]string{"n1", "n2", "s3", "s2", "s1", "tokens"})
	c.boxes["s2"].shows("muster server members | grep -c 'leads\\|follows$'", "3")
	c.boxes["s2"].shows("sinfo -hN -t idle -o %N | sort -u | wc -l", "2")
	c.boxes["s1"].shows("sacct -nXP -o State", "COMPLETED")
	c.boxes["s3"].shows("srun -w n2-001 hostname", "n2-001")
}

// typePage types the commands of docs/automation.md that run in a container.
func (c *compose) typePage() {
	c.t.Helper()
	text, err := os.ReadFile("../docs/automation.md")
	if err != nil {
		c.t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^    docker compose -f packaging/container/compose.yaml exec (\w+) (.*)$`).
		FindAllStringSubmatch(string(text), -1)
	if len(list) == 0 {
		c.t.Error("the page has no commands")
	}
	for _, l := range list {
		b := c.boxes[l[1]]
		if b == nil {
			c.t.Errorf("%s: there is no service %s", l[0], l[1])
			continue
		}
		if out, err := b.run(strings.Fields(l[2])...); err != nil {
			c.t.Errorf("%s: %v\n%s", l[0], err, out)
		}
	}
}

// checkRecipe runs how the recipe of the image installs muster.
func checkRecipe(t *testing.T, recipe string) {
	t.Helper()
	install := regexp.MustCompile(`(?m)^RUN make bin/muster VERSION="\$VERSION"\nRUN bin/muster (install .*) /image$`).FindStringSubmatch(recipe)
	if install == nil {
		t.Fatalf("the recipe does not install muster:\n%s", recipe)
	}
	image := t.TempDir()
	args := append(strings.Fields(install[1]), image)
	if out, err := exec.Command(filepath.Join(bin, "muster"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	for _, name := range frontEnds {
		if _, err := os.Stat(filepath.Join(image, "usr/local/bin", name)); err != nil {
			t.Error(err)
		}
	}
	version := regexp.MustCompile(`FROM (?:\S+/)?golang:(\S+) AS`).FindStringSubmatch(recipe)
	module, err := os.ReadFile("../go.mod")
	if err != nil || version == nil || !strings.Contains(string(module), "\ngo "+version[1]+".") {
		t.Errorf("the recipe builds with %q, go.mod asks for another Go: %v", version, err)
	}
}

// start starts all services, the names on hosts 1, 2, 3 …, as soon as those that they depend on are up.
func (c *compose) start(names []string) {
	c.t.Helper()
	if len(names) != len(c.file.Services) {
		c.t.Fatalf("the file has %d services, the test %d", len(c.file.Services), len(names))
	}
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for i, name := range names {
		fmt.Fprintf(&hosts, "10.77.0.%d %s\n", i+1, name)
	}
	table := filepath.Join(c.t.TempDir(), "hosts")
	if err := os.WriteFile(table, []byte(hosts.String()), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.boxes, c.up = map[string]*box{}, map[string]bool{}
	for len(c.boxes) < len(names) {
		before := len(c.boxes)
		for i, name := range names {
			if c.boxes[name] == nil && c.ready(name) {
				c.boxes[name] = c.box(name, c.h.name(i+1), table)
				c.boxes[name].start(c.t)
			}
		}
		if len(c.boxes) == before {
			c.t.Fatal("services depend on each other")
		}
	}
}

// box makes the box of a service.
func (c *compose) box(name, net, table string) *box {
	c.t.Helper()
	s := c.file.Services[name]
	entry := c.entry
	if len(s.Entrypoint) > 0 {
		entry = s.Entrypoint
	}
	b := &box{name: name, net: net, volumes: map[string]string{"/etc/hosts": table}}
	for _, word := range append(append([]string{}, entry...), s.Command...) {
		b.argv = append(b.argv, strings.ReplaceAll(word, "$$", "$"))
	}
	for _, v := range s.Volumes {
		volume, rest, _ := strings.Cut(v, ":")
		target, _, _ := strings.Cut(rest, ":")
		if c.dirs[volume] == "" {
			c.t.Fatalf("%s mounts %s, which is no volume of the file", name, v)
		}
		b.volumes[target] = c.dirs[volume]
	}
	return b
}

// ready waits until the services that one depends on are up; false: one has not been started.
func (c *compose) ready(name string) bool {
	c.t.Helper()
	for other, on := range c.file.Services[name].DependsOn {
		b := c.boxes[other]
		switch {
		case b == nil:
			return false
		case c.up[other]:
		case on.Condition == "service_completed_successfully":
			if err := b.wait(); err != nil {
				c.t.Fatalf("%s: %v\n%s", other, err, textOf(b.log))
			}
		case on.Condition == "service_healthy":
			c.healthy(other)
		default:
			c.t.Fatalf("%s waits until %s is %q", name, other, on.Condition)
		}
		c.up[other] = true
	}
	return true
}

// healthy waits until a service's healthcheck passes.
func (c *compose) healthy(name string) {
	c.t.Helper()
	check := c.file.Services[name].Healthcheck
	if len(check.Test) < 2 || check.Test[0] != "CMD" {
		c.t.Fatalf("%s has no healthcheck of CMD", name)
	}
	for end := time.Now().Add(patience(time.Minute)); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.boxes[name].run(check.Test[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s is not healthy: %v\n%s\n%s", name, err, out, textOf(c.boxes[name].log))
		}
	}
}
