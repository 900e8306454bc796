package acct

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
)

// randomJob is a job somewhere on its way: with so many cores and GPUs, perhaps suspended now and then.
func randomJob(r *rand.Rand, id int) []*cluster.Job {
	j := &cluster.Job{ID: cluster.JobID(id), Task: cluster.TaskAny, Attempt: 1,
		Submitted: epoch.Add(time.Duration(r.Int64N(int64(72 * time.Hour)))),
		Spec: &cluster.JobSpec{
			User: fmt.Sprintf("u%d", r.IntN(4)), UID: uint32(r.IntN(4)),
			Account: fmt.Sprintf("a%d", r.IntN(3)), Layout: &cluster.Layout{Tasks: 1 + r.IntN(8)},
		}}
	j.Eligible = j.Submitted
	life := []*cluster.Job{j}
	next := func() *cluster.Job {
		c := *life[len(life)-1]
		life = append(life, &c)
		return &c
	}
	some := func() time.Duration { return time.Duration(r.Int64N(int64(3 * time.Hour))) }
	if r.IntN(8) == 0 {
		return life
	}
	n := next()
	n.Phase, n.Started = cluster.Running, n.Submitted.Add(some())
	n.Alloc = &cluster.Alloc{Partition: "main",
		Shares: []cluster.Share{
			{
				Node: "n1", CPUs: cluster.RangeIDSet(0, r.IntN(16)), MemMB: cluster.MemMB(r.IntN(9000)),
				GPUs: cluster.RangeIDSet(0, r.IntN(8)),
			},
		},
		Types: map[string]int64{"h100": 1}}
	at := n.Started
	for r.IntN(3) == 0 {
		p := cluster.Pause{From: at.Add(some())}
		p.To = p.From.Add(some())
		at, n = p.To, next()
		n.Pauses, n.SuspendTotal = append(slices.Clone(n.Pauses), p), n.SuspendTotal+p.To.Sub(p.From)
	}
	if r.IntN(8) > 0 {
		n = next()
		n.Phase, n.Outcome, n.Ended = cluster.Ended, cluster.Outcome(1+r.IntN(5)), at.Add(some())
	}
	return life
}

// TestUsageIsTheRecords: however events come and are gathered, reports have what a walk over all records, second
// by second of each, gives; and the tables made again from the records are the same.
func TestUsageIsTheRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := openDB(t, t.TempDir())
	defer d.stop()
	var last []*cluster.Job
	for i := range 400 {
		life := randomJob(r, i+1)
		for k, j := range life {
			d.Apply(uint64(i*10+k+1), []cluster.Event{{Job: j}})
		}
		last = append(last, life[len(life)-1])
	}
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := epoch.Unix()
	for range 20 {
		from := begin + 3600*r.Int64N(80)
		span := cluster.Span{From: from, To: from + 3600*(1+r.Int64N(40))}
		want, cpu := map[string]float64{}, 0.0
		for _, j := range last {
			if j.Started.IsZero() {
				continue
			}
			secs := float64(slowSeconds(j, span))
			for _, a := range []cluster.Amount{
				{TRES: "cpu", N: float64(j.Alloc.Shares[0].CPUs.Len())},
				{TRES: "gres/gpu", N: float64(j.Alloc.Shares[0].GPUs.Len())},
				{TRES: "mem", N: float64(j.Alloc.Shares[0].MemMB)},
			} {
				want[j.Spec.Account+j.Spec.User+a.TRES] += secs * a.N
			}
			cpu += secs * float64(j.Alloc.Shares[0].CPUs.Len())
		}
		rows, err := d.Usage(t.Context(), cluster.UsageQuery{Time: span})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, row := range rows {
			for _, tres := range []string{"cpu", "gres/gpu", "mem"} {
				got[row.Account+row.User+tres] += cluster.AmountOf(row.Used, tres)
			}
		}
		for k := range want {
			if want[k] != got[k] {
				t.Errorf("%+v: %s: the report has %v, the records %v", span, k, got[k], want[k])
			}
		}
		hours, err := d.hours(t.Context(), "run cpu", span)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, h := range hours {
			sum += h
		}
		if sum != cpu {
			t.Errorf("%+v: the hours' sum of CPU-seconds is %v, the records' %v", span, sum, cpu)
		}
	}
	before := tables(t, d.DB)
	if err := rebuild(d.w); err != nil {
		t.Fatal(err)
	}
	if after := tables(t, d.DB); !reflect.DeepEqual(before, after) {
		t.Errorf("made anew the tables have other rows: %d and %d", len(before), len(after))
	}
}

