package sacctmgr

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/control"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/report"
	"dev.muster/slurm/show"
)

// booksKeys are the lines of scontrol show config that sacctmgr shows too.
const booksKeys = "AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost AccountingStorageParameters AccountingStoragePort AccountingStorageTRES " +
	"AccountingStorageType AccountingStorageUser AccountingStoreFlags AuthType MessageTimeout PrivateData SLURM_VERSION TCPTimeout TrackWCKey"

// archiveKeys are slurmdbd.conf's keys about old records of a kind.
var archiveKeys = [...]struct {
	kind           cluster.RecordKind
	archive, purge string
}{
	{cluster.EventRecords, "ArchiveEvents", "PurgeEventAfter"}, {cluster.JobRecords, "ArchiveJobs", "PurgeJobAfter"},
	{cluster.ResvRecords, "ArchiveResvs", "PurgeResvAfter"}, {cluster.StepRecords, "ArchiveSteps", "PurgeStepAfter"},
	{cluster.TxnRecords, "ArchiveTXN", "PurgeTXNAfter"}, {cluster.UsageRecords, "", "PurgeUsageAfter"},
}

// configuration is sacctmgr show configuration: how accounting is configured. The keys of slurmdbd.conf are the
// servers' own keys here: each keeps the history itself.
func (m *manager) configuration() int {
	resp, err := front.Call(m.sys, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.sys.Fail("%s", text)
	}
	out := bufio.NewWriter(m.sys.Stdout)
	defer out.Flush()
	lines := control.ConfigText(&resp)
	fmt.Fprintf(out, "Configuration data as of %s\n", format.Stamp(resp.Now, "Unknown"))
	for key := range strings.FieldsSeq(booksKeys) {
		if value, there := lines[key]; there {
			fmt.Fprintf(out, "%-22s = %s\n", key, value)
		}
	}
	keep := resp.Config.Retention
	keys := map[string]string{"ArchiveDir": format.Null(keep.Dir),
		"ArchiveScript": format.Null(keep.Script), "BOOT_TIME": format.Stamp(resp.Booted, "Unknown"),
		"SLURMDBD_VERSION": front.SlurmVersion, "TrackWCKey": lines["TrackWCKey"], "PrivateData": lines["PrivateData"]}
	for _, k := range archiveKeys {
		i := slices.IndexFunc(keep.Rules, func(r cluster.RetainRule) bool { return r.Kind == k.kind })
		keys[k.purge] = "NONE"
		if i >= 0 {
			keys[k.purge] = fmt.Sprintf("%d %s", keep.Rules[i].Age.N, keep.Rules[i].Age.Unit)
		}
		if k.archive != "" {
			keys[k.archive] = front.Choose(i >= 0 && keep.Rules[i].Archive, "Yes", "No")
		}
	}
	fmt.Fprintf(out, "\nSlurmDBD configuration:\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(out, "%-22s = %s\n", key, keys[key])
	}
	return 0
}

// unusedWall is how long a reservation had no jobs, in seconds: where they had some of its CPUs, that part of the time.
func unusedWall(s *cluster.ResvSpan, now int64) float64 {
	over := float64(max(min(s.To, now)-s.From, 0))
	if cpus := cluster.AmountOf(s.TRES, "cpu"); cpus > 0 {
		over -= cluster.AmountOf(s.Used, "cpu") / cpus
	}
	return max(over, 0)
}

// reservedTRES is the CPUs that a reservation has, and its GPUs if it is of GPUs and not of whole nodes.
func reservedTRES(s *cluster.ResvSpan) string {
	if cluster.AmountOf(s.TRES, "gres/gpu") > 0 && cluster.AmountOf(s.TRES, "mem") == 0 {
		return amountsText(s.TRES)
	}
	return "cpu=" + report.PlainNumber(cluster.AmountOf(s.TRES, "cpu"))
}

