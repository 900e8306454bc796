package conf

import (
	"testing"

	"dev.muster/cluster"
)

// TestEnforce: each word implies what it cannot do without, as in Slurm.
func TestEnforce(t *testing.T) {
	for value, want := range map[string]cluster.Enforce{
		"associations": {Associations: true}, "1": {Associations: true}, "none": {},
		"limits": {Associations: true, Limits: true}, "qos": {Associations: true, QOS: true},
		"safe": {Associations: true, Limits: true, Safe: true}, "wckeys": {Associations: true, WCKeys: true},
		"all": {Associations: true, Limits: true, QOS: true, Safe: true, WCKeys: true},
	} {
		cfg, notes := load(t, "AccountingStorageEnforce="+value+"\n")
		if len(notes) > 0 || cfg.Enforce != want || cfg.TracksWCKey() != want.WCKeys {
			t.Errorf("%s: %+v, want %+v; notes %q", value, cfg.Enforce, want, notes)
		}
	}
	if cfg, notes := load(t, "TrackWCKey=yes\n"); len(notes) > 0 || !cfg.TracksWCKey() {
		t.Errorf("TrackWCKey=yes is not read, notes %q", notes)
	}
}
