//go:build cgo && !nonvml && linux

package nvml

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Built reports whether this program can ask NVML.
const Built = true

// Bounds of one look.
const (
	maxProcs = 64 // told of one GPU
	maxCPUs  = 4096
)

// source is the library, open or not.
type source struct {
	lib     nvml.Interface
	cpus    int // of the machine
	started atomic.Bool

	mu  sync.Mutex
	has map[string]bool // functions looked up so far
}

// Open prepares to ask the library; it is loaded by the first look.
func Open() gpu.Source {
	return &source{lib: nvml.New(), has: map[string]bool{}, cpus: cpuCount()}
}

// cpuCount is the number of CPUs that affinity masks must hold, the machine's and not this process's.
func cpuCount() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err == nil {
		if set, err := cluster.ParseIDSet(strings.TrimSpace(string(text))); err == nil {
			return min(set.Max()+1, maxCPUs)
		}
	}
	return maxCPUs
}

// can reports whether the library has all of some functions.
func (s *source) can(names ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		ok, known := s.has[name]
		if !known {
			ok = s.lib.Extensions().LookupSymbol(name) == nil
			s.has[name] = ok
		}
		if !ok {
			return false
		}
	}
	return true
}

// canAny reports whether the library has a function under one of its versions' names.
func (s *source) canAny(names ...string) bool {
	for _, name := range names {
		if s.can(name) {
			return true
		}
	}
	return false
}

// ask calls a function of the library, if it has that under one of its versions' names, and reports whether it has
// answered.
func ask[T any](s *source, get func() (T, nvml.Return), names ...string) (answer T, ok bool) {
	if !s.canAny(names...) {
		return answer, false
	}
	answer, r := get()
	return answer, r == nvml.SUCCESS
}

// busAddress is where a device is on the PCI bus.
func busAddress(pci *nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
}

