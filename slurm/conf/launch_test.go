package conf

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLaunchParameters: nccl_env among other words tells NCCL its ports in all jobs.
func TestLaunchParameters(t *testing.T) {
	for words, want := range map[string]bool{"nccl_env": true, "use_interactive_step,nccl_env": true, "use_interactive_step": false} {
		file := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(file, []byte("ClusterName=c\nLaunchParameters="+words+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := Load(file)
		if err != nil || cfg.NCCLEnv != want {
			t.Errorf("LaunchParameters=%s: %v, %v", words, cfg.NCCLEnv, err)
		}
	}
}
