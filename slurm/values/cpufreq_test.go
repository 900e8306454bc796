package values

import (
	"testing"

	"dev.muster/cluster"
)

// TestFreqShown compares with the lines of scontrol show job and step of Slurm 22.05.
func TestFreqShown(t *testing.T) {
	for asked, want := range map[string]string{"": "", "2300000": "CPU_max_freq=2300000",
		"low-medium":  "CPU_min_freq=Low CPU_max_freq=Medium",
		"performance": "Governor=Performance", "highm1": "CPU_max_freq=Highm1",
		"low-high:ondemand": "CPU_min_freq=Low CPU_max_freq=High Governor=OnDemand"} {
		if got := ParseFreq(asked).Shown(); got != want {
			t.Errorf("--cpu-freq=%s: %q, want %q", asked, got, want)
		}
	}
}

// TestReqFreq compares with what sacct of Slurm 22.05 shows.
func TestReqFreq(t *testing.T) {
	for asked, want := range map[string]CPUFreq{
		"": {"Unknown", "Unknown", "Unknown"}, "2400000": {"Unknown", "2.40G", "Unknown"},
		"800000": {"Unknown", "800M", "Unknown"}, "900": {"Unknown", "900K", "Unknown"},
		"1000000": {"Unknown", "1G", "Unknown"}, "low": {"Unknown", "Low", "Unknown"},
		"ondemand":                  {"Unknown", "Unknown", "OnDemand"},
		"1200000-2400000:userspace": {"1.20G", "2.40G", "UserSpace"},
		"highm1":                    {"Unknown", "Highm1", "Unknown"},
		"low-High:OnDemand":         {"Low", "High", "OnDemand"}, "performance": {"Unknown", "Unknown", "Performance"},
	} {
		if got := ReqFreq(&cluster.Step{CPUFreq: asked}); got != want {
			t.Errorf("--cpu-freq=%s: %v, want %v", asked, got, want)
		}
	}
	if got := ReqFreq(&cluster.Step{
		ID: cluster.StepID{Step: cluster.BatchStep}, CPUFreq: "low",
	}); got != (CPUFreq{"0", "0", "0"}) {
		t.Errorf("a batch script: %v", got)
	}
}

// TestSpelling: --cpu-freq and --profile as Slurm's variables spell them.
func TestSpelling(t *testing.T) {
	for asked, want := range map[string]string{
		"high": "High", "low-HIGH:performance": "Low-High:Performance", "2000000": "2000000", "ondemand": "OnDemand",
		"1000-medium": "1000-Medium",
	} {
		if got := SpellFreq(asked); got != want {
			t.Errorf("--cpu-freq=%s: %s, want %s", asked, got, want)
		}
	}
	for asked, want := range map[string]string{
		"task,network": "Network,Task", "ALL": "Energy,Lustre,Network,Task", "none": "None", "energy,x": "Energy",
	} {
		if got := SpellProfile(asked); got != want {
			t.Errorf("--profile=%s: %s, want %s", asked, got, want)
		}
	}
}