// canFind reports whether the library finds GPUs by their index.
func (s *source) canFind() bool {
	return s.canAny("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
}

// start loads the library. Why it cannot be used is told in the scan.
func (s *source) start(scan *gpu.Scan) bool {
	if s.started.Load() {
		return true
	}
	r := s.lib.Init()
	if r == nvml.SUCCESS {
		s.started.Store(true)
		return true
	}
	trouble(scan, r)
	return false
}

// trouble says why nothing can be known of any GPU.
func trouble(scan *gpu.Scan, r nvml.Return) {
	switch r {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		scan.Cause = gpu.CauseNoLibrary
	case nvml.ERROR_DRIVER_NOT_LOADED:
		scan.Cause, scan.Trouble = gpu.CauseNoDriver, "NVML: the NVIDIA driver is not loaded"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		scan.Cause, scan.Unusable = "mismatch", true
		scan.Trouble = "NVML: the NVIDIA driver and its library are of different versions"
	default:
		scan.Cause, scan.Unusable = "nvml", true
		scan.Trouble = fmt.Sprintf("NVML: %s (%d)", r.Error(), int(r))
	}
}

// Scan looks at all GPUs.
func (s *source) Scan() (scan gpu.Scan) {
	scan.Source = "nvml"
	if !s.start(&scan) {
		return scan
	}
	if s.can("nvmlSystemGetDriverVersion") {
		scan.Driver, _ = s.lib.SystemGetDriverVersion()
	}
	n, r := 0, nvml.ERROR_FUNCTION_NOT_FOUND
	if s.canAny("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") && s.canFind() {
		n, r = s.lib.DeviceGetCount()
	}
	if r != nvml.SUCCESS {
		trouble(&scan, r)
		return scan
	}
	var peers []string // bus addresses, in order
	ends := make([]map[string]int, n)
	for i := range n {
		reading := gpu.Reading{GPU: cluster.GPU{Index: i, Number: i + 1, Minor: i}}
		d, r := s.lib.DeviceGetHandleByIndex(i)
		if r == nvml.SUCCESS {
			r = s.identity(d, &reading)
		}
		if r != nvml.SUCCESS {
			reading.Lost = r.Error()
		} else {
			ends[i] = s.links(d, &reading)
			s.health(d, &reading)
			s.load(d, &reading)
			s.slices(d, &reading)
		}
		peers = append(peers, reading.GPU.PCI)
		scan.Readings = append(scan.Readings, reading)
	}
	for i := range scan.Readings {
		if len(ends[i]) > 0 {
			scan.Readings[i].GPU.Links = matrixRow(i, peers, ends[i])
		}
	}
	return scan
}

// matrixRow is how many links lead to each peer; nil where they lead to none (to switches).
func matrixRow(self int, peers []string, ends map[string]int) []int {
	row, any := make([]int, len(peers)), false
	for k, p := range peers {
		row[k] = ends[p]
		any = any || row[k] > 0
	}
	if row[self] = -1; !any {
		return nil
	}
	return row
}

// identity reads what a GPU is. Only its name and UUID must be known.
func (s *source) identity(d nvml.Device, out *gpu.Reading) nvml.Return {
	g := &out.GPU
	names := []string{"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}
	if pci, ok := ask(s, d.GetPciInfo, names...); ok {
		g.PCI = busAddress(&pci)
	}
	if !s.can("nvmlDeviceGetName", "nvmlDeviceGetUUID") {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	var r nvml.Return
	if g.UUID, r = d.GetUUID(); r != nvml.SUCCESS {
		return r
	}
	if g.Model, r = d.GetName(); r != nvml.SUCCESS {
		return r
	}
	g.Type = gpu.TypeName(g.Model)
	if m, ok := ask(s, d.GetMinorNumber, "nvmlDeviceGetMinorNumber"); ok {
		g.Minor = m
	}
	if text, ok := ask(s, d.GetSerial, "nvmlDeviceGetSerial"); ok {
		out.Serial = text
	}
	if m, ok := ask(s, d.GetMemoryInfo, "nvmlDeviceGetMemoryInfo"); ok {
		g.MemMB = cluster.MemMB(m.Total >> 20)
		out.MemUsedMB = int64(m.Used >> 20)
	}
	s.place(d, g)
	return nvml.SUCCESS
}

// place reads where a GPU is: CPUs, NUMA node, NVLink domain.
func (s *source) place(d nvml.Device, g *cluster.GPU) {
	gpu.Near(os.DirFS("/"), g)
	if n, ok := ask(s, d.GetNumaNodeId, "nvmlDeviceGetNumaNodeId"); ok && g.NUMA == 0 {
		g.NUMA = n
	}
	if !g.Cores.Empty() {
		return
	}
	affinity := func() ([]uint, nvml.Return) { return d.GetCpuAffinity(s.cpus) }
	if mask, ok := ask(s, affinity, "nvmlDeviceGetCpuAffinity"); ok {
		g.Cores = cpusOf(mask, s.cpus)
	}
}

// cpusOf are those of so many CPUs that a mask has.
func cpusOf(mask []uint, cpus int) cluster.IDSet {
	var ids []int
	for c := range cpus {
		if mask[c/64]>>(c%64)&1 != 0 {
			ids = append(ids, c)
		}
	}
	return cluster.NewIDSet(ids...)
}

// links reads NVLinks and the fabric; it returns how many links end at which bus address.
func (s *source) links(d nvml.Device, out *gpu.Reading) map[string]int {
	g, ends := &out.GPU, map[string]int{}
	for l := 0; l < nvml.NVLINK_MAX_LINKS && s.can("nvmlDeviceGetNvLinkState"); l++ {
		state, r := d.GetNvLinkState(l)
		if r != nvml.SUCCESS {
			continue // there is no such link
		}
		if state != nvml.FEATURE_ENABLED {
			out.NVLinksDown++
			continue
		}
		g.NVLinks++
		s.link(d, l, out, ends)
	}
	f, ok := ask(s, d.GetGpuFabricInfo, "nvmlDeviceGetGpuFabricInfo")
	if ok && f.State != nvml.GPU_FABRIC_STATE_NOT_SUPPORTED {
		s.fabric(&f, out)
	}
	return ends
}

// linkErrors are the counters of errors that each link has.
var linkErrors = [...]nvml.NvLinkErrorCounter{
	nvml.NVLINK_ERROR_DL_REPLAY,
	nvml.NVLINK_ERROR_DL_RECOVERY,
	nvml.NVLINK_ERROR_DL_CRC_FLIT,
	nvml.NVLINK_ERROR_DL_CRC_DATA,
}

// link reads where one link ends, and its errors.
func (s *source) link(d nvml.Device, l int, out *gpu.Reading, ends map[string]int) {
	kindOf := func() (nvml.IntNvLinkDeviceType, nvml.Return) { return d.GetNvLinkRemoteDeviceType(l) }
	kind, ok := ask(s, kindOf, "nvmlDeviceGetNvLinkRemoteDeviceType")
	if ok && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH {
		out.GPU.Switched = true
	}
	endOf := func() (nvml.PciInfo, nvml.Return) { return d.GetNvLinkRemotePciInfo(l) }
	names := []string{"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"}
	if pci, ok := ask(s, endOf, names...); ok {
		ends[busAddress(&pci)]++
	}
	for _, c := range linkErrors {
		count := func() (uint64, nvml.Return) { return d.GetNvLinkErrorCounter(l, c) }
		if n, ok := ask(s, count, "nvmlDeviceGetNvLinkErrorCounter"); ok {
			out.NVLinkErrors += n
		}
	}
}

// fabric reads the NVLink domain beyond the machine (nvmlDeviceGetGpuFabricInfo); without one the UUID is 0.
func (s *source) fabric(f *nvml.GpuFabricInfo, out *gpu.Reading) {
	u := f.ClusterUuid
	switch {
	case f.State != nvml.GPU_FABRIC_STATE_COMPLETED:
		out.FabricState = "registration in progress"
		if f.State == nvml.GPU_FABRIC_STATE_NOT_STARTED {
			out.FabricState = "registration not started"
		}
	case f.Status != uint32(nvml.SUCCESS):
		out.FabricState = "registration failed: " + nvml.Return(f.Status).Error()
	case u != [16]uint8{}:
		out.GPU.Fabric = fmt.Sprintf("%x-%x-%x-%x-%x.%d", u[:4], u[4:6], u[6:8], u[8:10], u[10:], f.CliqueId)
	}
}

// health reads the counters that tell of faults.
func (s *source) health(d nvml.Device, out *gpu.Reading) {
	if s.can("nvmlDeviceGetTotalEccErrors") {
		out.ECCUncorrected, _ = d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
		out.ECCCorrected, _ = d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
	}
	if s.can("nvmlDeviceGetRemappedRows") {
		if _, bad, pending, failed, r := d.GetRemappedRows(); r == nvml.SUCCESS {
			out.RemappedBad, out.RemapPending, out.RemapFailed = bad, pending, failed
		}
	}
	if p, ok := ask(s, d.GetRetiredPagesPendingStatus, "nvmlDeviceGetRetiredPagesPendingStatus"); ok {
		out.RetirePending = p == nvml.FEATURE_ENABLED
	}
	s.heat(d, out)
	slowdown := func() (uint32, nvml.Return) {
		return d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	}
	if c, ok := ask(s, slowdown, "nvmlDeviceGetTemperatureThreshold"); ok {
		out.SlowdownC = int(c)
	}
}

// heat reads the temperature and what slows the clocks.
func (s *source) heat(d nvml.Device, out *gpu.Reading) {
	if s.can("nvmlDeviceGetCurrentClocksEventReasons") {
		out.Throttle, _ = d.GetCurrentClocksEventReasons()
	} else if s.can("nvmlDeviceGetCurrentClocksThrottleReasons") {
		out.Throttle, _ = d.GetCurrentClocksThrottleReasons()
	}
	heat := func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) }
	if c, ok := ask(s, heat, "nvmlDeviceGetTemperature"); ok {
		out.TempC = int(c)
	}
}

// moved reads the counters of NVLinks, all of a GPU together, and of its bus. Asking for the momentary
// throughput of the bus instead takes 20 ms a GPU.
func (s *source) moved(d nvml.Device, out *gpu.Load) {
	if !s.can("nvmlDeviceGetFieldValues") {
		return
	}
	const all = math.MaxUint32 // links
	ask := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: all},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: all},
		{FieldId: nvml.FI_DEV_PCIE_COUNT_RX_BYTES}, {FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES}}
	if d.GetFieldValues(ask) != nvml.SUCCESS {
		return
	}
	for i, to := range []*uint64{&out.LinkIn, &out.LinkOut, &out.BusIn, &out.BusOut} {
		if ask[i].NvmlReturn != uint32(nvml.SUCCESS) {
			continue
		}
		if *to = binary.NativeEndian.Uint64(ask[i].Value[:]); i < 2 {
			*to <<= 10 // KiB
		}
	}
}

