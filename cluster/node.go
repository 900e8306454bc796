package cluster

import (
	"strconv"
	"strings"
	"time"
)

// AMDModels is what the model names of AMD's GPUs begin with.
const AMDModels = "AMD "

// AMD reports whether the device is one of AMD's.
func (g *GPU) AMD() bool { return strings.HasPrefix(g.Model, AMDModels) }

// GPU is one device (or MIG instance) of a node.
type GPU struct {
	Index int    `json:"index"`
	Type  string `json:"type"` // Slurm's type name: h100, a100, a100_3g.20gb …
	UUID  string `json:"uuid,omitempty"`
	PCI   string `json:"pci,omitempty"`
	Minor int    `json:"minor"`
	Model string `json:"model,omitempty"`
	MemMB MemMB  `json:"mem_mb,omitempty"`
	NUMA  int    `json:"numa,omitempty"`
	Cores IDSet  `json:"cores,omitzero"` // CPUs near the device
	// Number is one more than the driver's number for the device, its place by bus address; 0: not known.
	Number int `json:"number,omitempty"`
	// NVLinks is how many NVLinks are up; Switched says that they lead to NVSwitches.
	NVLinks  int  `json:"nvlinks,omitempty"`
	Switched bool `json:"switched,omitempty"`
	// Links is how many NVLinks lead straight to each GPU of the machine, in the order of their bus addresses;
	// -1 is the GPU itself (Links= of gres.conf). Empty where all lead to switches.
	Links []int `json:"links,omitempty"`
	// Fabric is the NVLink domain that reaches beyond the machine, CLUSTER-UUID.CLIQUE: the GPUs of all nodes
	// with the same one (an NVL72 rack, say) are one.
	Fabric string `json:"fabric,omitempty"`
	MIG    *MIG   `json:"mig,omitempty"` // set if this is a slice of a GPU
	// Env are the variables that show the device to jobs, by their flags of gres.conf(5): nvidia_gpu_env,
	// amd_gpu_env …; empty: those that suit its make.
	Env []string `json:"env,omitempty"`
	// Missing marks a device that was here and is not found any more.
	Missing bool `json:"missing,omitempty"`
}

// MIG says of which GPU a slice is (MIG: a Multi-Instance GPU is cut into devices of their own).
type MIG struct {
	Parent   string `json:"parent"`  // UUID of the whole GPU; the slice's PCI and Minor are its
	Profile  string `json:"profile"` // 3g.20gb: compute slices and memory
	Instance int    `json:"gi"`      // GPU instance
	Compute  int    `json:"ci"`      // compute instance in it
}

// NIC is one InfiniBand or RoCE port.
type NIC struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	State  string `json:"state,omitempty"`
	Rate   string `json:"rate,omitempty"`
	Link   string `json:"link,omitempty"` // InfiniBand or Ethernet
	PCI    string `json:"pci,omitempty"`
	NUMA   int    `json:"numa,omitempty"`
	Net    string `json:"net,omitempty"` // its network interface
	// Near are the GPUs by how far they are, the nearest first; those across sockets are left out.
	Near []NearGPUs `json:"near,omitempty"`
	// Leaf is the name of the switch at the other end of its cable, LeafGUID that one's address.
	Leaf     string    `json:"leaf,omitempty"`
	LeafGUID string    `json:"leaf_guid,omitempty"`
	Errors   []Counter `json:"errors,omitempty"` // counters of errors that are not 0
}

// PortActive is the state of a port that is well.
const PortActive = "ACTIVE"

// Gbits is how fast the port's link is, in Gbit/s; 0: not known.
func (n *NIC) Gbits() float64 {
	word, _, _ := strings.Cut(n.Rate, " ") // 400 Gb/sec (4X NDR)
	f, _ := strconv.ParseFloat(word, 64)
	return f
}

// Counter is one counter of a port.
type Counter struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// NearGPUs are GPUs at the same distance from a port, by their minor numbers.
type NearGPUs struct {
	Distance string `json:"distance"`
	GPUs     IDSet  `json:"gpus"`
}

