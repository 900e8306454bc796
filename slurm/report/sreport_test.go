package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

// reportDay is the day of the fixture.
var reportDay = time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)

// startHistory opens a history that is empty.
func startHistory(t *testing.T) *acct.DB {
	t.Helper()
	d, err := acct.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

// reportJob is a job of the fixture: seconds of the day.
func reportJob(id cluster.JobID, user string, uid uint32, account string,
	eligible, start, end, cpus, mem, nodes, gpus int, resv string) cluster.Event {
	at := func(s int) time.Time { return reportDay.Add(time.Duration(s) * time.Second) }
	j := &cluster.Job{ID: id, Task: cluster.TaskAny, Phase: cluster.Ended, Outcome: cluster.Completed,
		Attempt: 1, Submitted: at(eligible), Eligible: at(eligible),
		Started: at(start), Ended: at(end),
		Spec: &cluster.JobSpec{
			Name: "j", User: user, UID: uid, GID: uid, Account: account,
			Layout: &cluster.Layout{Tasks: cpus, MinNodes: nodes}, Partitions: []string{"train"},
		},
		Alloc: &cluster.Alloc{Partition: "train", Reservation: resv}}
	for n := range nodes {
		share := func(all int) cluster.IDSet { return cluster.RangeIDSet(0, all/nodes-1) }
		c, g := share(cpus), share(gpus)
		if n == nodes-1 {
			c, g = cluster.RangeIDSet(0, cpus-(nodes-1)*(cpus/nodes)-1), cluster.RangeIDSet(0, gpus-(nodes-1)*(gpus/nodes)-1)
		}
		sh := cluster.Share{Node: cluster.NodeName(fmt.Sprintf("gpu-node-%03d", n+1)), CPUs: c, GPUs: g}
		if n == 0 {
			sh.MemMB = cluster.MemMB(mem)
		}
		j.Alloc.Shares = append(j.Alloc.Shares, sh)
	}
	if gpus > 0 {
		j.Alloc.Types = map[string]int64{"h100": int64(gpus)}
	}
	return cluster.Event{Job: j}
}

// reportHistory is what the reference had in its tables when testdata/sreport.txt was made.
func reportHistory(t *testing.T) *acct.DB {
	t.Helper()
	d := startHistory(t)
	node := func(n, s int, change func(*cluster.Node)) cluster.Event {
		x := &cluster.Node{
			Name: cluster.NodeName(fmt.Sprintf("gpu-node-%03d", n)), Up: true,
			Inventory: cluster.Inventory{CPUs: 16, MemMB: 64000},
		}
		for range 8 {
			x.Inventory.GPUs = append(x.Inventory.GPUs, cluster.GPU{Type: "h100"})
		}
		if change != nil {
			change(x)
		}
		return cluster.Event{Node: x, At: reportDay.Add(time.Duration(s) * time.Second), Idle: true}
	}
	var events []cluster.Event
	for n := range 8 {
		events = append(events, node(n+1, -86400, nil))
	}
	events = append(events, node(1, 1800, func(n *cluster.Node) { n.Down = true }), node(1, 5400, nil), node(2,
		7200, func(n *cluster.Node) { n.Drain = true }), node(2, 9000, nil),
		reportJob(90001, "alice", 7001, "team-a", 0, 100, 3700, 4, 4000, 1, 2, ""),
		reportJob(90002, "alice", 7001, "team-a", 3000, 5400, 11700, 64, 40000, 4, 32, ""),
		reportJob(90003, "carol", 7003, "team-a", 3000, 3750, 3811, 1, 1000, 1, 0, ""),
		reportJob(90004, "bob", 7002, "team-b", 3600, 11700, 13241, 60, 4000, 4, 16, ""),
		reportJob(90005, "carol", 7003, "team-b", 3600, 11700, 18959, 60, 4000, 4, 0, ""),
		reportJob(90006, "bob", 7002, "team-b", 20000, 20100, 21641, 128, 4000, 8, 64, ""))
	resv := func(name string, from, to int, flags cluster.ResvFlags, users []string, nodes ...cluster.NodeName) cluster.Event {
		return cluster.Event{At: reportDay,
			Resv: &cluster.Reservation{Name: name, Start: reportDay.Add(time.Duration(from) * time.Second),
				End: reportDay.Add(time.Duration(to) * time.Second), Flags: flags, Nodes: nodes, Users: users}}
	}
	events = append(events, resv("deep", 36000, 39600, 0, []string{"alice"}, "gpu-node-008"), resv("fix",
		43200, 46800, cluster.ResvMaint, nil, "gpu-node-001", "gpu-node-002"),
		reportJob(90007, "alice", 7001, "team-a", 36000, 36000, 39600, 16, 4000, 1, 8, "deep"),
		reportJob(90008, "dan", 7009, "team-b", 42000, 42000, 42000, 2, 1000, 1, 0, "")) // of no whole second
	d.Apply(1, events)
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// reportMux serves a history and books.
func reportMux(d *acct.DB) *api.Mux {
	m := api.NewMux()
	api.Handle(m, api.ListBooks, func(context.Context, api.Caller, api.AfterQuery) (api.BooksResponse, error) {
		return slurmtest.Books(), nil
	})
	api.Handle(m, api.ShowUsage, func(ctx context.Context, _ api.Caller, q api.UsageRequest) (out api.UsageResponse, err error) {
		out.Cluster = "oracle"
		if out.Rows, err = d.Usage(ctx, q.UsageQuery); err == nil {
			out.Utilization, err = d.Utilization(ctx, q.Time)
		}
		if err == nil && q.Reservations {
			out.Reservations, err = d.Reservations(ctx, q.Time)
		}
		return out, err
	})
	return m
}

// TestSreportGolden prints each report of testdata/sreport.txt, which a Slurm 22.05 printed over the same history.
func TestSreportGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/sreport.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := reportHistory(t)
	f := &slurmtest.Server{Own: reportMux(d)}
	dial := f.Dial(t)
	for _, part := range strings.Split(string(text), "$ sreport ")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		var both bytes.Buffer
		args := strings.Fields(line)
		if words := strings.Fields(strings.TrimLeft(line, "-")); len(args) > 1 && !strings.HasPrefix(words[len(words)-1], "version") {
			args = append(args, "start=2026-11-10", "end=2026-11-11")
		}
		sys := &front.Sys{
			Prog: "sreport", Stdin: strings.NewReader(""), Stdout: &both, Stderr: &both, Dial: dial,
			Now: func() time.Time { return reportDay.AddDate(0, 0, 10) },
		}
		code := Sreport(sys, args)
		if got := fmt.Sprintf("%src %d\n", both.String(), code); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("sreport %s:\n%swant\n%s", line, got, want)
		}
	}
}

