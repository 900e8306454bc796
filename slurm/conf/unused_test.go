package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnfit: a key that changes what programs compute and cannot be done is refused, with its place and the way out.
func TestUnfit(t *testing.T) {
	for value, refused := range map[string]bool{
		"none": false, "openmpi": false, "pmix": false, "PMI2": false, "cray_shasta": true, "lam": true,
	} {
		file := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(file, []byte("ClusterName=c\nMpiDefault="+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(file)
		told := fmt.Sprint(err)
		says := strings.Contains(told, "slurm.conf:2: MpiDefault="+value) && strings.Contains(told, "there are none, pmi2 and pmix")
		if says != refused || (err != nil) != refused {
			t.Errorf("MpiDefault=%s: %v", value, err)
		}
	}
}

// TestDiffers: a value that asks for something else than what is always so is told, with what happens instead; the
// values that mean it are not.
func TestDiffers(t *testing.T) {
	for line, want := range map[string]string{
		"SelectType=select/linear":             "as with select/cons_tres",
		"SchedulerType=sched/builtin":          "as with sched/backfill",
		"SwitchType=switch/nvidia_imex":        "no IMEX channels",
		"SwitchType=switch/hpe_slingshot":      "no Slingshot services",
		"TaskPlugin=Task/None":                 "as with task/affinity,task/cgroup",
		"ProctrackType=proctrack/linuxproc":    "as with proctrack/cgroup",
		"SelectType=select/cons_tres":          "",
		"SchedulerType=sched/backfill":         "",
		"SwitchType=switch/none":               "",
		"TaskPlugin=task/affinity,task/cgroup": "",
		"ProctrackType=proctrack/cgroup":       "",
	} {
		_, notes := load(t, "ClusterName=c\n"+line+"\n")
		told := strings.Join(notes, "\n")
		if (told == "") != (want == "") || !strings.Contains(told, want) {
			t.Errorf("%s: %q, want %q", line, told, want)
		}
	}
}

// TestClosedToRoot: DisableRootJobs of the cluster is active, and what would leave a partition open that is to be
// closed is refused.
func TestClosedToRoot(t *testing.T) {
	cfg, notes := load(t, "DisableRootJobs=YES\n")
	if !cfg.NoRootJobs || len(notes) > 0 {
		t.Errorf("%v, notes %q", cfg.NoRootJobs, notes)
	}
	for key, want := range map[string]string{
		"MaxNodes=0":               "MaxNodes=0 would leave it open: close it by State=DRAIN",
		"MaxCPUsPerNode=3":         "<nil>",
		"MaxCPUsPerNode=UNLIMITED": "<nil>",
		"MaxNodes=1":               "<nil>",
	} {
		file := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(file, []byte("PartitionName=p Nodes=ALL "+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(file); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}
