package sacctmgr

import (
	"testing"

	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
)

// TestShortNames: names of limits and keys of partitions by their first letters, signs within a list of QOS.
func TestShortNames(t *testing.T) {
	for key, want := range map[string]string{
		"maxnode": "maxnodes", "grpnode": "grpnodes", "maxcpum": "maxcpumins", "max": "", "nosuch": "",
	} {
		if got := oldLimitName(key); got != want {
			t.Errorf("limit %s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{
		"allowaccount": "allowaccounts", "state": "state", "allow": "allow", "nosuchkey": "nosuchkey",
	} {
		if got := conf.FullPartitionKey(key); got != want {
			t.Errorf("key %s is %q, want %q", key, got, want)
		}
	}
	for value, want := range map[string]string{"+a,+b": "+a,b", "-a": "-a", "a,b": "\x00a,b", "-1": "\x00-1"} {
		s := signedList(front.Setting{Key: "qos", Value: value})
		if got := string(s.Sign) + s.Value; got != want {
			t.Errorf("qos=%s: %q, want %q", value, got, want)
		}
	}
}
