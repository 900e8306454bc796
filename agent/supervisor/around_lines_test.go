package supervisor

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// TestLongPrologLine: a line of a TaskProlog that is too long is left out, and those after it count.
func TestLongPrologLine(t *testing.T) {
	text := "export A=1\r\nprint " + strings.Repeat("x", 2*maxPrologLine) + "\nexport B=2\nunset C"
	if got := applyProlog(text, []string{"C=3"}, io.Discard); !slices.Equal(got, []string{"A=1", "B=2"}) {
		t.Errorf("the environment is %d variables, want A and B", len(got))
	}
}
