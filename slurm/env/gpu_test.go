package env

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestGPUVariables: which variables show a task's devices, and by which names.
func TestGPUVariables(t *testing.T) {
	whole := func(i int, model string, env ...string) cluster.GPU {
		return cluster.GPU{
			Index: i, Number: i + 1, Minor: i, Model: model, UUID: "GPU-" + string(rune('a'+i)), Env: env,
		}
	}
	slice := whole(0, "NVIDIA A100-SXM4-40GB")
	slice.Number, slice.UUID, slice.MIG = 0, "MIG-a", &cluster.MIG{Parent: "GPU-a", Profile: "3g.20gb"}
	third := whole(2, "NVIDIA H100")
	third.Index = 0
	for _, c := range []struct {
		name string
		gpus []cluster.GPU
		want string
	}{
		{
			"NVIDIA", []cluster.GPU{whole(0, "NVIDIA H100"), whole(1, "NVIDIA H100")},
			"CUDA_VISIBLE_DEVICES=0,1 ROCR_VISIBLE_DEVICES=0,1 ZE_AFFINITY_MASK=0,1 GPU_DEVICE_ORDINAL=0,1",
		},
		{"AMD", []cluster.GPU{whole(0, "AMD Instinct MI300X")}, "ROCR_VISIBLE_DEVICES=0"},
		{
			"flags", []cluster.GPU{whole(0, "NVIDIA H100", "nvidia_gpu_env", "opencl_env")},
			"CUDA_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=0",
		},
		{"none", []cluster.GPU{whole(0, "NVIDIA H100", "no_gpu_env")}, ""},
		{
			"a slice", []cluster.GPU{slice},
			"CUDA_VISIBLE_DEVICES=MIG-a ROCR_VISIBLE_DEVICES=MIG-a ZE_AFFINITY_MASK=MIG-a GPU_DEVICE_ORDINAL=MIG-a",
		},
		{
			"not the driver's first", []cluster.GPU{third},
			"CUDA_VISIBLE_DEVICES=GPU-c ROCR_VISIBLE_DEVICES=GPU-c ZE_AFFINITY_MASK=GPU-c GPU_DEVICE_ORDINAL=GPU-c",
		},
		{
			"without numbers of the driver", []cluster.GPU{{Index: 0}},
			"CUDA_VISIBLE_DEVICES=0 ROCR_VISIBLE_DEVICES=0 ZE_AFFINITY_MASK=0 GPU_DEVICE_ORDINAL=0",
		},
	} {
		var e list
		all := cluster.RangeIDSet(0, len(c.gpus)-1)
		fence := strings.HasPrefix(c.name, "a slice") || c.name == "not the driver's first" // UUIDs are the same inside it
		j := &cluster.Job{
			Spec:  &cluster.JobSpec{Layout: &cluster.Layout{}, Kind: cluster.SrunJob},
			Alloc: &cluster.Alloc{},
		}
		e.gpus(&cluster.Launch{
			Job: j, GPUs: cluster.GPUBinding{GPUs: all}, Fenced: fence,
			Inventory: &cluster.Inventory{GPUs: c.gpus},
		})
		if got := strings.Join(e, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
