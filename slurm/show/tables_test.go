package show

import (
	"testing"

	"dev.muster/slurm/data"
)

// TestTables: every member of the tables is a field of some version, and the fields that none fills are those
// that are known.
func TestTables(t *testing.T) {
	for _, table := range []interface {
		Unknown() []string
		Unfilled(version int) []string
	}{
		&JobTable, &ExitTable, &resourceTable, &givenTable, &givenSocketTable, &givenCoreTable, &StepTable,
		&PartitionTable, &SinfoTable, &NodeTable, &LicenseTable, &ResvTable, &coreTable, &TRESTable,
	} {
		for _, path := range table.Unknown() {
			t.Errorf("%T: no version has %s", table, path)
		}
		for v := data.Oldest; v <= data.Newest; v++ {
			if list := table.Unfilled(v); len(list) > unfilled {
				t.Errorf("%T: nothing fills %d of v0.0.%d: %v", table, len(list), v, list)
			}
		}
	}
}

const unfilled = 0
