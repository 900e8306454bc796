package submit

import "testing"

// FuzzDirective has lines of scripts split into words.
func FuzzDirective(f *testing.F) {
	for _, s := range []string{`--job-name="a b" -n 4`, `--comment='it''s' # more`, `-p a\ b`, `"`} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { SplitDirective(s) })
}
