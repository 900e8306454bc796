package conf

import (
	"os"
	"path/filepath"
	"testing"

	"dev.muster/cluster"
)

// TestLaunchParameters: nccl_env among other words tells NCCL its ports in all jobs.
func TestLaunchParameters(t *testing.T) {
	for words, want := range map[string]bool{
		"nccl_env": true, "use_interactive_step,nccl_env": true, "use_interactive_step": false,
	} {
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

// TestInteractiveStep: with use_interactive_step salloc begins its shell by srun, with options of the site's or
// Slurm's.
func TestInteractiveStep(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"LaunchParameters=use_interactive_step,nccl_env": "--interactive --preserve-env --pty $SHELL",
		`InteractiveStepOptions="--pty bash"`:            "",
		"LaunchParameters=use_interactive_step\n" + `InteractiveStepOptions="--interactive --mpi=none --pty $SHELL -l"`: "--interactive --mpi=none --pty $SHELL -l",
	} {
		cfg, notes, err := Load(textFile(t, text))
		if err != nil || len(notes) > 0 || cfg.InteractiveStep != want {
			t.Errorf("%s: %q, %v %v", text, cfg.InteractiveStep, notes, err)
		}
	}
}

// TestPerGPU: what a GPU brings with it, in the cluster and in a partition.
func TestPerGPU(t *testing.T) {
	cfg, notes, err := Load(textFile(t, "DefCpuPerGPU=3\nDefMemPerGPU=1234\nDefMemPerCPU=100\nMaxTasksPerNode=20\nMaxStepCount=7\nJobFileAppend=1\n"+
		"PartitionName=p Nodes=ALL DefCpuPerGPU=5\nPartitionName=q Nodes=ALL JobDefaults=DefCpuPerGPU=2,DefMemPerGPU=10"))
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	if cfg.PerGPU != (cluster.PerGPU{CPUs: 3, MemMB: 1234}) || cfg.Partitions[0].PerGPU != (cluster.PerGPU{CPUs: 5}) ||
		cfg.Partitions[1].PerGPU != (cluster.PerGPU{CPUs: 2, MemMB: 10}) || cfg.DefMem != (cluster.Mem{Per: cluster.MemPerCPU, MB: 100}) {
		t.Errorf("%+v %+v", cfg.PerGPU, cfg.Partitions)
	}
	if cfg.MaxTasksPerNode != 20 || cfg.MaxStepCount != 7 || !cfg.AppendOutput {
		t.Errorf("%d %d %v", cfg.MaxTasksPerNode, cfg.MaxStepCount, cfg.AppendOutput)
	}
	if _, notes, _ := Load(textFile(t, "PartitionName=q Nodes=ALL JobDefaults=DefMemPerCPU=10")); len(notes) != 1 {
		t.Error(notes)
	}
}

func textFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(file, []byte("ClusterName=c\n"+text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
