package control

import (
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// TestPartitionWords: values that Slurm 22.05 does not take are refused in its words.
func TestPartitionWords(t *testing.T) {
	const fail = "scontrol: error: "
	for _, c := range []struct{ word, want string }{
		{"lln=x", fail + "Invalid input: lln=x|" + fail + "Acceptable LLN values are YES and NO"},
		{"Default=", fail + "Invalid input: Default=|" + fail + "Acceptable Default values are YES and NO"},
		{"hid=x", fail + "Invalid input: hid=x|" + fail + "Acceptable Hidden values are YES and NO"},
		{"stat=x", fail + "Invalid input: stat=x|" + fail + "Acceptable State values are UP, DOWN, DRAIN and INACTIVE"},
		{"preem=x", fail + "Invalid input: preem=x"},
		{"MaxTime=x", fail + "Invalid input MaxTime=x"},
		{"maxnodes=x", fail + `Invalid numeric value "x" for MaxNodes.`},
		{"defmempercpu=1G", fail + "Invalid DefMemPerCPU value: 1G"},
		{"prio=x", fail + "Invalid Priority value: x"},
		{"prioritytier=65534", fail + "Invalid PriorityTier value: 65534"},
		{"priorityjobfactor=70000", fail + "Invalid PriorityJobFactor value: 70000"},
		{"jobdefaults=x", "slurm_update error: Invalid JobDefaults specification"},
		{"tresbilling=cpu=x", "slurm_update error: Invalid TRESBillingWeights specification"},
		{"tresbillingweights=foo=2", "slurm_update error: Invalid TRESBillingWeights specification"},
		{"defmemper=3", fail + "Update of this parameter is not supported: defmemper=3\n|" + fail + "Request aborted"},
		{
			"maxtime=0",
			fail + "Invalid input maxtime=0|" + fail +
				"MaxTime=0 does not close a partition here: say State=DRAIN, or State=DOWN",
		},
		{"prioritytier=65533", ""}, {"maxn=2", ""}, {"req=yes", ""},
	} {
		list, _ := front.Settings([]string{c.word})
		bad, _ := partitionWords(&cluster.Partition{}, list)
		if got := strings.Join(bad, "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.word, got, c.want)
		}
	}
}

// TestPartitionChanges: what Slurm 22.05 makes of values that are short or empty.
func TestPartitionChanges(t *testing.T) {
	p := cluster.Partition{PartitionAccess: cluster.PartitionAccess{
		AllowAccounts: []string{"a"}, AllowGroups: []string{"g"}, AllowQOS: []string{"q"},
	}}
	list, _ := front.Settings([]string{"allowaccounts=", "allowgroups=", "allowqos=", "priority=3", "maxtime=0:30"})
	if bad, _ := partitionWords(&p, list); bad != nil {
		t.Fatal(bad)
	}
	if p.AllowAccounts != nil || p.AllowGroups != nil || p.AllowQOS != nil {
		t.Errorf("an empty list does not allow all: %v", p.PartitionAccess)
	}
	if p.PriorityTier != 3 || p.PriorityJobFactor != 3 {
		t.Errorf("priority=3 sets tier %d and factor %d", p.PriorityTier, p.PriorityJobFactor)
	}
	if p.MaxTime.String() != "1m0s" {
		t.Errorf("maxtime=0:30 is %v", p.MaxTime)
	}
}
