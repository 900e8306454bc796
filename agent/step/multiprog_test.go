package step

import (
	"slices"
	"strings"
	"testing"
	"time"

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

// TestLongMultiProg: a file that any user may write takes the node's daemon neither long nor much memory.
func TestLongMultiProg(t *testing.T) {
	const tasks = 1 << 14 // of one node
	for name, text := range map[string]string{
		"many lines for all tasks": "0-16383 a\n" + strings.Repeat("* a\n", 1<<18),
		"many words for all tasks": "* " + strings.Repeat("w ", 1<<19),
		"many words with the rank": "* " + strings.Repeat("%t ", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			spec := &cluster.StepSpec{Argv: []string{"mp"}, MultiProgFile: true, MultiProg: text}
			_, err := ParseMultiProg(spec, tasks)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			if strings.HasPrefix(text, "*") && err == nil {
				t.Error("it is taken")
			}
		})
	}
}
