package schedtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// Limits reads limits as sacctmgr writes them: "GrpTRES=cpu=4 MaxJobs=2".
func Limits(t testing.TB, text string) (out cluster.Limits) {
	t.Helper()
	for _, w := range strings.Fields(text) {
		name, value, _ := strings.Cut(w, "=")
		tres, number, is := strings.Cut(value, "=")
		if !is {
			tres = ""
			number = value
		}
		x := cluster.Limit{Name: name, TRES: tres}
		if _, err := fmt.Sscan(number, &x.Max); err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		if !slices.ContainsFunc(cluster.LimitNames(), func(r cluster.LimitName) bool { return r.Name == name }) {
			t.Fatalf("there is no limit %s", name)
		}
		out = out.With(x)
	}
	return out
}

// Ruled is a testbed of nodes with accounts: users u and v in team, which is below group; and the partitions main and
// strict, whose QOS is gate. The texts are limits of these.
func Ruled(t testing.TB, nodes int, root, group, team, user, qos, gate string, flags ...string) *Testbed {
	b := New(t, nodes)
	cfg := *b.S.Config()
	cfg.Enforce = cluster.Enforce{Associations: true, Limits: true, QOS: true}
	cfg.Priority = cluster.PriorityConfig{
		Multifactor: true, CalcPeriod: time.Minute, HalfLife: time.Hour, MaxAge: time.Hour,
	}
	cfg.Partitions = append(slices.Clone(cfg.Partitions), cluster.Partition{
		Name: "strict", All: true, State: cluster.PartitionUp, QOS: "gate",
	},
		cluster.Partition{Name: "short", All: true, State: cluster.PartitionUp,
			PartitionLimits: cluster.PartitionLimits{MaxTime: 30 * time.Minute}},
		cluster.Partition{Name: "few", All: true, State: cluster.PartitionUp, MaxCPUsPerUser: 4},
		cluster.Partition{Name: "brief", All: true, State: cluster.PartitionUp,
			PartitionLimits: cluster.PartitionLimits{DefaultTime: 15 * time.Minute}},
		cluster.Partition{Name: "shut", All: true, State: cluster.PartitionUp,
			PartitionAccess: cluster.PartitionAccess{AllowAccounts: []string{"others"}}})
	b.Apply(&cluster.Configure{Config: &cfg})
	lim := func(s string) cluster.Limits { return Limits(t, s) }
	b.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{
		{QOS: &cluster.QOS{Name: "normal", UsageFactor: 1, Limits: lim(qos), Flags: flags}},
		{QOS: &cluster.QOS{Name: "gate", UsageFactor: 1, Limits: lim(gate)}},
		{Assoc: &cluster.Association{Account: "root", Shares: 1, QOS: []string{"normal", "gate"}, Limits: lim(root)}},
		{Account: &cluster.Account{Name: "group"}},
		{Assoc: &cluster.Association{Account: "group", Shares: 1, Limits: lim(group)}}}})
	above, _ := b.S.AssocOf("group", "", "")
	b.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{
		{Account: &cluster.Account{Name: "team"}},
		{Assoc: &cluster.Association{Account: "team", Parent: above.ID, Shares: 1, Limits: lim(team)}},
		{User: &cluster.User{Name: "u", DefaultAccount: "team"}},
		{Assoc: &cluster.Association{Account: "team", User: "u", Shares: 1, Limits: lim(user)}},
		{User: &cluster.User{Name: "v", DefaultAccount: "team"}},
		{Assoc: &cluster.Association{Account: "team", User: "v", Shares: 1}}}})
	return b
}
