//go:build cgo && !nonvml && linux

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// setting is something that a GPU is set to: how it is read and set, and by which functions of the library.
type setting struct {
	name     string
	get, set string
	read     func(nvml.Device) ([]int, nvml.Return)
	write    func(nvml.Device, []int) nvml.Return
}

var settings = []setting{
	{"compute mode", "nvmlDeviceGetComputeMode", "nvmlDeviceSetComputeMode",
		func(d nvml.Device) ([]int, nvml.Return) { v, r := d.GetComputeMode(); return []int{int(v)}, r },
		func(d nvml.Device, v []int) nvml.Return { return d.SetComputeMode(nvml.ComputeMode(v[0])) }},
	{"persistence mode", "nvmlDeviceGetPersistenceMode", "nvmlDeviceSetPersistenceMode",
		func(d nvml.Device) ([]int, nvml.Return) { v, r := d.GetPersistenceMode(); return []int{int(v)}, r },
		func(d nvml.Device, v []int) nvml.Return { return d.SetPersistenceMode(nvml.EnableState(v[0])) }},
	{"power limit", "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceSetPowerManagementLimit",
		func(d nvml.Device) ([]int, nvml.Return) { v, r := d.GetPowerManagementLimit(); return []int{int(v)}, r },
		func(d nvml.Device, v []int) nvml.Return { return d.SetPowerManagementLimit(uint32(v[0])) }},
	{"application clocks", "nvmlDeviceGetApplicationsClock", "nvmlDeviceSetApplicationsClocks",
		func(d nvml.Device) ([]int, nvml.Return) {
			mem, r1 := d.GetApplicationsClock(nvml.CLOCK_MEM)
			sm, r2 := d.GetApplicationsClock(nvml.CLOCK_GRAPHICS)
			return []int{int(mem), int(sm)}, max(r1, r2)
		},
		func(d nvml.Device, v []int) nvml.Return { return d.SetApplicationsClocks(uint32(v[0]), uint32(v[1])) }},
}
