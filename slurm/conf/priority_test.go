package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

func load(t *testing.T, text string) (*cluster.Config, []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, notes, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, notes
}

// TestPriorityKeys reads every key about priorities and accounts.
func TestPriorityKeys(t *testing.T) {
	cfg, notes := load(t, `PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightAssoc=500
PriorityWeightFairshare=50000
PriorityWeightJobSize=2000
PriorityWeightPartition=3000
PriorityWeightQOS=4000
PriorityWeightTRES=CPU=1000,Mem=2000,GRES/gpu=3000
PriorityMaxAge=1:00:00
PriorityDecayHalfLife=14-0
PriorityCalcPeriod=2
PriorityUsageResetPeriod=MONTHLY
PriorityFavorSmall=YES
PriorityFlags=ACCRUE_ALWAYS,MAX_TRES,NO_NORMAL_ALL
FairShareDampeningFactor=5
AccountingStorageEnforce=limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:h100
SchedulerParameters=enable_user_top
PartitionName=a Nodes=ALL PriorityTier=3 PriorityJobFactor=7 TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=2.0 QOS=high
`)
	if len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
	want := cluster.PriorityConfig{Multifactor: true, MaxAge: time.Hour, HalfLife: 14 * 24 * time.Hour,
		CalcPeriod: 2 * time.Minute, UsageReset: cluster.ResetMonthly,
		Dampening: 5, FavorSmall: true, AccrueAlways: true, MaxTRES: true, RawAssoc: true, RawPart: true,
		RawQOS: true, RawTRES: true,
		Weights: cluster.PriorityWeights{Age: 1000, Assoc: 500, FairShare: 50000, Size: 2000,
			Partition: 3000, QOS: 4000,
			TRES: []cluster.Amount{{TRES: "cpu", N: 1000}, {TRES: "mem", N: 2000}, {TRES: "gres/gpu", N: 3000}}}}
	if !reflect.DeepEqual(cfg.Priority, want) {
		t.Errorf("priority %+v\nwant     %+v", cfg.Priority, want)
	}
	if e := (cluster.Enforce{Associations: true, Limits: true, QOS: true}); cfg.Enforce != e || !cfg.UserTop || len(cfg.TRES) != 2 {
		t.Errorf("enforced %+v, top by users %v, TRES %v", cfg.Enforce, cfg.UserTop, cfg.TRES)
	}
	p := cfg.Partitions[0]
	if weights := []cluster.Amount{{TRES: "cpu", N: 1}, {TRES: "mem", N: .25 / 1024}, {TRES: "gres/gpu", N: 2}}; !reflect.DeepEqual(p.BillingWeights, weights) || p.QOS != "high" || p.PriorityTier != 3 || p.PriorityJobFactor != 7 {
		t.Errorf("partition %+v", p)
	}
}

// TestPriorityKeysWrong: what makes no sense is told of, with its value, and has no effect.
func TestPriorityKeysWrong(t *testing.T) {
	for _, line := range []string{"PriorityType=priority/lottery", "PriorityWeightAge=-1",
		"PriorityFlags=FAST", "PriorityUsageResetPeriod=HOURLY",
		"PriorityMaxAge=soon", "AccountingStorageEnforce=manners", "PriorityWeightTRES=cpu",
		"PartitionName=a Nodes=ALL TRESBillingWeights=cpu=x"} {
		_, notes := load(t, line+"\n")
		_, value, _ := strings.Cut(line[strings.LastIndex(line, " ")+1:], "=")
		if len(notes) != 1 || !strings.Contains(strings.ToLower(notes[0]), strings.ToLower(value)) {
			t.Errorf("%s: notes %q do not name the value", line, notes)
		}
	}
	cfg, _ := load(t, "ClusterName=c\n")
	if p := cfg.Priority; p.Multifactor || p.MaxAge != 7*24*time.Hour || p.HalfLife != 7*24*time.Hour || p.CalcPeriod != 5*time.Minute || p.Dampening != 1 {
		t.Errorf("without any key: %+v", p)
	}
	if cfg, _ := load(t, "PriorityDecayHalfLife=UNLIMITED\n"); cfg.Priority.HalfLife != 0 {
		t.Errorf("a half-life without limit is %s", cfg.Priority.HalfLife)
	}
}

// TestSampling: how often what steps use is measured; what is not understood is told of.
func TestSampling(t *testing.T) {
	for line, want := range map[string]time.Duration{"": 0, "JobAcctGatherFrequency=10": 10 * time.Second,
		"JobAcctGatherFrequency=energy=5,task=15": 15 * time.Second,
		"JobAcctGatherFrequency=0":                cluster.Unlimited, "JobAcctGatherType=jobacct_gather/none": 0} {
		if cfg, notes := load(t, line+"\n"); cfg.SampleEvery != want || len(notes) != 0 {
			t.Errorf("%s: every %v, notes %q", line, cfg.SampleEvery, notes)
		}
	}
	if _, notes := load(t, "JobAcctGatherFrequency=often\n"); len(notes) != 1 || !strings.Contains(notes[0], "often") {
		t.Errorf("notes %q", notes)
	}
}
