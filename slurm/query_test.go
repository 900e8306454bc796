package slurm

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

// runLine runs one command line and returns everything it printed.
func runLine(f *slurmtest.Server, t testing.TB, uid uint32, env []string, argv ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	sys := &front.Sys{Prog: argv[0], Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Environ: env, Dial: f.Dial(t), UID: uid,
		Now: func() time.Time { return slurmtest.Clock }, Hostname: func() (string, error) { return "vm", nil }}
	code := Main(argv, sys)
	text := out.String()
	if errs.Len() > 0 {
		text += "--- stderr\n" + errs.String()
	}
	if code != 0 {
		text += "--- rc " + strconv.Itoa(code) + "\n"
	}
	return text
}

// goldens are files of testdata and the command lines whose output they hold.
var goldens = []struct {
	file  string
	lines []string
}{
	{"squeue",
		[]string{"squeue", "squeue -l", "squeue -t all", "squeue --start", "squeue -r -n arr",
			"squeue -P -n longer-name-than-eight", "squeue -s", "squeue -s735.0",
			"squeue -j 737_3,745", "squeue -j 99999", "squeue -j 99999,99998", "squeue -j abc",
			"squeue -t junk", "squeue -t cg,f -h", "squeue -S -i -o %i -h", "squeue -w nonode",
			"squeue -u nouser", "squeue foo", "squeue -h -o %i|%5i|%.5i|%-5i|%!|%.2M|%2M|%.3N -j 735",
			"squeue -M oracle -h -j734"}},
	{"squeue-all", []string{"squeue -t all -o %all", "squeue -s -o %all"}},
	{
		"squeue-long",
		[]string{
			"squeue -j735 -O jobid:,userid:5xyz,name:.6",
			"squeue -O jobarrayid:.12,arraytaskid,state:4,foo,tres-alloc:60",
			"squeue -j739 -O cpus-per-tres,mem-per-tres,tres-per-task",
			"squeue -O jobid:8,foo:20.,name:8", "squeue -s -O stepid:12,foo:9|,stepname",
			"squeue -t all -O jobid:6,containerid:8,containertype:8,cpuspertask:4,cronjob:5,exclusive:10," +
				"excnodes:14,licensesalloc:12,segmentsize:5,sluid:6",
		},
	},
	{"squeue-json", []string{"squeue -j735 --json", "squeue -j741 --yaml=v0.0.44", "squeue --json=list",
		"squeue --json=v0.0.1"}},
	{"sinfo",
		[]string{"sinfo", "sinfo -l", "sinfo -N", "sinfo -N -l", "sinfo -s", "sinfo -R", "sinfo -R -l",
			"sinfo -p train -t idle", "sinfo -t alloc", "sinfo -n nosuch", "sinfo -p nosuch",
			"sinfo -t junk", "sinfo -d", "sinfo -r -h", "sinfo -o %N", "sinfo -o %P|%A|%F|%C",
			"sinfo -o %q|%5P|%.9P|%N", "sinfo -O foo,partition:2,nodeaiot:8,gresused",
			"sinfo -N -O nodelist,statecomplete", "sinfo -T", "sinfo -O partition:12,foo:4::,reservation:12,nodes:5",
			"sinfo -o %P|%i|"}},
	{"sinfo-all", []string{"sinfo -o %all", "sinfo -e -p train"}},
	{
		"scontrol-job",
		[]string{
			"scontrol show job", "scontrol -d show job 735", "scontrol -o show job 736",
			"scontrol show job 737", "scontrol show job 737_3", "scontrol show job 99999",
		},
	},
	{"scontrol-show",
		[]string{"scontrol show node gpu-node-004", "scontrol -o show node gpu-node-[007-008]",
			"scontrol show node nox", "scontrol -d show node gpu-node-002",
			"scontrol show partition", "scontrol -o show partition debug", "scontrol show partition nox",
			"scontrol show step", "scontrol show topology", "scontrol show config",
			"scontrol show reservation", "scontrol show foo", "scontrol show", "scontrol foo",
			"scontrol ping", "scontrol version", "scontrol top 5",
			"scontrol show hostnames a[1-3],b", "scontrol show hostlist a1,a2,a4",
			"scontrol show hostlistsorted a3,a1,a2", "scontrol show hostname"}},
	{"scontrol-change",
		[]string{"scontrol hold 734 737_3", "scontrol uhold 734", "scontrol release 99999", "scontrol hold",
			"scontrol hold run1", "scontrol requeue 734", "scontrol requeuehold state=specialexit 734",
			"scontrol suspend 734,735", "scontrol resume 99999",
			"scontrol update JobId=734 TimeLimit=+10 Partition=debug nice=5",
			"scontrol update jobid=734 timelimit=1:00:00 starttime=now+1hour",
			"scontrol update jobid=734 foo=bar", "scontrol update jobid=734", "scontrol update foo=bar",
			"scontrol update jobid=99999 name=x",
			"scontrol update nodename=gpu-node-00[1-2] state=drain reason=bad",
			"scontrol update nodename=gpu-node-001 state=drain",
			"scontrol update nodename=gpu-node-001 state=xyz",
			"scontrol update partition=debug state=down maxtime=1:00:00",
			"scontrol update partition=nope state=up",
			"scontrol update partition=debug foo=bar", "scontrol create partition=new nodes=gpu-node-001",
			"scontrol create partition=debug", "scontrol delete partition=debug", "scontrol delete foo",
			"scontrol delete jobid=3",
			"scontrol create NodeName=new[1-2] CPUs=2 RealMemory=100 State=CLOUD",
			"scontrol create NodeName=new1 CPUs=2", "scontrol create nodename=new1 Foo=2 State=CLOUD",
			"scontrol create node new1",
			"scontrol delete NodeName=new[1-2]", "scontrol delete node new1", "scontrol reboot",
			"scontrol reboot gpu-node-001", "scontrol reboot nextstate=foo a", "scontrol reboot a b",
			"scontrol cancel_reboot", "scontrol cancel_reboot a b", "scontrol cancel_reboot gpu-node-001",
			"scontrol update nodename=gpu-node-001 state=cancel_reboot", "scontrol ping foo",
			"scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL flags=maint",
			"scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL partitionname=debug",
			"scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL nodecnt=2",
			"scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL flags=all_nodes"}},
	{"scontrol-words",
		[]string{"scontrol update reservationname=MISSING badword",
			"scontrol update reservationname=MISSING badword=1",
			"scontrol update reservationname=MISSING duration=x badword",
			"scontrol update reservationname=MISSING duration",
			"scontrol update reservationname=MISSING skip", "scontrol update reservationname=MISSING =5",
			"scontrol update reservationname", "scontrol update reservation ra badword",
			"scontrol update badword=1 reservationname=ra",
			"scontrol update badword nodename=gpu-node-001", "scontrol update badword",
			"scontrol update badword=3", "scontrol update nodename=nope comment=x badword",
			"scontrol update nodename=nope badword=1", "scontrol update nodename=gpu-node-001 state",
			"scontrol update nodename foo", "scontrol update node gpu-node-001 badword",
			"scontrol update partitionname=nope badword", "scontrol update partitionname=nope badword=1",
			"scontrol update partitionname=nope =5", "scontrol update partitionname=debug state",
			"scontrol update partitionname=nope state=up", "scontrol update partition debug badword",
			"scontrol update jobid=999999 badword", "scontrol update jobid=999999 badword=1",
			"scontrol update jobid=999999 timelimit=5 badword", "scontrol update jobid=734 timelimit",
			"scontrol update job 734 badword", "scontrol update job badword", "scontrol update jobid",
			"scontrol create reservation", "scontrol create reservation badword",
			"scontrol create reservationname=ra badword", "scontrol create reservationname=ra badword=1",
			"scontrol create res duration=x badword", "scontrol create reservationname",
			"scontrol create partitionname=pa badword", "scontrol create partitionname=pa badword=1",
			"scontrol create partitionname=debug nodes", "scontrol create partition pa badword",
			"scontrol create partitionname", "scontrol create badword", "scontrol create badword=1",
			"scontrol create badword partitionname=pa", "scontrol create badword=1 partitionname=pa",
			"scontrol create node badword"}},
}

