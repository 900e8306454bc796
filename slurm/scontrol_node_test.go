package slurm

import (
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

// TestUpdateNodeWords has what a Slurm 22.05 says of values that it does not take, and which beginnings of words it knows.
func TestUpdateNodeWords(t *testing.T) {
	f := slurmtest.New()
	const weight, none = "scontrol: error: Weight value (", "\nNo changes specified\n"
	for _, c := range []struct{ words, want string }{
		{"weight=x", weight + "x) is not a valid number" + none},
		{"weight=-1", weight + "-1) is less than zero" + none},
		{"weight=4294967296", weight + "4294967296) is greater than 4294967280" + none},
		{"weight=4294967280", ""},
		{"nodehostname=", "slurm_update error: Invalid node name specified\n"},
		{"nodeaddr=", "slurm_update error: Invalid node name specified\n"},
		{"availablefeatures=other", "slurm_update error: Active features not subset of available features\n"},
		{"state=res", ""},
		{"state=dow reason=x", ""},
		{"state=fai reason=x", ""},
		{"state=drain reason=x resumeafter=60", ""},
		{"state=down reason=x resumeafter=-1", ""},
		{"state=down reason=x resumeafter=x", "scontrol: error: Invalid value resumeafter=x for ResumeAfter\n"},
		{"state=power reason=x", "Invalid input: state=power\nRequest aborted\n" +
			"Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n" +
			"Not all states are valid given a node's prior state\n"},
	} {
		want := c.want
		if want != "" {
			want = "--- stderr\n" + want + "--- rc 1\n"
		}
		args := append([]string{"scontrol", "update", "nodename=gpu-node-001"}, strings.Fields(c.words)...)
		if got := runLine(f, t, 0, nil, args...); got != want {
			t.Errorf("%s: %q, want %q", c.words, got, want)
		}
	}
}

// TestUndrain: undrain leaves nodes down that are.
func TestUndrain(t *testing.T) {
	for _, c := range []struct {
		set  cluster.Node
		want string
	}{
		{cluster.Node{Drain: true}, `{"nodes":["gpu-node-001"],"action":"resume"}`},
		{cluster.Node{Failing: true}, `{"nodes":["gpu-node-001"],"action":"resume"}`},
		{cluster.Node{Down: true}, `{"nodes":["gpu-node-001"]}`},
		{cluster.Node{}, `{"nodes":["gpu-node-001"]}`},
		{cluster.Node{Down: true, Drain: true}, ""},
	} {
		f := slurmtest.New()
		n := &f.Nodes[0]
		n.Down, n.Drain, n.Failing = c.set.Down, c.set.Drain, c.set.Failing
		runLine(f, t, 0, nil, "scontrol", "update", "nodename=gpu-node-001", "state=undrain")
		last := ""
		if len(f.Log) > 0 {
			last = f.Log[len(f.Log)-1]
		}
		if last != c.want {
			t.Errorf("down %v, drained %v: %q, want %q", c.set.Down, c.set.Drain, last, c.want)
		}
	}
}