// slowSeconds counts a job's seconds in a span one by one.
func slowSeconds(j *cluster.Job, span cluster.Span) (n int64) {
	ran := func(at int64) int64 { // whole seconds of run time up to a second
		end := time.Unix(at, 0).Add(time.Duration(j.Started.Nanosecond())) // seconds of the job begin as it did
		if j.Phase == cluster.Ended && end.After(j.Ended) {
			end = j.Ended
		}
		if end.Before(j.Started) {
			return 0
		}
		ran := end.Sub(j.Started)
		for _, p := range j.Pauses {
			if end.After(p.From) {
				ran -= min(end.Sub(p.From), p.To.Sub(p.From))
			}
		}
		return int64(ran / time.Second)
	}
	if len(j.Pauses) == 0 {
		return max(ran(span.To)-ran(span.From), 0)
	}
	// With pauses each piece begins on a second of its own.
	done := time.Duration(0)
	from := j.Started
	piece := func(to time.Time) {
		secs := int64((done+to.Sub(from))/time.Second) - int64(done/time.Second)
		for s := from.Unix(); s < from.Unix()+secs; s++ {
			if s >= span.From && s < span.To {
				n++
			}
		}
		done += to.Sub(from)
	}
	for _, p := range j.Pauses {
		piece(p.From)
		from = p.To
	}
	if j.Phase == cluster.Ended {
		piece(j.Ended)
	} else {
		n += cluster.Span{From: from.Unix(), To: span.To}.Within(span)
	}
	return n
}

