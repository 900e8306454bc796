package conf

import (
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

func TestPreemptKeys(t *testing.T) {
	cfg, notes := load(t, `
PreemptType=preempt/qos
PreemptMode=requeue
PreemptExemptTime=1:00:00
PreemptParameters=youngest_first,reorder_count=3
PartitionName=a Nodes=ALL PreemptMode=Suspend,Gang GraceTime=30 PriorityJobFactor=5
PartitionName=b Nodes=ALL PreemptMode=OFF
`)
	if len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
	if want := (cluster.PreemptConfig{Type: cluster.PreemptQOS, Mode: "REQUEUE", Exempt: time.Hour, Youngest: true, Reorders: 3}); cfg.Preempt != want {
		t.Errorf("%+v, want %+v", cfg.Preempt, want)
	}
	if p := cfg.Partitions; p[0].PreemptMode != "GANG,SUSPEND" || p[0].GraceTime != 30*time.Second || p[0].PriorityTier != 1 || p[1].PreemptMode != "OFF" {
		t.Errorf("partitions %+v", p)
	}
	if cfg, _ = load(t, "PreemptParameters=strict_order\nPreemptExemptTime=-1\n"); cfg.Preempt != (cluster.PreemptConfig{}) {
		t.Errorf("strict order: %+v", cfg.Preempt)
	}
	if cfg, notes = load(t, "PreemptMode=GANG\nSchedulerTimeSlice=10\n"); cfg.Preempt != (cluster.PreemptConfig{Mode: "GANG", Reorders: 1, TurnLength: 10 * time.Second}) || len(notes) > 0 {
		t.Errorf("turns: %+v, %q", cfg.Preempt, notes)
	}
	if cfg, notes = load(t, "PreemptMode=Requeue,Gang\n"); cfg.Preempt != (cluster.PreemptConfig{Mode: "GANG,REQUEUE", Reorders: 1}) || len(notes) > 0 {
		t.Errorf("turns beside another mode: %+v, %q", cfg.Preempt, notes)
	}
	for text, want := range map[string]time.Duration{
		"": 2 * time.Second, "PreemptParameters=suspend_grace_time=0": 0,
		"PreemptParameters=suspend_grace_time=7": 7 * time.Second,
	} {
		if cfg, notes = load(t, text+"\n"); cfg.Preempt.StopsAfter() != want || len(notes) > 0 {
			t.Errorf("%q: a job stops after %v, want %v; %q", text, cfg.Preempt.StopsAfter(), want, notes)
		}
	}
	if cfg, _ = load(t, "SchedulerParameters=preempt_youngest_first,preempt_reorder_count=2\n"); cfg.Preempt != (cluster.PreemptConfig{Youngest: true, Reorders: 2}) {
		t.Errorf("by the old names: %+v", cfg.Preempt)
	}
}

// Without a PriorityTier the tiers follow the job factors, and that is told.
func TestPreemptTiers(t *testing.T) {
	const head = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=a Nodes=ALL\n"
	for line, want := range map[string]struct{ tier, notes int }{
		"PartitionName=b Nodes=ALL PriorityJobFactor=7":                {7, 1},
		"PartitionName=b Nodes=ALL":                                    {1, 0},
		"PartitionName=b Nodes=ALL PriorityTier=2 PriorityJobFactor=7": {2, 0},
	} {
		cfg, notes := load(t, head+line+"\n")
		if p := cfg.Partitions[1]; p.PriorityTier != want.tier || len(notes) != want.notes {
			t.Errorf("%s: tier %d, notes %q", line, p.PriorityTier, notes)
		}
	}
}

// Unknown and unsupported words are reported, with their values.
func TestPreemptKeysWrong(t *testing.T) {
	for line, names := range map[string]string{"PreemptType=preempt/luck": "luck",
		"PreemptMode=KILL": "KILL", "SchedulerTimeSlice=4": "schedulertimeslice=4",
		"SchedulerTimeSlice=soon": "soon",
		"PreemptExemptTime=soon":  "soon", "PreemptParameters=send_user_signal": "send_user_signal",
		"PreemptParameters=reorder_count=-1": "-1", "PreemptParameters=suspend_grace_time=soon": "soon",
		"PartitionName=a Nodes=ALL PreemptMode=NO":    "NO",
		"PreemptType=preempt/qos":                     "without a PreemptMode",
		"SchedulerParameters=preempt_reorder_count=x": "x"} {
		if _, notes := load(t, line+"\n"); len(notes) != 1 || !strings.Contains(notes[0], names) {
			t.Errorf("%s: notes %q", line, notes)
		}
	}
}
