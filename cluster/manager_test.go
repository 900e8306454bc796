package cluster

import "testing"

// TestManagerOf: names of Slurm's plugins, and none that does not exist.
func TestManagerOf(t *testing.T) {
	for name, want := range map[string]Manager{
		"": ManagerNone, "none": ManagerNone, "openmpi": ManagerNone, "PMI2": ManagerPMI2,
		"pmix": ManagerPMIx, "pmix_v3": ManagerPMIx, "PMIX_V5": ManagerPMIx,
		"pmix_v1": ManagerUnknown, "pmix_v9": ManagerUnknown, "pmix_v": ManagerUnknown, "cray_shasta": ManagerUnknown,
	} {
		if got := ManagerOf(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
