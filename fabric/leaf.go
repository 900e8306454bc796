package fabric

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Leaf is the switch at the other end of a port's cable.
type Leaf struct{ Name, GUID string }

// Run calls a program and returns what it prints. Its error wraps exec.ErrNotFound where there is no such program.
type Run func(ctx context.Context, name string, args ...string) (string, error)

// toolTime bounds a call of a program.
const toolTime = 5 * time.Second

// Tool runs a program of this machine.
func Tool(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	return string(out), err
}

// Leaves asks for the leaf switches of active ports, by DEVICE/PORT: of InfiniBand ports by smpquery
// (infiniband-diags), one hop away, of RoCE ports by lldpcli (lldpd). Where neither is installed, or a switch does
// not answer, nothing is known.
func Leaves(ctx context.Context, run Run, nics []cluster.NIC) map[string]Leaf {
	out := map[string]Leaf{}
	find := leafFinder{run: run}
	for i := range nics {
		n := &nics[i]
		if n.State != cluster.PortActive {
			continue
		}
		if l := find.leaf(ctx, n); l.Name != "" {
			out[PortKey(n)] = l
		}
	}
	return out
}

// leafFinder remembers, from port to port, what the programs have said.
type leafFinder struct {
	run        Run
	noDiags    bool            // infiniband-diags are not installed
	neighbours map[string]Leaf // by interface; nil: not asked for yet
}

func (f *leafFinder) leaf(ctx context.Context, n *cluster.NIC) Leaf {
	switch n.Link {
	case "InfiniBand":
		return f.behindCable(ctx, n)
	case "Ethernet":
		return f.neighbour(ctx, n.Net)
	}
	return Leaf{}
}

func (f *leafFinder) behindCable(ctx context.Context, n *cluster.NIC) Leaf {
	if f.noDiags {
		return Leaf{}
	}
	l, err := oneHop(ctx, f.run, n)
	f.noDiags = errors.Is(err, exec.ErrNotFound)
	return l
}

func (f *leafFinder) neighbour(ctx context.Context, net string) Leaf {
	if net == "" {
		return Leaf{}
	}
	if f.neighbours == nil {
		text, _ := f.run(ctx, "lldpcli", "-f", "keyvalue", "show", "neighbors")
		f.neighbours = lldp(text)
	}
	return f.neighbours[net]
}

// PortKey names a port as DEVICE/PORT.
func PortKey(n *cluster.NIC) string { return n.Device + "/" + strconv.Itoa(n.Port) }

// oneHop asks what is behind a port. An adapter there, of a machine without a switch, is no leaf.
func oneHop(ctx context.Context, run Run, n *cluster.NIC) (l Leaf, err error) {
	port := strconv.Itoa(n.Port)
	ask := func(what string) (string, error) {
		return run(ctx, "smpquery", "-C", n.Device, "-P", port, "-D", what, "0,"+port)
	}
	info, err := ask("nodeinfo")
	if err != nil || dotted(info, "NodeType") != "Switch" {
		return l, err
	}
	name, err := ask("nodedesc")
	l.GUID = dotted(info, "Guid")
	l.Name = leafName(dotted(name, "Node Description"), l.GUID)
	return l, err
}

// dotted is the value of a line such as "NodeType:........................Switch".
func dotted(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(strings.TrimLeft(rest, "."))
		}
	}
	return ""
}

// leafName makes a name of a switch's description: MF0;leaf12:MQM9700/U1 of a managed one is leaf12. One that only
// tells the make, in several words, is named by its GUID.
func leafName(text, guid string) string {
	if _, rest, ok := strings.Cut(text, ";"); ok {
		text, _, _ = strings.Cut(rest, ":")
	}
	if text == "" || strings.ContainsAny(text, " \t,+=") {
		return guid
	}
	return text
}

// lldp reads lldpcli's lines, lldp.INTERFACE.chassis.name=leaf1 and so on, by interface.
func lldp(text string) map[string]Leaf {
	out := map[string]Leaf{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		rest, ok := strings.CutPrefix(key, "lldp.")
		i := strings.Index(rest, ".chassis.") // an interface's name may have dots
		if !ok || i < 0 {
			continue
		}
		l := out[rest[:i]]
		switch rest[i+len(".chassis."):] {
		case "name":
			l.Name = leafName(value, l.GUID)
		case "mac":
			l.GUID = value
		}
		out[rest[:i]] = l
	}
	return out
}
