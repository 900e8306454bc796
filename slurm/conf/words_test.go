package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParamWords: of a key of many words each is told of alone, by what it would mean; what is so anyway only if
// one asks for all.
func TestParamWords(t *testing.T) {
	cfg, notes := load(t,
		"LaunchParameters=nccl_env,test_exec,enable_nss_slurm\nTaskPluginParam=Cores\nSlurmctldParameters=power_save_interval=30,blue\nSchedulerParameters=defer,spec_cores_first\n")
	want := []string{"LaunchParameters=test_exec has no effect: srun does not look for the program",
		"SchedulerParameters: not needed", "SchedulerParameters=spec_cores_first has no effect: it would",
		"TaskPluginParam=Cores has no effect: it would bind tasks to cores",
		"SlurmctldParameters=blue is not known; ignored"}
	for _, w := range want {
		if !strings.Contains(strings.Join(notes, "\n"), w) {
			t.Errorf("notes lack %q", w)
		}
	}
	if len(notes) != len(want) || !cfg.NCCLEnv {
		t.Errorf("notes %q", notes)
	}
}

// TestParamTable: each word of the table has a reason, stands once in it, and is read.
func TestParamTable(t *testing.T) {
	for _, k := range paramKeys {
		seen := map[string]bool{}
		for _, w := range k.words {
			if seen[w.word] || w.why == "" || w.word != strings.ToLower(w.word) {
				t.Errorf("%s=%s: twice, without a reason, or not in lower case", k.key, w.word)
			}
			seen[w.word] = true
			file := filepath.Join(t.TempDir(), "slurm.conf")
			if err := os.WriteFile(file, fmt.Appendf(nil, "%s=%s\n", k.key, w.word), 0o600); err != nil {
				t.Fatal(err)
			}
			_, notes, fine, err := Check(file)
			list := notes
			if w.needless {
				list = fine
			}
			if err != nil || len(notes)+len(fine) != 1 || len(list) != 1 || !strings.Contains(list[0], k.key+"="+w.word+" ") || !strings.HasSuffix(list[0], w.why) {
				t.Errorf("%s=%s: notes %q, fine %q, %v", k.key, w.word, notes, fine, err)
			}
		}
	}
}