// load reads what runs on a GPU.
func (s *source) load(d nvml.Device, out *gpu.Reading) {
	if p, ok := ask(s, d.GetPowerUsage, "nvmlDeviceGetPowerUsage"); ok {
		out.PowerMW = int(p)
	}
	if u, ok := ask(s, d.GetUtilizationRates, "nvmlDeviceGetUtilizationRates"); ok {
		out.Util = int(u.Gpu)
	}
	if !s.canAny("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses") {
		return
	}
	procs, _ := d.GetComputeRunningProcesses()
	util := map[uint32]int{}
	if len(procs) > 0 && s.can("nvmlDeviceGetProcessUtilization") {
		samples, _ := d.GetProcessUtilization(0)
		for _, p := range samples {
			util[p.Pid] = int(p.SmUtil)
		}
	}
	for _, p := range procs[:min(len(procs), maxProcs)] {
		mem := int64(p.UsedGpuMemory >> 20)
		if p.UsedGpuMemory == ^uint64(0) {
			mem = 0 // not available
		}
		out.Procs = append(out.Procs, gpu.Proc{PID: int(p.Pid), MemMB: mem, Util: util[p.Pid]})
	}
}

// sliceLoads tells what runs in each slice of a GPU; of its utilization the driver tells nothing.
func (s *source) sliceLoads(d nvml.Device) (out []gpu.Load) {
	var cut gpu.Reading
	for k := range s.eachSlice(d, &cut) {
		now := gpu.Reading{}
		var r nvml.Return
		if now.GPU.UUID, r = k.GetUUID(); r != nvml.SUCCESS {
			continue
		}
		if m, ok := ask(s, k.GetMemoryInfo, "nvmlDeviceGetMemoryInfo"); ok {
			now.MemUsedMB = int64(m.Used >> 20)
		}
		s.load(k, &now)
		out = append(out, gpu.Load{UUID: now.GPU.UUID, Util: -1, MemUsedMB: now.MemUsedMB, Procs: now.Procs})
	}
	return out
}

