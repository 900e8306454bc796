package report

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
	"dev.muster/slurm/slurmtest"
)

// TestBriefHistorySuffices: so do the fields that sacct shows from brief records, of jobs and of steps.
func TestBriefHistorySuffices(t *testing.T) {
	o := &sacctOptions{}
	v := &show.View{
		Now:  slurmtest.BriefTime.Add(10 * time.Minute),
		Conf: &api.ClusterResponse{Config: cluster.Config{ClusterIdentity: cluster.ClusterIdentity{ClusterName: "c"}}},
	}
	steps := []*cluster.Step{{ID: cluster.StepID{Job: 3, Step: 0}, Name: "s", Tasks: 2,
		Started: slurmtest.BriefTime, Ended: slurmtest.BriefTime.Add(time.Minute), Outcome: cluster.Completed,
		Shares: []cluster.Share{{Node: "x1", CPUs: cluster.RangeIDSet(0, 1)}}}}
	for _, name := range strings.Fields(briefFields) {
		i := slices.IndexFunc(acctColumns[:], func(c acctColumn) bool { return c.name == name })
		if i < 0 {
			t.Errorf("field %s does not exist", name)
			continue
		}
		col := acctColumns[i].sized(0)
		for _, j := range slurmtest.JobsOfLists() {
			full := o.rows(v, &api.JobHistory{Job: j, Steps: steps})
			brief := o.rows(v, &api.JobHistory{Job: slurmtest.BriefOf(j), Steps: steps})
			for k := range full {
				if a, b := col.cell(&full[k]), col.cell(&brief[k]); a != b {
					t.Errorf("%s of job %d: %q from a full record, %q from a brief one", name, j.ID, a, b)
				}
			}
		}
	}
}

// TestSacctFilters: the values of sacct's filters, and how wrong ones are refused.
func TestSacctFilters(t *testing.T) {
	for _, c := range []struct {
		set  func(*sacctOptions, string) error
		v    string
		want string
	}{
		{setSacctFlags, "SchedMain,schedbackfill", ""},
		{setSacctFlags, "nope", "sacct: error: str_2_job_flags: Invalid job flag nope"},
		{setSacctGroups, "0", ""},
		{setSacctGroups, "nogroup_x", "sacct: error: Invalid group id: nogroup_x"},
		{setSacctUnits, "g", ""},
		{setSacctJobs, ",0,0.1", ""},
		{setSacctJobs, "x", "sacct: fatal: Bad job/step specified: x"},
		{setSacctNodes, "", ""},
		{setWholeHet, "x", `sacct: error: Invalid --whole-hetjob value "x". Valid values: [yes|no].`},
		{
			setSacctUnits, "X",
			"sacct: error: Invalid unit type 'X'. Possible options are 'KMGTP'\nsacct: fatal: Invalid unit type",
		},
		{func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "1-2", ""},
		{
			func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "x",
			"sacct: error: Invalid numeric value \"x\" for requested cpu range.",
		},
		{func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "1:00:00", ""},
		{
			func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "abc",
			"sacct: fatal: Invalid time limit specification",
		},
	} {
		var o sacctOptions
		got := ""
		if err := c.set(&o, c.v); err != nil {
			got = strings.Join(err.(*opt.UsageError).Lines, "\n")
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.v, got, c.want)
		}
	}
}