// TestSreportSum: the sums of reports are those of the jobs' records, one by one.
func TestSreportSum(t *testing.T) {
	d := reportHistory(t)
	var secs float64
	for r, err := range d.Jobs(t.Context(), acct.Query{Duplicates: true}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, sh := range r.Job.Alloc.Shares {
			secs += float64(sh.CPUs.Len()) * r.Job.Ended.Sub(r.Job.Started).Seconds()
		}
	}
	rows, err := d.Usage(t.Context(), cluster.UsageQuery{Time: cluster.Span{From: 0, To: cluster.Endless}})
	if err != nil {
		t.Fatal(err)
	}
	got := 0.0
	for _, r := range rows {
		got += cluster.AmountOf(r.Used, "cpu")
	}
	if got != secs || !slices.ContainsFunc(rows,
		func(r cluster.UsageRow) bool { return r.User == "carol" && r.Account == "team-b" }) {
		t.Errorf("reports have %v CPU-seconds, the records %v: %+v", got, secs, rows)
	}
}

// TestSreportFederation: a report is of one cluster; --federation is refused where that is more.
func TestSreportFederation(t *testing.T) {
	record := &federation.Record{Name: "fed", Members: []federation.Member{{ID: 1, Name: "oracle"}}}
	m := reportMux(startHistory(t))
	api.Handle(m, api.ShowFederation, func(context.Context, api.Caller, api.AfterQuery) (
		out api.FederationResponse, err error,
	) {
		out.Cluster, out.Record = "oracle", record
		return out, nil
	})
	dial := (&slurmtest.Server{Own: m}).Dial(t)
	run := func(args ...string) (errs string, code int) {
		var text bytes.Buffer
		sys := &front.Sys{Prog: "sreport", Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &text, Dial: dial,
			Now: func() time.Time { return reportDay }}
		code = Sreport(sys, append(args, "cluster", "utilization"))
		return text.String(), code
	}
	if errs, code := run("--federation"); code != 0 {
		t.Errorf("alone in a federation: %d %q", code, errs)
	}
	record.Members = append(record.Members, federation.Member{ID: 2, Name: "beta"})
	if errs, code := run("--federation"); code != 1 || !strings.Contains(errs, "no sums over oracle,beta") {
		t.Errorf("one of two: %d %q", code, errs)
	}
	for _, args := range [][]string{{"--federation", "--local"}, nil} {
		if errs, code := run(args...); code != 0 {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
}

// TestSreportUnits: beginnings of units stand for those without a percentage, as in Slurm 22.05.
func TestSreportUnits(t *testing.T) {
	for word, want := range map[string]string{
		"sec": "Seconds", "S": "Seconds", "min": "Minutes", "hour": "Hours", "H": "Hours", "per": "Percent",
		"secper": "SecPer", "hourpe": "HourPer", "secp": "?secp", "": "?",
	} {
		r := &reporter{}
		if r.setUnit(word); r.unit.name != want {
			t.Errorf("%q is %s, want %s", word, r.unit.name, want)
		}
	}
}

// TestSreportTRES: resources that a report cannot have are refused.
func TestSreportTRES(t *testing.T) {
	dial := (&slurmtest.Server{Own: reportMux(startHistory(t))}).Dial(t)
	for names, want := range map[string]string{
		"":         "fatal: No valid TRES given",
		"cpu,node": "fatal: TRES node usage is no longer reported in the Cluster Utilization report.",
		"cpu":      "",
	} {
		var text bytes.Buffer
		sys := &front.Sys{Prog: "sreport", Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &text, Dial: dial,
			Now: func() time.Time { return reportDay }}
		code := Sreport(sys, []string{"-T", names, "cluster", "utilization"})
		if said := text.String(); (code != 0) != (want != "") || !strings.Contains(said, want) {
			t.Errorf("-T %q: %d %q, want %q", names, code, said, want)
		}
	}
}
