package machine

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
	"golang.org/x/sys/unix"
)

// Node is one node of a client.
type Node struct {
	Name      cluster.NodeName
	Inventory cluster.Inventory
	// Hollow nodes that execute set their name as host name inside their jobs.
	SetHostName bool
}

// Detect finds out what this machine is, except for its GPUs and ports, which a gpu.Watcher and a Machine look at.
// Values that cannot be read are left at one CPU or nothing.
func Detect(tmp string) (cluster.Inventory, error) {
	inv := cluster.Inventory{CPUs: runtime.NumCPU(), Sockets: 1, ThreadsPerCore: 1}
	inv.OS, inv.Arch = kernel()
	if h, err := os.Hostname(); err == nil {
		inv.Host = h
	}
	topology(os.DirFS("/sys/devices/system/cpu"), &inv)
	var si syscall.Sysinfo_t
	if err := syscall.Sysinfo(&si); err != nil {
		return inv, fmt.Errorf("read memory size: %w", err)
	}
	inv.MemMB = cluster.MemMB(uint64(si.Totalram) * uint64(si.Unit) >> 20)
	inv.FreeMemMB = cluster.MemMB(uint64(si.Freeram) * uint64(si.Unit) >> 20)
	inv.Boot = time.Now().Add(-time.Duration(si.Uptime) * time.Second).Truncate(time.Second)
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		inv.BootID = strings.TrimSpace(string(id))
	}
	var st unix.Statfs_t
	if unix.Statfs(tmp, &st) == nil {
		inv.TmpMB = int64(st.Blocks) * st.Bsize >> 20
	}
	return inv, nil
}

// Interface is the network interface that has an address, HOST:PORT; "" if none has, or it is given by a name that
// is not known here.
func Interface(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	want, err := net.ResolveIPAddr("ip", host)
	if err != nil || want.IP == nil {
		return ""
	}
	list, _ := net.Interfaces()
	for _, i := range list {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if own, ok := a.(*net.IPNet); ok && own.IP.Equal(want.IP) {
				return i.Name
			}
		}
	}
	return ""
}

// kernel is this machine's operating system and make.
func kernel() (system, machine string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return runtime.GOOS, runtime.GOARCH
	}
	system = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	return system, unix.ByteSliceToString(u.Machine[:])
}

// Hollow makes an inventory that of a hollow node on this machine, which boots with its daemon.
func Hollow(inv *cluster.Inventory) {
	now := time.Now()
	inv.Hollow, inv.Boot, inv.BootID = true, now.Truncate(time.Second), strconv.FormatInt(now.UnixNano(), 36)
	inv.OS, inv.Arch = kernel()
}

// topology counts sockets, cores and threads of the CPUs that are online.
func topology(cpus fs.FS, inv *cluster.Inventory) {
	sockets, cores := map[string]bool{}, map[string]bool{}
	n := 0
	for i := range inv.CPUs {
		dir := "cpu" + strconv.Itoa(i) + "/topology/"
		p, err1 := fs.ReadFile(cpus, dir+"physical_package_id")
		c, err2 := fs.ReadFile(cpus, dir+"core_id")
		if err1 != nil || err2 != nil {
			continue
		}
		n++
		sockets[strings.TrimSpace(string(p))] = true
		cores[strings.TrimSpace(string(p))+"/"+strings.TrimSpace(string(c))] = true
	}
	inv.Sockets = max(len(sockets), 1)
	inv.ThreadsPerCore = max(n/max(len(cores), 1), 1)
	inv.CoresPerSocket = max(inv.CPUs/inv.Sockets/inv.ThreadsPerCore, 1)
}

// ParseHollow reads a hollow node description such as 8x16c64g8gpu:h100: eight nodes of 16
// CPUs, 64 GiB and 8 GPUs of type h100 each.
func ParseHollow(text string) ([]Node, error) {
	bad := fmt.Errorf("hollow nodes %q: want COUNTxCPUScMEMg[GPUSgpu[:TYPE]], e.g. 8x16c64g8gpu:h100", text)
	countText, rest, ok := strings.Cut(text, "x")
	count, err := strconv.Atoi(countText)
	if !ok || err != nil || count < 1 || count > maxHollow {
		return nil, bad
	}
	cpus, rest, ok1 := unit(rest, "c")
	mem, rest, ok2 := unit(rest, "g")
	gpus, kind := 0, ""
	if rest != "" {
		var ok bool
		if gpus, rest, ok = unit(rest, "gpu"); !ok {
			return nil, bad
		}
		kind = strings.TrimPrefix(rest, ":")
	}
	if !ok1 || !ok2 || cpus < 1 || mem < 1 || gpus > maxHollowGPUs {
		return nil, bad
	}
	inv := cluster.Inventory{
		CPUs: cpus, Sockets: 1, ThreadsPerCore: 1, CoresPerSocket: cpus, MemMB: cluster.MemMB(mem) << 10,
	}
	Hollow(&inv)
	if cpus >= 4 && cpus%2 == 0 {
		inv.Sockets, inv.CoresPerSocket = 2, cpus/2
	}
	for i := range gpus {
		half := i * inv.Sockets / gpus
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Minor: i, Type: kind, NUMA: half,
			Cores: cluster.RangeIDSet(half*inv.CoresPerSocket, (half+1)*inv.CoresPerSocket-1)})
	}
	prefix := "node-"
	if gpus > 0 {
		prefix = "gpu-node-"
	}
	width := max(3, len(strconv.Itoa(count)))
	out := make([]Node, count)
	for i := range out {
		name := fmt.Sprintf("%s%0*d", prefix, width, i+1)
		out[i] = Node{Name: cluster.NodeName(name), Inventory: inv}
		out[i].Inventory.Host = name
	}
	return out, nil
}

// Bounds of hollow nodes.
const (
	maxHollow     = 20000
	maxHollowGPUs = 64
)

func unit(s, suffix string) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(s[:i])
	if err != nil || !strings.HasPrefix(s[i:], suffix) {
		return 0, s, false
	}
	return n, s[i+len(suffix):], true
}

// SetGPUs puts what is known of a machine's GPUs into its inventory.
func SetGPUs(inv *cluster.Inventory, f gpu.Found) {
	inv.GPUs, inv.GPUDriver = f.GPUs, f.Driver
	inv.SetFaults(cluster.FaultGPU, f.Faults)
}
