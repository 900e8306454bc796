package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/slurm/conf"
)

// TestConfigValues: show config prints values as Slurm does, whatever way they are written in the file: those here
// are what scontrol of Slurm 22.05 prints of the same lines.
func TestConfigValues(t *testing.T) {
	tests := []struct{ key, line, want string }{
		{"AccountingStorageEnforce", "", "none"},
		{"AccountingStorageEnforce", "AccountingStorageEnforce=all", "associations,limits,qos,safe,wckeys"},
		{"AccountingStorageEnforce", "AccountingStorageEnforce=limits", "associations,limits"},
		{"AccountingStorageEnforce", "AccountingStorageEnforce=safe", "associations,limits,safe"},
		{"AccountingStorageEnforce", "AccountingStorageEnforce=qos", "associations,qos"},
		{"AccountingStorageEnforce", "AccountingStorageEnforce=wckeys", "associations,wckeys"},
		{
			"AccountingStorageTRES", "AccountingStorageTRES=gres/gpu:h100,gres/gpu",
			"cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu,gres/gpu:h100",
		},
		{
			"AccountingStoreFlags", "AccountingStoreFlags=job_script,job_env,job_comment",
			"job_comment,job_env,job_script",
		},
		{"AllowSpecResourcesUsage", "", "No"},
		{"AllowSpecResourcesUsage", "AllowSpecResourcesUsage=1", "Yes"},
		{"CompleteWait", "CompleteWait=7", "7 sec"},
		{"CompleteWait", "", "0 sec"},
		{"EpilogMsgTime", "EpilogMsgTime=100", "100 usec"},
		{"HealthCheckInterval", "HealthCheckInterval=300", "300 sec"},
		{"HealthCheckNodeState", "HealthCheckNodeState=idle,cycle", "CYCLE,IDLE"},
		{"HealthCheckNodeState", "", "ANY"},
		{"JobDefaults", "DefCpuPerGPU=4\nDefMemPerGPU=8000", "DefCpuPerGPU=4,DefMemPerGPU=8000"},
		{"MessageTimeout", "MessageTimeout=30", "30 sec"},
		{"PriorityCalcPeriod", "PriorityCalcPeriod=2", "00:02:00"},
		{"PriorityCalcPeriod", "", "00:05:00"},
		{"PriorityDecayHalfLife", "PriorityDecayHalfLife=14-0", "14-00:00:00"},
		{"PriorityDecayHalfLife", "", "7-00:00:00"},
		{"PriorityFavorSmall", "PriorityFavorSmall=yes", "Yes"},
		{"PriorityFlags", "PriorityFlags=MAX_TRES,SMALL_RELATIVE_TO_TIME", "SMALL_RELATIVE_TO_TIME,MAX_TRES"},
		{"PriorityFlags", "", ""},
		{"PriorityMaxAge", "PriorityMaxAge=14-0", "14-00:00:00"},
		{"PriorityUsageResetPeriod", "PriorityUsageResetPeriod=monthly", "MONTHLY"},
		{"PriorityUsageResetPeriod", "", "NONE"},
		{"PriorityWeightPartition", "", "0"},
		{"PriorityWeightAge", "PriorityWeightAge=01000", "1000"},
		{"PrivateData", "PrivateData=users,usage,jobs", "jobs,usage,users"},
		{"PrivateData", "", "none"},
		{"JobCompType", "", "jobcomp/none"},
		{"JobFileAppend", "", "0"},
		{"KillOnBadExit", "", "0"},
		{"PrologEpilogTimeout", "", "65534"},
		{"PrologEpilogTimeout", "PrologEpilogTimeout=20", "20"},
		{"ResumeRate", "ResumeRate=20", "20 nodes/min"},
		{"ResumeRate", "", "300 nodes/min"},
		{"ResvOverRun", "", "0 min"},
		{"UnkillableStepTimeout", "", "60 sec"},
		{"ResvOverRun", "ResvOverRun=10", "10 min"},
		{"SchedulerTimeSlice", "SchedulerTimeSlice=60", "60 sec"},
		{"SlurmctldTimeout", "SlurmctldTimeout=60", "60 sec"},
		{"SuspendTime", "SuspendTime=600", "600 sec"},
		{"SuspendTime", "SuspendTime=NONE", "INFINITE"},
		{"SuspendTimeout", "SuspendTimeout=20", "20 sec"},
		{"TCPTimeout", "TCPTimeout=5", "5 sec"},
		{"UsePam", "UsePam=yes", "Yes"},
		{"VSizeFactor", "VSizeFactor=110", "110 percent"},
		{"WaitTime", "WaitTime=5", "5 sec"},
	}
	for _, tt := range tests {
		if got := configOf(t, tt.line)[tt.key]; got != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.key, tt.line, got, tt.want)
		}
	}
	for _, secret := range []string{"AccountingStoragePass=geheim", "JobCompPass=geheim"} {
		for key, value := range configOf(t, secret) {
			if strings.Contains(value, "geheim") {
				t.Errorf("%s shows what %s says", key, secret)
			}
		}
	}
	if lines := configOf(t, "DefCpuPerGPU=4"); lines["defcpupergpu"] != "" {
		t.Error("DefCpuPerGPU has a line of its own, besides JobDefaults")
	}
}

// configOf are the lines of show config with one line of slurm.conf beside the least that there must be.
func configOf(t *testing.T, line string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(file, []byte("ClusterName=c\nPartitionName=main Nodes=ALL\n"+line+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := conf.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return ConfigText(&api.ClusterResponse{Config: *cfg})
}
