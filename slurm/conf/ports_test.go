package conf

import (
	"fmt"
	"strings"
	"testing"
)

// TestMPIParams: the ports that steps have are read; what is wrong with them is told, with what becomes of it.
func TestMPIParams(t *testing.T) {
	for value, want := range map[string]struct {
		ports int
		note  string
	}{
		"ports=12000-12999": {1000, ""},
		"disable_slurm_hydra_bootstrap,ports=12000-12001": {2, ""},
		"disable_slurm_hydra_bootstrap":                   {0, ""},
		"ports=12000":                                     {0, "want ports=FIRST-LAST, as ports=12000-12999; no ports are reserved"},
		"ports=13000-12000":                               {0, "MpiParams=ports=13000-12000"},
		"ports=12000-12003,other":                         {4, "the rest is ignored"},
	} {
		cfg, notes := load(t, "MpiParams="+value+"\n")
		if n := cfg.StepPorts().Len(); n != want.ports {
			t.Errorf("%s: %d ports", value, n)
		}
		if (len(notes) > 0) != (want.note != "") || !strings.Contains(fmt.Sprint(notes), want.note) {
			t.Errorf("%s: %q", value, notes)
		}
	}
}
