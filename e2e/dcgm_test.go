package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGPUJobs: the jobs of each GPU are in the folder that dcgm-exporter reads, and label what the client itself shows.
func TestGPUJobs(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), freeAddr(t)
	g := startGPUs(t, h100(2)+"gpu 1 util 37\ngpu 1 temp 61\n", "--gpu-jobs", dir, "--gpu-metrics", addr)
	file := func(k string) string {
		text, err := os.ReadFile(filepath.Join(dir, k))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	g.wait("empty files", func() bool { return file("0") == "" && file("1") == "" })
	g.must("sbatch", "-n1", "--gres=gpu:2", "-o", "/dev/null", "--wrap", "sleep 600")
	g.wait("the job in both", func() bool { return file("0") == "1\n" && file("1") == "1\n" })
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("the folder has %v, %v", names, err)
	}
	metrics := func() string {
		_, text := fetch(t, "http://"+addr+"/metrics")
		return text
	}
	const label = `gpu="1",UUID="GPU-00000001-1111-2222-3333-444455556666",pci_bus_id="00000000:1C:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",Hostname=`
	if text := metrics(); !strings.Contains(text, "DCGM_FI_DEV_GPU_TEMP{"+label) || !strings.Contains(text, `hpc_job="1"} 61`) || !strings.Contains(text, "# TYPE DCGM_FI_DEV_ECC_DBE_VOL_TOTAL counter\n") {
		t.Errorf("metrics:\n%s", text)
	}
	g.must("scancel", "1")
	g.wait("the job to be gone from them",
		func() bool { return file("0") == "" && file("1") == "" && !strings.Contains(metrics(), "hpc_job") })
}

// TestGPUMetricsScraped: a real Prometheus reads what a client shows.
func TestGPUMetricsScraped(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	g := startGPUs(t, h100(2), "--gpu-metrics", addr)
	p := startPrometheus(t, addr)
	g.must("sbatch", "-n1", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "sleep 600")
	g.wait("a sample of the job's GPU", func() bool {
		return p.query(`DCGM_FI_DEV_FB_USED{hpc_job="1"}`) == 1 && p.query(`DCGM_FI_DEV_FB_USED`) == 2
	})
}
