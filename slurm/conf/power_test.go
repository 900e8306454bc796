package conf

import (
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestSuspend: the keys of power saving, with Slurm's defaults.
func TestSuspend(t *testing.T) {
	cfg, notes := load(t,
		"ResumeProgram=/on\nSuspendProgram=/off\nSuspendTime=300\nSuspendExcNodes=a[1-2]\nSuspendExcParts=x,y\nResumeTimeout=90\n")
	p := cfg.Power
	if p.Resume != "/on" || p.Suspend != "/off" || p.After != 5*time.Minute || p.Leaving != 30*time.Second || p.ResumeRate != 300 || p.SuspendRate != 60 ||
		!slices.Equal(p.ExceptNodes, []cluster.NodeName{"a1", "a2"}) || !slices.Equal(p.ExceptParts, []string{"x", "y"}) || cfg.ResumeTimeout != 90*time.Second {
		t.Errorf("%+v", p)
	}
	if len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
	for text, want := range map[string]time.Duration{"-1": 0, "INFINITE": 0, "0": time.Second, "7": 7 * time.Second} {
		if cfg, _ := load(t, "SuspendTime="+text+"\n"); cfg.Power.After != want {
			t.Errorf("SuspendTime=%s is %v, want %v", text, cfg.Power.After, want)
		}
	}
	for _, text := range []string{"SuspendTime=soon", "SuspendExcNodes=a:x", "SuspendExcStates=DOWN"} {
		if _, notes := load(t, text+"\n"); len(notes) != 1 {
			t.Errorf("%s: notes %q, want one", text, notes)
		}
	}
}

// TestKeepOn: sets of which some are kept on stand between nodes that all are; partitions have times of their own.
func TestKeepOn(t *testing.T) {
	cfg, notes := load(t,
		"SuspendExcNodes=x,nid[10-12,14]:2,nid[80-90]:1,y[1-2]\nPartitionName=p SuspendTime=60 SuspendTimeout=5 ResumeTimeout=infinite\nPartitionName=q SuspendTime=-1\n")
	p, parts := cfg.Power, cfg.Partitions
	if len(notes) != 0 || !slices.Equal(p.ExceptNodes, []cluster.NodeName{"x", "y1", "y2"}) || len(p.KeepOn) != 2 || p.KeepOn[0].Count != 2 ||
		!slices.Equal(p.KeepOn[0].Nodes, []cluster.NodeName{"nid10", "nid11", "nid12", "nid14"}) || len(p.KeepOn[1].Nodes) != 11 {
		t.Errorf("%+v, notes %q", p, notes)
	}
	if *parts[0].SuspendTime != time.Minute || *parts[0].SuspendTimeout != 5*time.Second || *parts[0].ResumeTimeout != cluster.Unlimited || *parts[1].SuspendTime != cluster.Unlimited || parts[1].ResumeTimeout != nil {
		t.Errorf("partitions %+v", parts)
	}
}
