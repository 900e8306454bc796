package show

import (
	"testing"
	"time"

	"dev.muster/slurm/format"
	"dev.muster/slurm/slurmtest"
)

// TestBriefSuffices: the columns that squeue shows from brief answers read the same from full ones.
func TestBriefSuffices(t *testing.T) {
	v := &View{Now: slurmtest.BriefTime.Add(10 * time.Minute)}
	for _, code := range []byte(lightCodes) {
		col := format.Find(jobColumns(), code)
		if col == nil {
			t.Errorf("column %c does not exist", code)
			continue
		}
		for _, j := range slurmtest.JobsOfLists() {
			full, brief := NewRow(v, j), NewRow(v, slurmtest.BriefOf(j))
			if a, b := col.Of(&full), col.Of(&brief); a != b {
				t.Errorf("column %c of job %d: %q from a full answer, %q from a brief one", code, j.ID, a, b)
			}
		}
	}
}
