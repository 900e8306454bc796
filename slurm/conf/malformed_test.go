package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMalformed: what is wrong with a file is told by its line, and the rest of it counts.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"NodeName=n1 \\\n CPUs=4 \\\n":                 "", // a continued line ends with the file
		"NodeName=n1 CPUs=4\\":                         "",
		"NodeName=n1\nNodeName=n[1-\n":                 `slurm.conf:2: NodeName=n[1-: host list "n[1-": missing ]; ignored`,
		"NodeName=n1\nPartitionName=p Default=perhaps": "slurm.conf:2: PartitionName=p: default=perhaps: want YES or NO",
		"NodeName=n1 Gres=gpu:h100:x":                  "slurm.conf:1: Gres=gpu:h100:x: want gpu, gpu:COUNT or gpu:TYPE:COUNT, and at most 1024 in all; ignored",
		"NodeName=n1 Gres=gpu:1,gpu:99999999999999999": "slurm.conf:1: Gres=gpu:99999999999999999: want gpu",
		"NodeName=n1 Gres=gpu:h100:2000":               "slurm.conf:1: Gres=gpu:h100:2000: want gpu",
		"NodeName=n1 Gres=gpu:-1":                      "slurm.conf:1: Gres=gpu:-1: want gpu",
		"NodeName=n1 Gres=fpga:a:b:2":                  "slurm.conf:1: Gres=fpga:a:b:2: want NAME, NAME:COUNT or NAME:TYPE:COUNT; ignored",
		"NodeName=n1 Gres=gpu:h100,gpu:no_consume:2":   "",
		"NodeName=n1\n\x00\xff x=1":                    `slurm.conf:2: "\x00\xff" is not Key=Value; ignored`,
	} {
		cfg, notes, err := Load(putDir(t, map[string]string{"slurm.conf": text}))
		if err != nil || len(cfg.Declared) < 1 || cfg.Declared[0].Name != "n1" {
			t.Errorf("%q: %v, %+v", text, err, cfg)
			continue
		}
		if got := strings.Join(notes, "; "); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: notes %q, want %q", text, got, want)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"a file that is not there": {
			"ClusterName=c\nInclude more.conf\n", "slurm.conf:2: Include: read configuration: open ",
		},
		"a circle": {"\nInclude slurm.conf\n", "more than 16 nested Include lines"},
		"a line without end": {
			"ClusterName=c\nx=" + strings.Repeat("y", 2<<20),
			"slurm.conf:2: read configuration, of lines of at most 1048576 bytes",
		},
	} {
		_, _, err := Load(putDir(t, map[string]string{"slurm.conf": c.text}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzLoad: whatever the files hold, reading them ends with notes, and what was read is written so that it is read
// again.
func FuzzLoad(f *testing.F) {
	f.Add("ClusterName=c\nNodeName=n[1-4] Gres=gpu:2 State=DOWN\nNodeSet=s Feature=a\nPartitionName=p Nodes=s\nDownNodes=n1\n",
		"SwitchName=a Nodes=n[1-2]\nBlockName=b\nBlockSizes=1",
		"- topology: t\n  tree:\n    switches:\n      - switch: a\n        nodes: n1\n")
	f.Add("Include slurm.conf\n\\\n=\n\"", "SwitchName= Switches=a:b",
		"topology:\n- block_sizes: [0, x]\n- topology: a\n  block:\n")
	f.Fuzz(func(t *testing.T, slurm, topology, yaml string) {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"slurm.conf": slurm, "topology.conf": topology, "topology.yaml": yaml,
		} {
			if name != "topology.yaml" || text != "" {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		cfg, _, err := Load(filepath.Join(dir, "slurm.conf"))
		if err == nil {
			Write(cfg)
		}
	})
}
