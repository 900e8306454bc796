package gpu

import "testing"

// TestTypeName holds names as drivers report them (nvidia-smi -L, /sys/class/drm product_name).
func TestTypeName(t *testing.T) {
	for model, want := range map[string]string{
		"NVIDIA H100 80GB HBM3":          "h100",
		"NVIDIA H100 PCIe":               "h100",
		"NVIDIA H100 NVL":                "h100",
		"NVIDIA H100":                    "h100",
		"NVIDIA H200":                    "h200",
		"NVIDIA H200 NVL":                "h200",
		"NVIDIA H800":                    "h800",
		"NVIDIA H20":                     "h20",
		"NVIDIA A100-SXM4-40GB":          "a100",
		"NVIDIA A100-SXM4-80GB":          "a100",
		"A100-SXM4-40GB":                 "a100",
		"NVIDIA A100 80GB PCIe":          "a100",
		"NVIDIA A100-PCIE-40GB":          "a100",
		"NVIDIA A800-SXM4-80GB":          "a800",
		"NVIDIA B200":                    "b200",
		"NVIDIA B300 SXM6 AC":            "b300",
		"NVIDIA GB200":                   "gb200",
		"NVIDIA GB300":                   "gb300",
		"NVIDIA GH200 480GB":             "gh200",
		"NVIDIA GH200 120GB":             "gh200",
		"NVIDIA L40S":                    "l40s",
		"NVIDIA L40":                     "l40",
		"NVIDIA L4":                      "l4",
		"NVIDIA A10":                     "a10",
		"NVIDIA A10G":                    "a10g",
		"NVIDIA A40":                     "a40",
		"NVIDIA A30":                     "a30",
		"NVIDIA A2":                      "a2",
		"NVIDIA RTX A6000":               "rtx_a6000",
		"NVIDIA RTX A5000":               "rtx_a5000",
		"NVIDIA RTX 6000 Ada Generation": "rtx_6000_ada",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx_pro_6000_blackwell",
		"NVIDIA GeForce RTX 4090":                      "rtx_4090",
		"NVIDIA GeForce RTX 5090":                      "rtx_5090",
		"NVIDIA GeForce RTX 2080 Ti":                   "rtx_2080_ti",
		"NVIDIA GeForce RTX 4070 Ti SUPER":             "rtx_4070_ti_super",
		"NVIDIA GeForce GTX 1080 Ti":                   "gtx_1080_ti",
		"NVIDIA TITAN RTX":                             "titan_rtx",
		"NVIDIA TITAN V":                               "titan_v",
		"TITAN Xp":                                     "titan_xp",
		"Quadro RTX 6000":                              "quadro_rtx_6000",
		"Quadro P2000":                                 "quadro_p2000",
		"Tesla T4":                                     "t4",
		"Tesla V100-SXM2-32GB":                         "v100",
		"Tesla V100-PCIE-16GB":                         "v100",
		"Tesla V100S-PCIE-32GB":                        "v100s",
		"Tesla P100-PCIE-16GB":                         "p100",
		"Tesla P40":                                    "p40",
		"Tesla K80":                                    "k80",
		"Tesla M60":                                    "m60",
		"AMD Instinct MI300X":                          "mi300x",
		"AMD Instinct MI300X OAM":                      "mi300x",
		"AMD Instinct MI250X / MI250":                  "mi250x",
		"AMD Instinct MI210":                           "mi210",
		"AMD Radeon Graphics":                          "amd_radeon_graphics",
	} {
		if got := TypeName(model); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	if got := MIGType("NVIDIA A100-SXM4-40GB", "3g.20gb"); got != "a100_3g.20gb" {
		t.Error(got)
	}
}