// TestSacctShows: -j JOB.STEP selects that step alone.
func TestSacctShows(t *testing.T) {
	job := &cluster.Job{ID: 5}
	rows := map[string]acctRow{"5": {JobRow: show.JobRow{Job: job}}}
	for name, n := range map[string]int{
		"5.batch": cluster.BatchStep, "5.extern": cluster.ExternStep, "5.0": 0, "5.1": 1,
	} {
		rows[name] = acctRow{JobRow: show.JobRow{Job: job}, step: &cluster.Step{ID: cluster.StepID{Job: 5, Step: n}}}
	}
	for list, want := range map[string]string{
		"5": "5 5.batch 5.extern 5.0 5.1", "5.1": "5.1", "5.batch,5.0": "5.batch 5.0",
		"5.0,5": "5 5.batch 5.extern 5.0 5.1", "6": "5 5.batch 5.extern 5.0 5.1",
	} {
		var o sacctOptions
		if err := setSacctJobs(&o, list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"5", "5.batch", "5.extern", "5.0", "5.1"} {
			if r := rows[name]; o.shows(&r) {
				got = append(got, name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("-j %s: %s, want %s", list, text, want)
		}
	}
}

// runSacct is what sacct says to a line, and how it ends.
func runSacct(t *testing.T, f *slurmtest.Server, line string) string {
	t.Helper()
	f.Own = f.Mux()
	slurmtest.WithBooks(f.Own, f)
	sys := slurmtest.Sys("sacct", "/")
	var out bytes.Buffer
	sys.Stdout, sys.Stderr, sys.Dial, sys.UID = &out, &out, f.Dial(t), 0
	code := Sacct(sys, strings.Fields(line))
	return out.String() + "rc " + strconv.Itoa(code)
}

// TestSacctLines: what sacct refuses, and what an empty list of names asks for.
func TestSacctLines(t *testing.T) {
	for line, want := range map[string]string{
		"-a -s cg":      "sacct: fatal: job state cg is not supported / accounted\nrc 1",
		"-a -s stopped": "sacct: fatal: job state stopped is not supported / accounted\nrc 1",
		"-c":            "Slurm job completion is disabled\nrc 1",
		"--user=":       "rc 1",
		"--gid=":        "rc 1",
		"-S now+1day": "sacct: error: Start time (2026-11-22T14:30:00) requested" +
			" is after end time (2026-11-21T14:30:00).\nrc 1",
		"-n --accounts=": "rc 0",
	} {
		f := slurmtest.New()
		if f.Jobs = nil; runSacct(t, f, line) != want {
			t.Errorf("%s: %q, want %q", line, runSacct(t, f, line), want)
		}
	}
	for option, of := range map[string]func(*sacctOptions) []string{
		"accounts": func(o *sacctOptions) []string { return o.query.Accounts },
		"qos":      func(o *sacctOptions) []string { return o.query.QOS },
		"name":     func(o *sacctOptions) []string { return o.query.Names },
		"wckeys":   func(o *sacctOptions) []string { return o.query.WCKeys },
	} {
		i := slices.IndexFunc(SacctOptions, func(x sacctOption) bool { return x.Long == option })
		for v, want := range map[string][]string{"": {""}, "a,": {"a"}, "a,b": {"a", "b"}} {
			var o sacctOptions
			if err := SacctOptions[i].Set(&o, v); err != nil || !slices.Equal(of(&o), want) {
				t.Errorf("--%s=%s: %q, %v, want %q", option, v, of(&o), err, want)
			}
		}
	}
	var o sacctOptions
	if err := setSacctJobs(&o, "0,"); err != nil || o.byJob || o.query.Refs != nil {
		t.Errorf("-j 0, names %v, %v", o.query.Refs, err)
	}
}

// TestSacctForgedRows: a job's name begins no row. A program that reads the jobs of a Slurm cluster gets what Slurm wrote.
func TestSacctForgedRows(t *testing.T) {
	old := &cluster.ImportedJob{Cluster: "old", Release: 2605, State: 3}
	for name, c := range map[string]struct {
		line     string
		imported *cluster.ImportedJob
		want     string
	}{
		"parsed":              {"-a -n -X -P -o jobname,comment", nil, "a?99|root|b?\nrc 0"},
		"in columns":          {"-a -n -X -o jobname%-12", nil, "a?99|root    \nrc 0"},
		"imported, parsed":    {"-a -n -X -P -o jobname", old, "a\n99|root\nrc 0"},
		"imported in columns": {"-a -n -X -o jobname%-12", old, "a?99|root    \nrc 0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := slurmtest.New()
			f.Jobs = f.Jobs[:1]
			own := *f.Jobs[0].Spec
			own.Name, own.Comment = "a\n99|root", "b\x1b"
			f.Jobs[0].Spec, f.Jobs[0].Imported = &own, c.imported
			if got := runSacct(t, f, c.line); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestSacctWindow: with states and without an end, the window is the moment of its start.
func TestSacctWindow(t *testing.T) {
	now := slurmtest.Sys("sacct", "/").Now()
	from := now.Add(-time.Hour)
	for _, c := range []struct {
		o        sacctOptions
		from, to time.Time
	}{
		{sacctOptions{from: "now-1hour"}, from, time.Time{}},
		{sacctOptions{from: "now-1hour", states: []string{"CD"}}, from, from},
		{sacctOptions{from: "now-1hour", to: "now", states: []string{"CD"}}, from, now},
		{sacctOptions{states: []string{"CD"}}, now, now},
		{sacctOptions{states: []string{"CD"}, byJob: true}, time.Time{}, time.Time{}},
	} {
		c.o.sys = slurmtest.Sys("sacct", "/")
		if code := c.o.window(); code != 0 || !c.o.query.From.Equal(c.from) || !c.o.query.To.Equal(c.to) {
			t.Errorf("-S %q -E %q -s %v: %d, %v to %v",
				c.o.from, c.o.to, c.o.states, code, c.o.query.From, c.o.query.To)
		}
	}
}

// TestFieldsSince2205: fields of sacct and sstat that came after 22.05, of a batch job and of one without a script.
func TestFieldsSince2205(t *testing.T) {
	layout := &cluster.Layout{Segment: 2, Licenses: "a:1"}
	batch := &cluster.JobSpec{Layout: layout, Kind: cluster.Batch, Stdout: "/o-%j", WorkDir: "/w", QOS: "high",
		Reservation: "r", Sharing: cluster.ShareExclusive}
	start := time.Unix(1_800_000_000, 0)
	job := &cluster.Job{ID: 9, Task: cluster.TaskAny, Spec: batch, Eligible: start, Started: start.Add(time.Minute),
		Restarts: 2}
	alone := &cluster.Job{ID: 8, Task: cluster.TaskAny,
		Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Kind: cluster.Allocation, Sharing: cluster.ShareOver}}
	for name, want := range map[string][2]string{
		"Exclusive": {"NODE", "NO"}, "OverSubscribe": {"NO", "YES"}, "Licenses": {"a:1", ""},
		"Planned": {"00:01:00", "00:00:00"}, "PlannedCPURAW": {"60", "0"}, "QOSREQ": {"high", ""},
		"ReqReservation": {"r", ""}, "Restarts": {"2", "0"}, "SegmentSize": {"2", ""},
		"StdOut": {"/o-9", ""}, "StdErr": {"", ""}, "StdIn": {"/dev/null", ""}, "SLUID": {"", ""},
	} {
		i := slices.IndexFunc(acctColumns[:], func(c acctColumn) bool { return c.name == name })
		if i < 0 {
			t.Errorf("no field %s", name)
			continue
		}
		for k, j := range []*cluster.Job{job, alone} {
			row := &acctRow{JobRow: show.JobRow{Job: j, View: &show.View{Now: start}}}
			if got := acctColumns[i].job(row); got != want[k] {
				t.Errorf("%s of job %d: %q, want %q", name, j.ID, got, want[k])
			}
		}
	}
	step := &cluster.Step{Shares: []cluster.Share{
		{Node: "n1", CPUs: cluster.RangeIDSet(0, 3), GPUs: cluster.NewIDSet(0), MemMB: 1024},
		{Node: "n2", CPUs: cluster.RangeIDSet(0, 3), GPUs: cluster.NewIDSet(1), MemMB: 1024},
	}}
	const want = "cpu=8,gres/gpu=2,mem=2G,node=2"
	if got := (&statRow{stepUse: stepUse{Step: step}}).allocTRES(); got != want {
		t.Errorf("AllocTRES of a step: %q, want %q", got, want)
	}
}
