package conf

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
)

// TestGRESLines reads a gres.conf with every key, and tells what it does not understand.
func TestGRESLines(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("slurm.conf", "ClusterName=c\nNodeName=n[1-2] CPUs=8 Gres=gpu:a100:2\n")
	write("gres.conf", `AutoDetect=nvml
NodeName=n2 AutoDetect=off Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-3 Links=-1,4 Flags=amd_gpu_env
NodeName=n1 Name=gpu Type=a100_1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21
Name=mps Count=1K File=/dev/nvidia0
Name=gpu Count=x
AutoDetect=magic
`)
	cfg, notes, err := Load(path.Join(dir, "slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range cfg.GRES {
		got = append(got,
			fmt.Sprintf("%s %v %s|%s %s %v %v %d %s %v %v", l.At, l.Nodes, l.AutoDetect, l.Name, l.Type,
				l.Files, l.Multiple, l.Count, l.Cores.String(), l.Links, l.Flags))
	}
	want := []string{
		"gres.conf:1 [] nvml|  [] false 0  [] []",
		"gres.conf:2 [n2] off|gpu a100 [/dev/nvidia0 /dev/nvidia1] false 0 0-3 [-1 4] [amd_gpu_env]",
		"gres.conf:3 [n1] |gpu a100_1g.5gb [/dev/nvidia0 /dev/nvidia-caps/nvidia-cap21] true 0  [] []",
		"gres.conf:4 [] |mps  [/dev/nvidia0] false 1024  [] []",
		"gres.conf:5 [] |gpu  [] false 0  [] []",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("lines:\n%s", strings.Join(got, "\n"))
	}
	wantNotes := []string{
		"gres.conf:5: Count=x: want a number", "gres.conf:6: AutoDetect=magic: want nvml, rsmi or off",
		"gres.conf:6: neither Name nor AutoDetect; the line has no effect",
	}
	for i, n := range notes {
		notes[i] = strings.TrimPrefix(n, dir+"/")
	}
	if strings.Join(notes, "\n") != strings.Join(wantNotes, "\n") {
		t.Errorf("notes:\n%s", strings.Join(notes, "\n"))
	}
	if c := cfg.Declared[1].Inventory.GPUs[1].Cores.String(); c != "0-3" {
		t.Errorf("cores of n2's second GPU: %s", c)
	}
}

// TestCoresOfThreads: Cores= of a GPU counts cores (gres.conf(5)); of a node with threads each is several CPUs.
func TestCoresOfThreads(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf": "ClusterName=c\nNodeName=n1 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 Gres=gpu:2\n",
		"gres.conf":  "NodeName=n1 Name=gpu File=/dev/nvidia0 Cores=0-1\nNodeName=n1 Name=gpu File=/dev/nvidia1 Cores=2-3\n",
	} {
		if err := os.WriteFile(path.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg, _, err := Load(path.Join(dir, "slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if g := cfg.Declared[0].Inventory.GPUs; g[0].Cores.String() != "0-3" || g[1].Cores.String() != "4-7" {
		t.Errorf("CPUs of the GPUs: %s and %s", g[0].Cores, g[1].Cores)
	}
}
