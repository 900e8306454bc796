package format

import (
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// BillingWeights writes cpu=1,mem=0.25G,gres/gpu=2; memory is weighed by the gibibyte.
func BillingWeights(list []cluster.Amount) string { return Weights(list, 1024, "G") }

// Weights writes weights by which jobs are billed, that of memory for so many megabytes, with their unit.
func Weights(list []cluster.Amount, megabytes float64, unit string) string {
	var words []string
	for _, a := range list {
		n, of := a.N, ""
		if a.TRES == "mem" {
			n, of = n*megabytes, unit
		}
		words = append(words, a.TRES+"="+strconv.FormatFloat(n, 'f', -1, 64)+of)
	}
	return strings.Join(words, ",")
}

// JobDefaults is what jobs get for each GPU.
func JobDefaults(d cluster.PerGPU) string {
	var words []string
	if d.CPUs > 0 {
		words = append(words, "DefCpuPerGPU="+strconv.Itoa(d.CPUs))
	}
	if d.MemMB > 0 {
		words = append(words, "DefMemPerGPU="+strconv.FormatInt(int64(d.MemMB), 10))
	}
	return strings.Join(words, ",")
}
