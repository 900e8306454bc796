package submit

import (
	"fmt"
	"testing"
)

// TestParseDefaults: which lines of ~/.slurm/defaults count, as in Slurm 22.05.
func TestParseDefaults(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"time=1:30\nmem=2048\n", "[{time 1:30} {mem 2048}]"},
		{"# time=1\n\n  job-name = foo bar  \ncomment=\"a b\"\n", `[{job-name foo bar} {comment "a b"}]`},
		{"salloc:time=7\nsbatch:time=8\n*:comment=all\nsbatch:oracle:nice=5\nsbatch:other:nice=6",
			"[{comment all} {nice 5}]"},
		{"exclusive\njob-name=x\n", "[{job-name x}]"},
		{"time=4\ntime=6\n", "[{time 4} {time 6}]"},
		{"sbatch:*:time=12\n*:oracle:comment=c1\n*:*:nice=3\n", "[{time 12} {comment c1} {nice 3}]"},
		{"salloc:*:time=13\nsbatch:oracle2:time=14\noracle:time=17", "[{time 17}]"},
		{"a:b:c:time=1\n=3\n", "[{ 3}]"},
		{"time= 18 # x\n", "[{time 18 # x}]"},
	} {
		if got := fmt.Sprint(parseDefaults(row.text, "sbatch", "oracle")); got != row.want {
			t.Errorf("%q: %s, want %s", row.text, got, row.want)
		}
	}
}
