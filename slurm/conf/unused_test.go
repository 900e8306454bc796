package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnfit: a key that changes what programs compute and can not be done is refused, with its place and the way out.
func TestUnfit(t *testing.T) {
	for value, refused := range map[string]bool{"none": false, "openmpi": false, "pmix": true, "pmi2": true} {
		file := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(file, []byte("ClusterName=c\nMpiDefault="+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(file)
		if (err != nil) != refused || refused && (!strings.Contains(err.Error(), "slurm.conf:2: MpiDefault="+value) || !strings.Contains(err.Error(), "MpiDefault=none")) {
			t.Errorf("MpiDefault=%s: %v", value, err)
		}
	}
}
