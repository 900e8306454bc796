package slurm

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

// TestScontrolVerbs: the verbs about daemons and processes answer with Slurm's texts and exit codes.
func TestScontrolVerbs(t *testing.T) {
	const unsupported = "scontrol: error: Requested operation not supported on this system\n--- rc 1\n"
	f := slurmtest.New()
	mux := f.Mux()
	slurmtest.Logged(mux, f, api.NotifyJob)
	slurmtest.Logged(mux, f, api.SetLogLevel)
	slurmtest.Logged(mux, f, api.TransferLead)
	api.Handle(mux, api.ListProcesses, func(_ context.Context, _ api.Caller, q api.ProcessQuery) (out api.ProcessesResponse, _ error) {
		out.Nodes = slurmtest.Nodes(1, 1)
		if q.Job == 0 || q.Job == 735 {
			p := api.StepProcess{PID: 4711, Node: "gpu-node-001"}
			p.ID.Job = 735
			out.Processes = []api.StepProcess{p, {ID: p.ID, PID: 4712, Task: -1}}
		}
		return out, nil
	})
	f.Own = mux
	const head = "PID      JOBID    STEPID   LOCALID GLOBALID\n"
	for line, want := range map[string]string{
		"notify":                 "--- stderr\ntoo few arguments for keyword:notify\n--- rc 1\n",
		"notify 735":             "--- stderr\ntoo few arguments for keyword:notify\n--- rc 1\n",
		"notify 99999 hi":        "--- stderr\njob notify failure: Invalid job id specified\n--- rc 1\n",
		"notify 736 hi":          "--- stderr\njob notify failure: Requested operation is presently disabled\n--- rc 1\n",
		"notify 735 hello there": "",
		"completing foo":         "--- stderr\ntoo many arguments for keyword:completing\n--- rc 1\n",
		"listpids":               head + "4711     735      0        0       0       \n4712     735      0        -       -       \n",
		"listpids 735.7":         head + "--- stderr\nStepId=735.7 does not exist on node gpu-node-001.\n--- rc 1\n",
		"listpids 77":            head + "--- stderr\nThere are no steps for job 77 on node gpu-node-001.\n--- rc 1\n",
		"listpids abc":           "--- stderr\n\"abc\" does not look like a jobid\n--- rc 1\n",
		"pidinfo":                "--- stderr\nmissing argument for keyword:pidinfo\n--- rc 1\n",
		"pidinfo 1":              "--- stderr\nFailed to locate job for requested pid\n--- rc 1\n",
		"errnumstr":              "--- stderr\none arguments required for keyword:errnumstr\n--- rc 1\n",
		"errnumstr x":            "--- stderr\nnumeric arguments required for keyword:errnumstr\n--- rc 1\n",
		"errnumstr 0":            "No error\n",
		"errnumstr 2":            "No such file or directory\n",
		"errnumstr 2017":         "Invalid job id specified\n",
		"errnumstr 99999":        "Unknown error 99999\n",
		"takeover 0":             "--- stderr\ntakeover: invalid backup controller index (0)\nwhy: servers that do not lead: 1; see scontrol ping\n--- rc 1\n",
		"takeover abc":           "--- stderr\ntakeover: invalid backup controller index (0)\nwhy: servers that do not lead: 1; see scontrol ping\n--- rc 1\n",
		"wait_job 736": "--- stderr\nscontrol: Job 736 no longer running\nwhy: it is pending: " +
			"wait_job is about the nodes of a running job, sbatch --wait or muster follow wait for one\n--- rc 1\n",
		"wait_job 734":           "--- stderr\nscontrol: Nodes are ready for job 734\n",
		"callerid":               "--- stderr\ntoo few arguments for keyword:callerid\n--- rc 1\n",
		"version x":              "slurm-wlm 22.05.8\n--- stderr\ntoo many arguments for version keyword\n--- rc 1\n",
		"exit now":               "--- stderr\ntoo many arguments for keyword:exit\n--- rc 1\n",
		"listpids 735.batch":     head + "--- stderr\n\"735.batch\" does not look like a stepid\n",
		"takeover 1 2":           "--- stderr\ntakeover: too many arguments\n--- rc 1\n",
		"setdebug":               "--- stderr\ntoo few arguments for keyword:setdebug\n--- rc 1\n",
		"setdebug foo":           "--- stderr\ninvalid debug level: foo\n--- rc 1\n",
		"setdebug debug3":        "",
		"setdebugflags foo":      "--- stderr\ninvalid debug flag: foo\nUsage: setdebugflags [+|-]NAME\n--- rc 1\n",
		"schedloglevel 5":        "--- stderr\ninvalid schedlog level: 5\n--- rc 1\n",
		"fsdampeningfactor abc":  "--- stderr\ninvalid dampening factor: abc\n",
		"shutdown foo":           "--- stderr\ninvalid shutdown argument:foo\n--- rc 1\n",
		"write foo":              "--- stderr\ninvalid write argument:foo\n--- rc 1\n",
		"show assoc_mgr foo=bar": "--- stderr\ninvalid entity: foo=bar for keyword:show assoc_mgr\n--- rc 1\n",
	} {
		if got := runLine(f, t, 0, nil, strings.Fields("scontrol "+line)...); got != want {
			t.Errorf("scontrol %s: got\n%s\nwant\n%s", line, got, want)
		}
	}
	for _, line := range []string{
		"abort", "shutdown", "setdebugflags +Gres", "setdebugflags -Gres", "schedloglevel 1", "callerid 1 2 3 4 4", "fsdampeningfactor 3",
	} {
		if got := runLine(f, t, 0, nil, strings.Fields("scontrol "+line)...); !strings.HasSuffix(got, unsupported) || strings.Count(got, "\n") != 4 {
			t.Errorf("scontrol %s is refused without the way out: %q", line, got)
		}
	}
	if log := strings.Join(f.Log, "\n"); !strings.Contains(log, "hello there") || !strings.Contains(log, `"level":"debug"`) {
		t.Errorf("calls: %s", log)
	}
}

