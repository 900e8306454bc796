package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/cluster"
	"dev.muster/gpu"
	"dev.muster/slurm/front"
)

// slurmdName is the name under which muster prints what slurmd -C and -G do. The daemon is muster client.
const slurmdName = "slurmd"

// runSlurmd prints what this machine is, in the words of slurm.conf and gres.conf; the rest of slurmd is refused.
func runSlurmd(sys *front.Sys, argv []string) int {
	wayOut := func(word string) int {
		fmt.Fprintf(sys.Stderr, "slurmd: error: %s: the daemon of a node is muster client (muster client --help); "+
			"slurmd has -C, -G and -V here\n", word)
		return 1
	}
	if len(argv) != 1 {
		return wayOut(cmp.Or(strings.Join(argv, " "), "no option"))
	}
	switch argv[0] {
	case "-V":
		fmt.Fprintln(sys.Stdout, front.VersionText())
		return 0
	case "-C", "-G":
	default:
		return wayOut(argv[0])
	}
	inv, err := machine.Detect(os.TempDir())
	if err != nil {
		return sys.Fail("%v", err)
	}
	self, err := os.Executable()
	if err != nil {
		return sys.Fail("%v", err)
	}
	w := gpu.NewWatcher([]string{self, "internal", "gpu-helper"}, 0, slog.New(slog.DiscardHandler))
	found := w.First(context.Background())
	machine.SetGPUs(&inv, found)
	if argv[0] == "-G" {
		fmt.Fprint(sys.Stdout, gresLines(&inv))
		return 0
	}
	fmt.Fprintln(sys.Stdout, nodeLine(&inv))
	up := int(time.Since(inv.Boot) / time.Second)
	fmt.Fprintf(sys.Stdout, "UpTime=%d-%02d:%02d:%02d\n", up/86400, up/3600%24, up/60%60, up%60)
	return 0
}

// nodeLine is a machine as a line of slurm.conf.
func nodeLine(inv *cluster.Inventory) string {
	host, _, _ := strings.Cut(inv.Host, ".")
	line := fmt.Sprintf("NodeName=%s CPUs=%d Boards=1 SocketsPerBoard=%d CoresPerSocket=%d ", host, inv.CPUs,
		max(inv.Sockets, 1), max(inv.CoresPerSocket, 1)) +
		fmt.Sprintf("ThreadsPerCore=%d RealMemory=%d", max(inv.ThreadsPerCore, 1), inv.MemMB)
	var types []string
	count := map[string]int{}
	for _, g := range inv.GPUs {
		if count[g.Type]++; count[g.Type] == 1 {
			types = append(types, g.Type)
		}
	}
	for i, t := range types {
		types[i] = "gpu:" + front.Choose(t == "", "", t+":") + strconv.Itoa(count[t])
	}
	return line + front.Prefixed(" Gres=", strings.Join(types, ","))
}

// gresLines are a machine's GPUs as slurmd -G prints them.
func gresLines(inv *cluster.Inventory) string {
	var b strings.Builder
	gpus, cores := slices.Clone(inv.GPUs), inv.CPUs/max(inv.ThreadsPerCore, 1)
	slices.SortFunc(gpus, func(a, b cluster.GPU) int { return cmp.Compare(a.Index, b.Index) })
	for _, g := range gpus {
		fmt.Fprintf(&b, "slurmd: Gres Name=gpu Type=%s Count=1 Index=%d ID=7696487 ", cmp.Or(g.Type, "(null)"), g.Index)
		fmt.Fprintf(&b, "File=/dev/nvidia%d Cores=%s CoreCnt=%d (null)\n", g.Minor,
			cmp.Or(g.Cores.String(), "(null)"), cores)
	}
	return b.String()
}
