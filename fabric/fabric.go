// Package fabric looks at this machine's InfiniBand and RoCE ports through sysfs: which there are, whether they are
// well, and which GPUs are near them.
package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// class is where the kernel lists InfiniBand and RoCE devices, below /sys.
const class = "class/infiniband"

// Reading is what one look finds at a port.
type Reading struct {
	cluster.NIC
	Phys     string            // state of the physical link: LinkUp, Polling, Disabled …
	Make     string            // devices of the same make are compared: the board, or the type of adapter
	Counters map[string]uint64 // those of ports.tsv that the port has
}

// Active reports whether traffic may flow.
func (r *Reading) Active() bool { return r.State == cluster.PortActive }

// portName is how people and tools call a port.
func portName(device string, port int) string { return fmt.Sprintf("%s port %d", device, port) }

// Probe lists the ports below a /sys tree, by device and port number; none is no error.
func Probe(sysfs fs.FS) ([]cluster.NIC, error) {
	readings, err := Look(sysfs)
	var out []cluster.NIC
	for i := range readings {
		out = append(out, readings[i].NIC)
	}
	return out, err
}

// Look reads the ports below a /sys tree, by device and port number; none is no error.
func Look(sysfs fs.FS) ([]Reading, error) {
	devices, err := fs.ReadDir(sysfs, class)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list InfiniBand devices: %w", err)
	}
	var out []Reading
	for _, d := range devices {
		dir := path.Join(class, d.Name())
		ports, err := fs.ReadDir(sysfs, dir+"/ports")
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is going away
		}
		if err != nil {
			return nil, fmt.Errorf("list the ports of %s: %w", d.Name(), err)
		}
		slices.SortFunc(ports, func(a, b fs.DirEntry) int { return number(a.Name()) - number(b.Name()) })
		for _, p := range ports {
			out = append(out, read(sysfs, d.Name(), p.Name()))
		}
	}
	return out, nil
}

// read looks at one port. Values that cannot be read are left empty.
func read(sysfs fs.FS, device, port string) Reading {
	dir := path.Join(class, device)
	at := path.Join(dir, "ports", port)
	r := Reading{Counters: map[string]uint64{}}
	r.Device, r.Port, r.Link, r.Rate = device, number(port), text(sysfs, at+"/link_layer"), text(sysfs, at+"/rate")
	_, r.State, _ = strings.Cut(text(sysfs, at+"/state"), ": ")
	_, r.Phys, _ = strings.Cut(text(sysfs, at+"/phys_state"), ": ")
	r.NUMA = max(number(text(sysfs, dir+"/device/numa_node")), 0) // -1: there is one only
	if r.Make = text(sysfs, dir+"/board_id"); r.Make == "" {
		r.Make = text(sysfs, dir+"/hca_type")
	}
	if p := devicePath(sysfs, dir); p != "" {
		r.PCI = path.Base(p)
	}
	r.Net = netName(sysfs, dir, r.Port)
	for _, rule := range rules() {
		if n, err := strconv.ParseUint(text(sysfs, at+"/counters/"+rule.counter), 10, 64); rule.counter != "" && err == nil {
			r.Counters[rule.counter] = n
			if n > 0 {
				r.Errors = append(r.Errors, cluster.Counter{Name: rule.counter, Count: n})
			}
		}
	}
	return r
}

// Moved is how many bytes all ports below a /sys tree have received and sent; not ok where there are none. The counters
// count words of four bytes.
func Moved(sysfs fs.FS) (in, out uint64, ok bool) {
	ports, _ := fs.Glob(sysfs, class+"/*/ports/*/counters")
	for _, at := range ports {
		words := func(name string) uint64 {
			n, err := strconv.ParseUint(text(sysfs, at+"/"+name), 10, 64)
			ok = ok || err == nil
			return n
		}
		in, out = in+4*words("port_rcv_data"), out+4*words("port_xmit_data")
	}
	return in, out, ok
}

// netName is the network interface of a port; "" if it has none.
func netName(sysfs fs.FS, dir string, port int) string {
	entries, _ := fs.ReadDir(sysfs, dir+"/device/net")
	for _, e := range entries {
		at := dir + "/device/net/" + e.Name()
		own, err := strconv.ParseInt(text(sysfs, at+"/dev_port"), 0, 32) // counted from 0
		if err != nil || int(own) == port-1 || len(entries) == 1 {
			return e.Name()
		}
	}
	return ""
}

// speed is how fast a rate such as "400 Gb/sec (4X NDR)" is, in Gbit/s; 0: not known.
func speed(rate string) float64 { return (&cluster.NIC{Rate: rate}).Gbits() }

func number(text string) int { n, _ := strconv.Atoi(text); return n }

func text(sysfs fs.FS, name string) string {
	b, err := fs.ReadFile(sysfs, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// devicePath is the path of the PCI device below which a class device lies, as in
// devices/pci0000:15/0000:15:01.0/0000:16:00.0; "" if it is on no PCI bus.
func devicePath(sysfs fs.FS, dir string) string {
	if to, err := fs.ReadLink(sysfs, dir); err == nil { // class/infiniband/mlx5_0 → ../../devices/pci…/infiniband/mlx5_0
		return pciPath(path.Join(path.Dir(dir), to, "../.."))
	}
	if to, err := fs.ReadLink(sysfs, dir+"/device"); err == nil {
		return pciPath(path.Join(dir, to))
	}
	return ""
}

// pciPath is p from the root of its PCI tree on; "" if it is none.
func pciPath(p string) string {
	if i := strings.Index(p, "devices/pci"); i >= 0 {
		return p[i:]
	}
	return ""
}
