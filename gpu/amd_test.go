package gpu

import (
	"context"
	"fmt"
	"testing"
)

// TestAMDLoads: what runs on AMD's GPUs, and how they are, is read from the driver's files; what is not there is
// not told.
func TestAMDLoads(t *testing.T) {
	const dev = "sys/class/drm/renderD128/device/"
	root := tree(map[string]string{
		amdNodes + "/0/properties":             "cpu_cores_count 64\nsimd_count 0\nvendor_id 0\n",
		amdNodes + "/1/properties":             "simd_count 1216\nvendor_id 4098\nlocation_id 1280\ndomain 0\ndrm_render_minor 128\nunique_id 1\n",
		amdNodes + "/1/gpu_id":                 "51234\n",
		amdNodes + "/2/properties":             "simd_count 1216\nvendor_id 4098\nlocation_id 9728\ndomain 0\ndrm_render_minor 136\nunique_id 2\n",
		dev + "product_name":                   "Instinct MI300X\n",
		dev + "gpu_busy_percent":               "87\n",
		dev + "mem_info_vram_used":             "1073741824\n",
		dev + "mem_info_vram_total":            "2147483648\n",
		dev + "ras/umc_err_count":              "ue: 2\nce: 31\n",
		dev + "hwmon/hwmon3/temp1_input":       "54000\n",
		dev + "hwmon/hwmon3/power1_average":    "350000000\n",
		amdProcs + "/4711/vram_51234":          "536870912\n",
		amdProcs + "/4711/vram_1":              "5\n",
		amdProcs + "/4712/vram_1":              "5\n",
		"sys/class/drm/renderD136/device/none": "",
	})
	if got := fmt.Sprint(amdLoads(root)); got != "[{GPU-0000000000000001 87 1024 0 [{4711 512 0}] 350000 54 0 0 0 0 0 0 map[]} "+
		"{GPU-0000000000000002 -1 0 0 [] 0 0 0 0 0 0 0 0 map[]}]" {
		t.Errorf("loads %s", got)
	}
	r := amdGPUs(t.Context(), root, func(context.Context, string, ...string) string { return "" })
	if len(r) != 2 || r[0].GPU.Model != "AMD Instinct MI300X" || r[0].GPU.Type != "mi300x" || !r[0].GPU.AMD() || r[0].GPU.MemMB != 2048 || r[0].ECCUncorrected != 2 || r[0].ECCCorrected != 31 ||
		r[0].TempC != 54 || r[0].PowerMW != 350000 || r[0].Util != 87 || r[0].MemUsedMB != 1024 {
		t.Errorf("readings %+v", r)
	}
	if len(r) == 2 && (!r[1].GPU.AMD() || r[1].Util != 0 || r[1].TempC != 0) {
		t.Errorf("one that tells little: %+v", r[1])
	}
	if got := amdLoads(tree(nil)); len(got) != 0 {
		t.Errorf("a machine without: %v", got)
	}
}
