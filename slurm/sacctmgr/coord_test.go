package sacctmgr

import (
	"slices"
	"testing"

	"dev.muster/slurm/show"
	"dev.muster/slurm/slurmtest"
)

// TestCoordinatorsBelow: a coordinator of an account is shown as one of the accounts below it, as Slurm does.
func TestCoordinatorsBelow(t *testing.T) {
	b := &show.Books{BooksResponse: slurmtest.Books()}
	b.Account("root").Coordinators = []string{"dave"}
	b.Account("team-b").Coordinators = []string{"carol", "dave"}
	for account, want := range map[string][]string{
		"root": {"dave"}, "team-a": {"dave"}, "team-b": {"carol", "dave"}, "nobody": nil,
	} {
		if got := coordinatorsOf(b, account); !slices.Equal(got, want) {
			t.Errorf("account %s: %v, want %v", account, got, want)
		}
	}
	for user, want := range map[string][]string{
		"dave": {"root", "team-a", "team-b"}, "carol": {"team-b"}, "alice": nil,
	} {
		if got := coordinatedBelow(b, user); !slices.Equal(got, want) {
			t.Errorf("user %s: %v, want %v", user, got, want)
		}
	}
}
