package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestRetention: slurmdbd.conf says how long history is kept; what of it does nothing is told.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"slurm.conf": "ClusterName=x\nPurgeUsageAfter=24\n",
		"slurmdbd.conf": "DbdHost=db\nStoragePass=secret\nPurgeJobAfter=12months\nPurgeStepAfter=48hour\nArchiveJobs=yes\nArchiveSteps=no\nPurgeEventAfter=1month\nArchiveScript=/bin/archive\nPurgeTXNAfter=2days\nArchiveTXN=yes\nPurgeSuspendAfter=1\nPurgeFooAfter=1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, notes, err := Load(filepath.Join(dir, "slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	want := cluster.Retention{Dir: "/tmp", Script: "/bin/archive",
		Rules: []cluster.RetainRule{{Kind: cluster.EventRecords, Age: cluster.Age{N: 1, Unit: cluster.AgeMonths}},
			{Kind: cluster.JobRecords, Age: cluster.Age{N: 12, Unit: cluster.AgeMonths}, Archive: true},
			{Kind: cluster.StepRecords, Age: cluster.Age{N: 48, Unit: cluster.AgeHours}},
			{Kind: cluster.TxnRecords, Age: cluster.Age{N: 2, Unit: cluster.AgeDays}, Archive: true},
			{Kind: cluster.UsageRecords, Age: cluster.Age{N: 24, Unit: cluster.AgeMonths}}}}
	if !reflect.DeepEqual(cfg.Retention, want) {
		t.Errorf("%+v\nwant %+v", cfg.Retention, want)
	}
	text := strings.Join(notes, "\n")
	if len(notes) != 2 || !strings.Contains(text, "slurmdbd.conf:11: PurgeSuspendAfter has no effect: pauses are part of the jobs' records") || !strings.Contains(text, "PurgeFooAfter is not a setting of slurmdbd.conf") {
		t.Errorf("notes:\n%s", text)
	}
}
