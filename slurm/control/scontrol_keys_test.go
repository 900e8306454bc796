package control

import (
	"os"
	"slices"
	"strings"
	"testing"

	"dev.muster/slurm/conf"
)

// TestKnownKeys: every key that Slurm has is read, or it is known why it is not.
func TestKnownKeys(t *testing.T) {
	shown := []string{
		"BOOT_TIME", "HASH_VAL", "MULTIPLE_SLURMD", "NEXT_JOB_ID", "SLURM_CONF", "SLURM_VERSION",
	} // no keys of the file
	var text strings.Builder
	for k := range strings.FieldsSeq(configKeys) {
		if !slices.Contains(shown, k) {
			value := "1"
			if k == "MpiDefault" { // any other is refused
				value = "none"
			}
			text.WriteString(k + "=" + value + "\n")
		}
	}
	file := t.TempDir() + "/slurm.conf"
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, notes, fine, err := conf.Check(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notes {
		if strings.Contains(n, "is not a setting of slurm.conf") {
			t.Error(n)
		}
	}
	if len(fine) < 50 {
		t.Errorf("only %d keys need no setting", len(fine))
	}
}
