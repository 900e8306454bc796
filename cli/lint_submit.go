package cli

import (
	"fmt"

	"dev.muster/api"
	"dev.muster/slurm/front"
	"dev.muster/slurm/lua"
	"dev.muster/slurm/submit"
)

// lintSubmit says what the site's scripts would make of a submission, and when it would start.
func lintSubmit(s *front.Sys, argv []string) int {
	haveLua()
	own := s.Prog
	s.Prog, s.Args = "sbatch", append([]string{"sbatch"}, argv...) // whose variables count, and who tells mistakes
	e, code, err := submit.Explain(s, argv)
	s.Prog = own
	if code != 0 {
		return code
	}
	changed := printChanges(s, "cli_filter.lua", new(lua.Filter).Changes(&e.Asked, &e.Sent))
	changed = printChanges(s, "the servers", e.Test.Changed) || changed
	if err != nil {
		text, _ := front.ErrorText(err)
		return s.Fail("it would be refused: %s", text)
	}
	if !changed {
		fmt.Fprintln(s.Stdout, "the site's scripts change nothing of it")
	}
	fmt.Fprintf(s.Stdout, "it would start at %s on %s in partition %s\n", front.Stamp(e.Test.StartsAt),
		front.NodeText(e.Test.Nodes), e.Test.Partition)
	return 0
}

// printChanges prints what somebody changes of a submission.
func printChanges(s *front.Sys, who string, list []api.FieldChange) bool {
	for _, c := range list {
		fmt.Fprintf(s.Stdout, "%s: %s = %s, was %s\n", who, c.Name, c.To, c.From)
	}
	return len(list) > 0
}
