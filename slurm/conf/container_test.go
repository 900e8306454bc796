package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestContainer: job_container.conf is active where slurm.conf asks for it, and says what of it is wrong.
func TestContainer(t *testing.T) {
	const with = "JobContainerType=job_container/tmpfs\n"
	std := []string{"/tmp", "/dev/shm"}
	for _, c := range []struct {
		what, slurm, file string
		want              []cluster.PrivateDirs
		note              string
	}{
		{"all nodes", with, "AutoBasePath=true\nBasePath=/var/nvme/%n Shared=true InitScript=/etc/init.sh\n",
			[]cluster.PrivateDirs{{Base: "/var/nvme/%n", Make: true, Dirs: std, Shared: true, Init: "/etc/init.sh"}},
			""},
		{
			"folders", with, "BasePath=/b Dirs=/tmp,/var/tmp/\n",
			[]cluster.PrivateDirs{{Base: "/b", Dirs: []string{"/tmp", "/var/tmp"}}}, "",
		},
		{"one node otherwise", with, "BasePath=/b\nNodeName=n[2-3] BasePath=none\n",
			[]cluster.PrivateDirs{{Base: "/b", Dirs: std}, {Nodes: []cluster.NodeName{"n2", "n3"}, Dirs: std}}, ""},
		{
			"not asked for", "", "BasePath=/b\n", nil,
			"job_container.conf: not active: slurm.conf does not say JobContainerType=job_container/tmpfs",
		},
		{"no file", with, "", nil, "changes nothing without a BasePath in job_container.conf"},
		{
			"another kind", "JobContainerType=job_container/cncu\n", "", nil,
			"JobContainerType=job_container/cncu is not known: want job_container/tmpfs",
		},
		{
			"a wrong path", with, "BasePath=b\n", []cluster.PrivateDirs{{Base: "b", Dirs: std}},
			"job_container.conf:1: basepath=b: want a path that begins with /",
		},
		{
			"a wrong word", with, "BasePath=/b Shared=maybe Colour=red\n",
			[]cluster.PrivateDirs{{Base: "/b", Dirs: std}},
			"job_container.conf:1: shared=maybe: want true or false",
		},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"slurm.conf":         "ClusterName=c\nNodeName=n[1-3]\nPartitionName=p Nodes=ALL\n" + c.slurm,
			"job_container.conf": c.file,
		} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cfg, notes, err := Load(filepath.Join(dir, "slurm.conf"))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(cfg.PrivateDirs, c.want) {
			t.Errorf("%s: %+v", c.what, cfg.PrivateDirs)
		}
		if said := strings.Join(notes, "\n"); !strings.Contains(said, c.note) || c.note == "" && said != "" {
			t.Errorf("%s: %s", c.what, said)
		}
	}
	var cfg cluster.Config
	cfg.PrivateDirs = []cluster.PrivateDirs{{Base: "/b/%n/%h", Dirs: std}, {Nodes: []cluster.NodeName{"n2"}}}
	if p := cfg.PrivateOn("n1", "host.example"); p == nil || p.Base != "/b/n1/host" || cfg.PrivateOn("n2", "h") != nil {
		t.Errorf("on nodes: %+v", p)
	}
}
