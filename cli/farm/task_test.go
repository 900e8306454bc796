package farm

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// TestFill: values stand where the template wants them, quoted, and other braces stay as they are.
func TestFill(t *testing.T) {
	for _, row := range []struct{ template, line, want string }{
		{"echo {}", "a b", "echo 'a b'"},
		{"echo {2}-{1}", "a b", "echo b-a"},
		{"echo {3}.", "a b", "echo ''."},
		{"echo {#}", "x", "echo 7"},
		{"run", "it's", `run 'it'\''s'`},
		{"echo {1} ${HOME} {", "$(id)", "echo '$(id)' ${HOME} {"},
		{"awk '{print}' {}", "f.txt", "awk '{print}' f.txt"},
		{"echo {}", "{1}", "echo '{1}'"},
	} {
		t.Run(row.template, func(t *testing.T) {
			if got := fill(row.template, row.line, 7); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// TestWords: only a command of plain words needs no shell.
func TestWords(t *testing.T) {
	for _, row := range []struct {
		command string
		want    []string
	}{
		{"python3 train.py --lr=0.1 7", []string{"python3", "train.py", "--lr=0.1", "7"}},
		{"a | b", nil}, {"a > f", nil}, {"echo $X", nil}, {"X=1 a", nil}, {"a 'b c'", nil},
		{"a*", nil}, {"~/x", nil}, {"a\\ b", nil}, {"", nil},
	} {
		t.Run(row.command, func(t *testing.T) {
			if got, _ := words(row.command); !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// TestReadTasks: comments and empty lines are no tasks, but count as lines; a line without end is one; a line that is
// too long is an error.
func TestReadTasks(t *testing.T) {
	l := readTasks(strings.NewReader("# list\na\n\n  b \nc"), "")
	for _, want := range []task{{2, "a", 1}, {4, "b", 1}, {5, "c", 1}} {
		got, err := l.next()
		if err != nil || *got != want {
			t.Errorf("%v (%v), want %v", got, err, want)
		}
	}
	if _, err := l.next(); err != io.EOF {
		t.Errorf("after the last one: %v", err)
	}
	if _, err := readTasks(strings.NewReader(strings.Repeat("x", maxLine+1)), "").next(); err == nil || err == io.EOF {
		t.Errorf("a line that is too long: %v", err)
	}
}
