// Command muster-gpu is the GPU helper with NVML: the part of muster that needs cgo. It is no program for people: make
// build embeds it in muster, which runs it as muster internal gpu-helper.
package main

import (
	"os"

	"dev.muster/gpu"
	"dev.muster/gpu/nvml"
)

func main() { os.Exit(gpu.HelperMain(os.Args[1:], nvml.Open)) }
