package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestPlugstack: what plugstack.conf says of Pyxis holds, files that it includes count, and of other plugins is told
// how their work is done here.
func TestPlugstack(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "slurm.conf")
	write("slurm.conf", "PlugStackConfig="+dir+"/site/stack.conf\n")
	write("site/stack.conf",
		"# ours\ninclude stack.d/*.conf\nsometimes x.so\nrequired /usr/lib/slurm/private-tmpdir.so base=/x\n")
	write("site/stack.d/10-pyxis.conf",
		"required /usr/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis execute_entrypoint=1 # yes\n"+
			"optional spank_pyxis.so sbatch_support=0 container_scope=global execute_entrypont=1 importer=/x\n"+
			"optional spank_pyxis.so container_scope=none\n")
	write("site/stack.d/20.conf", "optional auks.so\nrequired ours.so\n")
	write("site/stack.d/30.off", "required never.so\n")
	cfg, notes, fine, err := Check(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := (cluster.ContainerDefaults{Entrypoint: true, NoBatch: true, Global: true}); cfg.Containers != want {
		t.Errorf("%+v, want %+v", cfg.Containers, want)
	}
	told, rest := strings.Join(notes, "\n"), strings.Join(fine, "\n")
	for _, want := range []string{
		"stack.conf:3: \"sometimes x.so\" is not understood",
		"10-pyxis.conf:3: container_scope=none: want job or global",
		"10-pyxis.conf:2: execute_entrypont=1 is no argument of Pyxis: do you mean execute_entrypoint?",
		"10-pyxis.conf:2: importer=/x has no effect: images are fetched by muster itself",
		"20.conf:1: SPANK plugin auks.so cannot be loaded; for Kerberos tickets on nodes: a Prolog that calls",
		"20.conf:2: SPANK plugin ours.so cannot be loaded; TaskProlog",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q lacks %q", told, want)
		}
	}
	for _, want := range []string{
		"10-pyxis.conf:1: runtime_path=/run/pyxis has no effect",
		"stack.conf:4: SPANK plugin /usr/lib/slurm/private-tmpdir.so is not needed",
	} {
		if !strings.Contains(rest, want) {
			t.Errorf("%q lacks %q", rest, want)
		}
	}
	if strings.Contains(told, "never.so") || strings.Contains(told, "PlugStackConfig") {
		t.Error(told)
	}
	other := t.TempDir()
	for _, f := range Write(cfg) {
		if err := os.WriteFile(filepath.Join(other, f.Name), []byte(f.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again, notes, err := Load(filepath.Join(other, "slurm.conf"))
	if err != nil || !reflect.DeepEqual(again.Containers, cfg.Containers) {
		t.Errorf("written and read again: %+v %v %q", again.Containers, err, notes)
	}
	write("slurm.conf", "PlugStackConfig=none.conf\n")
	if _, notes, err = Load(file); err != nil || !strings.Contains(strings.Join(notes, ""), "PlugStackConfig=none.conf: there is no such file") {
		t.Errorf("%q %v", notes, err)
	}
}