func TestQueryGolden(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	for _, g := range goldens {
		t.Run(g.file, func(t *testing.T) {
			f := slurmtest.New()
			var b strings.Builder
			for _, line := range g.lines {
				f.Log = nil
				b.WriteString("$ " + line + "\n" + runLine(f, t, 0, nil, strings.Fields(line)...))
				for _, l := range f.Log {
					b.WriteString("=> " + l + "\n")
				}
			}
			golden(t, filepath.Join("testdata", g.file+".txt"), b.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Fatalf("%s:%d (go test ./slurm -run Golden -update)\nwant %q\n got %q", file, i+1, at(w, i), at(g, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "<end>"
}

func TestQueueEnvironment(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	f := slurmtest.New()
	for _, c := range []struct{ env, line, want string }{
		{"SQUEUE_FORMAT=%i", "squeue -j734", "JOBID\n734\n"},
		{"SQUEUE_FORMAT2=jobid:5,name", "squeue -j734 -h", "734  run1                \n"},
		{"SQUEUE_SORT=-i", "squeue -h -o %A -j734,735", "735\n734\n"},
		{"SLURM_TIME_FORMAT=relative", "squeue -h -o %S -j734", "05:51:28\n"},
		{"SLURM_TIME_FORMAT=%H.%M", "squeue -h -o %S_%M -j734", "05.51_0:03\n"},
		{"SQUEUE_STATES=F", "squeue -h -o %i", "741\n"},
		{"SLURM_JOB_NODELIST=a[1-2]", "scontrol show hostnames", "a1\na2\n"},
	} {
		if got := runLine(f, t, 0, []string{c.env}, strings.Fields(c.line)...); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.env, c.line, got, c.want)
		}
	}
}

func TestQueryJSON(t *testing.T) {
	for _, c := range []struct{ line, list string }{
		{"squeue --json", "jobs"}, {"squeue --json -s", "steps"}, {"sinfo --json", "sinfo"}, {"sinfo --json", "nodes"},
		{"scontrol --json show job", "jobs"}, {"scontrol --json show node", "nodes"},
	} {
		var got map[string]any
		text := runLine(slurmtest.New(), t, 0, nil, strings.Fields(c.line)...)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", c.line, err)
		} else if list, ok := got[c.list].([]any); !ok || len(list) < 3 {
			t.Errorf("%s: no list %s", c.line, c.list)
		}
	}
}

// TestUpdateWords has what a Slurm 22.05 said of values of update job, and what it took.
func TestUpdateWords(t *testing.T) {
	f := &slurmtest.Server{}
	for line, want := range map[string]string{
		"endtime=bad":           "Invalid time specification (pos=0): bad\n",
		"starttime=bad":         "Invalid time specification (pos=0): bad\n",
		"mailtype=nope":         "Invalid MailType: nope\n",
		"numnodes=abc":          "scontrol: error: Invalid numeric value \"abc\" for requested node count.\n",
		"delayboot=abc":         "scontrol: error: Invalid DelayBoot value\n",
		"resetaccruetime=yes":   "Update of this parameter is not supported: resetaccruetime=yes\nRequest aborted\n",
		"burstbuffer=#BB_LUA x": "Requested operation not supported on this system for job 734\n",
		"delayboot=7":           "", "resetaccruetime": "", "cpuspertres=gres:gpu:2": "",
		"cpuspertres=gres:gpu:abc": "scontrol: error: Invalid cpuspertres value: gres:gpu:abc\nRequest aborted\n",
		"tres=cpu:1":               "Update of this parameter is not supported: tres=cpu:1\nRequest aborted\n",
		"mailtype=NONE":            "", "endtime=2027-01-01T00:00:00": "",
	} {
		got := runLine(f, t, 0, nil, "scontrol", "update", "jobid=734", line)
		if want != "" {
			want = "--- stderr\n" + want
			if !strings.HasPrefix(line, "numnodes") { // nothing is asked for, and Slurm takes that for a success
				want += "--- rc 1\n"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := strings.Join(f.Log, " "); !strings.Contains(got, `"mail_type":["NONE"]`) || !strings.Contains(got, `"end":"2027-01-01T00:00:00`) || !strings.Contains(got, `"delay_boot":420000000000`) ||
		!strings.Contains(got, `"reset_accrue":true`) || !strings.Contains(got, `"cpus_per_gpu":2`) {
		t.Errorf("asked for %s", got)
	}
}
