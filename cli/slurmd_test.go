package cli

import (
	"testing"

	"dev.muster/cluster"
)

// TestSlurmdLines: a machine in the words of slurmd -C and -G.
func TestSlurmdLines(t *testing.T) {
	near, _ := cluster.ParseIDSet("0-7")
	inv := cluster.Inventory{Host: "n1.example.org", CPUs: 16, Sockets: 2, CoresPerSocket: 8,
		ThreadsPerCore: 1, MemMB: 64000,
		GPUs: []cluster.GPU{{Index: 1, Type: "h100", Minor: 1}, {Index: 0, Type: "h100", Cores: near}}}
	if got, want := nodeLine(&inv), "NodeName=n1 CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Gres=gpu:h100:2"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	want := "slurmd: Gres Name=gpu Type=h100 Count=1 Index=0 ID=7696487 File=/dev/nvidia0 Cores=0-7 CoreCnt=16 (null)\n" +
		"slurmd: Gres Name=gpu Type=h100 Count=1 Index=1 ID=7696487 File=/dev/nvidia1 Cores=(null) CoreCnt=16 (null)\n"
	if got := gresLines(&inv); got != want {
		t.Errorf("got %s", got)
	}
}
