//go:build cgo && !nonvml && linux

package nvml

import (
	"fmt"
	"slices"

	"dev.muster/gpu"
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

// settings reads what a GPU is set to.
func (s *source) settings(d nvml.Device) gpu.Settings {
	out := gpu.Settings{}
	for i := range settings {
		if k := &settings[i]; s.can(k.get) {
			if v, r := k.read(d); r == nvml.SUCCESS {
				out[k.name] = v
			}
		}
	}
	return out
}

// Set sets a GPU to a value, unless it has that.
func (s *source) Set(uuid, name string, want []int) error {
	i := slices.IndexFunc(settings, func(k setting) bool { return k.name == name })
	if i < 0 || !s.started.Load() {
		return fmt.Errorf("%s can not be set to %v here", name, want)
	}
	k := &settings[i]
	d, r := nvml.Device(nil), nvml.ERROR_FUNCTION_NOT_FOUND
	if s.can("nvmlDeviceGetHandleByUUID") {
		d, r = s.lib.DeviceGetHandleByUUID(uuid)
	}
	var have []int
	if r == nvml.SUCCESS && s.can(k.get) {
		have, r = k.read(d)
	}
	switch {
	case r != nvml.SUCCESS:
	case len(have) != len(want):
		return fmt.Errorf("%s: want %d values, not %v", name, len(have), want)
	case slices.Equal(have, want):
		return nil
	case s.can(k.set):
		r = k.write(d, want)
	default:
		r = nvml.ERROR_FUNCTION_NOT_FOUND
	}
	if r != nvml.SUCCESS {
		return fmt.Errorf("%s is %v and could not be set to %v: %s", name, have, want, r.Error())
	}
	return nil
}
