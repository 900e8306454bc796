package adopt

import (
	"flag"
	"testing"

	"dev.muster/adopt/dump"
)

var benchDump = flag.String("bench-dump", "../e2e/testdata/adopt/26.05/slurm_acct_db.sql.gz", "the dump that is read")

// BenchmarkRuns measures how many jobs with their steps a core reads, maps and encodes in a second.
func BenchmarkRuns(b *testing.B) {
	s, err := Open(&dump.File{Path: *benchDump}, "", func(int64) {})
	if err != nil {
		b.Fatal(err)
	}
	jobs := 0
	for b.Loop() {
		err := s.Runs(0, 0, func(*Run) error { jobs++; return nil }, func(Refused) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}
