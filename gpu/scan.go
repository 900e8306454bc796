package gpu

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Reading is what one look at one GPU gave. Counters that a GPU does not have are 0.
type Reading struct {
	GPU    cluster.GPU   `json:"gpu"`
	Slices []cluster.GPU `json:"slices,omitempty"` // with MIG on: these are the devices, the GPU itself is none
	MIG    bool          `json:"mig_mode,omitempty"`
	// Lost says why the GPU does not answer; then only what was known before is known.
	Lost   string `json:"lost,omitempty"`
	Serial string `json:"serial,omitempty"` // of the board

	ECCUncorrected uint64 `json:"ecc_uncorrected,omitempty"` // errors since the driver was loaded
	ECCCorrected   uint64 `json:"ecc_corrected,omitempty"`
	RemappedBad    int    `json:"remapped_bad,omitempty"` // rows of memory replaced after uncorrectable errors
	RemapPending   bool   `json:"remap_pending,omitempty"`
	RemapFailed    bool   `json:"remap_failed,omitempty"`
	RetirePending  bool   `json:"retire_pending,omitempty"` // pages, before Ampere
	NVLinksDown    int    `json:"nvlinks_down,omitempty"`   // of those that the GPU has
	NVLinkErrors   uint64 `json:"nvlink_errors,omitempty"`  // replays, recoveries and CRC errors of all links
	Throttle       uint64 `json:"throttle,omitempty"`       // nvmlClocksEventReasons bits
	FabricState    string `json:"fabric_state,omitempty"`   // empty: there is no fabric, or it is complete
	TempC          int    `json:"temp_c,omitempty"`
	SlowdownC      int    `json:"slowdown_c,omitempty"` // from which hardware slows the clocks
	PowerMW        int    `json:"power_mw,omitempty"`
	Util           int    `json:"util,omitempty"` // percent of the last moment in which kernels ran
	MemUsedMB      int64  `json:"mem_used_mb,omitempty"`
	Procs          []Proc `json:"procs,omitempty"`
}

// Proc is one process that computes on a GPU.
type Proc struct {
	PID   int   `json:"pid"`
	MemMB int64 `json:"mem_mb,omitempty"`
	Util  int   `json:"util,omitempty"` // percent of the multiprocessors
}

// Scan is one look at all GPUs of the machine, in the order of their bus addresses.
type Scan struct {
	Source   string    `json:"source"` // nvml, proc, or none
	Driver   string    `json:"driver,omitempty"`
	Readings []Reading `json:"readings,omitempty"`
	// Trouble says why nothing can be known of the GPUs, Cause in a word; the kernel's list of them may be known.
	Trouble string `json:"trouble,omitempty"`
	Cause   string `json:"cause,omitempty"`
	Bus     int    `json:"bus,omitempty"` // NVIDIA's GPUs that the PCI bus shows, with or without a driver
	// Unusable GPUs run nothing while the trouble lasts.
	Unusable bool `json:"unusable,omitempty"`
}

// Causes that a Source may give besides its own.
const (
	CauseNoLibrary = "no library" // NVML is not installed
	CauseNoDriver  = "no driver"  // NVML says so
)

// Event is something that the driver told by itself.
type Event struct {
	UUID string `json:"uuid"`
	XID  int    `json:"xid,omitempty"`
	// Times is how often it has been told, where what comes in quick succession counts once.
	Times int `json:"times,omitempty"`
}

// Devices are what jobs may use: whole GPUs, and slices in the place of those that are cut.
func (s *Scan) Devices() []cluster.GPU {
	var out []cluster.GPU
	for i := range s.Readings {
		r := &s.Readings[i]
		switch {
		case r.Lost != "":
		case r.MIG:
			out = append(out, r.Slices...)
		default:
			out = append(out, r.GPU)
		}
	}
	for i := range out {
		out[i].Index = i
	}
	return out
}

// order sorts the readings as the driver numbers the GPUs, by bus address, and numbers them.
func (s *Scan) order() {
	slices.SortStableFunc(s.Readings, func(a, b Reading) int {
		return cmp.Or(cmp.Compare(a.GPU.PCI, b.GPU.PCI), a.GPU.Minor-b.GPU.Minor)
	})
	for i := range s.Readings {
		s.Readings[i].GPU.Index, s.Readings[i].GPU.Number = i, i+1
	}
}

// file is the content of a small file without its line end; "" if it is not there.
func file(root fs.FS, path string) string {
	b, err := fs.ReadFile(root, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Load is what runs on one GPU, or one slice of one, at a moment.
type Load struct {
	UUID      string `json:"uuid"`
	Util      int    `json:"util,omitempty"` // percent of the last moment in which kernels ran; -1: not told
	MemUsedMB int64  `json:"mem_used_mb,omitempty"`
	EnergyMJ  uint64 `json:"energy_mj,omitempty"` // millijoules since the driver was loaded; 0: not known
	Procs     []Proc `json:"procs,omitempty"`

	// Of whole GPUs alone; 0: not known. Traffic is in bytes since the driver was loaded.
	PowerMW  int    `json:"power_mw,omitempty"`
	TempC    int    `json:"temp_c,omitempty"`
	Throttle uint64 `json:"throttle,omitempty"` // as in Reading
	ClockMHz int    `json:"clock_mhz,omitempty"`
	LinkIn   uint64 `json:"link_in,omitempty"` // over NVLinks
	LinkOut  uint64 `json:"link_out,omitempty"`
	BusIn    uint64 `json:"bus_in,omitempty"` // over PCI Express
	BusOut   uint64 `json:"bus_out,omitempty"`
	// Settings is what the GPU is set to; of whole ones alone.
	Settings Settings `json:"settings,omitempty"`
}

// Settings are what a GPU is set to and a job can change, by name: its compute mode, persistence mode, power limit
// (mW) and application clocks (memory and graphics, MHz). Values that the driver does not tell are not there.
type Settings map[string][]int

// Same reports whether a GPU is set to all that these say.
func (s Settings) Same(now Settings) bool {
	for name, want := range s {
		if have, told := now[name]; told && !slices.Equal(want, have) {
			return false
		}
	}
	return true
}