// Loads tells what runs on each GPU, with MIG on that is what runs in all its slices together, and then in each slice.
func (s *source) Loads() []gpu.Load {
	if !s.started.Load() || !s.can("nvmlDeviceGetUUID") || !s.canFind() {
		return nil
	}
	n, r := s.lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil
	}
	out := []gpu.Load{}
	for i := range n {
		d, r := s.lib.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			continue // it is lost; the looks tell
		}
		now := gpu.Reading{Util: -1}
		if now.GPU.UUID, r = d.GetUUID(); r != nvml.SUCCESS {
			continue
		}
		if m, ok := ask(s, d.GetMemoryInfo, "nvmlDeviceGetMemoryInfo"); ok {
			now.MemUsedMB = int64(m.Used >> 20)
		}
		s.load(d, &now)
		l := gpu.Load{UUID: now.GPU.UUID, Util: now.Util, MemUsedMB: now.MemUsedMB, Procs: now.Procs}
		s.heat(d, &now)
		l.PowerMW, l.TempC, l.Throttle = now.PowerMW, now.TempC, now.Throttle
		sm := func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) }
		if mhz, ok := ask(s, sm, "nvmlDeviceGetClockInfo"); ok {
			l.ClockMHz = int(mhz)
		}
		s.moved(d, &l)
		if s.can("nvmlDeviceGetTotalEnergyConsumption") {
			l.EnergyMJ, _ = d.GetTotalEnergyConsumption()
		}
		l.Settings = s.settings(d)
		out = append(append(out, l), s.sliceLoads(d)...)
	}
	return out
}