// tables are the rows of usage, without the numbers of classes.
func tables(t *testing.T, d *DB) (out []string) {
	t.Helper()
	for _, q := range []string{
		"SELECT class.data || '|' || s1 || '|' || s0 || '|' || seq || '|' || n FROM run JOIN class ON id = class",
		"SELECT what || '|' || hour || '|' || n || '|' || moment FROM load WHERE n != 0 OR moment != 0",
	} {
		err := each(t.Context(), d.r, q, func(data []byte) error {
			out = append(out, string(data))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

// TestUtilization: an hour has the sum of where its time went, whatever happens in it.
func TestUtilization(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	node := func(index uint64, at time.Duration, change func(*cluster.Node)) {
		n := &cluster.Node{Name: "n1", Up: true, Inventory: cluster.Inventory{CPUs: 8}}
		change(n)
		d.Apply(index, []cluster.Event{{Node: n, At: epoch.Add(at), Idle: true}})
	}
	node(1, 0, func(*cluster.Node) {})
	node(2, 30*time.Minute, func(n *cluster.Node) { n.Down = true })
	node(3, 45*time.Minute, func(*cluster.Node) {})
	j := job(7, cluster.Ended, cluster.Completed)
	j.Eligible, j.Started, j.Ended = epoch.Add(10*time.Minute), epoch.Add(50*time.Minute), epoch.Add(80*time.Minute)
	j.Spec.Tasks, j.Alloc = 8, &cluster.Alloc{Shares: []cluster.Share{{Node: "n1", CPUs: cluster.RangeIDSet(0, 7)}}}
	d.Apply(4, []cluster.Event{{Job: j}})
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := d.Utilization(t.Context(), cluster.Span{From: epoch.Unix(), To: epoch.Add(2 * time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	const min = 8 * 60.0
	want := cluster.Utilization{
		TRES: "cpu", Count: 8, Allocated: 30 * min, Down: 15 * min, Planned: 35 * min, Over: 5 * min,
		Idle: 40 * min, Reported: 120 * min,
	}
	if i := slices.IndexFunc(got, func(u cluster.Utilization) bool { return u.TRES == "cpu" }); i < 0 || got[i] != want {
		t.Errorf("utilization %+v, want %+v", got, want)
	}
}

// TestEventsOfOneSecond: a drain that ends in the second in which it began is an event, as with Slurm, and the time of
// the node has no gap. Of several in one second, the first one stays.
func TestEventsOfOneSecond(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	for i, reason := range []string{"", "bad disk", "", "again", "", "and again", ""} {
		n := &cluster.Node{Name: "n1", Up: true, Drain: reason != "", Reason: reason}
		at := epoch.Add(time.Minute + time.Duration(i)*time.Millisecond)
		if i == 0 {
			at = epoch
		}
		d.Apply(uint64(i+1), []cluster.Event{{Node: n, At: at, Idle: true}})
	}
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans, err := d.NodeSpans(t.Context(), cluster.Span{From: epoch.Unix(), To: epoch.Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		from, to int64 // since epoch
		reason   string
	}
	var got []row
	for _, s := range spans {
		to := s.To
		if to != 0 {
			to -= epoch.Unix()
		}
		got = append(got, row{s.From - epoch.Unix(), to, s.Reason})
	}
	want := []row{{0, 60, ""}, {60, 61, "bad disk"}, {61, 0, ""}}
	if !slices.Equal(got, want) {
		t.Errorf("spans %v, want %v", got, want)
	}
}

// TestUtilizationOfCores: a reservation of cores counts with these, not with its node.
func TestUtilizationOfCores(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	r := &cluster.Reservation{
		Name: "r", Start: epoch, End: epoch.Add(time.Hour), Nodes: []cluster.NodeName{"n1"},
		Cores: []int{2}, CPUs: []cluster.IDSet{cluster.RangeIDSet(0, 1)},
	}
	d.Apply(1, []cluster.Event{
		{
			Node: &cluster.Node{Name: "n1", Up: true, Inventory: cluster.Inventory{CPUs: 8, MemMB: 100}},
			At:   epoch, Idle: true,
		},
		{Resv: r, At: epoch},
	})
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	span := cluster.Span{From: epoch.Unix(), To: epoch.Add(time.Hour).Unix()}
	got, err := d.Utilization(t.Context(), span)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range got {
		if want := map[string]float64{"cpu": 2 * 3600, "mem": 0}[u.TRES]; u.Allocated != want {
			t.Errorf("%s: %v allocated, want %v", u.TRES, u.Allocated, want)
		}
	}
	spans, err := d.Reservations(t.Context(), span)
	if err != nil || len(spans) != 1 || !slices.Equal(spans[0].TRES, []cluster.Amount{{TRES: "cpu", N: 2}}) {
		t.Errorf("%v %+v, want one reservation of 2 CPUs", err, spans)
	}
}

// TestUtilizationOfGPUs: a reservation of GPUs counts with these and its CPUs, as planned time.
func TestUtilizationOfGPUs(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	r := &cluster.Reservation{
		Name: "r", Start: epoch, End: epoch.Add(time.Hour), Nodes: []cluster.NodeName{"n1"},
		GRES: []cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}},
		CPUs: []cluster.IDSet{cluster.RangeIDSet(0, 0)}, GPUs: []cluster.IDSet{cluster.RangeIDSet(0, 1)},
	}
	inv := cluster.Inventory{CPUs: 8, MemMB: 100, GPUs: []cluster.GPU{{Type: "h100"}, {Type: "h100"}, {Type: "h100"}}}
	d.Apply(1, []cluster.Event{
		{Node: &cluster.Node{Name: "n1", Up: true, Inventory: inv}, At: epoch, Idle: true},
		{Resv: r, At: epoch},
	})
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	span := cluster.Span{From: epoch.Unix(), To: epoch.Add(time.Hour).Unix()}
	got, err := d.Utilization(t.Context(), span)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"cpu": 3600, "gres/gpu": 2 * 3600, "gres/gpu:h100": 2 * 3600}
	for _, u := range got {
		if u.Allocated != want[u.TRES] {
			t.Errorf("%s: %v allocated, want %v", u.TRES, u.Allocated, want[u.TRES])
		}
	}
	spans, err := d.Reservations(t.Context(), span)
	if err != nil || len(spans) != 1 || cluster.AmountOf(spans[0].TRES, "gres/gpu") != 2 {
		t.Errorf("%v %+v, want one reservation of 2 GPUs", err, spans)
	}
}

// TestOlderHistory: a file of the first schema gets the tables of usage from its records.
func TestOlderHistory(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, dir)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 50 {
		life := randomJob(r, i+1)
		d.Apply(uint64(i+1), []cluster.Event{{Job: life[len(life)-1]}})
	}
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := tables(t, d.DB)
	if _, err := d.w.Exec("DROP TABLE run; DROP TABLE class; DROP TABLE load; DROP TABLE node; DROP TABLE resv; PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	d.stop()
	d = openDB(t, dir)
	defer d.stop()
	if got := tables(t, d.DB); len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the tables of an older file have %d rows, want %d", len(got), len(want))
	}
}
