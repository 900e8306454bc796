package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dev.muster/slurm/slurmtest"
)

// lintOf are the notes on a script of this name and text, without its path; the cluster of the fake server answers
// if wanted.
func lintOf(t *testing.T, name, text string, answers bool) []string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		name: text, "train.py": "DataLoader(d, num_workers=8)\n",
		"one.py": "DataLoader(d, num_workers=0)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sys := slurmtest.Sys("muster lint", dir)
	if answers {
		f := slurmtest.New()
		f.Own = f.Mux()
		slurmtest.WithBooks(f.Own, f)
		sys.Dial = f.Dial(t)
	}
	code := runLint(sys, []string{filepath.Join(dir, name)})
	if text := sys.Stderr.(*bytes.Buffer).String(); text != "" || code < 0 || code > 1 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	out := strings.ReplaceAll(strings.TrimSuffix(sys.Stdout.(*bytes.Buffer).String(), "\n"),
		filepath.Join(dir, name), "F")
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// lintCases has, for each rule, scripts that it speaks of, and ones that it leaves alone. All have #! and --time in
// front.
var lintCases = []struct {
	rule, text string
	want       string // the notes, from the beginning; empty: none
	cluster    bool
}{
	{"crlf", "#SBATCH -N1\r\ntrue\r\n", "F:1: lines end with carriage returns", false},
	{"late", "true\n#SBATCH -N2", "F:4: ignored, as it comes after the first command (line 3)", false},
	{"late", "# SBATCH -N2\ntrue", "F:3: a comment, not an option", false},
	{"late", " #SBATCH -N2\ntrue", "F:3: ignored: #SBATCH must be at the beginning", false},
	{
		"late",
		"##SBATCH -N2\n# SBATCH lines are above\ncat >x <<EOF\n#SBATCH -N4\nEOF\n" +
			"cat >y <<'EOF'\n#SBATCH -N4\nEOF\n# #SBATCH",
		"", false,
	},
	{"mistyped", "#SBACTH -N2\ntrue", "F:3: a comment, not an option: #SBACTH is written #SBATCH", false},
	{"mistyped", "#sbatch --time=3\ntrue", "F:3: a comment, not an option: #sbatch is written #SBATCH", false},
	{"mistyped", "#SBATCH -N1\n#batch - of words\n#A -b\n##SBATCH -N2\ntrue", "", false},
	{"partition", "#SBATCH -p trian\ntrue", "F:3: this cluster has no partition trian: do you mean train?", true},
	{"partition", "#SBATCH -p train,debug\ntrue", "", true},
	{"partition", "#SBATCH -p trian\ntrue", "", false},
	{"account", "#SBATCH -A teem-a\ntrue", "F:3: this cluster has no account teem-a: do you mean team-a?", true},
	{"account", "#SBATCH --account=TEAM-A\ntrue", "", true},
	{"qos", "#SBATCH --qos=hihg\ntrue", "F:3: this cluster has no QOS hihg: do you mean high?", true},
	{"qos", "#SBATCH --qos=high\ntrue", "", true},
	{
		"rendezvous", "#SBATCH -N1\ntorchrun --nnodes=1 --rdzv_backend=c10d --master_addr=a t.py",
		"F:4: torchrun with --rdzv-backend=c10d and --master-addr alone waits", false,
	},
	{"rendezvous", "#SBATCH -N1\ntorchrun --nnodes=1 --rdzv_backend=c10d --rdzv_endpoint=a:1 t.py", "", false},
	{"refused", "#SBATCH --nodes=x\ntrue", "F: sbatch refuses it: ", false},
	{
		"gpus-of-node", "#SBATCH --gres=gpu:9\ntrue",
		"F:3: asks for 9 GPUs on a node, no node of this cluster has more than 8", true,
	},
	{
		"gpus-of-node", "#SBATCH --gpus-per-node=a100:1\ntrue",
		"F:3: asks for 1 a100 GPUs on a node, no node of this cluster has more than 0", true,
	},
	{"gpus-of-node", "#SBATCH --gpus-per-node=8\ntrue", "", true},
	{"gpus-of-node", "#SBATCH --gres=gpu:9\ntrue", "", false},
	{
		"torchrun-per-node",
		"#SBATCH -N2 --ntasks-per-node=8 --gres=gpu:8\nsrun torchrun \\\n --nnodes=2 --nproc_per_node=8 t.py",
		"F:4: srun starts torchrun 8 times on each node", false,
	},
	{
		"torchrun-per-node",
		"#SBATCH -N2 --ntasks-per-node=8 --gres=gpu:8\n" +
			"srun --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=8 t.py",
		"", false,
	},
	{
		"torchrun-nodes", "#SBATCH -N4\nsrun torchrun --nnodes 2 t.py",
		"F:4: torchrun waits for --nnodes=2, the job has 4 nodes", false,
	},
	{
		"torchrun-nodes", "#SBATCH -N4\nsrun torchrun t.py",
		"F:4: torchrun without --nnodes trains on each of the 4 nodes alone", false,
	},
	{
		"torchrun-nodes", "#SBATCH -N4\ntorchrun --nnodes=$SLURM_NNODES t.py",
		"F:4: torchrun runs on the first of the 4 nodes only", false,
	},
	{"torchrun-nodes", "#SBATCH -N4\nsrun torchrun --nnodes=$SLURM_NNODES t.py", "", false},
	{"torchrun-nodes", "#SBATCH -N1\ntorchrun --standalone t.py", "", false},
	{
		"torchrun-gpus", "#SBATCH --gres=gpu:4\ntorchrun --nproc-per-node=8 t.py",
		"F:4: torchrun starts 8 workers on a node, the job has 4 GPUs there", false,
	},
	{"torchrun-gpus", "#SBATCH --gres=gpu:4\ntorchrun --nproc-per-node=gpu t.py", "", false},
	{
		"tasks-gpus", "#SBATCH --ntasks-per-node=6 --gpus-per-node=8\nsrun true",
		"F:3: 6 tasks on a node do not share its 8 GPUs evenly", false,
	},
	{"tasks-gpus", "#SBATCH --ntasks-per-node=4 --gpus-per-node=8\nsrun true", "", false},
	{"one-node", "#SBATCH -N2\npython x.py", "F:4: runs on the first of the 2 nodes only", false},
	{"one-node", "#SBATCH -N2\npython x.py --hosts $SLURM_NODELIST", "", false},
	{"data-loader", "#SBATCH -n1\nsrun python train.py", "F:4: train.py loads data by processes of their own", false},
	{"data-loader", "#SBATCH -c8\nsrun python train.py", "", false},
	{"data-loader", "#SBATCH -n1\nsrun python one.py", "", false},
	{"data-loader", "#SBATCH -n1\nsrun -c8 python train.py", "", false},
	{"memory", "#SBATCH --mem=0\ntrue", "F:3: --mem=0 takes all memory of each node", false},
	{"memory", "#SBATCH --mem=0 --exclusive\ntrue", "", false},
	{"memory", "#SBATCH --mem=0 --gres=gpu:8\ntrue", "", true},
	{"mail", "#SBATCH --mail-user=a@b.c\ntrue", "F:3: no mail is sent without --mail-type", false},
	{"mail", "#SBATCH --mail-user=a@b.c --mail-type=END\ntrue", "", false},
	{"array", "#SBATCH --array=0-1000\ntrue", "F:3: 1001 tasks may all run at once: --array=0-1000%50", false},
	{"array", "#SBATCH --array=0-999\ntrue", "", false},
	{"array", "#SBATCH --array=0-5000%20\ntrue", "", false},
}

