package step

import (
	"slices"
	"testing"

	"dev.muster/cluster"
)

// TestMultiProg: ranks get their programs, with their numbers filled in; what is wrong is told with its line.
func TestMultiProg(t *testing.T) {
	parse := func(text string, tasks int) (map[int][]string, error) {
		return ParseMultiProg(&cluster.StepSpec{Argv: []string{"mp"}, MultiProgFile: true, MultiProg: text}, tasks)
	}
	got, err := parse("# comment\n0 echo master %t\n1-2 sh -c \"echo %o\"\n", 3)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[2], []string{"sh", "-c", "echo 1"}) || !slices.Equal(got[0], []string{"echo", "master", "0"}) {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		text  string
		tasks int
		want  string
	}{
		{"0 a\n0 b\n", 1, "Duplicate record for task 0\nLine 2 of configuration file mp invalid"},
		{"0 a\n", 2, "Configuration file mp invalid, no record for task id 1"},
		{"", 1, "Configuration file mp invalid, no record for task id 0"},
		{"0-x a\n", 1, "Invalid task range specification\nLine 1 of configuration file mp invalid"},
		{"0\n", 1, "Line 1 of configuration file mp invalid"},
		{"0-5 a\n", 2, "Invalid task id, 5 >= ntasks\nLine 1 of configuration file mp invalid"},
	} {
		if _, err := parse(c.text, c.tasks); err == nil || err.Error() != c.want {
			t.Errorf("%q for %d tasks: %v, want %s", c.text, c.tasks, err, c.want)
		}
	}
}