// eachSlice yields the MIG devices of a GPU, and notes whether MIG is on.
func (s *source) eachSlice(d nvml.Device, out *gpu.Reading) iter.Seq[nvml.Device] {
	return func(yield func(nvml.Device) bool) {
		if !s.can("nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount",
			"nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId",
			"nvmlDeviceGetComputeInstanceId") {
			return
		}
		mode, _, r := d.GetMigMode()
		if out.MIG = r == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE; !out.MIG {
			return
		}
		n, _ := d.GetMaxMigDeviceCount()
		for k := range n { // some numbers have no slice
			if m, r := d.GetMigDeviceHandleByIndex(k); r == nvml.SUCCESS && !yield(m) {
				return
			}
		}
	}
}

// slices reads the MIG devices of a GPU.
func (s *source) slices(d nvml.Device, out *gpu.Reading) {
	for m := range s.eachSlice(d, out) {
		g := cluster.GPU{PCI: out.GPU.PCI, Minor: out.GPU.Minor, NUMA: out.GPU.NUMA, Cores: out.GPU.Cores,
			Model: out.GPU.Model, Fabric: out.GPU.Fabric,
			MIG: &cluster.MIG{Parent: out.GPU.UUID}}
		g.UUID, _ = m.GetUUID()
		g.MIG.Instance, _ = m.GetGpuInstanceId()
		g.MIG.Compute, _ = m.GetComputeInstanceId()
		if mem, r := m.GetMemoryInfo(); r == nvml.SUCCESS {
			g.MemMB = cluster.MemMB(mem.Total >> 20)
		}
		g.MIG.Profile = s.profile(m, g.MemMB)
		g.Type = gpu.MIGType(g.Model, g.MIG.Profile)
		out.Slices = append(out.Slices, g)
	}
}

// profile is a slice's kind: the end of its name (NVIDIA A100-SXM4-40GB MIG 3g.20gb), or made of its attributes.
func (s *source) profile(m nvml.Device, mem cluster.MemMB) string {
	if name, r := m.GetName(); r == nvml.SUCCESS {
		if _, profile, ok := strings.Cut(name, " MIG "); ok {
			return profile
		}
	}
	a, ok := ask(s, m.GetAttributes, "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes")
	if !ok {
		return fmt.Sprintf("%dgb", (mem+1023)/1024)
	}
	ci := ""
	if a.ComputeInstanceSliceCount != a.GpuInstanceSliceCount {
		ci = fmt.Sprintf("%dc.", a.ComputeInstanceSliceCount)
	}
	return fmt.Sprintf("%s%dg.%dgb", ci, a.GpuInstanceSliceCount, (a.MemorySizeMB+1023)/1024)
}

// Events waits for the driver's news for so long at most; none is no error.
func (s *source) Events(wait time.Duration, tell func(gpu.Event)) error {
	if !s.started.Load() || !s.can("nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetFree",
		"nvmlDeviceGetUUID") || !s.canAny("nvmlEventSetWait_v2", "nvmlEventSetWait") {
		return errors.New("NVML tells no events here")
	}
	set, r := s.lib.EventSetCreate()
	if r != nvml.SUCCESS {
		return fmt.Errorf("NVML: create an event set: %s", r.Error())
	}
	defer set.Free()
	n, _ := s.lib.DeviceGetCount()
	names := map[nvml.Device]string{}
	for i := range n {
		d, r := s.lib.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			continue
		}
		names[d], _ = d.GetUUID() // a lost GPU does not tell it any more
		switch r := d.RegisterEvents(nvml.EventTypeXidCriticalError, set); r {
		case nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_GPU_IS_LOST:
		default:
			return fmt.Errorf("NVML: register for events of GPU %d: %s", i, r.Error())
		}
	}
	for {
		e, r := set.Wait(uint32(wait.Milliseconds()))
		switch {
		case r == nvml.ERROR_TIMEOUT:
		case r != nvml.SUCCESS:
			return fmt.Errorf("NVML: wait for events: %s", r.Error())
		case e.EventType == nvml.EventTypeXidCriticalError:
			tell(gpu.Event{UUID: names[e.Device], XID: int(e.EventData)})
		}
	}
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
		return fmt.Errorf("%s cannot be set to %v here", name, want)
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