func TestLint(t *testing.T) {
	tried := map[string]bool{"time": true, "shebang": true} // below
	for _, c := range lintCases {
		got := lintOf(t, "job.sh", "#!/bin/bash\n#SBATCH --time=10\n"+c.text+"\n", c.cluster)
		if c.want == "" && got != nil || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s, %q:\n%s\nwant %q", c.rule, c.text, strings.Join(got, "\n"), c.want)
		}
		tried[c.rule] = tried[c.rule] || c.want != ""
	}
	for _, r := range lintRules {
		if !tried[r.name] {
			t.Errorf("no case for rule %s", r.name)
		}
	}
}

// TestLintNames: all names that are wrong are told at once.
func TestLintNames(t *testing.T) {
	got := lintOf(t, "job.sh", "#!/bin/sh\n#SBACTH -t 10\n"+
		"#SBATCH -p trian\n#SBATCH -A teem-a\n#SBATCH --qos=hihg\ntrue\n", true)
	want := []string{"a comment, not an option", "no partition trian", "no account teem-a", "no QOS hihg"}
	if len(got) != len(want) {
		t.Fatalf("%d notes, want %d: %s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("%q, want %q", got[i], w)
		}
	}
}

// TestLintTime: a job without a limit is told of, unless its options may come by the command line.
func TestLintTime(t *testing.T) {
	for _, c := range []struct {
		text    string
		cluster bool
		want    string
	}{
		{"#!/bin/sh\n#SBATCH -N1\ntrue\n", false, "F: without --time it gets the partition's limit"},
		{"#!/bin/sh\n#SBATCH -N1 -p train\ntrue\n", true, "F: without --time it gets the partition's limit"},
		{"#!/bin/sh\ntrue\n", false, ""},
		{"#SBATCH -t5\ntrue\n", false, "F:1: no #! line: muster runs it with /bin/bash"},
	} {
		if got := strings.Join(lintOf(t, "job.sh", c.text, c.cluster), "\n"); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestLintFew: of many notes the three that matter most are said.
func TestLintFew(t *testing.T) {
	got := lintOf(t, "job.sh",
		"#SBATCH -N4 --ntasks-per-node=6 --gpus-per-node=8 --mem=0 --mail-user=a --array=0-2000\n"+
			"srun torchrun --nnodes=2 --nproc-per-node=4 t.py\n#SBATCH -t5\n",
		false)
	if len(got) != maxNotes || !strings.Contains(got[0], "comes after the first command") || !strings.Contains(got[1], "srun starts torchrun 6 times") || !strings.Contains(got[2], "waits for --nnodes=2") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestLintConf: of a configuration the mistakes come first, and what is left is counted.
func TestLintConf(t *testing.T) {
	got := lintOf(t, "slurm.conf",
		"NodeFeaturesPlugins=knl\nUsePam=1\nSwitchParameters=x\nMCSPlugin=x\nKillWait=abc\nSchedulerTyp=x\n",
		false)
	want := []string{"F:6: SchedulerTyp is not a setting of slurm.conf: do you mean SchedulerType?",
		"F:5: KillWait=abc is not a number; ignored",
		"F:1: nodefeaturesplugins plugins of Slurm cannot be loaded",
		"F: 3 more: muster config check F"}
	for i := range want {
		if i < len(got) {
			got[i], want[i] = strings.ToLower(got[i]), strings.ToLower(want[i])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLintUnheld: of a cluster's limits those are named that the file does not have enforced.
func TestLintUnheld(t *testing.T) {
	const enforced = "AccountingStorageEnforce=limits\nPriorityType=priority/multifactor\n"
	if got := strings.Join(lintOf(t, "slurm.conf", "ClusterName=x\n", true), "\n"); !strings.Contains(got,
		"F: MaxTRESPerUser") || !strings.Contains(got, "no job waits for it: AccountingStorageEnforce=limits") {
		t.Errorf("without enforcement: %s", got)
	}
	if got := lintOf(t, "slurm.conf", enforced, true); strings.Contains(strings.Join(got, "\n"), "no job waits") {
		t.Errorf("with enforcement: %s", got)
	}
}

// TestLintCode: what is certain to be a mistake is an error for scripts that call lint, advice is not. More GPUs than
// a node has are named beside any number of other mistakes.
func TestLintCode(t *testing.T) {
	dir := t.TempDir()
	f := slurmtest.New()
	f.Own = f.Mux()
	slurmtest.WithBooks(f.Own, f)
	check := func(text string, want int) string {
		t.Helper()
		file := filepath.Join(dir, "job.sh")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sys := slurmtest.Sys("muster lint", dir)
		sys.Dial = f.Dial(t)
		code := runLint(sys, []string{file})
		if code != want {
			t.Errorf("%q: exit code %d, want %d: %s", text, code, want, sys.Stdout)
		}
		return sys.Stdout.(*bytes.Buffer).String()
	}
	check("#!/bin/sh\n#SBATCH --time=5\ntrue\n", 0)
	if out := check("#SBATCH --time=5\ntrue\n", 0); out == "" {
		t.Error("a script without #! goes without advice")
	}
	many := "#!/bin/sh\n#SBATCH --time=5 --gpus-per-node=99\n#SBACTH -N1\n#SBATCH -p nosuch -A nosuch -q nosuch\n" +
		"true\n#SBATCH -N2\n"
	if out := check(many, 1); !strings.Contains(out, "asks for 99 GPUs on a node") {
		t.Errorf("the GPUs are not named: %s", out)
	}
}