// reservations shows the reservations of a time: those of today, unless another time is asked for.
func (m *manager) reservations(q *mgrQuery) int {
	now := m.sys.Now().Local()
	y, mo, d := now.Date()
	from, to := time.Date(y, mo, d, 0, 0, 0, 0, now.Location()), now
	if text, pos := q.span(now, &from, &to); text != "" {
		return m.wrong(fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, text))
	}
	resp, err := front.Call(m.sys, api.ShowUsage, api.UsageRequest{
		Ahead:      true,
		UsageQuery: cluster.UsageQuery{Time: cluster.Span{From: from.Unix(), To: to.Unix() + 1}},
	})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.sys.Fail("%s", text)
	}
	rows := slices.DeleteFunc(resp.Reservations, func(s cluster.ResvSpan) bool {
		return !q.has("reservation", strings.ToLower(s.Name)) || !q.has("id", strconv.FormatInt(s.ID, 10)) ||
			!slices.ContainsFunc(s.Nodes, func(n cluster.NodeName) bool { return q.has("node", string(n)) })
	})
	type R = cluster.ResvSpan
	cols := []front.Column[R]{
		{
			Name: "Associations", Head: "Assocs", Width: 10,
			Of: func(s *R) string { return strings.Join(report.MayUseReservation(m.books, s), ",") },
		},
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(*R) string { return resp.Cluster }},
		{
			Name: "End TimeEnd", Head: "TimeEnd", Width: 19,
			Of: func(s *R) string { return front.Stamp(time.Unix(s.To, 0)) },
		},
		{
			Name: "Flags", Head: "Flags", Width: 20,
			Of: func(s *R) string { return show.ResvText(&cluster.Reservation{Flags: s.Flags}) },
		},
		{Name: "ID", Head: "ID", Width: 6, Of: func(s *R) string { return strconv.FormatInt(s.ID, 10) }},
		{Name: "Name", Head: "Name", Width: 10, Of: func(s *R) string { return s.Name }},
		{Name: "NodeNames", Head: "NodeName", Width: -15, Of: func(s *R) string { return front.NodeText(s.Nodes) }},
		{
			Name: "Start TimeStart", Head: "TimeStart", Width: 19,
			Of: func(s *R) string { return front.Stamp(time.Unix(s.From, 0)) },
		},
		{
			Name: "TRES", Head: "TRES", Width: 20, Of: reservedTRES,
		},
		{
			Name: "UnusedWall", Head: "UnusedWall", Width: 10,
			Of: func(s *R) string { return report.SixDigits(unusedWall(s, now.Unix())) },
		},
	}
	return showTable(m, q, cols, "Cluster,Name%15,TRES%30,Start,End,UnusedWall", rows)
}

// keepRule is how long records of a kind are kept.
type keepRule = cluster.RetainRule

var purgeTable = data.Table[keepRule]{Schema: "slurmdb_purge_units", Members: []data.Member[keepRule]{
	{Path: "set", Of: func(r *keepRule) data.Value { return data.Bool(r.Age.N > 0) }},
	{Path: "hours", By: ageIn, Arg: string(cluster.AgeHours)},
	{Path: "days", By: ageIn, Arg: string(cluster.AgeDays)},
	{Path: "months", By: ageIn, Arg: string(cluster.AgeMonths)},
	{Path: "archive", Of: func(r *keepRule) data.Value { return data.Bool(r.Archive) }},
}}

func ageIn(r *keepRule, unit string) data.Value {
	if string(r.Age.Unit) != unit {
		return data.Num(0)
	}
	return data.Num(r.Age.N)
}

// configList is the configuration of accounting in JSON and YAML.
func configList(m *manager, _ *mgrQuery) (data.Part, error) {
	resp, err := front.Call(m.sys, api.ShowCluster, api.Empty{})
	if err != nil {
		return data.Part{}, err
	}
	keep := resp.Config.Retention
	lines := control.ConfigText(&resp)
	own := map[string]data.Value{"ArchiveDir": data.Text(keep.Dir), "ArchiveScript": data.Text(keep.Script)}
	for i := range archiveKeys {
		rule := keepRule{}
		k := slices.IndexFunc(keep.Rules, func(r keepRule) bool { return r.Kind == archiveKeys[i].kind })
		if k >= 0 {
			rule = keep.Rules[k]
		}
		own[archiveKeys[i].purge] = data.Record(&purgeTable, &rule)
	}
	return data.Settings("slurmdbd_conf", "slurmdbd_conf", own, func(key string) string {
		if key != "TrackWCKey" {
			return "" // of slurmdbd.conf alone: there is none
		}
		return lines[key]
	}), nil
}