// Distances on the PCI buses, in the words of nvidia-smi topo.
const (
	DistancePIX  = "PIX"  // below the same switch
	DistancePXB  = "PXB"  // across switches
	DistancePHB  = "PHB"  // across ports of the same root complex
	DistanceNODE = "NODE" // across root complexes of the same NUMA node
	DistanceSYS  = "SYS"  // across sockets
)

// Distances lists them from the nearest.
var Distances = []string{DistancePIX, DistancePXB, DistancePHB, DistanceNODE, DistanceSYS}

// DistanceTo is how far a GPU is from the port.
func (n *NIC) DistanceTo(g *GPU) string {
	for _, at := range n.Near {
		if at.GPUs.Has(g.Minor) {
			return at.Distance
		}
	}
	return DistanceSYS
}

// Inventory is what a node found itself to be, or what hollow flags or configuration say.
type Inventory struct {
	Host           string    `json:"host,omitempty"` // the machine's own name
	Addr           string    `json:"addr,omitempty"` // where its client listens
	Sockets        int       `json:"sockets"`
	CoresPerSocket int       `json:"cores_per_socket"`
	ThreadsPerCore int       `json:"threads_per_core"`
	CPUs           int       `json:"cpus"`
	MemMB          MemMB     `json:"mem_mb"`
	FreeMemMB      MemMB     `json:"free_mem_mb,omitempty"`
	TmpMB          int64     `json:"tmp_mb,omitempty"`
	GPUs           []GPU     `json:"gpus,omitempty"`
	NICs           []NIC     `json:"nics,omitempty"`
	Features       []string  `json:"features,omitempty"`          // those that are active
	Inactive       []string  `json:"inactive_features,omitempty"` // that are available beside them
	OS             string    `json:"os,omitempty"`
	Arch           string    `json:"arch,omitempty"`
	Version        string    `json:"version,omitempty"`
	Boot           time.Time `json:"boot,omitzero"`
	Isolation      string    `json:"isolation,omitempty"` // how jobs are fenced: cgroup2, cgroup1, none
	BootID         string    `json:"boot_id,omitempty"`   // another one after each boot
	Hollow         bool      `json:"hollow,omitempty"`
	Weight         int       `json:"weight,omitempty"`
	SpecCPUs       IDSet     `json:"spec_cpus,omitzero"`    // not for jobs (CpuSpecList, CoreSpecCount)
	SpecMemMB      MemMB     `json:"spec_mem_mb,omitempty"` // nor this memory (MemSpecLimit)
	Shared         []GRES    `json:"shared,omitempty"`      // shards, MPS shares, and what is counted, as gres.conf has it
	GPUDriver      string    `json:"gpu_driver,omitempty"`  // its version
	Interface      string    `json:"interface,omitempty"`   // the network interface that has Addr
	Faults         []Fault   `json:"faults,omitempty"`      // what is wrong with the machine's parts
	Topology       string    `json:"topology,omitempty"`    // the leaf switch or block that it says it is in
	Said           Hardware  `json:"said,omitzero"`         // what its client was told that it has
	External       bool      `json:"external,omitempty"`    // it has no client, and takes only external jobs
}

// CoresOf are the cores that CPUs are of.
func (inv *Inventory) CoresOf(cpus IDSet) (cores IDSet) {
	for k := range cpus.All() {
		cores.put(k / max(inv.ThreadsPerCore, 1))
	}
	return cores
}