// TestScontrolWriteConfig: the file is named as Slurm names it, and holds the configuration.
func TestScontrolWriteConfig(t *testing.T) {
	dir := t.TempDir()
	out := runLine(slurmtest.New(), t, 0, nil, "scontrol", "write", "config", dir+"/slurm.conf")
	files, _ := filepath.Glob(dir + "/slurm.conf.2026-11-2?T*")
	if len(files) != 1 || !strings.HasPrefix(out, "Slurm config saved to "+dir+"/slurm.conf.2026-11-2") {
		t.Fatalf("files %v: %s", files, out)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "PartitionName=train") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestScontrolAssocMgr: the books with what jobs use, and its filters.
func TestScontrolAssocMgr(t *testing.T) {
	f := slurmtest.New()
	mux := f.Mux()
	slurmtest.WithBooks(mux, f)
	f.Own = mux
	var b strings.Builder
	for _, line := range []string{"scontrol show assoc_mgr users=none accounts=team-a flags=a,q",
		"scontrol show assoc_mgr users=none flags=users",
		"scontrol show assoc_mgr qos=high flags=qos,assoc accounts=none",
		"scontrol -o show assoc_mgr users=none accounts=team-a flags=a,q",
		"scontrol -o show assoc_mgr flags=users",
		"scontrol show slurmd gpu-node-001", "scontrol show slurmd nosuch", "scontrol show slurmd",
		"scontrol show licenses", "scontrol -o show licenses",
		"scontrol show assoc_mgr flags=foo"} {
		b.WriteString("$ " + line + "\n" + runLine(f, t, 0, nil, strings.Fields(line)...))
	}
	text := uidOfUser.ReplaceAllString(b.String(), "$1(UID)") // this machine may have users of these names
	golden(t, filepath.Join("testdata", "scontrol-assoc.txt"), text)
}

// uidOfUser is a user with the number that the machine has for the name.
var uidOfUser = regexp.MustCompile(`(UserName=\w+)\(\d+\)`)

// prompts are lines that scontrol begins, with what was read there.
var prompts = regexp.MustCompile(`(?m)^scontrol: .*\n`)

// TestScontrolInteractive: commands are read from the input; the settings among them hold for those after them.
func TestScontrolInteractive(t *testing.T) {
	const version = "slurm-wlm 22.05.8\n"
	ask := func(t *testing.T, input string) (out, errs string, code int) {
		var o, e strings.Builder
		sys := &front.Sys{Prog: "scontrol", Stdin: strings.NewReader(input), Stdout: &o, Stderr: &e,
			Dial: slurmtest.New().Dial(t), Now: func() time.Time { return slurmtest.Clock }}
		code = Main([]string{"scontrol"}, sys)
		return prompts.ReplaceAllString(o.String(), ""), e.String(), code
	}
	for input, want := range map[string]struct {
		out, errs string
		code      int
	}{
		"version":                 {version, "", 0},
		"   version   \n":         {version, "", 0},
		"foo\nversion\n":          {version, "invalid keyword: foo\n", 1},
		"version\n!!\n!!\nexit\n": {version + version + version, "", 0},
		"!!\n":                    {"", "", 1},
		"ex\nversion\n":           {"", "", 0},
		"e\nexit\n":               {"", "invalid keyword: e\n", 1},
		"quit now\nversion\n":     {"", "too many arguments for keyword:quit\n", 1},
		"oneliner x\nquit\n":      {"", "too many arguments for keyword:oneliner\n", 1},
		"verbose x\nquit\n":       {"", "too many arguments for verbose keyword\n", 1},
		"cluster\nversion\nquit":  {version, "", 0},
		"cluster nope\nversion\n": {"", "scontrol: error: No cluster 'nope' known by database.\n" +
			"scontrol: error: 'nope' can't be reached now, or it is an invalid entry for --cluster.  " +
			"Use 'sacctmgr list clusters' to see available clusters.\n", 1},
	} {
		t.Run(input, func(t *testing.T) {
			if out, errs, code := ask(t, input); out != want.out || errs != want.errs || code != want.code {
				t.Errorf("%q %q %d, want %q %q %d", out, errs, code, want.out, want.errs, want.code)
			}
		})
	}
	one, _, _ := ask(t, "oneliner\nshow node gpu-node-001\nquit")
	long, _, _ := ask(t, "show node gpu-node-001\noneliner\nquit")
	if strings.Count(one, "\n") != 1 || strings.Count(long, "\n") < 5 {
		t.Errorf("oneliner: %q, before it %q", one, long)
	}
	if out, errs, _ := ask(t, "update jobid=736 comment=\"a b\"\nquit"); errs != "" || out != "" {
		t.Errorf("blanks between quotes: %q %q", out, errs)
	}
}
