package conf

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// fitting are values for keys that take no plain number, and differ from the default.
var fitting = map[string]string{
	"AccountingStorageEnforce": "limits",
	"AccountingStorageTRES":    "gres/gpu",
	"AllowSpecResourcesUsage":  "YES",
	"CommunicationParameters":  "NoAddrCache",
	"InteractiveStepOptions":   "--pty\nLaunchParameters=use_interactive_step",
	"JobCompLoc":               "/x\nJobCompType=jobcomp/filetxt",
	"JobFileAppend":            "1",
	"JobRequeue":               "0",
	"KillOnBadExit":            "1",
}

// keysOfFiles are a file's text before and behind the words of which each is added to it alone.
var keysOfFiles = []struct{ file, before, after, words string }{
	{"slurm.conf", "ClusterName=c\nNodeName=n[0-3] CPUs=16\nPartitionName=first Nodes=n0\nPartitionName=p Nodes=n0 ", "\n", `
		AllocNodes=n1 AllowAccounts=a AllowGroups=g AllowQos=q Alternate=z CpuBind=cores Default=YES
		DefaultTime=5 DefCpuPerGPU=2 DefMemPerCPU=5 DefMemPerGPU=5 DefMemPerNode=5 DenyAccounts=a
		DenyQos=q DisableRootJobs=YES Exclusive=NODE ExclusiveTopo=YES ExclusiveUser=YES GraceTime=5 Hidden=YES LLN=YES
		MaxCPUsPerNode=3 MaxCPUsPerSocket=3 MaxMemPerCPU=5 MaxMemPerNode=5 MaxNodes=2 MaxTime=5
		MinNodes=2 OverSubscribe=FORCE:2 OverTimeLimit=3 PowerDownOnIdle=YES PreemptMode=CANCEL
		Priority=3 PriorityJobFactor=3 PriorityTier=3 QOS=q ReqResv=YES ResumeTimeout=3 RootOnly=YES
		SelectTypeParameters=CR_Core Shared=FORCE State=DOWN SuspendTime=3 SuspendTimeout=3 Topology=t
		TRESBillingWeights=CPU=2`},
	{"slurm.conf", "ClusterName=c\nNodeName=x CPUs=16 RealMemory=99 ", "\n", `
		BcastAddr=b Boards=2 CoreSpecCount=1 CoresPerSocket=4 CpuBind=cores CPUs=8 CpuSpecList=1
		Feature=f Features=f Gres=gpu:2 GresConf=x MemSpecLimit=5 NodeAddr=a NodeHostname=h Parameters=x
		Port=9 Procs=8 RealMemory=98 RestrictedCoresPerGPU=1 Sockets=4 SocketsPerBoard=4 State=DOWN
		ThreadsPerCore=2 TmpDisk=9 Topology=t Weight=5 Comment=c`},
	{"slurm.conf", "ClusterName=c\nNodeName=x CPUs=16 State=DOWN ", "\n", "Reason=r"},
	{"gres.conf", "Name=gpu ", "\n", `
		AutoDetect=nvml Type=a100 File=/dev/nvidia0 MultipleFiles=/dev/nvidia0 Count=2 Cores=0-3
		CPUs=0-3 Links=-1,4 Flags=CountOnly NodeName=n1`},
	{"cgroup.conf", "", "\n", `
		AllowedDevicesFile=/x AllowedKmemSpace=1 AllowedRAMSpace=80 AllowedSwapSpace=20
		CgroupAutomount=yes CgroupMountpoint=/m CgroupPlugin=cgroup/v1 ConstrainCores=no
		ConstrainDevices=no ConstrainKmemSpace=yes ConstrainRAMSpace=no ConstrainSwapSpace=yes
		EnableControllers=yes IgnoreSystemd=yes IgnoreSystemdOnFailure=yes MaxKmemPercent=5
		MaxRAMPercent=90 MaxSwapPercent=5 MemorySwappiness=5 MinKmemSpace=5 MinRAMSpace=50
		SignalChildrenProcesses=yes SystemdTimeout=9`},
	{"topology.conf", "SwitchName=s2 Nodes=n2\nSwitchName=s1 ", "\n", "Nodes=n1 Switches=s2 LinkSpeed=100"},
	{"topology.conf", "BlockName=b1 Nodes=n[0-1]\n", "\n", "BlockSizes=1"},
}

// TestKeysTell: each key of Slurm's configuration files (slurm.conf(5), gres.conf(5), cgroup.conf(5),
// topology.conf(5) of 22.05 and later) changes the configuration, or something is said of it: that it has no
// effect, needs no setting or is refused.
func TestKeysTell(t *testing.T) {
	base := "ClusterName=c\nNodeName=n[0-3] CPUs=16\n"
	for _, key := range knownKeys() {
		if key == "NodeName" || key == "PartitionName" || strings.EqualFold(key, controllerKey) {
			continue
		}
		tells(t, "slurm.conf", base, base+key+"="+cmp.Or(fitting[key], "7")+"\n")
	}
	for _, c := range keysOfFiles {
		for _, word := range strings.Fields(c.words) {
			tells(t, c.file, c.before+c.after, c.before+word+c.after)
		}
	}
}

// tells fails unless a file's text makes another configuration than the one before did, or something is said of it.
func tells(t *testing.T, file, before, text string) {
	t.Helper()
	plugin := "tree"
	if strings.Contains(text, "Block") {
		plugin = "block"
	}
	read := func(text string) (any, int, error) {
		dir := t.TempDir()
		main := "ClusterName=c\nNodeName=n[0-3]\nTopologyPlugin=topology/" + plugin + "\n"
		for name, text := range map[string]string{"slurm.conf": main, file: text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, notes, fine, err := Check(filepath.Join(dir, "slurm.conf"))
		if err == nil {
			cfg.Keys = nil // which are shown again
		}
		return cfg, len(notes) + len(fine), err
	}
	old, said, err := read(before)
	if err != nil {
		t.Fatal(err)
	}
	cfg, says, err := read(text)
	if err != nil || says > said {
		return
	}
	if reflect.DeepEqual(cfg, old) {
		t.Errorf("%s: nothing comes of %q, and nothing is said of it", file, strings.TrimPrefix(text, before))
	}
}

// TestBoards: what slurmd -C prints of a node is read.
func TestBoards(t *testing.T) {
	for line, want := range map[string]int{
		"Boards=2 SocketsPerBoard=2": 4, "SocketsPerBoard=2 Boards=1": 2, "Boards=2 Sockets=4": 4, "": 1,
	} {
		cfg, notes := load(t, "NodeName=x CPUs=32 "+line+"\n")
		if got := cfg.Declared[0].Inventory.Sockets; len(notes) > 0 || got != want {
			t.Errorf("%s: %d sockets, want %d; notes %q", line, got, want, notes)
		}
	}
}
