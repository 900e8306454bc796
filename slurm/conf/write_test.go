package conf

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// putDir writes files into a new folder and tells where its slurm.conf is.
func putDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "slurm.conf")
}

// put writes files into a new folder and reads them.
func put(t *testing.T, files map[string]string) *cluster.Config {
	t.Helper()
	cfg, _, err := Load(putDir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// rewritten is what Write makes of a configuration.
func rewritten(cfg *cluster.Config) map[string]string {
	out := map[string]string{}
	for _, f := range Write(cfg) {
		out[f.Name] = f.Text()
	}
	return out
}

// readsBack wants a configuration to be the same when it was written and read again, but for the numbers of lines.
func readsBack(t *testing.T, files map[string]string) {
	t.Helper()
	cfg := put(t, files)
	text := rewritten(cfg)
	again := put(t, text)
	for _, c := range []*cluster.Config{cfg, again} {
		for i := range c.GRES {
			c.GRES[i].At = ""
		}
	}
	if !reflect.DeepEqual(cfg, again) {
		t.Fatalf("%v\nis written as\n%v\nwhich is read as\n%+v\nwant\n%+v", files, text, *again, *cfg)
	}
	if d := Difference(cfg, again); len(d) > 0 {
		t.Fatalf("difference between the same: %v", d)
	}
}

// confWords are values for the property test: each key with some of them.
var confWords = map[string][]string{
	"ClusterName": {"c", "big"}, "KillWait": {"5", "x"}, "SlurmctldHost": {"s1", "s2(10.0.0.2)"},
	"DefMemPerCPU": {"100"}, "DefMemPerNode": {"5000", "0"},
	"MaxMemPerCPU": {"7"}, "MaxMemPerNode": {"70000"}, "SuspendTime": {"600", "-1"},
	"SuspendExcNodes": {"n[1-2],x", "n[1-2,4]:2,x"}, "SuspendExcParts": {"main"},
	"SchedulerParameters": {"bf_max_job_test=5,kill_invalid_depend", "assoc_limit_stop,max_switch_wait=60"},
	"PriorityType":        {"priority/multifactor"},
	"PriorityWeightAge":   {"1000"}, "PriorityWeightTRES": {"cpu=3,gres/gpu=5"},
	"PreemptType": {"preempt/qos", "preempt/partition_prio"}, "PreemptMode": {"REQUEUE", "SUSPEND,GANG"},
	"SelectTypeParameters": {"CR_Core_Memory", "CR_CPU"}, "RequeueExit": {"1-3,9"}, "Licenses": {"a:3,b"}, "MailProg": {`"/bin/mail -v"`}, "AccountingStorageEnforce": {"limits,safe"},
	"Prolog": {"/etc/prolog.d/*"}, "PrologFlags": {"Contain"}, "PropagateResourceLimits": {"NONE"},
	"JobCompType": {"jobcomp/filetxt"}, "TopologyPlugin": {"topology/tree", "topology/block"},
	"DefCpuPerGPU": {"3"}, "DefMemPerGPU": {"77"}, "LaunchParameters": {"use_interactive_step,nccl_env"}, "InteractiveStepOptions": {`"--interactive --mpi=none --pty bash"`},
	"JobContainerType": {"job_container/tmpfs"}, "JobFileAppend": {"1"},
	"AllowSpecResourcesUsage": {"yes", "no"}, "CompleteWait": {"7"}, "MaxTasksPerNode": {"20"},
	"MaxStepCount": {"7"},
	"Florbl":       {"1"}, "PurgeJobAfter": {"12", "30days"}, "FirstJobId": {"100"}, "MaxJobId": {"5000"},
	"OverTimeLimit": {"3"}, "PrivateData": {"jobs,nodes"},
}

var (
	partWords = []string{"Default=YES", "State=DOWN", "Hidden=YES", "MaxTime=1-2:03", "DefaultTime=10",
		"MinNodes=2", "MaxNodes=9", "PriorityTier=1", "PriorityTier=7", "PriorityJobFactor=4",
		"Priority=3", "OverSubscribe=FORCE:2", "PreemptMode=CANCEL", "GraceTime=30", "QOS=q",
		"AllowGroups=a,b", "DenyQOS=x", "TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=2.5",
		"DefMemPerGPU=3", "DefCpuPerGPU=4", "DefMemPerCPU=2", "MaxMemPerNode=90", "MaxTime=UNLIMITED",
		"LLN=YES", "NoNewPrivs=YES", "SuspendTime=60", "SuspendTime=INFINITE", "SuspendTimeout=5", "ResumeTimeout=600",
		"ExclusiveUser=YES", "AllowAccounts=ALL", "MaxCPUsPerNode=3", "MaxCPUsPerSocket=2", "AllocNodes=login[1-2],n9",
		"Alternate=main", "OverTimeLimit=3", "OverTimeLimit=UNLIMITED", "Exclusive=NODE", "Exclusive=USER"}
	nodeKeys = []string{"Sockets=2", "CoresPerSocket=4", "ThreadsPerCore=2", "CPUs=16", "RealMemory=64000",
		"TmpDisk=9", "Weight=3", "Feature=a,b", "Gres=gpu:a100:2,gpu:h100:1", "Gres=gpu:2", "Gres=gpu:1,lscratch:ssd:10,bw:no_consume:4G",
		"CpuSpecList=0-1", "MemSpecLimit=100", "Topology=a", "CoreSpecCount=1", "State=CLOUD", "State=FUTURE", "State=DOWN", `State=DRAIN Reason="bad fan"`, "State=IDLE"}
)

func some(r *rand.Rand, words []string, n int) string {
	var out []string
	for range r.IntN(n + 1) {
		out = append(out, words[r.IntN(len(words))])
	}
	return strings.Join(out, " ")
}

// randomFiles is a configuration of any of the words above, well or not.
func randomFiles(r *rand.Rand) map[string]string {
	var lines []string
	keys := make([]string, 0, len(confWords))
	for k := range confWords {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	r.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	for _, k := range keys[:r.IntN(len(keys))] {
		lines = append(lines, k+"="+confWords[k][r.IntN(len(confWords[k]))])
	}
	for i := range r.IntN(4) {
		lines = append(lines,
			fmt.Sprintf("NodeName=%s %s", []string{"n[1-4]", "n10,n9", "x", "m[01-03]"}[i], some(r, nodeKeys, 6)))
	}
	for i := range r.IntN(4) {
		lines = append(lines,
			fmt.Sprintf("PartitionName=p%d Nodes=%s %s", i,
				[]string{"ALL", "n[1-4]", "x,n[9-10]", "set,x"}[r.IntN(4)], some(r, partWords, 8)))
	}
	if r.IntN(2) > 0 {
		lines = append(lines, "NodeSet=set Nodes=n[1-2] Feature=a")
	}
	files := map[string]string{"slurm.conf": strings.Join(lines, "\n") + "\n"}
	if r.IntN(2) > 0 {
		files["topology.conf"] = []string{
			"SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4],x,set\nSwitchName=c\nSwitchName=top Switches=a,b,c\n",
			"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3\nBlockName=b4 Nodes=set\nBlockSizes=2,4\n",
		}[r.IntN(2)]
	}
	if r.IntN(2) > 0 {
		files["gres.conf"] = "AutoDetect=nvml\nNodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-1\nName=shard Count=8 Links=-1,2 Flags=CountOnly\nName=tape Type=lto File=/dev/st[0-1]\n"
	}
	if r.IntN(2) > 0 {
		files["cgroup.conf"] = "ConstrainCores=no\nConstrainDevices=yes\nConstrainRAMSpace=no\n"
	}
	if r.IntN(2) > 0 {
		files["job_container.conf"] = "AutoBasePath=true BasePath=/local/%n\nNodeName=n[1-2] BasePath=none\nNodeName=x BasePath=/x Dirs=/tmp Shared=true InitScript=/ns\n"
	}
	if r.IntN(2) > 0 {
		files["slurmdbd.conf"] = "PurgeStepAfter=48hours\nArchiveSteps=yes\nArchiveDir=/var/archive\n"
	}
	return files
}

// TestWriteReadsBack: what is shown of a configuration is read as the same one.
func TestWriteReadsBack(t *testing.T) {
	for seed := range uint64(200) {
		readsBack(t, randomFiles(rand.New(rand.NewPCG(seed, 7))))
	}
}

// TestWriteAll: every key of partitions that is read is written and shown, or named here.
func TestWriteAll(t *testing.T) {
	alias := []string{"DefTime", "Shared", "Exclusive", "Priority", "JobDefaults"}
	hidden := []string{"Nodes", // shown with the nodes that there are
		"DefCpuPerGPU", "DefMemPerGPU", // shown as JobDefaults
		"SuspendTime", "SuspendTimeout", "ResumeTimeout", "MaxCPUsPerUser"}
	for _, k := range PartitionKeys() {
		if written := k.text != nil; written == slices.Contains(alias, k.Name) {
			t.Errorf("%s: written %t", k.Name, written)
		}
		other := slices.Contains(alias[:4], k.Name) || slices.Contains(hidden, k.Name)
		if shown := k.Show != nil; shown == other {
			t.Errorf("%s: shown %t", k.Name, shown)
		}
	}
}

func TestDifference(t *testing.T) {
	old := put(t, map[string]string{
		"slurm.conf": "KillWait=20\nProlog=/a\nPartitionName=main Nodes=ALL Default=YES\nNodeName=n[1-3] CPUs=2\n",
	})
	now := put(t, map[string]string{
		"slurm.conf":  "KillWait=30\nPartitionName=main Nodes=ALL Default=YES MaxTime=60\nPartitionName=new Nodes=ALL\nNodeName=n[1-3] CPUs=2\n",
		"cgroup.conf": "ConstrainCores=no\n",
	})
	want := []string{"- KillWait=20", "+ KillWait=30", "- PartitionName=main Nodes=ALL Default=YES",
		"+ PartitionName=main Nodes=ALL Default=YES MaxTime=0-01:00:00",
		"+ PartitionName=new Nodes=ALL", "- Prolog=/a", "+ ConstrainCores=no"}
	if got := Difference(old, now); !slices.Equal(got, want) {
		t.Errorf("the difference is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
