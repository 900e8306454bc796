package wrap

import (
	"bytes"
	"strings"
	"testing"

	"dev.muster/slurm/front"
)

// TestKeyMakers: munge's commands succeed with whatever options, and say why there is no key.
func TestKeyMakers(t *testing.T) {
	for _, c := range KeyMakers() {
		for _, argv := range [][]string{nil, {"--create", "--verbose"}, {"-f", "-r"}} {
			var out, errs bytes.Buffer
			code := c.Run(&front.Sys{Prog: c.Name, Stdout: &out, Stderr: &errs}, argv)
			if code != 0 || errs.Len() > 0 || strings.Count(out.String(), "\n") != 1 ||
				!strings.HasPrefix(out.String(), c.Name+": muster needs no munge key: ") {
				t.Errorf("%s %q: %d %s%s", c.Name, argv, code, out.String(), errs.String())
			}
		}
	}
}
