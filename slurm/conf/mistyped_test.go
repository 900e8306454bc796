package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistypedLines: a line whose first word is mistyped is told of once, and so is a partition of nodes that no
// line speaks of.
func TestMistypedLines(t *testing.T) {
	for text, want := range map[string]string{
		"NodNam=foo CPUs=4\n":                                               "F:1: NodNam is not a setting of slurm.conf: do you mean NodeName? The line is ignored",
		"ParttionName=p Nodes=ALL State=UP\n":                               "F:1: ParttionName is not a setting of slurm.conf: do you mean PartitionName? The line is ignored",
		"NodeName=n1 CPUs=2\nPartitionName=p Nodes=n1,bar,baz\n":            "F:2: PartitionName=p: no NodeName line speaks of node bar",
		"NodeName=n1 CPUs=2\nPartitionName=p Nodes=ALL\n":                   "",
		"PartitionName=p Nodes=bar\n":                                       "", // nodes say themselves what they are
		"NodeSet=s Nodes=n1\nNodeName=n1 CPUs=2\nPartitionName=p Nodes=s\n": "",
	} {
		file := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, notes, err := Load(file)
		got := strings.ReplaceAll(strings.Join(notes, "\n"), file, "F")
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