// Node is one compute node: what it is and whether it may be used. Its resources in use are
// its Load, kept beside it.
type Node struct {
	Name       NodeName      `json:"name"`
	Order      int           `json:"order"` // in which it became known, see CompareNodes
	Inventory  Inventory     `json:"inventory"`
	Owner      string        `json:"owner,omitempty"` // the member whose client it is; empty on the servers' own machine
	Up         bool          `json:"up"`              // its client holds a lease
	Quiet      bool          `json:"quiet,omitempty"` // its client has not been heard of for a moment
	Down       bool          `json:"down"`            // set down by an operator or after it was lost
	Drain      bool          `json:"drain"`
	Failing    bool          `json:"failing,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	ReasonBy   string        `json:"reason_by,omitempty"`
	ReasonUID  uint32        `json:"reason_uid,omitempty"`
	ReasonAt   time.Time     `json:"reason_at,omitzero"`
	Registered time.Time     `json:"registered,omitzero"`
	LastBusy   time.Time     `json:"last_busy,omitzero"`
	Silent     bool          `json:"silent,omitempty"` // down since it fell silent, whatever reason it is drained for
	Comment    string        `json:"comment,omitempty"`
	Extra      string        `json:"extra,omitempty"`
	Full       Hardware      `json:"full,omitzero"`         // what it should have
	Lacks      string        `json:"lacks,omitempty"`       // what of that it has not, in words
	DrainedFor []Fault       `json:"drained_for,omitempty"` // faults, as long as they are the reason
	Trouble    *FailureScore `json:"trouble,omitempty"`     // nil: its client is of a version before this
	Expected   Expected      `json:"expected,omitempty"`
	Reboot     *Reboot       `json:"reboot,omitempty"`     // asked for or under way
	Power      *Power        `json:"power,omitempty"`      // off, or on its way between on and off
	ReportSeq  uint64        `json:"report_seq,omitempty"` // last Report applied, for idempotence
	Unsure     bool          `json:"unsure,omitempty"`     // the state was restored, and it has not told yet what it knows (Restored)
	ResumeAt   time.Time     `json:"resume_at,omitzero"`   // when it is to serve again
}

// Expected says how a node was made known before it registered; empty if it came by itself.
type Expected string

// The kinds of node that an operator makes known in advance.
const (
	ExpectedCloud  Expected = "cloud"  // comes and goes
	ExpectedFuture Expected = "future" // not shown before it has come
	// ExpectedExternal nodes have no client: another manager runs what jobs of kind External hold there.
	ExpectedExternal Expected = "external"
)

// Usable reports whether new work may be given to the node: it is there, or can be switched on.
func (n *Node) Usable() bool {
	if n.Down || n.Drain || n.Failing || n.Reboot.Issued() {
		return false
	}
	if !n.Up {
		return n.Off()
	}
	return !n.Quiet && !n.Leaving()
}

// nodeWords are the conditions of a node, the first that holds; busy: jobs are on it.
var nodeWords = [...]struct {
	is   func(n *Node, busy bool) bool
	word string
}{
	{func(n *Node, _ bool) bool { return n.Down }, "down"},
	{func(n *Node, busy bool) bool { return n.Drain && busy }, "draining"},
	{func(n *Node, _ bool) bool { return n.Drain }, "drained"},
	{func(n *Node, _ bool) bool { return !n.Up && n.Leaving() }, "powering down"},
	{func(n *Node, _ bool) bool { return !n.Up && n.Off() && n.Power.State != PowerOff }, "powering up"},
	{func(n *Node, _ bool) bool { return !n.Up && n.Off() }, "off"},
	{func(n *Node, _ bool) bool { return n.Registered.IsZero() }, "absent"},
	{func(n *Node, _ bool) bool { return !n.Up || n.Quiet }, "silent"},
	{func(_ *Node, busy bool) bool { return busy }, "running"},
}

// Word is a node's condition in the word that all of muster shows people; busy: jobs are on it.
func (n *Node) Word(busy bool) string {
	for _, row := range nodeWords {
		if row.is(n, busy) {
			return row.word
		}
	}
	return "idle"
}

// lost reports whether a node is down since it was lost, and not by an operator's word.
func (n *Node) lost() bool {
	return n.Down && (n.Silent || n.ReasonBy == "slurm")
}

// isBack takes a node back that was lost. Why it is drained stays.
func (n *Node) isBack() {
	drained := n.Silent && n.Drain
	n.Down = false
	n.Silent = false
	if n.ReasonBy == "slurm" && !drained {
		n.Reason = ""
		n.ReasonBy = ""
	}
}
