package values

import (
	"slices"
	"strings"

	"dev.muster/slurm/front"
)

// PairedWords joins the keys and values of update job: 42 comment text, and jobid=42 comment text.
func PairedWords(args []string) []string {
	key, _, given := strings.Cut(strings.ToLower(args[0]), "=")
	switch {
	case !slices.Contains([]string{"job", "jobid", "jobname"}, key):
		return args
	case given:
		return append(args[:1:1], front.Paired(args[1:])...)
	case len(args) > 1:
		return append([]string{args[0] + "=" + args[1]}, front.Paired(args[2:])...)
	}
	return args
}
