package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestSimFolder: what cannot be written at the end is refused before the replay.
func TestSimFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", dir + "/x-": "", dir + "/none/x-": "no such file or directory; make that folder",
		file + "/x-": "it is no folder",
	} {
		err := checkFolder("out", path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("--out %q: %v, want %q", path, err, want)
		}
	}
}

// simOf runs muster sim and returns what it prints.
func simOf(t *testing.T, args ...string) (string, error) {
	t.Helper()
	old := os.Stdout
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = f
	app := &cli.App{
		Name: "muster", Commands: []*cli.Command{simCommand()},
		ExitErrHandler: func(*cli.Context, error) {},
	}
	err = app.Run(append([]string{"muster", "sim", "--quiet"}, args...))
	os.Stdout = old
	_ = f.Close()
	text, _ := os.ReadFile(path)
	return string(text), err
}

// smallLog writes a log without limits.
func smallLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.swf")
	text := "; MaxProcs: 4\n"
	for k, job := range []string{"0 3 100", "10 4 7300", "20 1 50", "30 1 500"} {
		w := strings.Fields(job)
		text += fmt.Sprintf("%d %s -1 %s %s -1 -1 %s -1 -1 1 %d 1 1 1 1 -1 -1\n", k, w[0], w[2], w[1], w[1], k%2)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSimOptions: options may stand behind the trace, and what is wrong with them is said.
func TestSimOptions(t *testing.T) {
	log := smallLog(t)
	want, err := simOf(t, "--limit", "runtime", "--policy", "fifo,easy", log)
	if err != nil || !strings.Contains(want, "jobs") {
		t.Fatalf("%v\n%s", err, want)
	}
	for _, args := range [][]string{
		{log, "--limit=runtime", "--policy", "fifo,easy"},
		{"--policy=fifo,easy", log, "-limit", "runtime", "--quiet"},
	} {
		if got, err := simOf(t, args...); err != nil || got != want {
			t.Errorf("%q: %v\n%s\nwant\n%s", args, err, got, want)
		}
	}
	for want, args := range map[string][]string{
		"--limit=runtime replays them":  {log},
		"--limit guess is not known":    {log, "--limit", "guess"},
		"option --polcy is not known":   {log, "--polcy", "easy"},
		"wants a value behind it":       {log, "--policy"},
		"got 2 traces":                  {log, log},
		"option --quiet maybe":          {log, "--quiet=maybe"},
		`--policy "best" is not known`:  {log, "--policy", "best"},
		"give one or the other":         {"--from", "accounting", log},
		"--pace 0 is none":              {log, "--limit=runtime", "--pace=0"},
		"--pace NaN is none":            {log, "--limit=runtime", "--pace", "NaN"},
		"give a trace, --from":          {"--faults", "llama3", log},
		`--assume: "moon" is not known`: {"--faults", "llama3", "--assume", "moon=1"},
		"--assume is for --faults":      {log, "--assume", "spares=1"},
		"--faults: open /nowhere":       {"--faults", "/nowhere"},
		"no such file or directory; ma": {log, "--limit=runtime", "--svg", "/nowhere/x.svg"},
	} {
		if _, err := simOf(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestSimCompare: what the default and others make of a log, in words, with a picture.
func TestSimCompare(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "x.svg")
	got, err := simOf(t, smallLog(t), "--limit=runtime", "--compare", "--svg", picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"small.swf: 4 jobs, 2 users, 1 node.",
		"the sooner the larger its share of the cluster",
		"default", "strict order", "EASY", "SJBF", "conservative",
		"jobs wait, on average",
		"nobody waits longer than                         9 min",
		"the cluster is in use",
		"Beside EASY, with the default:\n  the average wait is 92 % shorter\n",
		"The picture of it: " + picture,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if svg, err := os.ReadFile(picture); err != nil || !strings.Contains(string(svg), "wait by size") {
		t.Errorf("the picture: %v\n%s", err, svg)
	}
}

// TestInUse: what is alike is told as alike.
func TestInUse(t *testing.T) {
	for want, pair := range map[string][2]float64{"95.7 % of the cluster are in use, as with EASY": {0.9571, 0.9569},
		"95.7 % of the cluster are in use instead of 95.9 %": {0.957, 0.959}} {
		if got := inUse(pair[0], pair[1]); got != want {
			t.Errorf("%v: %s, want %s", pair, got, want)
		}
	}
}

// TestSpan: times are told by their two largest units.
func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0 s", 59.4: "59 s", 61: "1 min", 3599: "60 min", 3660: "1 h 01 min", 200_000: "2 d 07 h",
	} {
		if got := span(seconds); got != want {
			t.Errorf("%v s: %s, want %s", seconds, got, want)
		}
	}
	for want, pair := range map[string][2]float64{
		"the same": {0, 0}, "50 % shorter": {5, 10}, "10 % longer": {11, 10}, "longer": {300, 0},
	} {
		if got := change(pair[0], pair[1]); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %s, want %s", pair, got, want)
		}
	}
}

// TestSimFaults: the ways to meet faults are printed side by side, and the same input gives the same text.
func TestSimFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.csv")
	if err := os.WriteFile(path, []byte("cause,count,effect\nGPU,6,gpu\nbug,2,crash\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--faults", path, "--assume", "nodes=4,reserve=2,spares=1,days=3"}
	got, err := simOf(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"requeue only", "spares (1)", "effective training time (%)", "nodes replaced by spares"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if again, err := simOf(t, args...); err != nil || again != got {
		t.Errorf("%v\n%s", err, again)
	}
}
