package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// fitting are values for keys that take no plain number, and differ from the default.
var fitting = map[string]string{
	"AccountingStorageEnforce": "limits", "AccountingStorageTRES": "gres/gpu", "AllowSpecResourcesUsage": "YES", "CommunicationParameters": "NoAddrCache",
	"InteractiveStepOptions": "--pty\nLaunchParameters=use_interactive_step", "JobCompLoc": "/x\nJobCompType=jobcomp/filetxt", "JobFileAppend": "1", "JobRequeue": "0", "KillOnBadExit": "1",
}

// TestKeysTell: each key of Slurm's configuration files (slurm.conf(5), gres.conf(5), cgroup.conf(5), topology.conf(5) of 22.05
// and later) changes the configuration, or something is said of it: that it has no effect, needs no setting or is refused.
func TestKeysTell(t *testing.T) {
	base := "ClusterName=c\nNodeName=n[0-3] CPUs=16 Sockets=2\n"
	for _, key := range knownKeys() {
		if value := fitting[key]; key != "NodeName" && key != "PartitionName" && !strings.EqualFold(key, controllerKey) {
			if value == "" {
				value = "7"
			}
			tells(t, "slurm.conf", base, base+key+"="+value+"\n")
		}
	}
	part := base + "PartitionName=first Nodes=n0\nPartitionName=p Nodes=n0"
	for _, word := range strings.Fields("AllocNodes=n1 AllowAccounts=a AllowGroups=g AllowQos=q Alternate=z CpuBind=cores Default=YES DefaultTime=5 DefCpuPerGPU=2 DefMemPerCPU=5 " +
		"DefMemPerGPU=5 DefMemPerNode=5 DenyAccounts=a DenyQos=q DisableRootJobs=YES ExclusiveTopo=YES ExclusiveUser=YES GraceTime=5 Hidden=YES LLN=YES MaxCPUsPerNode=3 MaxCPUsPerSocket=3 " +
		"MaxMemPerCPU=5 MaxMemPerNode=5 MaxNodes=2 MaxTime=5 MinNodes=2 OverSubscribe=FORCE:2 OverTimeLimit=3 PowerDownOnIdle=YES PreemptMode=CANCEL Priority=3 PriorityJobFactor=3 " +
		"PriorityTier=3 QOS=q ReqResv=YES ResumeTimeout=3 RootOnly=YES SelectTypeParameters=CR_Core Shared=FORCE State=DOWN SuspendTime=3 SuspendTimeout=3 Topology=t TRESBillingWeights=CPU=2") {
		tells(t, "slurm.conf", part+"\n", part+" "+word+"\n")
	}
	for _, word := range strings.Fields("BcastAddr=b Boards=2 CoreSpecCount=1 CoresPerSocket=4 CpuBind=cores CPUs=8 CpuSpecList=1 Feature=f Features=f Gres=gpu:2 GresConf=x MemSpecLimit=5 NodeAddr=a " +
		"NodeHostname=h Parameters=x Port=9 Procs=8 RealMemory=99 Reason=r RestrictedCoresPerGPU=1 Sockets=4 SocketsPerBoard=4 State=DOWN ThreadsPerCore=2 TmpDisk=9 Topology=t Weight=5 Comment=c") {
		if word == "Reason=r" {
			word = "State=DOWN Reason=r"
		}
		if strings.HasPrefix(word, "MemSpecLimit") || strings.HasPrefix(word, "CoreSpec") {
			word += " RealMemory=99"
		}
		node := "ClusterName=c\nNodeName=x CPUs=16"
		tells(t, "slurm.conf", node+"\n", node+" "+word+"\n")
	}
	for _, word := range strings.Fields("AutoDetect=nvml Type=a100 File=/dev/nvidia0 MultipleFiles=/dev/nvidia0 Count=2 Cores=0-3 CPUs=0-3 Links=-1,4 Flags=CountOnly NodeName=n1") {
		tells(t, "gres.conf", "Name=gpu\n", "Name=gpu "+word+"\n")
	}
	for _, word := range strings.Fields("AllowedDevicesFile=/x AllowedKmemSpace=1 AllowedRAMSpace=80 AllowedSwapSpace=20 CgroupAutomount=yes CgroupMountpoint=/m CgroupPlugin=cgroup/v1 ConstrainCores=no ConstrainDevices=no " +
		"ConstrainKmemSpace=yes ConstrainRAMSpace=no ConstrainSwapSpace=yes EnableControllers=yes IgnoreSystemd=yes IgnoreSystemdOnFailure=yes MaxKmemPercent=5 MaxRAMPercent=90 MaxSwapPercent=5 " +
		"MemorySwappiness=5 MinKmemSpace=5 MinRAMSpace=50 SignalChildrenProcesses=yes SystemdTimeout=9") {
		tells(t, "cgroup.conf", "", word+"\n")
	}
	for _, word := range strings.Fields("Nodes=n1 Switches=s2 LinkSpeed=100") {
		tells(t, "topology.conf", "SwitchName=s1 Nodes=n0\nSwitchName=s2 Nodes=n2\n", "SwitchName=s1 "+word+"\nSwitchName=s2 Nodes=n2\n")
	}
	tells(t, "topology.conf", "BlockName=b1 Nodes=n[0-1]\n", "BlockName=b1 Nodes=n[0-1]\nBlockSizes=1\n")
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
		for name, text := range map[string]string{"slurm.conf": "ClusterName=c\nNodeName=n[0-3]\nTopologyPlugin=topology/" + plugin + "\n", file: text} {
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
	if cfg, says, err := read(text); err == nil && says <= said && reflect.DeepEqual(cfg, old) {
		t.Errorf("%s: nothing comes of %q, and nothing is said of it", file, strings.TrimPrefix(text, before))
	}
}

// TestBoards: what slurmd -C prints of a node is read.
func TestBoards(t *testing.T) {
	cfg, notes := load(t, "NodeName=x CPUs=32 Boards=2 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1000\n")
	inv := cfg.Declared[0].Inventory
	if len(notes) > 0 || inv.Sockets != 4 || inv.CoresPerSocket != 4 || inv.CPUs != 32 {
		t.Errorf("%d sockets of %d cores, %d CPUs; notes %q", inv.Sockets, inv.CoresPerSocket, inv.CPUs, notes)
	}
}
