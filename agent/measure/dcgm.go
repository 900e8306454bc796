package measure

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Data for other tools about the jobs on this machine's GPUs: dcgm-exporter reads a folder with a file for
// each GPU, and where it does not run the GPUs' load is shown by the names that it has, so that its dashboards
// work.

// DriverNumber is the number by which the driver and its tools know a GPU.
func DriverNumber(g *cluster.GPU) int {
	if g.Number > 0 {
		return g.Number - 1
	}
	return g.Minor
}

// KeepGPUJobs keeps a file for each GPU in a folder, with the numbers of its jobs, one a line: what dcgm-exporter's
// --hpc-job-mapping-dir reads. Files are there for GPUs without jobs too, empty. It looks again when moved says so,
// until ctx ends.
func KeepGPUJobs(ctx context.Context, dir string, jobs func() map[int][]cluster.JobID, moved <-chan struct{},
	log *slog.Logger) {
	if dir == "" {
		return
	}
	written := map[int]string{}
	for {
		for k, list := range jobs() {
			text := jobLines(list)
			if old, there := written[k]; there && old == text {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(k)), []byte(text), 0o644); err != nil {
				log.Warn("the jobs of a GPU cannot be written down", "gpu", k, "err", err)
				continue // tried again with the next change
			}
			written[k] = text
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

func jobLines(jobs []cluster.JobID) string {
	var text strings.Builder
	for _, id := range jobs {
		fmt.Fprintf(&text, "%d\n", id)
	}
	return text.String()
}

// dcgmMetrics are what is told of a GPU, by the names of dcgm-exporter.
var dcgmMetrics = [...]struct {
	name, kind, help string
	of               func(*gpu.Reading) (float64, bool)
}{
	{
		"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).",
		func(r *gpu.Reading) (float64, bool) { return float64(r.Util), r.Util >= 0 && !r.MIG },
	},
	{
		"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).",
		func(r *gpu.Reading) (float64, bool) { return float64(r.MemUsedMB), true },
	},
	{"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", func(r *gpu.Reading) (float64, bool) {
		return float64(int64(r.GPU.MemMB) - r.MemUsedMB), r.GPU.MemMB > 0
	}},
	{
		"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).",
		func(r *gpu.Reading) (float64, bool) { return float64(r.TempC), r.TempC > 0 },
	},
	{
		"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).",
		func(r *gpu.Reading) (float64, bool) { return float64(r.PowerMW) / 1000, r.PowerMW > 0 },
	},
	{
		"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Total number of single-bit volatile ECC errors.",
		func(r *gpu.Reading) (float64, bool) { return float64(r.ECCCorrected), true },
	},
	{
		"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Total number of double-bit volatile ECC errors.",
		func(r *gpu.Reading) (float64, bool) { return float64(r.ECCUncorrected), true },
	},
}

// metricEscape is for values of labels.
var metricEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// busID is a PCI address as NVIDIA's tools write it: the domain with eight digits, letters in upper case.
func busID(pci string) string {
	domain, rest, ok := strings.Cut(strings.ToUpper(pci), ":")
	if !ok || len(domain) > 8 {
		return pci
	}
	return strings.Repeat("0", 8-len(domain)) + domain + ":" + rest
}

// GPUMetrics are a look at GPUs in the text format of Prometheus: a sample for each job of a GPU, with its number in
// hpc_job, or one without where there is none. jobs are by the driver's number.
func GPUMetrics(scan *gpu.Scan, host string, jobs map[int][]cluster.JobID) string {
	var b strings.Builder
	for _, m := range dcgmMetrics {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for i := range scan.Readings {
			r := &scan.Readings[i]
			value, told := m.of(r)
			if r.Lost != "" || !told {
				continue
			}
			labels := gpuLabels(&r.GPU, host)
			mine := jobs[DriverNumber(&r.GPU)]
			for _, id := range mine {
				fmt.Fprintf(&b, "%s{%s,hpc_job=\"%d\"} %g\n", m.name, labels, id, value)
			}
			if len(mine) == 0 {
				fmt.Fprintf(&b, "%s{%s} %g\n", m.name, labels, value)
			}
		}
	}
	return b.String()
}

func gpuLabels(g *cluster.GPU, host string) string {
	return fmt.Sprintf(`gpu="%d",UUID="%s",pci_bus_id="%s",device="nvidia%d",modelName="%s",Hostname="%s"`,
		DriverNumber(g), metricEscape.Replace(g.UUID), metricEscape.Replace(busID(g.PCI)), g.Minor,
		metricEscape.Replace(g.Model), metricEscape.Replace(host))
}
