package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnfit: a key that changes what programs compute and can not be done is refused, with its place and the way out.
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

// TestClosedToRoot: DisableRootJobs of the cluster is in force, and what would leave a partition open that is to be
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
